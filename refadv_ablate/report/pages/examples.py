"""A page of examples, each across all models and perturbations of a report, without a script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from refadv_ablate.boxes import Box
from refadv_ablate.report.pages.across import Answer, Shown
from refadv_ablate.report.pages.drawn import escaped, framed, marked, result
from refadv_ablate.report.pages.page import page_of
from refadv_ablate.report.pages.words import changes
from refadv_ablate.storage.jsonl import atomic
from refadv_ablate.types import ORIGINAL

TITLE = "Examples across models and perturbations"
MOST_BOXES = 40
"""Rows of one example that can be picked out in its image."""


def write(path: Path, shown: Sequence[Shown]) -> str:
    """Writes the page; gives its name, "" where there is no example to show (then no page is left)."""
    if not shown:
        path.unlink(missing_ok=True)
        return ""
    with atomic(path) as file:
        file.write(page(shown).encode("utf-8", "backslashreplace"))
    return path.name


def page(shown: Sequence[Shown]) -> str:
    """The examples that changed sides in most cells, the most changed first."""
    key = (
        "<span class=target>target</span>, <span class=original>answers to the original</span>, "
        "<span class=perturbed>answers to perturbed expressions</span>"
    )
    head = (
        f"<header><p><a href=report.html>Back to the report</a></p><h1>{TITLE}</h1>"
        f"<p class=soft>The {len(shown)} examples whose answers changed sides in most results. "
        "A number in the image is that of its row; point at a row to see its box alone. Marked words show "
        "what was edited, not what the model heeded. A hit is IoU ≥ 0.5.</p>"
        f"<p class='soft key'>{key}</p></header>"
    )
    picks = "".join(
        f".ex:has(tr.k{k}:is(:hover,:focus-within)) g:not(.k{k},.target){{opacity:.08}}"
        for k in range(1, MOST_BOXES + 1)
    )
    prompts = len({answer.prompt for each in shown for answer in each.answers}) > 1
    return page_of(TITLE, head + "".join(_example(each, prompts) for each in shown), picks)


def _example(shown: Shown, prompts: bool) -> str:
    first = shown.answers[0].record
    boxes: list[tuple[Box | None, str, str]] = [(first.target, "target", "")]
    boxes += [
        (a.box, f"{'original' if a.condition == ORIGINAL else 'perturbed'} k{k}", str(k))
        for k, a in enumerate(shown.answers, 1)
    ]
    label = f"{first.original_expression}: the target and {len(shown.answers)} answers"
    rows = "".join(
        _row(k, answer, first.original_expression, prompts) for k, answer in enumerate(shown.answers, 1)
    )
    anchor, title = escaped(quote(shown.id, safe="")), escaped(first.original_expression)
    return (
        f'<article class=ex id="{anchor}"><h2 dir=auto>{title}</h2>'
        f"<p class=soft><bdi>{escaped(shown.data)}</bdi> · <bdi>{escaped(shown.id)}</bdi></p><div class=pair>"
        f"{framed(shown.image, first.size, boxes, label)}<div class=scroll tabindex=0 role=region "
        'aria-label="answers"><table><thead><tr><th>#</th><th class=l>Model</th>'
        "<th class=l>Expression asked with</th>"
        f"<th>IoU</th></tr></thead><tbody>{rows}</tbody></table></div></div></article>"
    )


def _row(number: int, answer: Answer, original: str, prompts: bool) -> str:
    record = answer.record
    changed = marked(changes(original, record.expression)[1])
    model = " · ".join(filter(None, (answer.model, answer.prompt if prompts else "")))
    name = f"<bdi>{escaped(answer.condition)}</bdi>"
    if answer.link:
        name = f'<a href="{escaped(answer.link)}">{name}</a>'
    asked = name if answer.condition == ORIGINAL else f"{name}: <span dir=auto>{changed}</span>"
    return (
        f"<tr class=k{number}><td>{number}</td><th scope=row class=l><bdi>{escaped(model)}</bdi></th>"
        f"<td class=said>{asked}</td><td>{escaped(result(record, of=''))}</td></tr>"
    )
