"""The paper's tables 1–4, 6 and 7 in their layout, from our predictions, published values beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from refadv_ablate.parsing.scoring import Arm
from refadv_ablate.report.loading import published
from refadv_ablate.report.loading.groups import apart, to_overall
from refadv_ablate.report.loading.pooling import ENDING, pooled
from refadv_ablate.report.loading.sources import Cell
from refadv_ablate.report.loading.study import Study
from refadv_ablate.report.tables.cautions import answered, lacking, rewritten, unanswered
from refadv_ablate.report.tables.dig import dig
from refadv_ablate.report.tables.lexicon import Lexicon, lexicon
from refadv_ablate.report.tables.table import Column, Fact, Line, Number, Table
from refadv_ablate.statistics import comparison as stats
from refadv_ablate.statistics import slices
from refadv_ablate.types import Comparison, Estimate

BINS = {"2–3": "2_3", "4–6": "4_6", "7+": "7_plus"}
"""Distractor bins and how the published tables' columns are called."""
INTERVALS = "[low, high]: 95% interval, clustered by image."
PUBLISHED = "Below: the published value (ours − published; ✓ in our interval, ✗ outside it)."
BOTH = "Both conditions on the same examples, those answered in both."
TO_ALL = "Δ: Acc@0.5 of these examples minus Acc@0.5 of all."
COT = "The paper's columns are with the CoT prompt (its originals are the CoT lines of Table 7)."


def build(name: str, study: Study, operators: Mapping[str, str]) -> list[Table]:
    """The tables of that number that the study can fill; `operators` maps table2 … table4 to a label."""
    tables = {
        "table1": lambda: _table1(study),
        "table2": lambda: _table2(study, operators["table2"]),
        "table3": lambda: _table34(study, "table3", "Bag of words", operators["table3"]),
        "table4": lambda: _table34(study, "table4", "One descriptor deleted", operators["table4"]),
        "table6": lambda: _accuracies(study, "table6", "ref_adv_s"),
        "table7": lambda: _accuracies(study, "table7", "ref_adv"),
        "dig": lambda: dig(study),
    }
    return [table for table in tables[name]() if table.lines]


def automatic(study: Study, operators: Mapping[str, str]) -> list[str]:
    """The tables a study speaks to: 6 and 7 differ in columns, the full Ref-Adv belongs to 7."""
    keys = {published.dataset_key(name) for name in study.datasets()}
    present = set(study.operators())
    names = ["table1"]
    names += [name for name, label in operators.items() if label in present]
    if "ref_adv_s" in keys or "ref_adv" not in keys:
        names.append("table6")
    return names + (["table7"] if "ref_adv" in keys else [])


# ── table 1 ─────────────────────────────────────────────────────────────────────────────────────


def _table1(study: Study) -> Iterator[Table]:
    columns = (
        ("images", "Images"),
        ("instances", "Instances"),
        ("mean_length_words", "Mean length"),
        ("mean_distractors", "Mean distractors"),
        ("negation_percent", "Negation %"),
        ("instance_size_range", "Instance size"),
        ("vocabulary", "Vocabulary"),
    )
    rows = {published.dataset_key(row["dataset"]): row for row in published.rows("table1")}
    lines = []
    for data in study.datasets():
        cell = next((cell for cell, _ in study.originals() if cell.names.data == data), None)
        if cell is None:
            continue
        ours = _facts(lexicon(cell.records()))
        theirs = rows.get(published.dataset_key(data), {})
        values = {key: Fact(ours[key], theirs.get(key, "")) for key, _ in columns}
        lines.append(Line((_data_title(data),), values))
    yield Table(
        "table1",
        "Table 1: statistics of the data",
        ("Data set",),
        tuple(Column(key, title) for key, title in columns),
        tuple(lines),
        notes=(
            "Counted over the examples in the predictions. Instance size: square root of the box's area in "
            "pixels, smallest–largest. Words split at white space; vocabulary without case and punctuation "
            "(the stats command counts spaCy's tokens, which are a little fewer).",
        ),
    )


def _facts(found: Lexicon) -> Mapping[str, str]:
    return {
        "images": f"{found.images:,}",
        "instances": f"{found.instances:,}",
        "mean_length_words": f"{found.mean_words:.1f}",
        "mean_distractors": "n/a" if found.mean_distractors is None else f"{found.mean_distractors:.2f}",
        "negation_percent": "n/a" if found.negation is None else f"{100 * found.negation:.2f}",
        "instance_size_range": f"{found.smallest:.0f}–{found.largest:.0f}",
        "vocabulary": f"{found.vocabulary:,}",
    }


# ── tables 2, 3, 4: models down, data sets across ───────────────────────────────────────────────


