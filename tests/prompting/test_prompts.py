"""What is sent to each family in each style, compared byte for byte with golden files.

`REFADV_WRITE_GOLDEN=1 pytest tests/prompting/test_prompts.py` writes the files anew; read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from refadv_ablate import assets
from refadv_ablate.boxes import Box
from refadv_ablate.commands.doctor import SelfTestImage, self_test
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.dialects import JsonBoxes
from refadv_ablate.parsing.frames import OriginalPixels, Relative, SmartResize
from refadv_ablate.prompting import prompts, protocol
from refadv_ablate.prompting.som import DataCandidates
from refadv_ablate.seeding import canonical
from refadv_ablate.types import ModelSpec, Perturbed, Reply, Request, Sampling

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
CHAT = (
    "qwen2_5_vl", "qwen3_vl", "qwen3_vl_thinking", "qwen3_5", "internvl3", "internvl3_5", "glm4_5v",
    "cogvlm_grounding", "gpt4o", "gpt5", "claude", "gemini_flash", "gemini_pro", "glm4_6v", "minicpm_v",
    "kimi_vl", "rex_omni", "paligemma2", "gpt6", "claude_opus", "gemini_3_flash", "gemini_3_pro",
)  # fmt: skip
EXPRESSION = 'the man’s "big" {hat} ${x} not on the left'
SPEC = ModelSpec("m", "org/m", JsonBoxes(), Relative(), {"direct": "qwen/direct.txt"})


def family(name: str, *overrides: str) -> ModelSpec:
    model = assets.plain(assets.compose([f"model={name}", *overrides]).model)
    model.pop("size", None)
    return assets.build(model, "model")


def asked(spec: ModelSpec, style: str | prompts.Style, expression: str = EXPRESSION) -> Request:
    example = self_test()
    perturbed = Perturbed(example.saying(expression), example, "changed")
    if isinstance(style, str):
        candidates = DataCandidates() if style.startswith("som") else None
        style = prompts.Style(style, candidates=candidates)
    return prompts.build(spec, style, perturbed, "bow", 2)


def shown(request: Request) -> str:
    """Messages, sampling and options as text; an image as its class and size."""
    lines = []
    for message in request.messages:
        lines.append(f"[{message.role}]")
        lines += [
            p if isinstance(p, str) else f"<{type(p).__name__} {p.size()[0]}×{p.size()[1]}>"
            for p in message.parts
        ]
    lines.append(f"[sampling] {canonical(request.sampling.key())}")
    lines.append(f"[options] {canonical(dict(request.options))}")
    return "\n".join(lines)


def check(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("REFADV_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_bytes().decode("utf-8") == text


@pytest.mark.parametrize("name", CHAT)
def test_golden_prompts_of_each_family_and_style(name):
    spec = family(name)
    check(name, "\n\n".join(f"== {style} ==\n{shown(asked(spec, style))}" for style in spec.prompts) + "\n")


@pytest.mark.parametrize("style", ["direct", "cot"])
def test_golden_prompts_of_the_ref_adv_protocol(style):
    spec, asked_as, _ = protocol.RefAdv().apply(
        family("qwen2_5_vl"), prompts.Style(style, max_new_tokens=2048)
    )
    request = asked(spec, asked_as)
    further = prompts.follow_up(request, Reply("no box"), asked_as)
    check(f"ref_adv_{style}", shown(further) + "\n")


def test_the_ref_adv_follow_up_has_backslashes_and_no_line_breaks():
    """Their YAML is single-quoted, so its \\n are two characters each."""
    text = prompts.Style("direct", follow_up="ref_adv/follow_up.txt").follow_up_text()
    assert text.count("\\n") == 2
    assert "\n" not in text


def test_the_expression_is_put_in_as_it_is():
    text = asked(SPEC, "direct").messages[-1].parts[-1]
    assert EXPRESSION in text
    assert prompts.PLACEHOLDER not in text
    assert asked(SPEC, "direct", "say {expression}").messages[-1].parts[-1].count("{expression}") == 1


def test_order_case_and_system_follow_the_model():
    spec = ModelSpec(
        "m", "m", JsonBoxes(), Relative(), SPEC.prompts, image_first=False, lowercase=True, system="S"
    )
    system, user = asked(spec, "direct", "The MAN").messages
    assert (system.role, system.parts) == ("system", ("S",))
    assert isinstance(user.parts[0], str)
    assert "the man" in user.parts[0]
    assert user.parts[1] == SelfTestImage()


def test_the_request_tells_everything_that_changes_the_answer():
    spec = ModelSpec(
        "m", "m", JsonBoxes(), Relative(), SPEC.prompts, thinking=True, template_options={"a": 1},
        image_options={"image_format": "jpeg"}, sampling=Sampling(0.5, 0.9, 3, 77),
    )  # fmt: skip
    request = asked(spec, "direct")
    assert request.options == {"thinking": True, "template_options": {"a": 1}, "image_format": "jpeg"}
    assert request.sampling == Sampling(0.5, 0.9, 3, 77)
    assert (request.condition, request.draw, request.repeat) == ("bow", 2, 0)


def test_reasoning_styles_get_room_and_never_less_than_the_model_has():
    cot = prompts.Style("direct", max_new_tokens=2048)
    assert asked(SPEC, cot).sampling.max_new_tokens == 2048
    wide = ModelSpec("m", "m", JsonBoxes(), Relative(), SPEC.prompts, sampling=Sampling(max_new_tokens=8192))
    assert asked(wide, cot).sampling.max_new_tokens == 8192


def test_resizing_before_sending():
    rule = SmartResize(28, 3136, 100_000)
    spec = ModelSpec("m", "m", JsonBoxes(), Relative(), SPEC.prompts, resize=rule, resize_before_sending=True)
    request = asked(spec, "direct")
    assert request.image.size() == rule((720, 400))
    assert request.messages[-1].parts[0] is request.image
    assert request.image.key == SelfTestImage().key
    with pytest.raises(UserError, match=r"model\.resize"):
        asked(
            ModelSpec("m", "m", JsonBoxes(), Relative(), SPEC.prompts, resize_before_sending=True), "direct"
        )


def test_a_style_that_the_model_lacks_names_those_it_has():
    with pytest.raises(UserError, match=r"no prompt of the style 'cto'.*direct"):
        asked(SPEC, "cto")
    with pytest.raises(UserError, match=r"cogvlm.*'cot'.*direct"):
        asked(family("cogvlm_grounding"), "cot")


class TestOwnFile:
    def test_is_sent_raw(self, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text('Where is {expression}? Say {"bbox": [x1]} or ${nothing}.\n', encoding="utf-8")
        style = prompts.Style("direct", file=str(path))
        assert (
            asked(SPEC, style, "it").messages[-1].parts[-1]
            == 'Where is it? Say {"bbox": [x1]} or ${nothing}.'
        )
        assert style.name == "direct-mine"

    def test_brings_its_own_system_text(self, tmp_path):
        (tmp_path / "mine.txt").write_text("{expression}")
        (tmp_path / "mine.system.txt").write_text("Be brief.\n")
        request = asked(SPEC, prompts.Style("direct", file=str(tmp_path / "mine.txt")))
        assert request.messages[0].parts == ("Be brief.",)

    @pytest.mark.parametrize(
        ("content", "told"), [(None, "can't be read"), (b"no place", "lacks"), (b"\xff", "UTF-8")]
    )
    def test_mistakes_are_one_sentence(self, tmp_path, content, told):
        path = tmp_path / "mine.txt"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(UserError, match=told):
            asked(SPEC, prompts.Style("direct", file=str(path)))

    def test_an_edit_changes_the_fingerprint(self, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text("{expression}")
        style = prompts.Style("direct", file=str(path))
        before = style.fingerprint(SPEC)
        path.write_text("the {expression}")
        os.utime(path, ns=(1, 1))  # an edit within the clock's grain
        assert style.fingerprint(SPEC) != before


def test_a_follow_up_continues_the_conversation():
    request = asked(SPEC, "direct")
    further = prompts.follow_up(request, Reply("I see a man"), "The box alone.")
    assert further.messages[:-2] == request.messages
    assert [(m.role, m.parts) for m in further.messages[-2:]] == [
        ("assistant", ("I see a man",)),
        ("user", ("The box alone.",)),
    ]
    assert further.id == request.id


@pytest.mark.parametrize(
    ("said", "kept"),
    [("", "(no answer)"), ("<think>so", "<think>so\n</think>"), ("<think>a</think>b", "<think>a</think>b")],
)
def test_a_follow_up_closes_what_was_cut(said, kept):
    further = prompts.follow_up(asked(SPEC, "direct"), Reply(said, finish="length"), prompts.Style("direct"))
    assert further.messages[-2].parts == (kept,)


def test_replies_are_read_as_the_family_answers_except_for_marks():
    assert prompts.reading(SPEC, prompts.Style("direct"), asked(SPEC, "direct")) == (SPEC.dialect, SPEC.frame)
    som = ModelSpec("m", "m", JsonBoxes(), Relative(), {"som": "shared/som.txt"})
    dialect, frame = prompts.reading(som, prompts.Style("som"), asked(som, "som"))
    assert dialect.marks[0] == Box(470, 50, 670, 130)
    assert frame == OriginalPixels()


@pytest.mark.parametrize("option", ["direct", "cot", "som", "som_cot", "som_sam", "som_cot_sam", "som_file"])
def test_every_prompt_option_is_built(option, tmp_path):
    more = [f"prompt.candidates.path={tmp_path}/boxes.json"] if option.endswith("file") else []
    config = assets.plain(assets.compose([f"prompt={option}", f"out={tmp_path}", *more]).prompt)
    (tmp_path / "boxes.json").write_text("{}")
    style = assets.build(config, "prompt")
    assert option.startswith(style.style)
    assert style.follow_up_text()
    assert (style.candidates is not None) == option.startswith("som")
    assert ("cot" in option) == (style.max_new_tokens is not None)
