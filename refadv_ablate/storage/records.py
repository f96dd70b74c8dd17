"""The JSON of what a run leaves behind: records, replies, comparisons and perturbed texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from refadv_ablate import changes
from refadv_ablate.boxes import SAME_FRAME, Box
from refadv_ablate.errors import FieldError, UserError, shown
from refadv_ablate.storage.jsonl import (
    read_each,
    read_json,
    read_jsonl,
    to_line,
    write_json,
    write_jsonl,
)
from refadv_ablate.types import (
    EMPTY,
    Comparison,
    Confidence,
    Delta,
    Estimate,
    Example,
    Json,
    Outcome,
    Perturbed,
    Record,
    Reply,
    Score,
    Slice,
    Status,
    TokenLogprobs,
    Usage,
)

T = TypeVar("T")
__all__ = ["read_jsonl", "write_jsonl"]

_STATUSES = frozenset(get_args(Status))
_OUTCOMES = frozenset(get_args(Outcome))
_FINISHES = frozenset({"stop", "length", "refused", "error"})


# ── one value ↔ JSON ────────────────────────────────────────────────────────────────────────────


def record_to_json(r: Record) -> dict[str, Json]:
    """A line of predictions.jsonl; keys are the fields, boxes are [x1, y1, x2, y2]."""
    # Spelt out: dataclasses.asdict copies deeply and takes several times as long.
    predicted = r.predicted
    line = {
        "example_id": r.example_id,
        "image_key": r.image_key,
        "condition": r.condition,
        "draw": r.draw,
        "status": r.status,
        "expression": r.expression,
        "original_expression": r.original_expression,
        "target": r.target.as_list(),
        "outcome": r.outcome,
        "predicted": None if predicted is None else predicted.as_list(),
        "iou": r.iou,
        "reason": r.reason,
        "n_boxes": r.n_boxes,
        "notes": r.notes,
        "size": r.size,
        "text": r.text,
        "reasoning": r.reasoning,
        "usage": _usage_to_json(r.usage),
        "attempts": r.attempts,
        "engine": r.engine,
        "category": r.category,
        "distractors": r.distractors,
        "negation": r.negation,
        "source": r.source,
        "split": r.split,
        "attributes": r.attributes,
        "trace": r.trace,
        "image_digest": r.image_digest,
    }
    return line | _beyond_the_text(r)


def _beyond_the_text(r: Record) -> dict[str, Json]:
    """What an operator changed besides the text; nothing of it for those that change the text alone."""
    found = {
        "expectation": r.expectation if r.expectation != "drop" else None,
        "part": r.part or None,
        "placebo": r.placebo or None,
        "frame": r.frame.as_list() if r.frame is not SAME_FRAME and r.frame != SAME_FRAME else None,
        "original_target": r.original_target.as_list() if r.original_target is not None else None,
        "picture": r.picture or None,
        "or_none": r.or_none or None,
        "landed": r.landed or None,
        "confidence": r.confidence and _confidence_to_json(r.confidence),
    }
    return {name: value for name, value in found.items() if value is not None}


def record_from_json(d: Mapping[str, Json]) -> Record:
    """Unknown keys are ignored, absent ones take the default. Raises FieldError naming the field."""
    return Record(
        example_id=_text(d, "example_id"),
        image_key=_text(d, "image_key"),
        condition=_text(d, "condition"),
        draw=_integer(d, "draw"),
        status=cast("Status", _one_of(d, "status", _STATUSES)),
        expression=_text(d, "expression"),
        original_expression=_text(d, "original_expression"),
        target=_box(d, "target"),
        outcome=cast("Outcome", _one_of(d, "outcome", _OUTCOMES)),
        predicted=None if d.get("predicted") is None else _box(d, "predicted"),
        iou=_number(d, "iou"),
        reason=_text(d, "reason", ""),
        n_boxes=_integer(d, "n_boxes", 0),
        notes=_texts(d, "notes"),
        size=_size(d.get("size") or (0, 0), "size"),
        text=_text(d, "text", ""),
        reasoning=_text(d, "reasoning", ""),
        usage=_usage_from_json(_mapping(d, "usage", EMPTY)),
        attempts=_integer(d, "attempts", 1),
        engine=_text(d, "engine", ""),
        category=_maybe(d, "category", str),
        distractors=_maybe(d, "distractors", int),
        negation=_maybe(d, "negation", bool),
        source=_maybe(d, "source", str),
        split=_maybe(d, "split", str),
        attributes=_mapping(d, "attributes", EMPTY) or EMPTY,
        trace=_mapping(d, "trace", EMPTY) or EMPTY,
        landed=_text(d, "landed", ""),
        image_digest=_text(d, "image_digest", ""),
        expectation=changes.expectation(d),
        part=_text(d, "part", ""),
        placebo=bool(d.get("placebo", False)),
        frame=SAME_FRAME if d.get("frame") is None else changes.map_from_json(d["frame"], "frame"),
        original_target=None if d.get("original_target") is None else _box(d, "original_target"),
        picture=_mapping(d, "picture", EMPTY) or EMPTY,
        or_none=bool(d.get("or_none", False)),
        confidence=confidence_from_json(d),
    )


def reply_to_json(r: Reply) -> dict[str, Json]:
    """As the prediction store keeps it."""
    told = {
        "text": r.text,
        "finish": r.finish,
        "reasoning": r.reasoning,
        "error": r.error,
        "processed": r.processed,
        "usage": _usage_to_json(r.usage),
        "seconds": r.seconds,
        "attempts": r.attempts,
        "engine": r.engine,
        "decoding": dict(r.decoding),
    }
    if r.logprobs is not None:
        told["logprobs"] = _logprobs_to_json(r.logprobs)
    if r.confidence is not None:
        told["confidence"] = _confidence_to_json(r.confidence)
    return told


def unstorable(r: Reply) -> str:
    """Why this reply could not be read back from a store; "" for one that can."""
    try:
        reply_from_json(json.loads(to_line(reply_to_json(r))))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return str(error) or type(error).__name__
    return ""


def reply_from_json(d: Json) -> Reply:
    """Raises FieldError naming the field."""
    if not isinstance(d, Mapping):
        raise FieldError(f"a reply is a JSON object, this is {shown(d)}")
    processed = d.get("processed")
    return Reply(
        text=_text(d, "text"),
        finish=cast("Any", _one_of(d, "finish", _FINISHES)),
        reasoning=_text(d, "reasoning", ""),
        error=_text(d, "error", ""),
        processed=None if processed is None else _size(processed, "processed"),
        usage=_usage_from_json(_mapping(d, "usage", EMPTY)),
        seconds=_number(d, "seconds") or 0.0,
        attempts=_integer(d, "attempts", 1),
        engine=_text(d, "engine", ""),
        decoding=dict(_mapping(d, "decoding", EMPTY)),
        logprobs=_logprobs_from_json(d),
        confidence=confidence_from_json(d),
    )


def _logprobs_to_json(x: TokenLogprobs) -> dict[str, Json]:
    if x.lacks:
        return {"lacks": x.lacks}
    return {"start": x.start, "chars": x.chars, "values": x.values}


def _logprobs_from_json(d: Mapping[str, Json]) -> TokenLogprobs | None:
    if d.get("logprobs") is None:
        return None
    told = _mapping(d, "logprobs")
    chars, values = _numbers(told, "chars"), _numbers(told, "values")
    if len(chars) != len(values) or not all(isinstance(n, int) and n >= 0 for n in chars):
        raise FieldError("'logprobs' needs as many whole numbers of characters as values")
    lacks = _text(told, "lacks", "")
    return TokenLogprobs(_integer(told, "start", 0), tuple(map(int, chars)), values, lacks)


def _confidence_to_json(c: Confidence) -> dict[str, Json]:
    if not c.tokens:
        return {"value": c.value}
    return {"value": c.value, "joint": c.joint, "least": c.least, "tokens": c.tokens}


def confidence_from_json(d: Mapping[str, Json]) -> Confidence | None:
    """The field `confidence` of an object, None where it has none. Raises FieldError."""
    if d.get("confidence") is None:
        return None
    told = _mapping(d, "confidence")
    value, joint, least = (_number(told, name) for name in ("value", "joint", "least"))
    if value is None or not all(0 <= x <= 1 for x in (value, joint, least) if x is not None):
        raise FieldError(f"'confidence' needs probabilities from 0 to 1, not {shown(told)}")
    return Confidence(value, joint, least, _integer(told, "tokens", 0))


def perturbed_to_json(p: Perturbed) -> dict[str, Json]:
    """A line of a file of perturbed texts: what a person reads and may edit."""
    return {
        "id": p.example.id,
        "image": p.original.image.key,
        "original": p.original.expression,
        "expression": p.example.expression,
        "status": p.status,
        "reason": p.reason,
        "trace": p.trace,
        **changes.to_json(p),
    }


def perturbed_from_json(
    d: Mapping[str, Json], original: Example, images: changes.Images | None = None
) -> Perturbed:
    """The line applied to the example that it names. Raises FieldError where it belongs to another.

    `images` finds another image of the data, for operators that ask about one.
    """
    if _text(d, "id") != original.id:
        raise FieldError(f"'id' is {d['id']!r}, but the example is {original.id!r}")
    if "original" in d and d["original"] != original.expression:
        raise FieldError(
            f"'original' of {original.id!r} is {d['original']!r}, but the data say {original.expression!r}"
        )
    example, told = changes.applied(d, original, images)
    return Perturbed(
        example=example.saying(_text(d, "expression")),
        original=original,
        status=cast("Status", _one_of(d, "status", _STATUSES)),
        reason=_text(d, "reason", ""),
        trace=_mapping(d, "trace", EMPTY) or EMPTY,
        **told,
    )


def comparison_to_json(c: Comparison) -> dict[str, Json]:
    """The content of summary.json."""
    return {
        "model": c.model,
        "data": c.data,
        "prompt": c.prompt,
        "operator": c.operator,
        "planned": c.planned,
        "paired": c.paired,
        "images": c.images,
        "deltas": _deltas_to_json(c.deltas),
        "parsed_only": _deltas_to_json(c.parsed_only),
        "counts": {arm: dict(counts) for arm, counts in c.counts.items()},
        "slices": [{"by": s.by, "label": s.label, "deltas": _deltas_to_json(s.deltas)} for s in c.slices],
        **({"scores": [_score_to_json(s) for s in c.scores]} if c.scores else {}),
        "warnings": list(c.warnings),
        "variant": c.variant,
        "details": c.details,
    }


def comparison_from_json(d: Mapping[str, Json]) -> Comparison:
    """Raises FieldError naming the field."""
    return Comparison(
        model=_text(d, "model"),
        data=_text(d, "data"),
        prompt=_text(d, "prompt"),
        operator=_text(d, "operator"),
        planned=_integer(d, "planned"),
        paired=_integer(d, "paired"),
        images=_integer(d, "images"),
        deltas=_deltas_from_json(_mapping(d, "deltas")),
        parsed_only=_deltas_from_json(_mapping(d, "parsed_only")),
        counts={arm: dict(counts) for arm, counts in _mapping(d, "counts").items()},
        slices=tuple(
            Slice(_text(s, "by"), _text(s, "label"), _deltas_from_json(_mapping(s, "deltas")))
            for s in d.get("slices") or ()
        ),
        scores=tuple(_score_from_json(s) for s in d.get("scores") or ()),
        warnings=_texts(d, "warnings"),
        variant=_text(d, "variant", ""),
        details=_mapping(d, "details", EMPTY) or EMPTY,
    )


def _score_to_json(s: Score) -> dict[str, Json]:
    told = {"name": s.name, "expectation": s.expectation, "part": s.part, "chance": s.chance}
    return told | {"estimate": _estimate_to_json(s.estimate)}


def _score_from_json(d: Mapping[str, Json]) -> Score:
    return Score(
        name=_text(d, "name"),
        expectation=changes.expectation(d),
        estimate=_estimate_from_json(_mapping(d, "estimate")),
        part=_text(d, "part", ""),
        chance=_number(d, "chance"),
    )


def _deltas_to_json(deltas: Mapping[str, Delta]) -> dict[str, Json]:
    return {name: _delta_to_json(delta) for name, delta in deltas.items()}


def _deltas_from_json(d: Mapping[str, Json]) -> dict[str, Delta]:
    return {name: _delta_from_json(value) for name, value in d.items()}


def _delta_to_json(x: Delta) -> dict[str, Json]:
    return {
        "metric": x.metric,
        "original": _estimate_to_json(x.original),
        "perturbed": _estimate_to_json(x.perturbed),
        "delta": _estimate_to_json(x.delta),
        "bootstrap": x.bootstrap,
        "p": x.p,
        "p_mcnemar": x.p_mcnemar,
        "p_holm": x.p_holm,
        "right_to_wrong": x.right_to_wrong,
        "wrong_to_right": x.wrong_to_right,
        "draw_sd": x.draw_sd,
        "note": x.note,
    }


def _delta_from_json(d: Mapping[str, Json]) -> Delta:
    ends = d.get("bootstrap")
    return Delta(
        metric=_text(d, "metric"),
        original=_estimate_from_json(_mapping(d, "original")),
        perturbed=_estimate_from_json(_mapping(d, "perturbed")),
        delta=_estimate_from_json(_mapping(d, "delta")),
        bootstrap=None if ends is None else (float(ends[0]), float(ends[1])),
        p=_number(d, "p"),
        p_mcnemar=_number(d, "p_mcnemar"),
        p_holm=_number(d, "p_holm"),
        right_to_wrong=_number(d, "right_to_wrong") or 0.0,
        wrong_to_right=_number(d, "wrong_to_right") or 0.0,
        draw_sd=_number(d, "draw_sd"),
        note=_text(d, "note", ""),
    )


def _estimate_to_json(e: Estimate) -> dict[str, Json]:
    return {
        "value": e.value,
        "low": e.low,
        "high": e.high,
        "n": e.n,
        "images": e.images,
        "method": e.method,
        "note": e.note,
        "effective": e.effective,
        "df": e.df,
    }


def _estimate_from_json(d: Mapping[str, Json]) -> Estimate:
    return Estimate(
        value=_number(d, "value"),
        low=_number(d, "low"),
        high=_number(d, "high"),
        n=_integer(d, "n"),
        images=_integer(d, "images"),
        method=_text(d, "method", ""),
        note=_text(d, "note", ""),
        effective=_number(d, "effective"),
        df=_number(d, "df"),
    )


def _usage_to_json(u: Usage) -> dict[str, Json]:
    return {"input_tokens": u.input_tokens, "output_tokens": u.output_tokens, "usd": u.usd}


def _usage_from_json(d: Mapping[str, Json]) -> Usage:
    if not d:
        return Usage()
    return Usage(_integer(d, "input_tokens", 0), _integer(d, "output_tokens", 0), _number(d, "usd") or 0.0)


# ── fields ──────────────────────────────────────────────────────────────────────────────────────


def _text(d: Mapping[str, Json], name: str, default: str | None = None) -> str:
    value = d.get(name, default)
    if not isinstance(value, str):
        raise FieldError(f"{name!r} needs a text, not {shown(value)}")
    return value


def _texts(d: Mapping[str, Json], name: str) -> tuple[str, ...]:
    value = d.get(name, ())
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise FieldError(f"{name!r} needs a list of texts, not {shown(value)}")
    return tuple(value)


def _integer(d: Mapping[str, Json], name: str, default: int | None = None) -> int:
    value = d.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldError(f"{name!r} needs a whole number, not {shown(value)}")
    return value


def _maybe(d: Mapping[str, Json], name: str, kind: type[T]) -> T | None:
    value = d.get(name)
    if value is not None and type(value) is not kind:
        raise FieldError(f"{name!r} needs {kind.__name__} or null, not {shown(value)}")
    return value


def _number(d: Mapping[str, Json], name: str) -> float | None:
    value = d.get(name)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise FieldError(f"{name!r} needs a number or null, not {shown(value)}")


def _numbers(d: Mapping[str, Json], name: str) -> tuple[float, ...]:
    value = d.get(name, ())
    numbers = isinstance(value, list | tuple)
    if not numbers or any(isinstance(v, bool) or not isinstance(v, int | float) for v in value):
        raise FieldError(f"{name!r} needs a list of numbers, not {shown(value)}")
    return tuple(value)


def _one_of(d: Mapping[str, Json], name: str, choices: frozenset[str]) -> str:
    value = d.get(name)
    if not isinstance(value, str) or value not in choices:
        raise FieldError(f"{name!r} needs one of {', '.join(sorted(choices))}, not {shown(value)}")
    return value


def _mapping(
    d: Mapping[str, Json], name: str, default: Mapping[str, Json] | None = None
) -> Mapping[str, Json]:
    value = d.get(name, default)
    if not isinstance(value, Mapping):
        raise FieldError(f"{name!r} needs an object, not {shown(value)}")
    return value


def _box(d: Mapping[str, Json], name: str) -> Box:
    return changes.box_from_json(d.get(name), name)


def _size(value: Json, name: str) -> tuple[int, int]:
    if not isinstance(value, Sequence) or len(value) != 2 or not all(isinstance(v, int) for v in value):
        raise FieldError(f"{name!r} needs [width, height], not {shown(value)}")
    return value[0], value[1]


def write_records(path: Path | str, records: Iterable[Record]) -> int:
    """predictions.jsonl, atomically; gives how many lines."""
    return write_jsonl(path, map(record_to_json, records))


def read_records(path: Path | str) -> Iterator[Record]:
    """The records of a predictions file, one at a time. Raises UserError naming file and line."""
    return read_each(path, record_from_json)


def dump(comparison: Comparison, path: Path | str) -> None:
    """Writes summary.json."""
    write_json(path, comparison_to_json(comparison))


def load(path: Path | str) -> Comparison:
    """Reads summary.json. Raises UserError naming the file."""
    try:
        return comparison_from_json(read_json(path))
    except ValueError as error:
        raise UserError(f"{path} is no summary of a comparison: {error}") from error
