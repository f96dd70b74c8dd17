"""What a job lacks before it could run; nothing is loaded, downloaded or asked to find out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from refadv_ablate import assets
from refadv_ablate.errors import UserError
from refadv_ablate.models.servers.budget import Budget, cost
from refadv_ablate.running.cells import Cell, cells_of
from refadv_ablate.running.parts import Parts, parts_of
from refadv_ablate.running.plan import examples
from refadv_ablate.seeding import canonical


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that is not there.

    kind: configuration, prompt, files, candidates, weights, address, key or money.
    text: what, and what to do.
    stops: whether the job can't run without it; else it is worth knowing before the start.
    """

    kind: str
    text: str
    stops: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job asks of its model.

    requests: counted where an operator's number of draws is fixed; `open` names those whose number depends
    on the expression, of which one request an example is counted. tokens_in, tokens_out: at most, at the
    engine's estimate of an image's and prompt's tokens and the limit of an answer. usd: these at the
    model's price; None where it has none.
    """

    requests: int
    open: tuple[str, ...]
    tokens_in: int
    tokens_out: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class Looked:
    """A job: its name (model, data, prompt, operators), its cells where they can be known, its lacks."""

    name: str
    cells: tuple[Cell, ...]
    lacks: tuple[Lack, ...]
    cost: Cost | None = None
    """What its unfinished cells would ask; None where the data can't be counted."""


def look(config: Any, name: str) -> Looked:
    """Looks at one composed job; `name` stands for it where its parts can't be built."""
    try:
        parts = parts_of(config)
    except UserError as error:
        return Looked(name, (), (Lack("configuration", str(error)),))
    name = "--".join([parts.spec.name, parts.data.name, parts.style.name, "+".join(parts.operators)])
    found: list[Lack] = []
    try:
        parts.style.fingerprint(parts.spec)
    except UserError as error:
        found.append(Lack("prompt", str(error)))
    count, of_data = _data(parts)
    found += [*of_data, *_engine(parts), *_money(parts, count)]
    cells: tuple[Cell, ...] = ()
    with suppress(UserError):  # what keeps them from being known is among the lacks
        cells = tuple(cells_of(parts))
    open_cells = [cell.label for cell in cells if cell.state() != "done"] if cells else list(parts.operators)
    return Looked(name, cells, tuple(found), _cost(parts, count, open_cells))


def _cost(parts: Parts, count: int | None, labels: Sequence[str]) -> Cost | None:
    """Of these operators and the originals that they are compared with; stored answers cost nothing."""
    if count is None:
        return None
    chosen = [parts.operators[label] for label in labels]
    originals = {bool(getattr(operator, "or_none", False)) for operator in chosen}
    requests = count * (len(originals) + sum(operator.draws or 1 for operator in chosen))
    read, written = _tokens(parts)
    price, tokens_in, tokens_out = parts.spec.price, requests * read, requests * written
    usd = cost(price, tokens_in, tokens_out).usd if price.input or price.output else None
    open_labels = tuple(label for label in labels if not parts.operators[label].draws)
    return Cost(requests, open_labels, tokens_in, tokens_out, usd)


def _tokens(parts: Parts) -> tuple[int, int]:
    """Of one request at most: read and written."""
    written = max(parts.spec.sampling.max_new_tokens, parts.style.max_new_tokens or 0)
    return int(parts.engine.get("first_input_tokens") or 8192), written


def _data(parts: Parts) -> tuple[int | None, tuple[Lack, ...]]:
    """How many examples there are, where that can be known, and what the data and the marks lack."""
    candidates = parts.style.candidates
    source = candidates.identity() if candidates and not hasattr(candidates, "lacks") else None
    settings = parts.settings
    key = canonical([parts.config["data"], source, settings.limit, settings.images, settings.seed])
    return _seen(key, _Held(parts, source is not None))


@dataclass(frozen=True)
class _Held:
    """Parts beside a key that stands for what matters of them."""

    parts: Parts
    marked: bool

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)


@lru_cache(maxsize=64)
def _seen(_key: str, held: _Held) -> tuple[int | None, tuple[Lack, ...]]:
    """Once for all the jobs of a command that look at the same data with the same marks."""
    parts, number, without, first = held.parts, 0, 0, ""
    try:
        for example in examples(parts.data, parts.settings.limit):
            number += 1
            if held.marked and parts.style.candidates is not None:
                try:
                    parts.style.candidates.boxes(example)
                except UserError as error:
                    without, first = without + 1, first or str(error)
    except UserError as error:
        return None, (Lack("files", str(error)),)
    if not number:
        return 0, (Lack("files", f"{parts.data.name} has no examples; check data.split and data.exclude"),)
    told = f"{without} of {number} examples of {parts.data.name} have none; the first: {first}"
    return number, ((Lack("candidates", told),) if without else ())


def _engine(parts: Parts) -> Iterator[Lack]:
    """What the engine and the source of the marks say that they lack."""
    node: Any = parts.engine
    while isinstance(node, Mapping) and isinstance(node.get("inner_config"), Mapping):
        node = node["inner_config"]
    try:
        engine = assets.build(node, "backend", spec=parts.spec)
    except UserError as error:
        yield Lack("configuration", str(error))
        return
    for part in (engine, parts.style.candidates):
        told = getattr(part, "lacks", None)
        if told is not None:
            yield from (Lack(*found) for found in told())


def _money(parts: Parts, count: int | None) -> Iterator[Lack]:
    """What a run on a priced model may cost at most, beside the budget."""
    price, tokens = parts.spec.price, parts.spec.sampling.max_new_tokens
    if not (price.input or price.output):
        return
    tokens = max(tokens, parts.style.max_new_tokens or 0)
    budget, read = parts.settings.budget_usd, int(parts.engine.get("first_input_tokens") or 8192)
    each = Budget(price, first_input_tokens=read).worst(tokens)
    bound = f"a request costs at most {each:.4f} USD ({int(read * 1.1):,} tokens in, {tokens:,} out)"
    total = None
    if count is not None:
        draws = sum(operator.draws or 1 for operator in parts.operators.values())
        originals = {bool(getattr(operator, "or_none", False)) for operator in parts.operators.values()}
        asked = count * (len(originals) + draws)
        total = asked * each
        bound += f", {asked:,} requests {total:,.2f} USD"
    if budget is None:
        yield Lack("money", f"no budget_usd is set: {bound}", stops=False)
    elif total is None or total > budget:
        yield Lack("money", f"budget_usd={budget:g} may end the run early: {bound}", stops=False)
