"""The log-probability of each token that a batch takes, noted while it is generated."""

from __future__ import annotations

from typing import Any


class TokenWatch:
    """A logits processor that changes nothing: it notes what the model gave to the token taken each time.

    Placed before all others it sees the model's own distribution. Only the last step's distribution is
    held: keeping those of all steps, as generate offers, takes gigabytes for a long answer.
    """

    def __init__(self) -> None:
        self._last: Any = None
        self._noted: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores (batch, vocabulary) as they came; input_ids (batch, length so far)."""
        self._note(input_ids)
        self._last = scores.float().log_softmax(dim=-1)
        return scores

    def chosen(self, made: Any) -> Any:
        """Per answer and step, shape (batch, steps), when all is generated; `made` with the prompts."""
        import torch

        self._note(made)
        self._last = None
        return torch.stack(self._noted, dim=1) if self._noted else torch.zeros(made.shape[0], 0)

    def _note(self, ids: Any) -> None:
        if self._last is not None:
            self._noted.append(self._last.gather(1, ids[:, -1:].to(self._last.device)).squeeze(1))
