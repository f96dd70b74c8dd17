"""The doctor: what it shows of a handful of answers, and the mistakes it names."""

from __future__ import annotations

import pytest
from PIL import Image

from refadv_ablate.boxes import Box
from refadv_ablate.commands.doctor import diagnose, overlay, self_test
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.dialects import JsonBoxes
from refadv_ablate.parsing.frames import OriginalPixels, Relative, ResizedPixels, SmartResize
from refadv_ablate.prompting import prompts
from refadv_ablate.prompting.som import DataCandidates
from refadv_ablate.report.figures.sheets import contact_sheet
from refadv_ablate.types import Example, ModelSpec, Reply

DIRECT = prompts.Style("direct")


def spec(frame, **other) -> ModelSpec:
    return ModelSpec(
        "m", "m", JsonBoxes(), frame, {"direct": "qwen/direct.txt", "som": "shared/som.txt"}, **other
    )


class Says:
    """A model that answers with a function of the request."""

    def __init__(self, answer):
        self.answer_of = answer

    def answer(self, requests):
        for request in requests:
            yield request, self.answer_of(request)


def gold(write):
    """Answers with the gold box, written in some frame."""

    def answer(request) -> Reply:
        example = request.perturbed.example
        width, height = example.image.size()
        return Reply(f'{{"bbox": {[round(v, 3) for v in write(*example.target.as_list(), width, height)]}}}')

    return Says(answer)


RELATIVE = gold(lambda a, b, c, d, w, h: [a / w * 1000, b / h * 1000, c / w * 1000, d / h * 1000])
SWAPPED = gold(lambda a, b, c, d, w, h: [b / h * 1000, a / w * 1000, d / h * 1000, c / w * 1000])
FRACTION = gold(lambda a, b, c, d, w, h: [a / w, b / h, c / w, d / h])
PIXELS = gold(lambda a, b, c, d, w, h: [a, b, c, d])


def examples(n=5):
    image = self_test().image
    for i in range(n):
        yield Example(
            f"ex/{i}", image, f"thing\n{i}", Box(400 + 30 * i, 40 + 8 * i, 500 + 40 * i, 120 + 9 * i)
        )


def test_a_model_in_its_frame_has_nothing_wrong(tmp_path):
    report = diagnose(examples(), spec(Relative()), RELATIVE, DIRECT, tmp_path)
    assert report.problems == ()
    text = report.text()
    assert "nothing looks wrong" in text
    assert "read as [652.778, 125, 930.556, 325] in 0–1000 of the image, x first" in text
    assert "→ pixels [470.0, 50.0, 670.0, 130.0]" in text
    assert "stored 720×400, sent 720×400, processed not reported" in text
    assert (tmp_path / "report.txt").read_text() == text + "\n"


def test_pictures_of_each_case_and_of_all(tmp_path):
    report = diagnose(examples(2), spec(Relative()), RELATIVE, DIRECT, tmp_path, n=2)
    names = sorted(path.name for path in tmp_path.glob("*.png"))
    assert names == ["00_self-test.png", "01_ex_0.png", "02_ex_1.png", "contact_sheet.png"]
    assert [path.name for path in report.files] == names
    with Image.open(tmp_path / "contact_sheet.png") as sheet:
        assert sheet.size[0] > 1000


@pytest.mark.parametrize(
    ("model", "likely"),
    [(SWAPPED, "0–1000 of the image, y first"), (FRACTION, "0–1 of the image, x first"),
     (PIXELS, "pixels of the original image")],
)  # fmt: skip
def test_another_frame_that_fits_better_is_named(model, likely):
    report = diagnose(examples(), spec(Relative()), model, DIRECT, None)
    assert any(f"read as {likely}" in problem and "model.frame" in problem for problem in report.problems)
    assert any("self-test" in problem for problem in report.problems)


def test_a_server_that_resizes_otherwise_is_noticed():
    """The 6-fold pixel limit of our rule, the answers in pixels of the image as it was sent."""
    shrinking = spec(ResizedPixels(SmartResize(28, 3136, 50_000)))
    report = diagnose(examples(), shrinking, PIXELS, DIRECT, None)
    assert any("would meet" in problem for problem in report.problems)


def test_a_processor_that_resizes_otherwise_is_noticed_without_any_box():
    asked = spec(ResizedPixels(), resize=SmartResize(28, 3136, 12_845_056))
    report = diagnose([], asked, Says(lambda _: Reply("no", processed=(112, 84))), DIRECT, None)
    assert any("112×84 of 720×400" in problem and "728×392" in problem for problem in report.problems)


def test_sizes_and_notes_are_shown():
    def answer(request):
        return Reply('{"bbox": [100, 50, 60, 20]}', processed=(360, 200))

    report = diagnose([], spec(ResizedPixels()), Says(answer), DIRECT, None)
    assert "processed 360×200" in report.text()
    assert "(swapped)" in report.text()
    assert "pixels [120.0, 40.0, 200.0, 100.0]" in report.text()


def test_failures_refusals_and_cut_answers_are_counted():
    replies = iter([
        Reply("", finish="error", error="HTTP 500"),
        Reply("I'm sorry, I can't."),
        Reply("hmm", finish="length"),
        Reply("[1, 2, 3, 4]"),
    ])  # fmt: skip
    report = diagnose(examples(), spec(OriginalPixels()), Says(lambda _: next(replies)), DIRECT, None, n=3)
    told = "\n".join(report.problems)
    assert "1 of 4 requests failed (first: HTTP 500)" in told
    assert "refused" in told
    assert "max_new_tokens" in told
    assert "never came: HTTP 500" in report.text()


def test_whole_image_answers_are_noticed():
    report = diagnose(examples(), spec(Relative()), Says(lambda _: Reply("[0, 0, 1000, 1000]")), DIRECT, None)
    assert any("four fifths" in problem for problem in report.problems)


def test_marks_are_understood():
    style = prompts.Style("som", candidates=DataCandidates())
    report = diagnose([], spec(Relative()), Says(lambda _: Reply("[1]")), style, None)
    assert report.problems == ()
    assert "pixels of the original image" in report.text()


def test_control_characters_never_reach_the_terminal():
    report = diagnose([], spec(Relative()), Says(lambda _: Reply("\x1b[31m\x07no\n" * 200)), DIRECT, None)
    assert not any(ord(sign) < 32 for sign in report.text().replace("\n", ""))


def test_nothing_to_ask_is_a_users_mistake():
    with pytest.raises(UserError, match="nothing to ask"):
        diagnose([], spec(Relative()), RELATIVE, DIRECT, None, with_self_test=False)


def test_an_overlay_shows_both_boxes_in_their_colours():
    (case,) = diagnose([], spec(Relative()), SWAPPED, DIRECT, None).cases
    colors = {color for _, color in overlay(case).getcolors(1 << 20)}
    assert {(0, 110, 40), (190, 0, 110)} <= colors


def test_a_contact_sheet_holds_pictures_of_any_shape():
    page = contact_sheet([Image.new("RGB", size) for size in ((10, 900), (900, 10), (5, 5), (640, 480))])
    assert page.size[0] == 3 * 428


def test_the_command_on_the_embedded_model(tmp_path, capsys, monkeypatch):
    from refadv_ablate.cli import main

    monkeypatch.chdir(tmp_path)
    status = main(["doctor", "model=listener", "n=2", f"folder={tmp_path / 'd'}", f"out={tmp_path}"])
    said = capsys.readouterr().out
    assert "self-test: the red rectangle" in said
    assert status == 0, said
    assert (tmp_path / "d" / "contact_sheet.png").is_file()