def _table2(study: Study, operator: str) -> Iterator[Table]:
    lines = []
    by_model = _by_model(study, operator)
    for (model, prompt), found in by_model.items():
        arms = {data: comparison.deltas["acc50"].perturbed for data, (_, comparison) in found.items()}
        adv = next((data for data in arms if published.dataset_key(data) == "ref_adv"), None)
        rows = _rows("table2", found)
        fixed = {
            data: Number(value, published.value(rows[data], "acc50_fixed")) for data, value in arms.items()
        }
        lines.append(Line((_model_title(model, prompt, study), "Fixed prompt"), fixed, model))
        gains = {
            data: Number(
                apart(value, arms[adv]), published.value(rows[data], "delta_vs_ref_adv"), signed=True
            )
            for data, value in arms.items()
            if adv and data != adv
        }
        if gains:
            lines.append(Line(("", "Δ to Ref-Adv"), gains, model, ranked=False))
    yield Table(
        "table2",
        f"Table 2: Acc@0.5 when every expression is replaced ({operator})",
        ("Model", "Asked"),
        _data_columns(by_model, best=False),  # a high score without the expression is a good guess
        tuple(lines),
        notes=_notes(lines, COT, *lacking(_compared(by_model))),
    )


def _table34(study: Study, name: str, title: str, operator: str) -> Iterator[Table]:
    column = {"table3": "acc50_bag_of_words", "table4": "acc50_one_descriptor_deleted"}[name]
    lines = []
    by_model = _by_model(study, operator)
    for (model, prompt), found in by_model.items():
        rows = _rows(name, found)
        deltas = {data: comparison.deltas["acc50"] for data, (_, comparison) in found.items()}
        kinds: tuple[tuple[str, str, Callable[[Any], Estimate]], ...] = (
            ("Original", "acc50_original", lambda delta: delta.original),
            (title, column, lambda delta: delta.perturbed),
            ("Δ", "delta", lambda delta: delta.delta),
        )
        for index, (asked, key, part) in enumerate(kinds):
            values = {
                data: Number(part(delta), published.value(rows[data], key), signed=asked == "Δ")
                for data, delta in deltas.items()
            }
            label = _model_title(model, prompt, study) if index == 0 else ""
            lines.append(Line((label, asked), values, f"{model} {prompt}", ranked=asked == "Original"))
    number = name.removeprefix("table")
    asked_of = [cell for found in by_model.values() for cell, _ in found.values()]
    told = rewritten(asked_of) if name == "table4" and any(line.has_published for line in lines) else ()
    yield Table(
        name,
        f"Table {number}: Acc@0.5, original against {title.lower()} ({operator})",
        ("Model", "Asked"),
        _data_columns(by_model),
        tuple(lines),
        notes=_notes(lines, COT, BOTH, *told, *lacking(_compared(by_model))),
    )


Found = dict[str, tuple[Cell, Comparison]]


def _compared(by_model: Mapping[tuple[str, str], Found]) -> list[Comparison]:
    return [comparison for found in by_model.values() for _, comparison in found.values()]


def _by_model(study: Study, operator: str) -> dict[tuple[str, str], Found]:
    """(model, prompt) → data → what was found there, and over all splits of a set where there are several."""
    found: dict[tuple[str, str], Found] = {}
    for cell, comparison in study.pairs:
        if comparison.operator == operator and "acc50" in comparison.deltas:
            found.setdefault((cell.names.model, cell.prompt), {})[cell.names.data] = cell, comparison
    return {names: {**by_data, **pooled(by_data)} for names, by_data in found.items()}


def _rows(table: str, found: Found) -> dict[str, Mapping[str, str] | None]:
    """Published rows are CoT ones, over all splits: nothing stands beside a run without either."""
    keys = [published.dataset_key(data) for data in found]
    return {
        data: published.find(table, _names(cell), dataset=key)
        if _thinks(cell) and (keys.count(key) == 1 or data.endswith(ENDING))
        else None
        for (data, (cell, _)), key in zip(found.items(), keys, strict=True)
    }


def _data_columns(found: Mapping[tuple[str, str], Found], best: bool = True) -> tuple[Column, ...]:
    """In the paper's order, all splits behind their parts; a set with one column has its plain name."""
    order = list(published.DATASETS)
    names = list(dict.fromkeys(data for by_data in found.values() for data in by_data))
    keys = [published.dataset_key(name) for name in names]
    titles = {
        name: f"{published.DATASETS[key]}, all"
        if name.endswith(ENDING)
        else name
        if keys.count(key) > 1
        else _data_title(name)
        for name, key in zip(names, keys, strict=True)
    }
    places = {key: order.index(key) if key in order else len(order) for key in keys}
    names.sort(key=lambda name: (places[published.dataset_key(name)], name.endswith(ENDING)))
    return tuple(Column(name, titles[name], best=best) for name in names)


# ── tables 6, 7: accuracies, and by distractors ─────────────────────────────────────────────────


