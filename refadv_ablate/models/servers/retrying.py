"""What a failed call means and how long to wait before the next: pure functions and a backoff."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from refadv_ablate.models.servers.completion import ReportedFailure

RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
FATAL = frozenset({401, 403, 404})
UNREADABLE = "the answer could not be read"
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes of a 429 that waiting can't mend: the account is out of money."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that brought no answer.

    retry: the same call may work later. example: this request is at fault, others are not.
    fatal: no request can work until a person changes something.
    """

    kind: Literal["retry", "example", "fatal"]
    reason: str
    wait: float | None = None
    """Seconds the server asked for (Retry-After)."""
    overloaded: bool = False
    """The server lives and wants fewer requests: no sign that it is gone."""
    connected: bool = True
    """Something answered, whatever it said."""
    maybe_billed: bool = False
    """The request may have been worked on although no answer came back."""


def seconds_to_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The Retry-After (seconds or an HTTP date) or retry-after-ms of a response; None without one."""
    millis = headers.get("retry-after-ms")
    text = (headers.get("retry-after") or "").strip()
    try:
        if millis is not None:
            return max(0.0, float(millis) / 1000)
        if text.replace(".", "", 1).isdigit():
            return float(text)
        if not text:
            return None
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def judge(error: Exception) -> Failure:
    """Sorts an exception of the `openai` SDK, or of reading what it brought, into the three kinds."""
    import openai

    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Failure("retry", "the server did not answer in time", connected=False, maybe_billed=True)
    if isinstance(error, openai.APIStatusError):
        return _judge_status(error.status_code, _sentence(error), error.code, error.response.headers)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        return Failure("retry", f"no connection ({type(cause).__name__}: {cause})".strip(), connected=False)
    if isinstance(error, ReportedFailure):
        return _judge_report(error)
    # A body that isn't the JSON it should be, in whatever way: it belongs to one request and stops no other.
    told = error if isinstance(error, openai.APIError | ValueError) else f"{type(error).__name__}: {error}"
    return Failure("retry", f"{UNREADABLE} ({told})", maybe_billed=True)


def _judge_report(error: ReportedFailure) -> Failure:
    """A failure inside a 200; a code in it can't end the run, since the server took the request."""
    status = error.code or 200
    kind: Literal["retry", "example"] = "example" if status in (400, 413, 422) else "retry"
    reason = f"HTTP 200 with an error: {error}" + (f" (code {status})" if error.code else "")
    return Failure(kind, reason, overloaded=status in {429, 529}, maybe_billed=kind == "retry")


def _judge_status(status: int, text: str, code: str | None, headers: Mapping[str, str]) -> Failure:
    reason = f"HTTP {status}: {text}"
    if status in FATAL or code in SPENT:
        return Failure("fatal", reason)
    if status in RETRYABLE or status >= 500:
        return Failure("retry", reason, seconds_to_wait(headers), overloaded=status in {429, 529})
    return Failure("example", reason)


def _sentence(error: Exception) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, Mapping) and isinstance(body.get("message"), str):
        return str(body["message"])[:300]
    return str(error)[:300]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter, seconds: what the server asks for goes before, jitter on top."""

    base: float = 0.5
    cap: float = 60.0
    longest_wait: float = 600.0
    """A Retry-After beyond this is cut to it: the next call then says again how long."""

    def delay(self, failure: Failure, attempt: int, rng: random.Random) -> float:
        """Seconds before attempt + 1; `attempt` counts from 1."""
        jitter = rng.uniform(0, min(self.cap, self.base * 2.0 ** min(attempt, 30)))
        if failure.wait is None:
            return jitter
        return min(failure.wait, self.longest_wait) + min(jitter, self.base)
