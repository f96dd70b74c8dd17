"""One job measured: perturb, ask, read, write predictions, compare."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from refadv_ablate import __version__
from refadv_ablate.errors import UserError
from refadv_ablate.parsing.landing import by_chance
from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.prompting import som
from refadv_ablate.running import perturbed_texts as texts
from refadv_ablate.running.cells import Cell, told_apart_by
from refadv_ablate.running.loaded_model import model_of
from refadv_ablate.running.parts import Parts
from refadv_ablate.running.plan import Plan, examples, traits
from refadv_ablate.running.progress import Display
from refadv_ablate.running.reading import Reader, added
from refadv_ablate.running.record import as_original
from refadv_ablate.running.run import run
from refadv_ablate.running.settings import store_of
from refadv_ablate.running.sweep import State
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics import trends
from refadv_ablate.statistics.understanding import Answers
from refadv_ablate.storage.jsonl import atomic, to_line
from refadv_ablate.storage.records import record_to_json
from refadv_ablate.types import Comparison, Example, Json, Model, Operator, Record, Request, Usage


def measure(parts: Parts, cells: Sequence[Cell]) -> dict[str, tuple[Comparison, State, str]]:
    """Asks what these cells need, in one pass over the data, and writes their predictions.

    Returns by operator label: the comparison, how the cell stands, and why. Raises UserError for data
    without examples.
    """
    model = model_of(parts)
    operators = {cell.label: parts.operators[cell.label] for cell in cells}
    files = texts_of(parts, operators)
    for cell in cells:
        shutil.copyfile(files[cell.label], cell.folder / "texts.jsonl")
    plan = plan_of(parts, model, operators, files)
    counts = {label: texts.count(path) for label, path in files.items()}
    n_examples = next(iter(counts.values()))[0]
    if n_examples == 0:
        raise UserError(
            f"data {parts.data.name} has no examples; check data.path, data.split and data.exclude"
        )
    _refuse_nothing_to_ask(parts, files)
    total = n_examples * len(plan.originals()) + sum(lines for _, lines in counts.values())
    started = time.monotonic()
    title = f"{parts.spec.name} · {parts.data.name} · {', '.join(operators)}"
    with store_of(parts.settings) as store, Display(total, title, parts.settings.progress) as display:
        reader = Reader(plan, display)
        arms = _write(plan, run(plan, store, reader), cells)
    seconds = time.monotonic() - started
    return {
        cell.label: _compare(parts, cell, arms[cell.label], n_examples, reader, seconds) for cell in cells
    }


def _refuse_nothing_to_ask(parts: Parts, files: Mapping[str, Path]) -> None:
    """Originals alone compare with nothing: where no text could be made, they aren't paid for either."""
    why: Counter[str] = Counter()
    for path in files.values():
        for line in texts.read(path)():
            if line.get("status") != "not_perturbable":
                return
            why[str(line.get("reason", ""))] += 1
    reason, _ = why.most_common(1)[0]
    raise UserError(
        f"perturb={','.join(files)} makes no text of any of the {sum(why.values())} examples of "
        f"{parts.data.name} ({reason}): nothing was asked; take another perturbation or other data"
    )


def plan_of(parts: Parts, model: Model, operators: Mapping[str, Operator], files: Mapping[str, Path]) -> Plan:
    """What these parts ask of the model, with the perturbed texts in `files`, by operator label."""
    return Plan(
        data=parts.data,
        spec=parts.spec,
        model=model,
        style=parts.style,
        texts={label: texts.read(path) for label, path in files.items()},
        **traits(operators),
        limit=parts.settings.limit,
        retry=parts.settings.retry == "format",
        notice={
            "chance_acc50": partial(_chance, model),
            "chance_same_category": _chance_same,
            "candidate_recall": som.recalled,
        },
        durable=getattr(model, "durable", True),
        about={"model": parts.spec.name, "checkpoint": parts.spec.checkpoint},
    )


def _chance_same(request: Request) -> float | None:
    """Part of the misses that pointing at any candidate would put on one of the referent's category."""
    shares = by_chance(request.perturbed.example)
    if shares is None or shares["referent"] >= 1:
        return None
    return shares["same category"] / (1 - shares["referent"])


def texts_of(parts: Parts, operators: Mapping[str, Operator]) -> dict[str, Path]:
    """The files of perturbed texts, by operator label; made where they aren't there yet."""
    settings = parts.settings
    folder, data = settings.out / "texts", parts.data.fingerprint()
    files = {
        label: texts.texts_path(folder, data, label, operator, settings.seed, settings.limit)
        for label, operator in operators.items()
    }
    wanted = {label: (path, operators[label]) for label, path in files.items()}
    texts.ensure_all(wanted, lambda: examples(parts.data, settings.limit), settings.seed)
    return files