def _accuracies(study: Study, name: str, key: str) -> Iterator[Table]:
    """One table per data set, since its lines are compared with each other: of the table's own data,

    where the study has them, otherwise of all (a rehearsal).
    """
    own = [data for data in study.datasets() if published.dataset_key(data) == key]
    metrics = [("acc50", "Acc@0.5"), ("acc75", "Acc@0.75"), ("acc90", "Acc@0.9")]
    metrics += [("macc", "mAcc")] if name == "table7" else []
    bins = [label for label in BINS if name == "table6" or label != "2–3"]
    for data in own or study.datasets():
        lines = [
            _accuracy_line(name, cell, arm, [metric for metric, _ in metrics], bins)
            for cell, arm in study.originals()
            if cell.names.data == data
        ]
        columns = [Column(key, title, best=True) for key, title in metrics]
        for label in bins:
            columns.append(
                Column(f"acc50_distractors_{BINS[label]}", "Acc@0.5", f"{label} distractors", best=True)
            )
            columns.append(Column(f"delta_{BINS[label]}", "Δ", f"{label} distractors"))
        columns.append(Column("answered", "answered"))
        titles = ("Family", "Model", "CoT") if name == "table6" else ("Model", "CoT", "SoM")
        number = name.removeprefix("table")
        yield Table(
            name,
            f"Table {number}: {_data_title(data)}",
            titles,
            tuple(columns),
            tuple(sorted(lines, key=_published_order(name))),
            notes=_notes(lines, TO_ALL, *unanswered(study, data)),
        )


def _accuracy_line(name: str, cell: Cell, arm: Arm, metrics: Sequence[str], bins: Sequence[str]) -> Line:
    row, cot = _published_row(name, cell)
    values: dict[str, Number | Fact] = {
        metric: Number(stats.accuracy(arm, metric), published.value(row, metric)) for metric in metrics
    }
    rows = {cut.label: cut.rows for cut in slices.cuts(arm, "distractors")}
    for label in bins:
        if label in rows:
            key = BINS[label]
            theirs = published.value(row, f"acc50_distractors_{key}")
            values[f"acc50_distractors_{key}"] = Number(stats.accuracy(arm, rows=rows[label]), theirs)
            shift = published.value(row, f"delta_{key}")
            values[f"delta_{key}"] = Number(to_overall(arm, rows[label]), shift, signed=True)
    values["answered"] = Fact(answered(arm))
    tick = "✓" if cot else "–"
    if name == "table6":
        family, model = (row["family"], row["model"]) if row else _family(cell.names.model)
        return Line((family, _varied(model, cell), tick), values, family)
    som = "✓" if "som" in _words(cell.names.prompt) else "–"
    return Line((_varied(row["model"] if row else cell.names.model, cell), tick, som), values)


def _varied(model: str, cell: Cell) -> str:
    """With the settings that tell this cell from others of its names."""
    return f"{model} ({cell.variant})" if cell.variant else model


def _published_row(name: str, cell: Cell) -> tuple[Mapping[str, str] | None, bool]:
    """The published line and whether it has the CoT tick, which for a thinking model is its thinking."""
    key = published.dataset_key(cell.names.data)
    cot = _thinks(cell)
    if key != {"table6": "ref_adv_s", "table7": "ref_adv"}[name]:
        return None, cot
    row = published.find(name, _names(cell), cot="yes" if cot else "no")
    if row is None and name == "table6" and (row := published.find(name, _names(cell))) is not None:
        only = sum(r["family"] == row["family"] and r["model"] == row["model"] for r in published.rows(name))
        row = row if only == 1 else None
    return row, cot if row is None else row["cot"] == "yes"


def _published_order(name: str) -> Callable[[Line], int]:
    order: dict[tuple[str, ...], int] = {}
    for index, row in enumerate(published.rows(name)):
        tick = "✓" if row["cot"] == "yes" else "–"
        order[(row["family"], row["model"], tick) if name == "table6" else (row["model"], tick)] = index
    size = 3 if name == "table6" else 2
    return lambda line: order.get(line.labels[:size], len(order))


# ── names ───────────────────────────────────────────────────────────────────────────────────────


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def _thinks(cell: Cell) -> bool:
    model = cell.config.get("model")
    switched_on = isinstance(model, Mapping) and model.get("thinking") is True
    named = {"thinking"} & (_words(cell.names.model) | _words(cell.names.checkpoint))
    return switched_on or bool(named) or "cot" in _words(cell.names.prompt)


def _names(cell: Cell) -> tuple[str, ...]:
    return cell.names.checkpoint, cell.names.model


def _family(model: str) -> tuple[str, str]:
    """Qwen2.5-VL-72B-Instruct → (Qwen2.5-VL, 72B-Instruct); a name without a size has no family."""
    match = re.match(r"(.*?)[-_](\d+(?:\.\d+)?[bB]\b.*)", model)
    return (match[1], match[2]) if match else ("", model)


def _data_title(data: str) -> str:
    key = published.dataset_key(data)
    return published.DATASETS.get(key, data)


def _model_title(model: str, prompt: str, study: Study) -> str:
    prompts = {cell.prompt for cell in study.cells if cell.names.model == model}
    return f"{model} ({prompt})" if len(prompts) > 1 else model


def _notes(lines: Sequence[Line], *more: str) -> tuple[str, ...]:
    beside = (PUBLISHED,) if any(line.has_published for line in lines) else ()
    return (INTERVALS, *beside, *(note for note in more if note != COT or beside))
