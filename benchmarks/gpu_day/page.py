"""report.md: what came of each family on each engine, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu_day.findings import share

Step = Mapping[str, Any]


def lines(steps: Sequence[Step], machine: Mapping[str, Any], left_out: Mapping[str, str]) -> Iterator[str]:
    """Markdown. steps: as they are kept in steps/*.json, in order."""
    kind = "Rehearsal on tiny checkpoints" if machine["rehearsal"] else "A day on a GPU"
    yield f"# {kind}"
    yield ""
    yield f"{machine['day']} · {machine['gpu'].splitlines()[-1]} · {machine['cuda']}"
    yield ""
    changed = f"{machine['changed_files']} files changed since"
    yield f"{machine['rows']} rows of {machine['data']} · commit {machine['commit']}, {changed}"
    yield ""
    states = [step["state"] for step in steps]
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("done", "failed", "not run"))
    yield f"{len(steps)} tasks: {counts}."
    done = [step for step in steps if step.get("findings")]
    for table in (_accuracy, _agreement, _pace):
        yield ""
        yield from table(done)
    yield ""
    yield "## What the doctor says, what failed, what was not run"
    yield ""
    for step in steps:
        yield from (f"- {name(step)}: {text}" for text in remarks(step))
    for model, reason in left_out.items():
        yield f"- {model}: not run: {reason}"


def name(step: Step) -> str:
    """Family and engine."""
    return f"{step['family']} · {step['engine']}"


def remarks(step: Step) -> Iterator[str]:
    """One sentence each: state where it isn't done, the doctor's problems, problems of the parts."""
    if step["state"] != "done":
        yield f"{step['state']}: {step['reason']}"
    found = step.get("findings") or {}
    if step["state"] == "done" and found.get("doctor") == []:
        yield "doctor: nothing looks wrong"
    yield from (f"doctor: {problem}" for problem in found.get("doctor") or ())
    if step["state"] == "done":
        yield from found.get("problems", ())


def _head(*columns: str) -> str:
    return f"| {' | '.join(columns)} |\n|" + "---|" * len(columns)


def _accuracy(done: Sequence[Step]) -> Iterator[str]:
    yield "## Accuracy and noise floor (Acc@0.5 in percent, 95% intervals clustered by image)"
    yield ""
    yield _head(
        "family · engine", "operator", "answered by", "original", "perturbed", "n", "missing", "no box",
        "same text asked again",
    )  # fmt: skip
    for step in done:
        run = step["findings"]["run"]
        for operator, found in run["operators"].items():
            missing, unread = _counts(found)
            again = share(run["noise"]["texts"], run["noise"]["n"]) if operator == "repeat" else ""
            yield (
                f"| {name(step)} | {operator} | {', '.join(run['engines'])} "
                f"| {_percent(found['original'])} | {_percent(found['perturbed'])} "
                f"| {found['original']['n']} | {missing} | {unread} | {again} |"
            )


def _counts(found: Mapping[str, Any]) -> tuple[str, str]:
    """Missing and without a box, original / perturbed."""
    sides = [found["counts"][side] for side in ("original", "perturbed")]
    missing = [side.get("missing", 0) for side in sides]
    unread = [side.get("answers", 0) - side.get("box", 0) for side in sides]
    return " / ".join(map(str, missing)), " / ".join(map(str, unread))


def _percent(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return "none"
    low, high = (estimate[side] for side in ("low", "high"))
    span = f" [{low:.1%}, {high:.1%}]" if low is not None and high is not None else " [no interval]"
    return f"{estimate['value']:.1%}{span}"


def _agreement(done: Sequence[Step]) -> Iterator[str]:
    yield "## Engines against transformers (the same questions; intervals over questions)"
    yield ""
    yield _head(
        "family · engine", "same text", "same box (IoU ≥ 0.9)", "right in transformers alone",
        "right here alone",
    )  # fmt: skip
    for step in done:
        if parity := step["findings"].get("parity"):
            n = parity["n"]
            yield (
                f"| {name(step)} | {share(parity['texts'], n)} | {share(parity['boxes'], n)} "
                f"| {parity['first_alone']} of {n} | {parity['second_alone']} of {n} |"
            )


def _pace(done: Sequence[Step]) -> Iterator[str]:
    yield "## Pace (warm, within one process; the loop is processor and generate, one at a time)"
    yield ""
    yield _head(
        "family · engine", "answers/s", "n (failed)", "output tokens/s", "loop, answers/s (n)",
        "times the loop", "same text as the loop",
    )  # fmt: skip
    for step in done:
        pace = step["findings"].get("pace")
        if pace is None:
            continue
        rate = pace["n"] / pace["seconds"]
        loop = pace.get("loop") or _loop_of(step, done)
        slow = loop["n"] / loop["seconds"] if loop else None
        same = f"{pace['loop']['same']} of {pace['loop']['n']}" if pace.get("loop") else ""
        against = f"{slow:.2f} ({loop['n']}) | {rate / slow:.1f}" if loop and slow else "not measured | "
        yield (
            f"| {name(step)} | {rate:.2f} | {pace['n']} ({pace['failed']}) "
            f"| {pace['output_tokens'] / pace['seconds']:.0f} | {against} | {same} |"
        )


def _loop_of(step: Step, done: Sequence[Step]) -> Mapping[str, Any] | None:
    """The loop is timed beside transformers; the family's other engines are set against the same one."""
    for other in done:
        pace = other["findings"].get("pace") or {}
        if other["family"] == step["family"] and pace.get("loop"):
            found: Mapping[str, Any] = pace["loop"]
            return found
    return None