def _chance(model: Model, request: Request) -> float | None:
    """Acc@0.5 expected of a control that knows it, else of pointing at any candidate with equal chance."""
    from refadv_ablate.models.controls import candidate_chance

    example = request.perturbed.example
    own: Callable[[Example, str], float] | None = getattr(model, "chance", None)
    if own is not None:
        return own(example, "acc50")
    return candidate_chance(example) if example.candidates else None


@dataclass
class _Arms:
    """What the numbers of one cell are made of, and which original condition is its own."""

    condition: str
    original: Arm
    perturbed: Arm = field(default_factory=Arm)
    answers: Answers = field(default_factory=Answers)


def _write(plan: Plan, found: Iterator[Record], cells: Sequence[Cell]) -> dict[str, _Arms]:
    """Sends each record to the arms and the predictions of each cell that it belongs to."""
    originals = {condition: Arm() for condition in plan.originals()}
    conditions = {cell.label: plan.original_of(cell.label) for cell in cells}
    arms = {label: _Arms(condition, originals[condition]) for label, condition in conditions.items()}
    with ExitStack() as stack:
        files = {c.label: stack.enter_context(atomic(c.folder / "predictions.jsonl")) for c in cells}
        for record in found:
            if record.condition in originals:
                originals[record.condition].add(record)
            else:
                arms[record.condition].perturbed.add(record)
            told = as_original(record)
            line = (to_line(record_to_json(told)) + "\n").encode()
            for label, each in arms.items():
                if record.condition in (label, each.condition):
                    each.answers.add(told)
                    files[label].write(line)
    return arms


def _about(operator: Operator) -> dict[str, Json]:
    """What the result says of the operator."""
    found: dict[str, Json] = {"keeps_text": getattr(operator, "keeps_text", False)}
    if getattr(operator, "repeat", False):
        found["noise_floor"] = True
    if does := getattr(operator, "does", ""):
        found["does"] = does
    return found


def _compare(
    parts: Parts, cell: Cell, arms: _Arms, planned: int, reader: Reader, seconds: float
) -> tuple[Comparison, State, str]:
    original, perturbed = arms.original, arms.perturbed
    comparison = stats.compare(
        original,
        perturbed,
        model=parts.spec.name,
        data=parts.data.name,
        prompt=parts.style.name,
        operator=cell.label,
        planned=planned,
        slices=parts.settings.slices,
        metrics=parts.settings.metrics,
        seed=parts.settings.seed,
        details={**reader.facts(), **_about(parts.operators[cell.label])},
    )
    frame = [
        text
        for condition, found in reader.warnings().items()
        if condition in (arms.condition, cell.label)
        for text in found
    ]
    excluded = getattr(parts.data, "excluded", {})
    left_out = [f"{n} examples left out of the data: {reason}" for reason, n in excluded.items() if n]
    left_out += getattr(parts.data, "notes", ())
    if first := reader.refused.get(cell.label):
        left_out.append(f"not perturbable, the first of them: {first}")
    missing = original.counts().get("missing", 0) + perturbed.counts().get("missing", 0)
    asked = max(1, len(original) + len(perturbed))
    state: State = "incomplete" if missing / asked > parts.settings.max_missing else "done"
    reason = ""
    if missing:
        first = reader.lost.get(arms.condition) or reader.lost.get(cell.label, "")
        then = "the same command asks them again" if state == "incomplete" else "max_missing allows that"
        reason = f"{missing} of {asked} answers are missing ({first}); {then}"
    used = added(reader.usage.get(arms.condition, Usage()), reader.usage.get(cell.label, Usage()))
    details = {
        **comparison.details,
        **trends.noted(original, perturbed),
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "usd": round(used.usd, 6),
        "seconds": round(seconds, 3),
        "hash": cell.hash,
        "version": __version__,
        "seed": parts.settings.seed,
        "settings": told_apart_by(parts, cell.label),
        "excluded": dict(excluded),
    }
    warnings = (*parts.notes, *frame, *left_out, *comparison.warnings)
    if state == "incomplete":
        warnings = (f"INCOMPLETE: {reason}", *warnings)
    if refusals := arms.answers.refusals():
        details["not_applicable"] = refusals
    told = replace(comparison, scores=arms.answers.scores(), warnings=warnings, details=details)
    return told, state, reason
