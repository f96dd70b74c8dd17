"""What the authoring page works on: scenes to write for, expressions as people write and withdraw them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from refadv_ablate.curate.annotation.items import Item, authored_id, authored_item, item_id, standing
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


class Withdrawn(BaseModel):
    """An author takes back an expression that nobody has judged yet. item: its id."""

    model_config = ConfigDict(extra="forbid")
    annotator: str
    item: str
    key: str = Field(default="", max_length=64)


class Authoring:
    """Shares the lock of its desk; what is kept is on disk before it is acknowledged.

    changed: is told an item that came, or the id of one that went. judged: whether anybody said anything
    of an item.
    """

    def __init__(
        self,
        scenes: Mapping[str, Scene],
        authors: tuple[str, ...],
        ledger: Ledger,
        checks: Checks,
        lock: AbstractContextManager[Any],
        changed: Callable[[Item | str], None],
        judged: Callable[[str], bool],
    ) -> None:
        self.scenes, self.authors, self.ledger, self.checks = scenes, authors, ledger, checks
        self.lock, self.changed, self.judged = lock, changed, judged
        rows = ledger.rows()
        self.written = standing(rows)
        self.keys = {row["key"] for row in rows if row.get("key")}

    def scene(self, author: str, index: int) -> dict[str, Json]:
        """Scene `index` with its candidates and what this author has written for it."""
        with self.lock:
            self._known(author)
            ids = list(self.scenes)
            if not ids:
                raise RefusedError("there are no scenes")
            scene = self.scenes[ids[index % len(ids)]]
            mine = [r for r in self.written if r["annotator"] == author]
            own = [r for r in mine if r["scene"] == scene.id]
            return {
                "scene": scene.id,
                "index": index % len(ids),
                "total": len(ids),
                "all_written": len(mine),
                "category": scene.category,
                "width": scene.size[0],
                "height": scene.size[1],
                "boxes": [box.as_list() for box in scene.boxes],
                "written": [
                    {k: r[k] for k in ("expression", "target", "distractor")} | {"item": authored_id(r)}
                    for r in own
                ],
            }

    def author(self, said: Authored) -> dict[str, Json]:
        """Keeps an expression that passes the checks."""
        with self.lock:
            self._known(said.annotator)
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
            self._append(row)
            self.written.append(row)
            self.changed(authored_item(row, scene))
            return {"saved": True}

    def withdraw(self, said: Withdrawn) -> dict[str, Json]:
        """Takes an expression of the author's own out of the set, as long as nobody has judged it."""
        with self.lock:
            self._known(said.annotator)
            if said.key and said.key in self.keys:
                return {"saved": True}
            own = [
                r for r in self.written if authored_id(r) == said.item and r["annotator"] == said.annotator
            ]
            if not own:
                raise RefusedError("this expression isn't yours, or isn't there any more")
            if self.judged(said.item):
                raise RefusedError("somebody has looked for it already, so it stays in the set")
            self._append({"withdrawn": said.item, "annotator": said.annotator, "key": said.key})
            self.written = [r for r in self.written if r not in own]
            self.changed(said.item)
            return {"saved": True}

    def _append(self, row: dict[str, Json]) -> None:
        self.ledger.append(row)
        if row.get("key"):
            self.keys.add(row["key"])

    def _known(self, author: str) -> None:
        if author not in self.authors:
            raise RefusedError("choose your name from the list")
