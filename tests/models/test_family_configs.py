"""Each family's YAML: composes, is built, says where its convention comes from, reads its own answers."""

from __future__ import annotations

import pytest

from refadv_ablate import assets
from refadv_ablate.boxes import Box
from refadv_ablate.errors import UserError
from refadv_ablate.models.openai import OpenAI
from refadv_ablate.parsing.dialects import read
from refadv_ablate.parsing.frames import OriginalPixels, Relative, ResizedPixels, SmartResize
from refadv_ablate.prompting import prompts, protocol
from refadv_ablate.prompting.protocol import RefAdv, RefAdvJson
from refadv_ablate.types import ModelSpec, NoBox, Price, Reply, Seen

VGA = Seen((640, 480), (640, 480))
# checkpoint by default, an answer as the family writes it, the box in original pixels worked out by hand
FAMILIES = {
    "qwen2_5_vl": (
        "Qwen/Qwen2.5-VL-72B-Instruct",
        '```json\n[\n\t{"bbox_2d": [161, 119, 322, 357], "label": "the man"}\n]\n```',
        Box(160, 120, 320, 360),  # pixels of 644×476
    ),
    "qwen3_vl": (
        "Qwen/Qwen3-VL-8B-Instruct",
        '```json\n[{"bbox_2d": [250, 500, 750, 750], "label": "the man"}]\n```',
        Box(160, 240, 480, 360),
    ),
    "qwen3_vl_thinking": (
        "Qwen/Qwen3-VL-8B-Thinking",
        'Maybe [1, 2, 3, 4] …\n</think>\n\n[{"bbox_2d": [250, 500, 750, 750], "label": "the man"}]',
        Box(160, 240, 480, 360),
    ),
    "qwen3_5": (
        "Qwen/Qwen3.5-27B",
        'Hmm.\n</think>\n\n```json\n[{"bbox_2d": [250, 500, 750, 750]}]\n```',
        Box(160, 240, 480, 360),
    ),
    "internvl3": (
        "OpenGVLab/InternVL3-14B-hf",
        "<ref>the man</ref><box>[[250, 500, 750, 750]]</box>",
        Box(160, 240, 480, 360),
    ),
    "internvl3_5": (
        "OpenGVLab/InternVL3_5-14B-HF",
        "<think>At [[1, 2, 3, 4]]?</think>\n<ref>the man</ref><box>[[250, 500, 750, 750]]</box>",
        Box(160, 240, 480, 360),
    ),
    "glm4_5v": (
        "zai-org/GLM-4.5V",
        "<think>[1,2,3,4]</think><answer>He is at <|begin_of_box|>[[250,500,750,750]]<|end_of_box|></answer>",
        Box(160, 240, 480, 360),
    ),
    "glm4_6v": (
        "zai-org/GLM-4.6V",
        "He is at <|begin_of_box|>[250,500,750,750]<|end_of_box|>",
        Box(160, 240, 480, 360),
    ),
    "minicpm_v": (
        "openbmb/MiniCPM-V-4_5",
        "<think>at <box>1 2 3 4</box>?</think>\n<ref>the man</ref><box>250 500 750 750</box>",
        Box(160, 240, 480, 360),
    ),
    "kimi_vl": (
        "moonshotai/Kimi-VL-A3B-Instruct",
        '◁think▷At [0.1, 0.2, 0.3, 0.4]?◁/think▷{"bbox_2d": [0.250, 0.500, 0.750, 0.750]}',
        Box(160, 240, 480, 360),
    ),
    "rex_omni": (
        "IDEA-Research/Rex-Omni",
        "<|object_ref_start|>the man<|object_ref_end|>"
        "<|box_start|><111><333><666><999>, <1><2><3><4><|box_end|>",
        Box(640 / 9, 160, 640 / 1.5, 480),
    ),
    "paligemma2": (
        "google/paligemma2-3b-mix-448",
        "<loc0512><loc0256><loc0768><loc0768> the man",
        Box(160, 240, 480, 360),  # y before x, of 1,024
    ),
    "cogvlm_grounding": (
        "THUDM/cogvlm-grounding-generalist-hf",
        "[[025,050,750,100;111,222,333,444]]",
        Box(16, 24, 480, 48),
    ),
    "gpt4o": ("gpt-4o-2024-08-06", '{"bbox": [250, 500, 750, 750]}', Box(160, 240, 480, 360)),
    "gpt5": ("gpt-5", '{"bbox": [250, 500, 750, 750]}', Box(160, 240, 480, 360)),
    "gpt6": ("gpt-6.1-sol", '{"bbox": [250, 500, 750, 750]}', Box(160, 240, 480, 360)),
    "claude": ("claude-3-5-sonnet-20241022", '{"bbox": [250, 500, 750, 750]}', Box(160, 240, 480, 360)),
    "claude_opus": ("claude-opus-5-5", '{"bbox": [250, 500, 750, 750]}', Box(160, 240, 480, 360)),
    "gemini_flash": (
        "gemini-2.5-flash",
        '```json\n[{"box_2d": [500, 250, 750, 750], "label": "the man"}]\n```',
        Box(160, 240, 480, 360),  # y before x
    ),
    "gemini_pro": (
        "gemini-2.5-pro",
        '[{"box_2d": {"xmin": 250, "ymin": 500, "xmax": 750, "ymax": 750}}]',
        Box(160, 240, 480, 360),
    ),
    "gemini_3_flash": (
        "gemini-3.8-flash",
        '```json\n[{"box_2d": [500, 250, 750, 750], "label": "the man"}]\n```',
        Box(160, 240, 480, 360),
    ),
    "gemini_3_pro": (
        "gemini-3.1-pro-preview",
        '[{"box_2d": [500, 250, 750, 750], "label": "the man"}]',
        Box(160, 240, 480, 360),
    ),
}
CLOSED = {
    "gpt4o": ("https://api.openai.com/v1", "OPENAI_API_KEY", Price(2.5, 10)),
    "gpt5": ("https://api.openai.com/v1", "OPENAI_API_KEY", Price(1.25, 10)),
    "claude": ("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY", Price(3, 15)),
    "gpt6": ("https://api.openai.com/v1", "OPENAI_API_KEY", Price(2, 10)),
    "claude_opus": ("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY", Price(4, 20)),
    "gemini_3_flash": (
        "https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", Price(0.75, 3.75)),
    "gemini_3_pro": (
        "https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", Price(2, 12)),
    "gemini_flash": (
        "https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", Price(0.3, 2.5)),
    "gemini_pro": (
        "https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY", Price(1.25, 10)),
}  # fmt: skip


