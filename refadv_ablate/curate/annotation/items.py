"""What annotators verify: one expression for one target of a scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refadv_ablate.boxes import Box
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import Scene
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import digest, generator
from refadv_ablate.types import Json


@dataclass(frozen=True, slots=True)
class Item:
    """target, distractor: candidate numbers (from 1). made: how the expression came about."""

    id: str
    scene: Scene
    target: int
    distractor: int
    expression: str
    human: bool = False
    made: Mapping[str, Json] = field(default_factory=dict)

    @property
    def gold(self) -> Box:
        """The box of the target."""
        return self.scene.boxes[self.target - 1]


def item_id(scene: str, target: int, expression: str) -> str:
    """Equal expressions for equal targets are one item, however often they are made."""
    return digest("item", scene, target, expression)[:16]


def load_items(out: Path, scenes: Mapping[str, Scene]) -> list[Item]:
    """All expressions, composed and authored, each once. Raises UserError where there are none."""
    items: dict[str, Item] = {}
    for item in (*_composed(out, scenes), *_authored(out, scenes)):
        items.setdefault(item.id, item)
    if not items:
        raise UserError(
            f"{out} has no expressions yet: run the stage compose, or write some with the stage author"
        )
    return list(items.values())


def _composed(out: Path, scenes: Mapping[str, Scene]) -> Iterator[Item]:
    """Of the latest row of each unit. Units of different prompts stand side by side, to be compared."""
    latest: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in Ledger(out / "composed.jsonl"):
        latest[row["scene"], row.get("target"), row.get("method"), row.get("prompts", "default")] = row
    for row in latest.values():
        scene = scenes.get(row["scene"])
        if scene is None or not row.get("pair"):
            continue
        origin = {"method": row["method"], "prompts": row.get("prompts", "default")}
        origin |= {k: row[k] for k in ("judge_prompt", "compose_prompt") if row.get(k)}
        for part in row["targets"] if row["method"] == "one_step" else [row]:
            first, second = row["pair"]
            target = part["target"]
            other = second if target == first else first
            for one in part["expressions"]:
                text = one["expression"]
                made = origin | {k: v for k, v in one.items() if k != "expression"}
                yield Item(item_id(scene.id, target, text), scene, target, other, text, False, made)


def _authored(out: Path, scenes: Mapping[str, Scene]) -> Iterator[Item]:
    for row in standing(Ledger(out / "authored.jsonl").rows()):
        scene = scenes.get(row["scene"])
        if scene is not None:
            yield authored_item(row, scene)


def standing(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of authored.jsonl that their author has not withdrawn since."""
    found: list[dict[str, Any]] = []
    for row in rows:
        if gone := row.get("withdrawn"):
            found = [r for r in found if authored_id(r) != gone]
        else:
            found.append(dict(row))
    return found


def authored_id(row: Mapping[str, Any]) -> str:
    """The item that a line of authored.jsonl is about."""
    return item_id(row["scene"], row["target"], row["expression"])


def authored_item(row: Mapping[str, Any], scene: Scene) -> Item:
    """What annotators verify of a line of authored.jsonl."""
    made = {"method": "human", "author": row["annotator"]}
    return Item(authored_id(row), scene, row["target"], row["distractor"], row["expression"], True, made)


def order(items: list[Item], annotator: str, seed: int) -> list[Item]:
    """The annotator's own random order, the same after every start."""
    keys = {item.id: generator(seed, "order", annotator, item.id).random() for item in items}
    return sorted(items, key=lambda item: (keys[item.id], item.id))
