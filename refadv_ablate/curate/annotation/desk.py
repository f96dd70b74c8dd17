"""What the annotation page works on: items in each annotator's order, and answers as they come in."""

from __future__ import annotations

import io
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from refadv_ablate.curate.annotation.answers import Blind, Said, Verdict, chosen, sheet
from refadv_ablate.curate.annotation.items import Item, item_id, order
from refadv_ablate.curate.generation.checks import Checks, plain
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.types import Json


class RefusedError(Exception):
    """An answer or a question that makes no sense here; the sentence is for the annotator."""


class Authored(BaseModel):
    """An expression that a person wrote for a target, with the look-alike it is told from."""

    model_config = ConfigDict(extra="forbid")
    annotator: str
    scene: str
    target: int
    distractor: int
    expression: str = Field(max_length=400)
    key: str = Field(default="", max_length=64)


class Desk:
    """Thread-safe; an answer is on disk before it is acknowledged."""

    def __init__(
        self,
        scenes: Mapping[str, Scene],
        items: Sequence[Item],
        annotators: Sequence[str],
        answers: Ledger,
        authored: Ledger,
        checks: Checks,
        seed: int,
    ) -> None:
        self.scenes, self.annotators, self.checks = scenes, tuple(annotators), checks
        self.items = {item.id: item for item in items}
        self.answers, self.authored = answers, authored
        self.orders = {name: [i.id for i in order(list(items), name, seed)] for name in annotators}
        self.scene_orders = {name: sorted(scenes) for name in annotators}
        rows, written = answers.rows(), authored.rows()
        self.sheet = sheet(rows)
        self.written = written
        self.keys = {row["key"] for row in (*rows, *written) if row.get("key")}
        self.lock = threading.Lock()

    # ── verification ────────────────────────────────────────────────────────────────────────────

    def next(self, annotator: str, item: str | None = None) -> dict[str, Json]:
        """The first item without a verdict in the annotator's order, or `item` if it was begun.

        The gold box is told only to those who have grounded blind.
        """
        with self.lock:
            own = self._own(annotator)
            done = sum(said.verdict is not None for key, said in own.items() if key in self.items)
            wanted = item or next((k for k in self.orders[annotator] if not _finished(own.get(k))), None)
            told: dict[str, Json] = {"done": done, "total": len(self.items), "item": None}
            if wanted is None:
                return told
            if wanted not in self.items or (item is not None and own.get(item, Said()).blind is None):
                raise RefusedError("this expression isn't yours to look at again")
            return told | self._shown(
                self.items[wanted], own.get(wanted, Said()), self._before(annotator, wanted)
            )

    def answer(self, said: Blind | Verdict) -> dict[str, Json]:
        """Keeps it (on disk when this returns) and tells what follows; a repeated key is kept once."""
        with self.lock:
            own = self._own(said.annotator)
            if said.item not in self.items:
                raise RefusedError("this expression is no longer part of the set")
            before = own.get(said.item, Said())
            if (
                isinstance(said, Blind)
                and sum((said.point is not None, said.box is not None, said.none)) != 1
            ):
                raise RefusedError("a grounding is a point, a box, or that nothing fits")
            if isinstance(said, Verdict) and before.blind is None:
                raise RefusedError("first find it without help")
            if not said.key or said.key not in self.keys:
                self._keep(said, before)
            return {"saved": True}

    def _keep(self, said: Blind | Verdict, before: Said) -> None:
        from time import gmtime, strftime

        row = said.model_dump(mode="json") | {"time": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())}
        self.answers.append(row)
        if said.key:
            self.keys.add(said.key)
        if isinstance(said, Verdict):
            before.verdict = row
        elif before.blind is None:
            before.blind = row
        self.sheet.setdefault(said.annotator, {})[said.item] = before

    def _own(self, annotator: str) -> dict[str, Said]:
        if annotator not in self.annotators:
            raise RefusedError("choose your name from the list")
        return self.sheet.get(annotator, {})

    def _before(self, annotator: str, item: str) -> str | None:
        """The item that the annotator had before this one, to go back to."""
        own = self.sheet.get(annotator, {})
        ids = self.orders[annotator]
        earlier = [k for k in ids[: ids.index(item)] if own.get(k, Said()).verdict is not None]
        return earlier[-1] if earlier else None

    def _shown(self, item: Item, said: Said, before: str | None) -> dict[str, Json]:
        shown: dict[str, Json] = {
            "item": item.id,
            "expression": item.expression,
            "width": item.scene.size[0],
            "height": item.scene.size[1],
            "stage": "blind",
            "before": before,
        }
        if said.blind is not None:
            shown |= {
                "stage": "verdict",
                "gold": item.gold.as_list(),
                "look_alike": item.scene.boxes[item.distractor - 1].as_list(),
                "blind": {k: said.blind.get(k) for k in ("point", "box", "none")},
                "hit": chosen(said.blind, item.scene) == item.target,
                "verdict": said.verdict
                and {k: said.verdict.get(k) for k in ("correct", "hard", "reconsidered", "note")},
            }
        return shown

    # ── authoring ───────────────────────────────────────────────────────────────────────────────

    def scene(self, annotator: str, index: int) -> dict[str, Json]:
        """Scene `index` with its candidates and what this author has written for it."""
        self._own(annotator)
        ids = list(self.scenes)
        if not ids:
            raise RefusedError("there are no scenes")
        scene = self.scenes[ids[index % len(ids)]]
        own = [r for r in self.written if r["scene"] == scene.id and r["annotator"] == annotator]
        return {
            "scene": scene.id,
            "index": index % len(ids),
            "total": len(ids),
            "category": scene.category,
            "width": scene.size[0],
            "height": scene.size[1],
            "boxes": [box.as_list() for box in scene.boxes],
            "written": [{k: r[k] for k in ("expression", "target", "distractor")} for r in own],
        }

    def author(self, said: Authored) -> dict[str, Json]:
        """Keeps an expression that passes the checks."""
        with self.lock:
            self._own(said.annotator)
            scene = self.scenes.get(said.scene)
            if scene is None:
                raise RefusedError("this scene is no longer part of the set")
            n = len(scene.boxes)
            if not (1 <= said.target <= n and 1 <= said.distractor <= n) or said.target == said.distractor:
                raise RefusedError("choose the target and another candidate that looks like it")
            if said.key and said.key in self.keys:
                return {"saved": True}
            text = " ".join(said.expression.split())
            if fault := self.checks.fault(text, scene.category):
                raise RefusedError(f"Not yet: {fault}.")
            if any(plain(r["expression"]) == plain(text) for r in self.written if r["scene"] == scene.id):
                raise RefusedError("Not yet: somebody wrote this expression for the scene already.")
            row = said.model_dump() | {"expression": text, "item": item_id(scene.id, said.target, text)}
            self.authored.append(row)
            self.written.append(row)
            self.keys.add(said.key)
            return {"saved": True}

    # ── images ──────────────────────────────────────────────────────────────────────────────────

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
