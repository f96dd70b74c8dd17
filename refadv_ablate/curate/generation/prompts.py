"""What the LLM is asked, in our words, for the tasks of the paper's Section 2."""

from __future__ import annotations

from refadv_ablate.curate.generation.schemas import Judgement
from refadv_ablate.curate.scenes import Scene

VERSION = 1
"""Raised when a text changes: answers to other questions are other answers."""

_SYSTEM = """\
You help to build a benchmark of referring expressions. The picture shows several things of one kind;
each candidate carries a number tag that was drawn on it afterwards. The tags only tell you which
candidate is which: they are not part of the scene, and whoever reads your phrases won't see them.
Describe only what can be seen. Answer with one JSON object and nothing else."""

_JUDGE = """\
The candidates are {n} instances of "{category}", tagged 1 to {n}.

Step 1. Find the two candidates that look most alike and could most easily be taken for each other.
They are group A ("pair"). All the other candidates are group B ("others").

Step 2. Give exactly 2 group discriminators: properties that both members of A have and no member of B
has. For each write phrase_a, which is true of both in A, and phrase_b, which says how B differs.

Step 3. Give exactly 4 pair discriminators: properties in which the two members of A differ from each
other. 2 of them are noticeable at first sight, 2 are unnoticeable until one looks closely. For each
write phrase_first, true of the first of the pair and not of the second, and phrase_second, true of the
second and not of the first.

Phrases are short, concrete pieces of description (clothing, pose, colour, parts, place, relation to
other things) that could stand after "the {category}". No phrase may mention tags, numbers, boxes,
groups or candidates.

Form: {{"pair": [i, j], "others": [...],
 "group_discriminators": [{{"property": "...", "phrase_a": "...", "phrase_b": "..."}}, 2 in all],
 "pair_discriminators": [{{"property": "...", "noticeable": true or false, "phrase_first": "...",
 "phrase_second": "..."}}, 4 in all]}}"""

_COMPOSE = """\
The target is candidate {target}, a "{category}". Its hard distractor, which looks most like it, is
candidate {distractor}. All other candidates are easier to tell apart.

Group discriminators (what target and hard distractor share, and the others lack):
{groups}

Pair discriminators (what tells the target from the hard distractor):
{pairs}

Write 4 referring expressions for the target. Each joins exactly one group discriminator and one pair
discriminator; no two use the same combination. Together they fit the target alone. The pair
discriminator enters as one of these polarities, and use each polarity at least once:
- "positive": what the target is;
- "negation": what the target is not, by negating the hard distractor's phrase;
- "both": what it is, and what it is not.

Each expression is one natural English noun phrase for the {category}, as short as it can be without
fitting another candidate, with no detail beyond the two discriminators. It mentions no tags, numbers,
boxes, groups or candidates, and holds no digits.

Form: {{"expressions": [{{"group": 1 or 2, "pair": 1 to 4, "polarity": "positive" | "negation" | "both",
 "expression": "..."}}, 4 in all]}}"""

_ONE_STEP = """\
The candidates are {n} instances of "{category}", tagged 1 to {n}.

Choose the two candidates that look most alike. For each of the two write 4 different referring
expressions that fit it alone and no other candidate, above all not its look-alike. Each is one natural
English noun phrase, as short as it can be; at least one of the four says what the target is not. None
mentions tags, numbers, boxes or candidates, and none holds digits.

Form: {{"pair": [i, j], "targets": [{{"target": i, "expressions": ["...", 4 in all]}},
 {{"target": j, "expressions": ["...", 4 in all]}}]}}"""

_REPAIR = (
    "That answer can't be used: {problem}. Mend it and answer again in the same form, with one JSON object."
)


def system() -> str:
    """Who the LLM is to be."""
    return _SYSTEM


def judge(scene: Scene) -> str:
    """Query 1."""
    return _JUDGE.format(n=len(scene.boxes), category=scene.category)


def compose(scene: Scene, judgement: Judgement, target: int) -> str:
    """Query 2 for one member of the pair, by its number."""
    first = target == judgement.pair[0]
    distractor = judgement.pair[1] if first else judgement.pair[0]
    groups = [f"{i}. {d.phrase_a}" for i, d in enumerate(judgement.group_discriminators, 1)]
    pairs = []
    for i, d in enumerate(judgement.pair_discriminators, 1):
        own, other = (d.phrase_first, d.phrase_second) if first else (d.phrase_second, d.phrase_first)
        seen = "noticeable" if d.noticeable else "unnoticeable"
        pairs.append(f"{i}. ({seen}) target: {own}; hard distractor: {other}")
    return _COMPOSE.format(
        target=target,
        distractor=distractor,
        category=scene.category,
        groups="\n".join(groups),
        pairs="\n".join(pairs),
    )


def one_step(scene: Scene) -> str:
    """The single query of the ablation."""
    return _ONE_STEP.format(n=len(scene.boxes), category=scene.category)


def repair(problem: str) -> str:
    """Says what was wrong: asking the same again would fail the same way."""
    return _REPAIR.format(problem=problem)
