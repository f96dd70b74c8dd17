"""What the verification page works on: items in each annotator's order, and answers as they come in."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from statistics import median
from time import gmtime, monotonic, strftime
from typing import Any

from refadv_ablate.curate.annotation.agreement import agreement, lines
from refadv_ablate.curate.annotation.answers import Blind, Said, Verdict, chosen, outcomes, sheet
from refadv_ablate.curate.annotation.authoring import Authoring, RefusedError
from refadv_ablate.curate.annotation.items import Item, order
from refadv_ablate.curate.generation.checks import Checks
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.curate.settings import Verify
from refadv_ablate.types import Json

HELD = 900.0
"""Seconds for which an item shown in one window isn't shown in another one of the same annotator."""
RECENT, LEAST = 20, 5
"""Items whose median time is the pace, and how many are needed to tell one."""


class Desk:
    """Thread-safe; an answer is on disk before it is acknowledged. seed: of the annotators' orders."""

    def __init__(
        self,
        scenes: Mapping[str, Scene],
        items: Sequence[Item],
        settings: Verify,
        answers: Ledger,
        authored: Ledger,
        checks: Checks,
        seed: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.scenes, self.settings, self.seed, self.clock = scenes, settings, seed, clock
        self.annotators = settings.named()
        self.items = {item.id: item for item in items}
        self.answers = answers
        rows = answers.rows()
        self.sheet = sheet(rows)
        self.keys = {row["key"] for row in rows if row.get("key")}
        self.finished: dict[str, list[str]] = {name: [] for name in self.annotators}
        for row in rows:
            self._finish(row)
        self.held: dict[tuple[str, str], tuple[str, float]] = {}
        self.lock = threading.Lock()
        self.authoring = Authoring(
            scenes, self.annotators, authored, checks, self.lock, self._changed, self._begun
        )
        self._put_in_order()

    def _put_in_order(self) -> None:
        """Each annotator's own order, without what they wrote themselves unless the settings say so."""
        self.orders = {}
        for name in self.annotators:
            todo = [i for i in self.items.values() if self.settings.own or i.made.get("author") != name]
            self.orders[name] = [i.id for i in order(todo, name, self.seed)]

    # ── what is asked next ──────────────────────────────────────────────────────────────────────

    def next(self, annotator: str, item: str | None = None, window: str = "") -> dict[str, Json]:
        """The first item without a verdict in the annotator's order, or `item` if it was begun.

        window: of the browser; what one window shows isn't offered in another one of the same annotator
        while there is something else. The gold box is told only to those who have grounded blind.
        """
        with self.lock:
            own = self._own(annotator)
            todo = [k for k in self.orders[annotator] if self._wanted(annotator, k)]
            open_ones = [k for k in todo if not _finished(own.get(k))]
            free = [k for k in open_ones if not self._elsewhere(annotator, k, window)]
            wanted = item or next(iter(free or open_ones), None)
            told = self._progress(annotator, len(todo) - len(open_ones), len(todo))
            told |= {"item": None, "before": self._before(annotator, wanted)}
            if wanted is None:
                return told
            if wanted not in self.items or (item is not None and own.get(item, Said()).blind is None):
                raise RefusedError("this expression isn't yours to look at again")
            self.held[annotator, wanted] = (window, self.clock())
            told["upcoming"] = next((k for k in free if k != wanted), None)
            return told | self._shown(self.items[wanted], own.get(wanted, Said()))

    def _wanted(self, annotator: str, item: str) -> bool:
        """Whether the annotator's word on it still matters, where settings save words that don't."""
        if not self.settings.skip_dropped or self.sheet.get(annotator, {}).get(item, Said()).blind:
            return True
        said = [s[item].verdict for s in self.sheet.values() if item in s]
        return all(v["correct"] and v["hard"] for v in said if v)

    def _elsewhere(self, annotator: str, item: str, window: str) -> bool:
        holder, since = self.held.get((annotator, item), (window, 0.0))
        return holder != window and self.clock() - since < HELD

    def _progress(self, annotator: str, done: int, total: int) -> dict[str, Json]:
        """done and total; pace: seconds an item, the median of the last ones, None for the first few."""
        own = self.sheet.get(annotator, {})
        last = [own[k] for k in self.finished[annotator][-RECENT:]]
        spent = [_seconds(s.blind) + _seconds(s.verdict) for s in last]
        return {"done": done, "total": total, "pace": median(spent) if len(spent) >= LEAST else None}

    def _before(self, annotator: str, item: str | None) -> str | None:
        """The item that the annotator finished before this one, to go back to."""
        done = [k for k in self.finished[annotator] if k in self.items]
        if item in done:
            done = done[: done.index(item)]
        return done[-1] if done else None

    def _shown(self, item: Item, said: Said) -> dict[str, Json]:
        shown: dict[str, Json] = {
            "item": item.id,
            "expression": item.expression,
            "width": item.scene.size[0],
            "height": item.scene.size[1],
            "stage": "blind",
        }
        if said.blind is not None:
            shown |= {
                "stage": "verdict",
                "gold": item.gold.as_list(),
                "look_alike": item.scene.boxes[item.distractor - 1].as_list(),
                "blind": {k: said.blind.get(k) for k in ("point", "box", "none")},
                "hit": chosen(said.blind, item.scene) == item.target,
                "verdict": said.verdict
                and {k: said.verdict.get(k) for k in ("correct", "hard", "reconsidered", "note", "key")},
            }
        return shown

    # ── what is answered ────────────────────────────────────────────────────────────────────────

    def answer(self, said: Blind | Verdict) -> dict[str, Json]:
        """Keeps it (on disk when this returns); a repeated key is kept once.

        Raises RefusedError for what makes no sense, and for an answer that another window was faster with.
        """
        with self.lock:
            own = self._own(said.annotator)
            if said.item not in self.items:
                raise RefusedError("this expression is no longer part of the set")
            if said.key and said.key in self.keys:
                return {"saved": True}
            before = own.get(said.item, Said())
            if isinstance(said, Blind):
                if sum((said.point is not None, said.box is not None, said.none)) != 1:
                    raise RefusedError("a grounding is a point, a box, or that nothing fits")
                if before.blind is not None:
                    raise RefusedError("you have found it in another window already; that answer stands")
            elif before.blind is None:
                raise RefusedError("first find it without help")
            elif before.verdict is not None and (before.verdict.get("key") or "") != said.replaces:
                raise RefusedError("you have judged it in another window already; that verdict stands")
            self._keep(said, before)
            return {"saved": True}

    def _keep(self, said: Blind | Verdict, before: Said) -> None:
        row = said.model_dump(mode="json") | {"time": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())}
        self.answers.append(row)
        if said.key:
            self.keys.add(said.key)
        if isinstance(said, Verdict):
            before.verdict = row
        else:
            before.blind = row
        self.sheet.setdefault(said.annotator, {})[said.item] = before
        self._finish(row)

    def _finish(self, row: Mapping[str, Any]) -> None:
        """Keeps the order in which items got their first verdict."""
        done = self.finished.get(row["annotator"])
        if row["kind"] == "verdict" and done is not None and row["item"] not in done:
            done.append(row["item"])

    def _own(self, annotator: str) -> dict[str, Said]:
        if annotator not in self.annotators:
            raise RefusedError("choose your name from the list")
        return self.sheet.get(annotator, {})

    # ── items that come and go ──────────────────────────────────────────────────────────────────

    def _changed(self, item: Item | str) -> None:
        """An expression was written, or (its id) withdrawn, while people verify."""
        if isinstance(item, str):
            self.items.pop(item, None)
        else:
            self.items.setdefault(item.id, item)
        self._put_in_order()

    def _begun(self, item: str) -> bool:
        return any(item in said for said in self.sheet.values())

    # ── for whoever coordinates ─────────────────────────────────────────────────────────────────

    def progress(self) -> dict[str, Json]:
        """How far each annotator is, what became of the expressions, the agreement; of no single item."""
        with self.lock:
            items, needed = list(self.items.values()), self.settings.needed
            found = agreement(items, self.sheet, outcomes(items, self.sheet, needed), needed)
            people = []
            for name in self.annotators:
                own = self.sheet.get(name, {})
                todo = [k for k in self.orders[name] if self._wanted(name, k)]
                done = sum(_finished(own.get(k)) for k in todo)
                people.append({"name": name, **self._progress(name, done, len(todo))})
            counts = {"kept": found.kept, "dropped": found.dropped, "open": found.open, "needed": needed}
            return {"people": people, **counts, "lines": lines(found)}

    def image(self, key: str) -> bytes:
        """JPEG of an item's or a scene's untagged image, on the stored pixel grid."""
        scene = self.items[key].scene if key in self.items else self.scenes.get(key)
        if scene is None:
            raise RefusedError("there is no such image")
        return _jpeg(scene)


@lru_cache(maxsize=128)
def _jpeg(scene: Scene) -> bytes:
    """Encoded anew: a browser would turn a file by its EXIF orientation, and boxes would be elsewhere."""
    buffer = io.BytesIO()
    scene.ref().load().save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def _finished(said: Said | None) -> bool:
    return said is not None and said.verdict is not None


def _seconds(row: Mapping[str, Any] | None) -> float:
    return float((row or {}).get("seconds") or 0.0)
