"""cost: tokens and price per expression, and per expression that was kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.models.servers.budget import cost as priced
from refadv_ablate.types import Price


@dataclass(frozen=True, slots=True)
class Figures:
    """Tokens per expression, USD per million tokens, share of expressions kept (None: not known yet).

    The defaults are the paper's.
    """

    input_tokens: float = 2300
    output_tokens: float = 120
    input_price: float = 2.5
    output_price: float = 10.0
    keep_rate: float | None = 0.187

    @property
    def per_expression(self) -> float:
        """USD for one expression, kept or not."""
        return (self.input_tokens * self.input_price + self.output_tokens * self.output_price) / 1e6

    @property
    def per_kept(self) -> float | None:
        """USD for one kept expression; None where none is kept or nobody knows."""
        return self.per_expression / self.keep_rate if self.keep_rate else None


@dataclass(frozen=True, slots=True)
class Spent:
    """What the queries of a stage used; USD at today's prices."""

    stage: str
    calls: int
    repairs: int
    input_tokens: int
    output_tokens: int
    usd: float


def spent(out: Path, price: Price) -> list[Spent]:
    """Both stages, rejected answers included: they were paid for."""
    found = []
    for stage, name in (("judge", "judged.jsonl"), ("compose", "composed.jsonl")):
        rows = Ledger(out / name).rows()
        read, written = _sum(rows, "input_tokens"), _sum(rows, "output_tokens")
        repairs = sum(row["attempts"] - 1 for row in rows)
        usd = priced(price, read, written).usd
        found.append(Spent(stage, len(rows), repairs, read, written, usd))
    return found


def figures(stages: list[Spent], price: Price, expressions: int, keep_rate: float | None) -> Figures | None:
    """Per expression; None where there is none."""
    if not expressions:
        return None
    return Figures(
        sum(s.input_tokens for s in stages) / expressions,
        sum(s.output_tokens for s in stages) / expressions,
        price.input,
        price.output,
        keep_rate,
    )


def lines(own: Figures | None, stages: list[Spent], paper: Figures) -> list[str]:
    """The table as a screen shows it."""
    shown = [
        f"{s.stage}: {s.calls} answers ({s.repairs} repaired), {s.input_tokens:,} tokens in, "
        f"{s.output_tokens:,} out, ${s.usd:.4g}"
        for s in stages
        if s.calls
    ]
    shown.append("this set: no composed expressions yet" if own is None else f"this set: {sentence(own)}")
    shown.append(f"{'the paper' if paper == Figures() else 'figures given'}: {sentence(paper)}")
    return shown


def sentence(f: Figures) -> str:
    """One line with everything that enters the price."""
    per_kept = f"${f.per_kept:.3g} per kept one" if f.per_kept is not None else "none kept yet"
    rate = f", keep rate {100 * f.keep_rate:.3g}%" if f.keep_rate is not None else ""
    return (
        f"{f.input_tokens:,.4g} tokens in and {f.output_tokens:,.4g} out per expression at "
        f"${f.input_price:g} and ${f.output_price:g} per million{rate}: ${f.per_expression:.3g} per "
        f"expression, {per_kept}"
    )


def _sum(rows: list[dict[str, Any]], key: str) -> int:
    return sum(int(row.get(key, 0)) for row in rows)


def as_json(f: Figures | None) -> Mapping[str, Any] | None:
    """For provenance files."""
    if f is None:
        return None
    return {
        "input_tokens_per_expression": f.input_tokens,
        "output_tokens_per_expression": f.output_tokens,
        "usd_per_expression": f.per_expression,
        "usd_per_kept": f.per_kept,
    }
