"""Comparisons and records as a sweep would make them, for the tests of the report."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from refadv_ablate.boxes import Box, iou
from refadv_ablate.types import METRICS, Comparison, Delta, Estimate, Record


def estimate(value: float | None, half: float | None = 0.04, note: str = "", n: int = 100) -> Estimate:
    if value is None or half is None:
        return Estimate(value, None, None, n, n // 2, note=note)
    return Estimate(value, value - half, value + half, n, n // 2, method="cluster t")


def delta(metric: str, original: float, perturbed: float, **more: object) -> Delta:
    change = perturbed - original
    values = {
        "p": 0.0001,
        "p_holm": 0.0004,
        "p_mcnemar": 0.001,
        "right_to_wrong": 20.0,
        "wrong_to_right": 6.0,
    }
    return Delta(metric, estimate(original), estimate(perturbed), estimate(change), **(values | more))  # type: ignore[arg-type]


def comparison(
    model: str = "listener",
    data: str = "shapes",
    operator: str = "bow",
    original: float = 0.583,
    perturbed: float = 0.415,
    *,
    prompt: str = "direct",
    warnings: tuple[str, ...] = (),
    deltas: Mapping[str, Delta] | None = None,
) -> Comparison:
    made = {
        m: delta(m, original * scale, perturbed * scale)
        for m, scale in zip(METRICS, (1, 0.8, 0.4, 0.7), strict=True)
    }
    return Comparison(
        model,
        data,
        prompt,
        operator,
        planned=100,
        paired=98,
        images=49,
        deltas=made if deltas is None else deltas,
        parsed_only=made,
        counts={
            "original": {"box": 96, "unparsable": 1, "truncated": 1, "missing": 2},
            "perturbed": {"box": 97, "empty": 1, "missing": 2},
        },
        warnings=warnings,
    )


NASTY = (
    "the <script>alert('x')</script> sign & \"quoted\" one",
    "the dog 🐕‍🦺 left of the 🔴 ball",
    "الكلب الأبيض على اليسار",
    r"50% of the $5 items_in #1 {box} \textbf{ball} ~ ^ back\slash",
    "the cup that is not </script><img src=x onerror=alert(1)> red",
)


def records(n: int, *, seed: int = 0, condition: str = "original", hit: float = 0.7) -> Iterator[Record]:
    """n scored answers on n/2 images, with texts that pages and LaTeX must survive."""
    rng = random.Random(seed)
    for i in range(n):
        case = random.Random(i)
        x, y = case.uniform(5, 50), case.uniform(5, 40)
        target = Box(x, y, x + 40, y + 30)
        shift = rng.uniform(0, 8) if rng.random() < hit else 45
        box = Box(target.x1 + shift, target.y1, target.x2 + shift, target.y2)
        expression = NASTY[i % len(NASTY)] + f" number {i}"
        words = expression.split()
        random.Random(f"{condition} {i}").shuffle(words)  # both models were asked the same
        text = expression if condition == "original" else " ".join(words)
        empty = rng.random() < 0.05
        yield Record(
            f"case{i:05d}",
            f"image{i // 2}",
            condition,
            0,
            "unchanged" if condition == "original" else "changed",
            text,
            expression,
            target,
            "unparsable" if empty else "box",
            None if empty else box,
            0.0 if empty else iou(box, target),
            size=(160, 120),
            text='{"bbox_2d": [1, 2, 3, 4]} ' + NASTY[(i + 1) % len(NASTY)],
            reasoning="I look at <b>everything</b>." if i % 3 == 0 else "",
            category="dog",
            distractors=2 + i % 8,
            negation=i % 5 == 4,
        )