def composed(*overrides: str):
    return assets.plain(assets.compose(list(overrides)))


def family(name: str, *overrides: str) -> ModelSpec:
    model = composed(f"model={name}", *overrides)["model"]
    model.pop("size", None)
    return assets.build(model, "model")


@pytest.mark.parametrize("name", FAMILIES)
def test_answers_are_read_in_the_familys_own_frame(name):
    checkpoint, answer, box = FAMILIES[name]
    spec = family(name)
    assert spec.checkpoint == checkpoint
    assert spec.name == checkpoint.split("/")[-1]
    found = read(Reply(answer), spec.dialect, spec.frame, VGA)
    assert isinstance(found.answer, Box), found
    assert found.answer.as_list() == pytest.approx(box.as_list(), abs=1e-9)
    assert found.notes == ()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_prompt_is_there_and_greedy_is_the_default(name):
    spec = family(name)
    assert "direct" in spec.prompts
    for style in spec.prompts:
        assert prompts.PLACEHOLDER in prompts.Style(style).texts(spec)[0]
    assert spec.sampling.temperature == 0
    assert not spec.trust_remote_code


@pytest.mark.parametrize("name", FAMILIES)
def test_the_comment_names_a_source(name):
    text = (assets.group_dir("model") / f"{name}.yaml").read_text(encoding="utf-8")
    comment = " ".join(line for line in text.splitlines() if line.startswith("#"))
    assert any(word in comment for word in ("/", "docs.", "As gpt4o", "list price", "page")), comment
    assert len(assets.options("model")[name]) <= 110


SIZES = {
    "qwen2_5_vl": ("3B", "7B"),
    "qwen3_vl": ("2B", "235B-A22B"),
    "qwen3_vl_thinking": ("2B", "235B-A22B"),
    "qwen3_5": ("35B-A3B", "397B-A17B-FP8"),
    "internvl3": ("1B", "78B"),
    "internvl3_5": ("1B", "38B"),
}


@pytest.mark.parametrize("name", SIZES)
def test_another_size_is_one_override_away(name):
    for size in SIZES[name]:
        spec = family(name, f"model.size={size}")
        assert f"-{size}" in spec.checkpoint
        assert size in spec.name


def test_any_checkpoint_is_one_override_away():
    spec = family("qwen2_5_vl", "model.checkpoint=/models/my_qwen/")
    assert spec.name == "my_qwen"


def test_the_frame_follows_the_resize_rule():
    spec = family("qwen2_5_vl", "model.resize.max_pixels=1003520")
    assert spec.frame == ResizedPixels(SmartResize(28, 3136, 1_003_520))
    assert spec.resize == SmartResize(28, 3136, 1_003_520)


def test_thinking_is_one_override_and_the_reading_follows_it():
    on, off = family("qwen3_5"), family("qwen3_5", "model.thinking=false")
    assert (on.thinking, on.dialect.opens_thinking) == (True, True)
    assert (off.thinking, off.dialect.opens_thinking) == (False, False)
    cut = Reply('so {"bbox_2d": [1, 2, 3, 4]} and th', finish="length")
    assert read(cut, on.dialect, on.frame, VGA).answer.kind == "truncated"


