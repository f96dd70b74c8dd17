"""The repetition penalty of a padded batch, which has to be that of each request alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class RepetitionPenalty:
    """A logits processor: tokens of prompt and answer lose by a factor, padding left aside.

    transformers' own counts the padding before a shorter prompt as written too, so that an answer would
    depend on its batch. factor: > 0; 1 changes nothing. mask: attention mask of the prompts (batch,
    length). The formula is that of CTRL (arXiv 1909.05858), over prompt and answer as transformers and
    vLLM have it.
    """

    factor: float
    mask: Any

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores (batch, vocabulary) after the penalty; input_ids (batch, length so far)."""
        import torch

        written = torch.ones_like(input_ids)
        written[:, : self.mask.shape[1]] = self.mask
        times = torch.zeros(scores.shape, dtype=torch.long, device=scores.device)
        seen = times.scatter_add(1, input_ids, written.long()) > 0
        lowered = torch.where(scores < 0, scores * self.factor, scores / self.factor)
        return torch.where(seen, lowered, scores)
