"""A few answers that went from right to wrong, small, each opening the gallery at its example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from refadv_ablate.report.pages.across import Answer, Shown
from refadv_ablate.report.pages.drawn import escaped, framed, marked
from refadv_ablate.report.pages.words import changes
from refadv_ablate.types import Record

MOST = 6


@dataclass(frozen=True, slots=True)
class Shot:
    """One flip of one cell."""

    example: Shown
    original: Answer
    perturbed: Answer


def choose(shown: Sequence[Shown], most: int = MOST) -> list[Shot]:
    """Examples with an image, one flip of each: every cell in its turn, so that none fills the row alone."""
    seen: dict[tuple[str, str, str], int] = {}
    found: list[Shot] = []
    for example in shown:
        if not example.image or len(found) == most:
            continue
        flips = [pair for pair in example.flips if _errs(pair[1].record)]
        if not flips:
            continue
        original, perturbed = min(flips, key=lambda pair: seen.get(_cell(pair[1]), 0))
        seen[_cell(perturbed)] = seen.get(_cell(perturbed), 0) + 1
        found.append(Shot(example, original, perturbed))
    return found


def _errs(asked: Record) -> bool:
    """Whether it was asked on the picture that is shown, with a box that would have been right."""
    return not asked.picture and asked.expectation != "reject"


def _cell(answer: Answer) -> tuple[str, str, str]:
    return answer.model, answer.prompt, answer.condition


def shot_row(shots: Sequence[Shot], examples: str) -> str:
    """Markup; empty where there is nothing to show."""
    title = "One example at a time, across all models and perturbations"
    more = f'<p class=soft><a href="{escaped(examples)}">{title}</a></p>' if examples else ""
    if not shots:
        return more
    key = (
        "<span class=target>target</span>, <span class=original>answer to the original</span>, "
        "<span class=perturbed>answer to the perturbed expression</span>"
    )
    cards = "".join(map(_card, shots))
    return f"<h3>From right to wrong</h3><p class='soft key'>{key}</p><div class=shots>{cards}</div>{more}"


def _card(shot: Shot) -> str:
    before, after = shot.original.record, shot.perturbed.record
    left, right = changes(before.expression, after.expression)
    answer = f"IoU {after.iou or 0:.2f}" if after.predicted is not None else after.outcome.replace("_", " ")
    result = f"IoU {before.iou or 0:.2f} ✓ → {answer} ✗"
    label = f"{before.expression} → {after.expression}: {result}"
    boxes = [
        (before.target, "target", ""),
        (shot.original.box, "original", ""),
        (shot.perturbed.box, "perturbed", ""),
    ]
    picture = framed(shot.example.image, before.size, boxes, label)
    who = f"{shot.perturbed.model} · {shot.perturbed.condition}"
    opened, closed = (f'<a class=shot href="{escaped(shot.perturbed.link)}">', "</a>")
    if not shot.perturbed.link:
        opened, closed = "<div class=shot>", "</div>"
    return (
        f"{opened}{picture}<span class=body><b><bdi>{escaped(who)}</bdi></b>"
        f"<span dir=auto>{marked(left)}</span>"
        f"<span dir=auto>→ {marked(right)}</span><small>{escaped(result)}</small></span>{closed}"
    )
