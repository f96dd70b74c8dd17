"""Verification in Label Studio instead of our page: tasks out, annotations in.

The tasks hold no gold box, so the rectangle that an annotator draws is a blind grounding. Label Studio
can't show the gold box afterwards; answer (a) is then about the annotator's own reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from refadv_ablate.curate.annotation.answers import Blind, Verdict
from refadv_ablate.curate.annotation.items import Item
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.settings import LabelStudio
from refadv_ablate.data.forms.files import read_json
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import digest
from refadv_ablate.storage.jsonl import atomic
from refadv_ablate.types import Json

INTERFACE = """\
<View>
  <Header value="Draw a box around what the expression means, then answer."/>
  <Text name="expression" value="$expression"/>
  <Image name="image" value="$image" zoom="true"/>
  <RectangleLabels name="blind" toName="image"><Label value="referent"/></RectangleLabels>
  <Header value="The expression is correct and unambiguous"/>
  <Choices name="correct" toName="image" choice="single" required="true">
    <Choice value="yes" hotkey="y"/><Choice value="no" hotkey="n"/>
  </Choices>
  <Header value="There is a look-alike that one could take for it"/>
  <Choices name="hard" toName="image" choice="single" required="true">
    <Choice value="yes" hotkey="u"/><Choice value="no" hotkey="m"/>
  </Choices>
</View>
"""


def tasks(items: Sequence[Item], prefix: str) -> list[dict[str, Json]]:
    """Label Studio's import format; `prefix` stands before the image's path below its root."""
    return [
        {
            "data": {
                "image": prefix + quote(item.scene.image),
                "expression": item.expression,
                "item": item.id,
                "width": item.scene.size[0],
                "height": item.scene.size[1],
            }
        }
        for item in items
    ]


def write_tasks(items: Sequence[Item], settings: LabelStudio, path: Path) -> Path:
    """Writes the tasks, and the labelling interface beside them (same name, .xml)."""
    import json

    with atomic(path) as file:
        text = json.dumps(tasks(items, settings.image_prefix), ensure_ascii=False, indent=1)
        file.write(text.encode())
    interface = path.with_suffix(".xml")
    with atomic(interface) as file:
        file.write(INTERFACE.encode())
    return interface


class _Value(BaseModel):
    model_config = ConfigDict(extra="ignore")
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    choices: list[str] = []


class _Result(BaseModel):
    model_config = ConfigDict(extra="ignore")
    from_name: str
    type: str
    value: _Value


class _Annotation(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: int | str = 0
    completed_by: int | str | dict[str, Any] = ""
    result: list[_Result] = []
    was_cancelled: bool = False
    lead_time: float | None = None


class _Task(BaseModel):
    model_config = ConfigDict(extra="ignore")
    data: dict[str, Any]
    annotations: list[_Annotation] = []


def read_annotations(
    path: Path, items: Mapping[str, Item], names: Mapping[str, str]
) -> tuple[list[Blind | Verdict], list[str]]:
    """Answers in Label Studio's JSON export, and what couldn't be used. Raises UserError."""
    tree = read_json(path)
    if not isinstance(tree, list):
        raise UserError(f"{path} is no Label Studio export: choose the format JSON (not JSON-MIN or CSV)")
    answers: list[Blind | Verdict] = []
    problems: list[str] = []
    for number, raw in enumerate(tree):
        try:
            task = _Task.model_validate(raw)
        except ValidationError as error:
            raise UserError(
                f"{path}, task {number}: {'.'.join(map(str, error.errors()[0]['loc']))} is not as Label "
                "Studio exports it; choose the format JSON (not JSON-MIN or CSV)"
            ) from error
        item = items.get(str(task.data.get("item")))
        if item is None:
            problems.append(f"task {number} is about no expression of this set")
            continue
        for annotation in task.annotations:
            if not annotation.was_cancelled:
                try:
                    answers += _answers(annotation, item, names, problems)
                except ValidationError as error:
                    told = error.errors()[0]
                    problems.append(f"task {number}: {'.'.join(map(str, told['loc']))}: {told['msg']}")
    return answers, problems


def _answers(
    annotation: _Annotation, item: Item, names: Mapping[str, str], problems: list[str]
) -> list[Blind | Verdict]:
    who = _who(annotation, names)
    width, height = item.scene.size
    box: tuple[float, float, float, float] | None = None
    choices = {}
    for one in annotation.result:
        v = one.value
        if one.type == "rectanglelabels" and box is None and v.width > 0 and v.height > 0:
            x, y = v.x / 100 * width, v.y / 100 * height
            box = (x, y, x + v.width / 100 * width, y + v.height / 100 * height)
        elif one.type == "choices" and v.choices:
            choices[one.from_name] = v.choices[0].lower() == "yes"
    key = digest("label studio", item.id, who, annotation.id)[:32]
    seconds = min(max(0.0, annotation.lead_time or 0.0), 1e6)  # a tab left open for weeks
    blind = Blind(annotator=who, item=item.id, box=box, none=box is None, seconds=seconds, key=key + "-b")
    if set(choices) != {"correct", "hard"}:
        problems.append(f"{who} left a question of {item.expression!r} open")
        return [blind]
    verdict = Verdict(
        annotator=who, item=item.id, correct=choices["correct"], hard=choices["hard"], key=key + "-v"
    )
    return [blind, verdict]


def _who(annotation: _Annotation, names: Mapping[str, str]) -> str:
    by = annotation.completed_by
    ids = [str(by.get(k)) for k in ("email", "id") if by.get(k)] if isinstance(by, dict) else [str(by)]
    return next((names[i] for i in ids if i in names), ids[0] if ids and ids[0] else "unknown")


def take(answers: Sequence[Blind | Verdict], ledger: Ledger) -> int:
    """Appends what the ledger lacks; returns how many. Importing a file twice changes nothing."""
    with ledger.writing():
        known = {row.get("key") for row in ledger}
        new = [a for a in answers if a.key not in known]
        for answer in new:
            ledger.append(answer.model_dump(mode="json"))
    return len(new)
