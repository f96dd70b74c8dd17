"""`--dry-run`: the cells that a command would run, how each stands, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from refadv_ablate import assets
from refadv_ablate.errors import UserError
from refadv_ablate.masking import censored
from refadv_ablate.running.lacking import Lack, Looked, look

READY, LACKING = "new", "not ready"


def list_cells(words: Sequence[str]) -> int:
    """Prints a line for each cell, then each lack once with the jobs that it keeps from running.

    Returns 1 where any job can't run as things are, else 0.
    """
    jobs = [_looked(combination) for combination in combinations(words)]
    total = 0
    for job in jobs:
        for line in _lines(job):
            total += 1
            print(censored(line))
    for lack, names in _grouped(jobs).items():
        label = f"lacks {lack.kind}" if lack.stops else lack.kind
        which = "all jobs" if len(names) == len(jobs) > 1 else ", ".join(names)
        print(censored(f"\n{label} ({len(names)} of {len(jobs)} jobs): {lack.text}\n  {which}"))
    lacking = sum(any(lack.stops for lack in job.lacks) for job in jobs)
    for number, line in enumerate(_costs(jobs)):
        print("" if number else "\n", censored(line), sep="")
    print(f"\n{total} cells" + (f", {lacking} jobs that lack something" if lacking else ""))
    return 1 if lacking else 0


def _costs(jobs: Sequence[Looked]) -> Iterator[str]:
    """What the unfinished cells ask in all: requests, tokens, and money where the models have a price."""
    known = [job.cost for job in jobs if job.cost is not None]
    if not any(cost.requests for cost in known):
        return
    total = sum(cost.requests for cost in known)
    read, written = sum(c.tokens_in for c in known), sum(c.tokens_out for c in known)
    several = sorted({label for cost in known for label in cost.open})
    least = "at least " if several else ""
    priced = [cost.usd for cost in known if cost.usd is not None]
    money = f"{sum(priced):,.2f} USD" if priced else "no price in the models' YAML"
    if priced and len(priced) < len(known):
        money += f" for {len(priced)} of {len(known)} jobs, the others have no price"
    yield (
        f"{least}{total:,} requests, up to {read:,} tokens in and {written:,} out for them, {money}; "
        "answers in the store cost nothing"
    )
    if several:
        yield f"  {', '.join(several)}: one request an example is counted, some examples give more"
    if len(known) < len(jobs):
        yield f"  {len(jobs) - len(known)} of {len(jobs)} jobs aren't counted, their data can't be read"


def combinations(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The words of each job of a sweep."""
    return product(*_choices(words))


def _choices(words: Sequence[str]) -> list[list[str]]:
    """For each word the words that a job has in its place: one, or one of a sweep's."""
    choices = []
    for override in assets.parse(words):
        values = list(override.sweep_iterator()) if override.is_sweep_override() else None
        key = override.get_key_element()
        choices.append([f"{key}={v}" for v in values] if values else [override.input_line])
    return choices


def _looked(combination: Sequence[str]) -> Looked:
    name = " ".join(combination)
    try:
        return look(assets.compose(list(combination)), name)
    except UserError as error:
        return Looked(name, (), (Lack("configuration", str(error)),))


def _lines(job: Looked) -> list[str]:
    """A line for each cell; the job's name where its cells can't be known."""
    kinds = list(dict.fromkeys(lack.kind for lack in job.lacks if lack.stops))
    ending = f"  lacks {', '.join(kinds)}" if kinds else ""
    if not job.cells:
        return [f"{LACKING:<11} {job.name}{ending}"]
    return [
        f"{cell.state() or (LACKING if kinds else READY):<11} {cell.folder.name}{ending}"
        for cell in job.cells
    ]


def _grouped(jobs: Sequence[Looked]) -> dict[Lack, list[str]]:
    """Each lack with the names of the jobs that have it."""
    groups: dict[Lack, list[str]] = {}
    for job in jobs:
        for lack in job.lacks:
            groups.setdefault(lack, []).append(job.name)
    return groups
