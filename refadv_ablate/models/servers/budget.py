"""Money: what a run spent, and what its calls in flight may still cost at worst."""

from __future__ import annotations

from dataclasses import dataclass, field

from refadv_ablate.errors import UserError
from refadv_ablate.types import Price, Usage


def cost(price: Price, input_tokens: int, output_tokens: int) -> Usage:
    """Tokens with their price."""
    usd = (input_tokens * price.input + output_tokens * price.output) / 1e6
    return Usage(input_tokens, output_tokens, usd)


@dataclass
class Budget:
    """Admits a call only while everything admitted could be paid for at its worst.

    The worst is the dearest input seen so far with a tenth on top (`first_input_tokens` before any
    was seen) and as many output tokens as the request allows.
    """

    price: Price
    usd: float | None = None
    first_input_tokens: int = 8192
    spent: float = field(default=0.0, init=False)
    reserved: float = field(default=0.0, init=False)
    _dearest_input: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.usd is not None and not (self.price.input or self.price.output):
            raise UserError(
                "budget_usd is set but the model has no price: give model.price.input and "
                "model.price.output in USD per million tokens"
            )

    def worst(self, max_new_tokens: int) -> float:
        """USD that one call may cost."""
        tokens = self._dearest_input or self.first_input_tokens
        return cost(self.price, int(tokens * 1.1), max_new_tokens).usd

    def admits(self, worst: float) -> bool:
        """Whether a call that costs this much at worst can still be paid for."""
        return self.usd is None or self.spent + self.reserved + worst <= self.usd

    def settle(self, reserve: float, usage: Usage) -> None:
        """Replaces a reservation by what the call did cost."""
        self.reserved = max(0.0, self.reserved - reserve)
        self.spent += usage.usd
        self._dearest_input = max(self._dearest_input, usage.input_tokens)

    def lost(self, worst: float) -> None:
        """A call that may have been billed without an answer is counted at its worst."""
        self.spent += worst
