"""Set-of-Marks: marks that are legible and hide nothing whole, numbers read back, candidates and recall."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from PIL import Image

from refadv_ablate.boxes import Box
from refadv_ablate.commands.doctor import SelfTestImage, self_test
from refadv_ablate.errors import ModelUnavailable, UserError
from refadv_ablate.parsing.dialects import JsonBoxes, read
from refadv_ablate.parsing.frames import OriginalPixels, Relative
from refadv_ablate.prompting import prompts
from refadv_ablate.prompting.candidates import FileCandidates, SamCandidates, mask_box
from refadv_ablate.prompting.marks import PALETTE, draw_marks
from refadv_ablate.prompting.som import DataCandidates, Marked, MarkNumbers, recalled
from refadv_ablate.types import Candidate, Example, ModelSpec, NoBox, Perturbed, Reply, Seen

MARKS = tuple(Box(10 * i, 20 * i, 10 * i + 8, 20 * i + 9) for i in range(12))
SPEC = ModelSpec("m", "m", JsonBoxes(), Relative(), {"som": "shared/som.txt", "direct": "qwen/direct.txt"})
SOM = prompts.Style("som", candidates=DataCandidates())

ANSWERS = [
    ("[3]", [3]),
    ("3", [3]),
    ("**3**", [3]),
    ("mark 3", [3]),
    ("Mark #3.", [3]),
    ("Answer: 3", [3]),
    ('{"mark": 3}', [3]),
    ('```json\n{"mark": "3"}\n```', [3]),
    ('{"marks": [3, 4]}', [3, 4]),
    ("［３］", [3]),
    ("[3] and [4]", [3, 4]),
    ("The man is [3], next to the dog [5]. Answer: [3]", [3]),
    ("I first thought of [1] or [2]. Final answer: mark 7", [7]),
    ("It is [1]. No, wait, it is [2].", [2]),
    ("<think>[5]</think>[3]", [3]),
    ("The object is number 12", [12]),
    # the part of a mark in its sentence, as that of a box
    ("The answer is [3], not [5].", [3]),
    ("Answer: 3, not 5", [3]),
    ("mark 3 rather than mark 5", [3]),
    ("Not [5] but [3]", [3]),
    ("[3] because [5] sits", [3]),
    ("[5] is not the man; [3] is.", [3]),
    ("box 3 is the match, box 5 is behind it", [3]),
    ("答案是[3]，而不是[5]", [3]),
    ("正解は3です", [3]),
    ("Respuesta: 3", [3]),
    ('{"mark": 5, "mark": 3}', [3]),
    ('<tool_call>{"mark": 5}</tool_call>[3]', [3]),
]


@pytest.mark.parametrize(("text", "numbers"), ANSWERS)
def test_numbers_are_read_back_to_boxes(text, numbers):
    boxes = [(m.x1, m.y1, m.x2, m.y2) for m in (MARKS[n - 1] for n in numbers)]
    assert MarkNumbers(MARKS).read(text) == tuple(boxes)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("[0]", "unparsable"), ("[13]", "unparsable"), ("", "empty"), ("the man in 4 pictures", "unparsable"),
     ("I'm sorry, I can't tell.", "refused"), ("<think>[3]", "truncated"), ("[3.5]", "unparsable"),
     ("[x]", "unparsable"), ("[99999999999999999999]", "unparsable"), ("[-3]", "unparsable"),
     ("3rd", "unparsable"), ("[1/2]", "unparsable"), ("[10:30]", "unparsable"), ("3.5", "unparsable"),
     ("The answer is not [3].", "unparsable"), ('<tool_call>{"mark": 5}</tool_call>', "unparsable")],
)  # fmt: skip
def test_answers_without_a_mark(text, kind):
    answer = MarkNumbers(MARKS).read(text)
    assert isinstance(answer, NoBox)
    assert answer.kind == kind


def test_a_number_amid_cut_reasoning_is_truncated():
    for text, kind in (("I see [3] next to the", NoBox), ("Answer: [3], becau", Box)):
        found = read(
            Reply(text, finish="length"), MarkNumbers(MARKS), OriginalPixels(), Seen((200, 300), (200, 300))
        )
        assert isinstance(found.answer, kind)


# ── drawing ─────────────────────────────────────────────────────────────────────────────────────


def luminance(color) -> float:
    channels = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in color]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def test_digits_stand_out_from_their_plates():
    """WCAG contrast of white on each plate colour, 4.5 or more."""
    assert min(1.05 / (luminance(color) + 0.05) for color in PALETTE) >= 4.5


@pytest.mark.parametrize("background", [(255, 255, 255), (0, 0, 0), (128, 128, 128), *PALETTE[:3]])
@pytest.mark.parametrize("size", [(640, 480), (3000, 2000), (200, 150)])
def test_outlines_and_plates_are_visible_on_any_background(background, size):
    width, height = size
    box = Box(0.4 * width, 0.4 * height, 0.6 * width, 0.7 * height)
    image = Image.new("RGB", size, background)
    changed = np.any(np.asarray(draw_marks(image, [box])) != np.asarray(image), axis=2)
    assert changed.any()
    marked = np.asarray(draw_marks(image, [box]))
    colors = {tuple(map(int, color)) for color in np.unique(marked[changed], axis=0)}
    ground = luminance(background)
    ratios = [(max(luminance(c), ground) + 0.05) / (min(luminance(c), ground) + 0.05) for c in colors]
    assert max(ratios) >= 3


def test_no_box_is_hidden_whole_however_crowded():
    rng = random.Random(5)
    for _ in range(15):
        size = (rng.randint(120, 900), rng.randint(120, 900))
        boxes = []
        for _ in range(rng.randint(1, 20)):
            w, h = rng.choice([(6, 6), (12, 9), (40, 25), (100, 80)])
            x, y = rng.uniform(0, size[0] - w), rng.uniform(0, size[1] - h)
            boxes.append(Box(x, y, min(x + w, size[0]), min(y + h, size[1])))
        image = Image.new("RGB", size, (90, 140, 90))
        same = np.all(np.asarray(draw_marks(image, boxes, outlines=False)) == np.asarray(image), axis=2)
        for box in boxes:
            inside = same[int(box.y1) : round(box.y2), int(box.x1) : round(box.x2)]
            assert inside.any(), (size, box)


def test_a_lone_small_object_keeps_all_its_pixels():
    image = Image.new("RGB", (640, 480), (90, 140, 90))
    marked = np.asarray(draw_marks(image, [Box(300, 200, 306, 206)]))
    assert (marked[200:206, 300:306] == (90, 140, 90)).all()


def test_drawing_is_deterministic_and_leaves_the_image_alone():
    image = SelfTestImage().load()
    before = image.tobytes()
    first, second = draw_marks(image, MARKS), draw_marks(image, MARKS)
    assert first.tobytes() == second.tobytes()
    assert image.tobytes() == before


def test_labels_of_the_caller_are_drawn_and_counted():
    image = SelfTestImage().load()
    assert draw_marks(image, MARKS[:1], ["17"]).tobytes() != draw_marks(image, MARKS[:1]).tobytes()
    with pytest.raises(ValueError, match="2 labels"):
        draw_marks(image, MARKS[:1], ["1", "2"])


def test_a_small_image_is_enlarged_so_that_numbers_are_legible():
    class Small(SelfTestImage):
        def size(self):
            return 60, 40

        def load(self):
            return Image.new("RGB", (60, 40))

    marked = Marked(Small(), (Box(5, 5, 20, 20),))
    assert marked.size() == (480, 320)
    assert marked.load().size == (480, 320)
    assert Marked(SelfTestImage(), ()).size() == (720, 400)


def test_another_mark_is_another_image_for_the_store_and_the_same_for_the_clusters():
    image = SelfTestImage()
    one, two = Marked(image, MARKS[:1]), Marked(image, MARKS[:2])
    assert len({one.digest(), two.digest(), image.digest()}) == 3
    assert one.key == two.key == image.key


# ── candidates ──────────────────────────────────────────────────────────────────────────────────


def built(example: Example, style: prompts.Style = SOM):
    return prompts.build(SPEC, style, Perturbed(example, example, "unchanged"), "original", 0)


def test_marks_are_in_reading_order_whichever_candidate_is_the_referent():
    example = self_test()
    turned = Example("t", example.image, "x", example.candidates[2].box, candidates=example.candidates[::-1])
    assert built(example).options["marks"] == built(turned).options["marks"]
    assert built(example).options["marks"][0] == [470, 50, 670, 130]


def test_an_answer_is_read_through_the_marks_of_its_own_request():
    request = built(self_test())
    dialect, frame = prompts.reading(SPEC, SOM, request)
    assert read(Reply("[1]"), dialect, frame, Seen((720, 400), (720, 400))).answer == self_test().target


def test_candidate_recall_is_known_per_request():
    example = self_test()
    missed = Example("m", example.image, "x", example.target, candidates=(Candidate(Box(0, 0, 50, 50)),))
    assert recalled(built(example)) is True
    assert recalled(built(missed)) is False
    assert (
        recalled(prompts.build(SPEC, "direct", Perturbed(example, example, "unchanged"), "original", 0))
        is None
    )


def test_data_without_candidates_says_what_to_do():
    bare = Example("bare", SelfTestImage(), "x", Box(1, 2, 3, 4))
    with pytest.raises(UserError, match=r"bare.*prompt=som_sam"):
        built(bare)
    with pytest.raises(UserError, match="prompt=som"):
        built(bare, prompts.Style("som"))


class TestFileCandidates:
    def test_by_example_or_by_image(self, tmp_path):
        path = tmp_path / "boxes.json"
        path.write_text(json.dumps({"self-test": [[5, 6, 7, 9], [1, 2, 3, 4]], "other": [[1, 1, 2, 2]]}))
        assert FileCandidates(str(path)).boxes(self_test()) == (Box(1, 2, 3, 4), Box(5, 6, 7, 9))

    @pytest.mark.parametrize(
        ("content", "told"),
        [("{}", "no boxes for example self-test"), ("[1]", "not an object"), ("{", "not JSON"),
         ('{"self-test": [[1, 2, 3]]}', "not \\[x1"), ('{"self-test": [[3, 2, 1, 4]]}', "no area")],
    )  # fmt: skip
    def test_mistakes_are_one_sentence(self, tmp_path, content, told):
        path = tmp_path / "boxes.json"
        path.write_text(content)
        with pytest.raises(UserError, match=told):
            FileCandidates(str(path)).boxes(self_test())

    def test_a_missing_file(self):
        with pytest.raises(UserError, match="can't be read"):
            FileCandidates("/nowhere/boxes.json").boxes(self_test())

    def test_identity_follows_the_content(self, tmp_path):
        path = tmp_path / "boxes.json"
        path.write_text("{}")
        before = FileCandidates(str(path)).identity()
        path.write_text('{"a": []}')
        assert FileCandidates(str(path)).identity() != before


class TestSamCandidates:
    def test_masks_become_tight_boxes(self):
        mask = np.zeros((20, 30), bool)
        mask[4:9, 10:21] = True
        assert mask_box(mask) == Box(10, 4, 21, 9)
        assert mask_box(np.zeros((3, 3), bool)) is None

    def test_small_large_and_doubled_masks_are_left_out(self):
        good, twin, other = Box(10, 10, 40, 40), Box(11, 10, 41, 40), Box(60, 60, 90, 90)
        found = SamCandidates().chosen(
            [(0.9, twin), (0.95, good), (0.8, other), (0.99, Box(0, 0, 2, 2)), (0.99, Box(0, 0, 100, 100))],
            (100, 100),
        )
        assert found == (good, other)

    def test_at_most_so_many(self):
        boxes = [(0.9, Box(10 * i, 0, 10 * i + 5 + i, 9)) for i in range(5)]
        assert len(SamCandidates(most=2).chosen(boxes, (100, 100))) == 2

    def test_a_tiny_sam_checkpoint_runs_through_the_pipeline(self, tmp_path):
        """Random weights, the real classes: loading, prompting, masks, boxes, cache."""
        folder = tiny_sam(tmp_path / "sam")
        source = SamCandidates(
            folder, device="cpu", points_per_side=3, predicted_iou=-1e9, stability=-1.0, min_area=0.0,
            max_area=1.0, cache=str(tmp_path / "cache"),
        )  # fmt: skip
        boxes = source.boxes(self_test())
        assert boxes
        assert all(box.inside((720, 400)) for box in boxes)
        (kept,) = (tmp_path / "cache").glob("*.json")
        kept.write_text("[[1, 2, 3, 4]]")
        assert source.boxes(self_test()) == (Box(1, 2, 3, 4),)

    def test_weights_that_are_not_here_are_one_sentence(self, tmp_path):
        with pytest.raises(ModelUnavailable, match=r"prompt\.candidates\.checkpoint"):
            SamCandidates(str(tmp_path), device="cpu").boxes(self_test())

    def test_tables_tell_sources_of_candidates_apart(self):
        assert prompts.Style("som", candidates=SamCandidates()).name == "som-sam"
        assert SOM.name == "som"

    def test_identity_leaves_out_where_it_runs(self):
        assert SamCandidates(device="cpu", cache="a").identity() == SamCandidates(device="cuda").identity()
        assert SamCandidates(overlap=0.5).identity() != SamCandidates().identity()


def tiny_sam(folder) -> str:
    transformers = pytest.importorskip("transformers")
    vision = transformers.SamVisionConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=64, patch_size=16,
        output_channels=16, mlp_dim=16, window_size=2, global_attn_indexes=[0], num_pos_feats=8,
    )  # fmt: skip
    config = transformers.SamConfig(
        vision_config=vision.to_dict(),
        prompt_encoder_config={"hidden_size": 16, "image_size": 64, "patch_size": 16,
                               "mask_input_channels": 4},
        mask_decoder_config={"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                             "mlp_dim": 16, "iou_head_hidden_dim": 8, "iou_head_depth": 2},
    )  # fmt: skip
    transformers.SamModel(config).save_pretrained(folder)
    processor = transformers.SamImageProcessor(
        size={"longest_edge": 64}, pad_size={"height": 64, "width": 64},
        mask_size={"longest_edge": 16}, mask_pad_size={"height": 16, "width": 16},
    )  # fmt: skip
    transformers.SamProcessor(processor).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("size", [(640, 480), (1024, 768)])
def test_plates_of_nested_boxes_do_not_cover_each_other(size, monkeypatch):
    """20 boxes within each other leave no corner free."""
    from refadv_ablate.prompting import marks

    placed = []
    monkeypatch.setattr(marks, "_plate", lambda _draw, plate, *_rest: placed.append(plate))
    nested = [Box(20 + 8 * i, 20 + 8 * i, size[0] - 20 - 8 * i, size[1] - 20 - 8 * i) for i in range(20)]
    draw_marks(Image.new("RGB", size), nested)
    pairs = [(a, b) for i, a in enumerate(placed) for b in placed[i + 1 :]]
    assert len(placed) == 20
    assert sum(marks._overlap(a, b) > 0 for a, b in pairs) == 0
    assert all(p[0] >= 0 and p[2] <= size[0] and p[1] >= 0 and p[3] <= size[1] for p in placed)
