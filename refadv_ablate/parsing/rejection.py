"""The answer "none", where the prompt allows it: what counts as saying that nothing matches.

An empty list, `null`, the word "none" and its kin, and a sentence that says the object is not there, also
after an apology. Not a rejection: no text at all, an answer that was cut off, a text that can't be read,
and a refusal to answer ("I'm sorry, I can't help with that"); those stay what they are.
"""

from __future__ import annotations

from dataclasses import replace

from refadv_ablate.parsing.final_answer import NOTHING, final_answer
from refadv_ablate.types import NoBox, Reading, Reply

SAID = "the answer says that nothing matches"


def with_none(reading: Reading, reply: Reply) -> Reading:
    """The reading of an answer to a prompt that allows "none": `none` in place of what says so.

    A reading with a box, and one of an answer that was cut off or withheld, is returned as it is.
    """
    if not isinstance(reading.answer, NoBox) or reply.finish != "stop":
        return reading
    answer = final_answer(reply.text)
    if isinstance(answer, NoBox) or not answer.strip():
        return reading
    kind = reading.answer.kind
    if kind == "empty" or (kind == "refused" and NOTHING.search(answer)):
        return replace(reading, answer=NoBox("none", SAID))
    return reading
