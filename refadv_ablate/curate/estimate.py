"""What judge or compose would ask and cost (`--dry-run`), from the paper's figures or this folder's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from refadv_ablate.curate.cost import Figures, figures, spent
from refadv_ablate.curate.generation.prompts import PER_TARGET
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.types import Price


@dataclass(frozen=True, slots=True)
class Plan:
    """units: scenes or members of pairs; there: answered already. targets: members of a pair in each unit."""

    what: str
    units: int
    there: int
    targets: int

    @property
    def expressions(self) -> int:
        """Asked for by what is still open."""
        return (self.units - self.there) * self.targets * PER_TARGET


def estimate(plan: Plan, out: Path, price: Price, paper: Figures, given: bool) -> list[str]:
    """The lines of a dry run. given: whether the figures are the user's in place of the paper's."""
    rows = Ledger(out / "composed.jsonl").rows()
    made = sum(len(part["expressions"]) for row in rows for part in row.get("targets", (row,)))
    own = figures(spent(out, price), price, made, paper.keep_rate)
    source = "the figures given" if given else "the paper's figures, appendix D"
    if own is not None:
        source = f"measured here over {made:,} expressions"
    used = own or Figures(paper.input_tokens, paper.output_tokens, price.input, price.output, paper.keep_rate)
    n = plan.expressions
    lines = [
        f"{plan.units} {plan.what}: {plan.there} are answered, {plan.units - plan.there} would be asked",
        f"{n:,} expressions from these, judging and composing together: about {n * used.input_tokens:,.0f} "
        f"tokens in and {n * used.output_tokens:,.0f} out, ${n * used.per_expression:,.3g} "
        f"({used.input_tokens:,.0f} in and {used.output_tokens:,.0f} out each: {source})",
    ]
    if used.keep_rate and used.per_kept is not None:
        lines.append(
            f"about {n * used.keep_rate:,.0f} of them kept at a keep rate of {100 * used.keep_rate:.3g}%, "
            f"${used.per_kept:.3g} each"
        )
    if not price.input and not price.output:
        lines.append("llm.price_input and llm.price_output are 0, so the price is: give those of your server")
    return [*lines, "nothing was asked"]
