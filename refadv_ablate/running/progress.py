"""The live display of a run: rate, time left, retries, unparsed and missing counts, running Acc@0.5."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType
from typing import Any

from refadv_ablate.boxes import Box
from refadv_ablate.errors import printable
from refadv_ablate.types import Reading, Reply


class Display:
    """A Watch for a terminal; elsewhere it only passes warnings on, to standard error."""

    def __init__(self, total: int, title: str, mode: str = "auto") -> None:
        self.total, self.title = total, title
        self.live_wanted = mode == "on" or (mode == "auto" and sys.stderr.isatty())
        self.counts: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.started = time.monotonic()
        self._live: Any = None
        self._shown = 0.0

    def __enter__(self) -> Display:
        if self.live_wanted:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def reply(
        self, condition: str, reading: Reading | None, score: float | None, reply: Reply, stored: bool
    ) -> None:
        """Counts one answer; redraws at most four times a second."""
        self.counts["done"] += 1
        self.counts["stored"] += stored
        self.counts["retries"] += max(0, reply.attempts - 1)
        if reading is None or score is None:
            self.counts["missing"] += 1
        else:
            self.counts["unparsed"] += not isinstance(reading.answer, Box)
            self.answered[condition] += 1
            self.hits[condition] += score >= 0.5
        now = time.monotonic()
        if self._live is not None and now - self._shown > 0.25:
            self._shown = now
            self._live.update(self._render(now), refresh=True)

    def warn(self, text: str) -> None:
        """Shows a warning at once."""
        if self._live is not None:
            self._live.console.print(f"warning: {printable(text)}", markup=False, highlight=False)
        else:
            print(f"warning: {printable(text)}", file=sys.stderr, flush=True)

    def _render(self, now: float) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        return Group(
            Text(self.title, style="bold"),
            ProgressBar(total=max(1, self.total), completed=self.counts["done"], width=60),
            Text(self.line(now)),
        )

    def line(self, now: float) -> str:
        """The state in one line."""
        done, elapsed = self.counts["done"], max(1e-9, now - self.started)
        asked = done - self.counts["stored"]
        rate = asked / elapsed
        left = (self.total - done) / rate if rate > 0 else 0.0
        scores = " · ".join(
            f"Acc@0.5 {name} {100 * self.hits[name] / n:.1f}" for name, n in self.answered.items() if n
        )
        return (
            f"{done}/{self.total} · {rate:.1f}/s · {_clock(left)} left · stored {self.counts['stored']} · "
            f"retries {self.counts['retries']} · unparsed {self.counts['unparsed']} · "
            f"missing {self.counts['missing']}" + (f" · {scores}" if scores else "")
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