@pytest.mark.parametrize("name", CLOSED)
def test_closed_models_bring_their_endpoint_key_and_price(name, monkeypatch):
    url, variable, price = CLOSED[name]
    for key in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    config = composed(f"model={name}", "backend.budget_usd=2.5")
    spec = assets.build(config["model"], "model")
    engine = assets.build(config["backend"], "backend", spec=spec)
    assert isinstance(engine, OpenAI)
    assert engine.url == url
    assert engine.budget_usd == 2.5
    assert spec.price == price
    with pytest.raises(UserError, match=variable):
        engine._key()


def test_another_engine_may_serve_a_closed_models_yaml():
    assert composed("model=gpt5", "backend=transformers")["backend"]["_target_"].endswith("Transformers")


def test_a_clipped_qwen_value_above_1000_is_noted_and_not_rescaled():
    spec = family("qwen3_5")
    found = read(Reply('{"bbox_2d": [250, 500, 750, 1200]}'), spec.dialect, spec.frame, VGA)
    assert found.answer == Box(160, 240, 480, 480)
    assert found.notes == ("clipped", "scale_contradiction")


# ── the Ref-Adv authors' protocol ───────────────────────────────────────────────────────────────


def test_the_protocol_reads_qwen2_5_pixels_as_original_pixels():
    spec, style, notes = RefAdv().apply(family("qwen2_5_vl"), prompts.Style("cot", max_new_tokens=2048))
    assert spec.frame == OriginalPixels()
    assert spec.image_first is False
    assert (spec.sampling.temperature, spec.sampling.top_p) == (0, 1)
    assert (spec.sampling.seed, spec.sampling.max_new_tokens) == (7, 1024)
    assert style.max_new_tokens is None
    assert style.name == "cot-ref_adv"
    assert any("original image" in note for note in notes)
    found = read(Reply('{"bbox_2d": [161, 119, 322, 357]}'), spec.dialect, spec.frame, VGA)
    assert found.answer == Box(161, 119, 322, 357)


def test_the_protocol_keeps_relative_frames_and_says_where_it_differs():
    spec, _, notes = RefAdv().apply(family("qwen3_vl"), prompts.Style("direct"))
    assert spec.frame == Relative(1000)
    assert len(notes) == 2
    assert all(note.startswith("protocol ref_adv, other than our own reading") for note in notes)
    assert any(
        "not in their evaluator" in n for n in RefAdv().apply(family("gemini_pro"), prompts.Style("cot"))[2]
    )


def test_the_protocol_is_a_config_option_that_turns_the_further_turn_on():
    config = composed("protocol=ref_adv", "model=qwen3_vl")
    assert config["retry"] == "format"
    assert composed("protocol=ref_adv", "retry=none")["retry"] == "none"
    spec, style, notes = protocol.parts(config["protocol"], family("qwen3_vl"), prompts.Style("direct"))
    assert (spec.dialect, style.follow_up, bool(notes)) == (RefAdvJson(), "ref_adv/follow_up.txt", True)
    plain = composed("model=qwen3_vl")
    assert protocol.parts(plain["protocol"], spec, style) == (spec, style, ())


def test_the_protocol_has_two_prompts_only():
    for style in (prompts.Style("som"), prompts.Style("direct", file="mine.txt")):
        with pytest.raises(UserError, match="prompt=direct or prompt=cot"):
            RefAdv().apply(family("qwen3_vl"), style)


A, B = (1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ('```json\n{"bboxes": [[1,2,3,4],[5,6,7,8]]}\n```', [A, B]),
        ('```json\n{"bbox": [5,6,7,8]}\n```\nno:\n```json\n{"bbox": [1,2,3,4]}\n```\nthere.', [A]),
        ("```json\n[1,2,3,4]\n```\n```json\n{oops\n```", [A]),
        ('So: [{"bbox_2d": [1,2,3,4], "label": "x"}]', [A]),
        ("```json\n[1,2,3,4]", [A]),  # an open fence, but JSON that ends the reply
        ('{"bbox_2d": [5,6,7,8], "boxes": [[1,2,3,4]]}', [A, B]),
        ('{"whatever": {"deep": [[1,2,3,4],[1,2,3,4]]}}', [A]),
        ('{"bbox": [true, 2, 3, 4]}', [A]),  # their leniency: a truth value is a number in Python
    ],
)
def test_their_parser(text, boxes):
    assert RefAdvJson().read(text) == tuple(boxes)


@pytest.mark.parametrize(
    "text",
    ['{"bbox": [1,2,3,4]} is the box.', '["1","2","3","4"]', "(1,2,3,4)", "",
     "```\n[1,2,3,4]\n``` done", "[1,2,3]", "<box>[[1,2,3,4]]</box> end", "[" * 500],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_their_parser_refuses(text):
    assert isinstance(RefAdvJson().read(text), NoBox)


def test_nan_passes_their_parser_and_is_no_box_here():
    assert len(RefAdvJson().read('{"bbox": [NaN, 1, 2, 3]}')) == 1
    found = read(Reply('{"bbox": [NaN, 1, 2, 3]}'), RefAdvJson(), OriginalPixels(), VGA)
    assert isinstance(found.answer, NoBox)
