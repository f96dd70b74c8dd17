"""Where the phrases of a caption in a hurry begin something new: at every border between classes of words."""

from __future__ import annotations

from perturbations import lexicon as lx
from perturbations.chunks import Chunk
from perturbations.labels import label_end
from perturbations.setting import JOIN, NEW, Setting, Verdict

_CLAUSES = frozenset({"relative", "finite", "clause", "contrast", "odd"})


def border(setting: Setting, chunk: Chunk) -> Verdict | None:
    """Whether the chunk goes on with the unit before it; None where the rules for whole sentences say it."""
    if chunk.comma or chunk.joint or chunk.kind in _CLAUSES:
        return None
    if any(c.kind in _CLAUSES or c.joint for c in setting.unit):
        return None
    key = setting.words[chunk.key].low
    if key in {"of", "than", "as"} or not setting.last.whole or _completes(setting, chunk):
        return JOIN
    if setting.rival and chunk.kind != "noun":
        return NEW if chunk.kind == "grade" and _place(setting, chunk) else None
    if setting.last.negated and setting.last.kind == "verb" and _place(setting, chunk):
        return JOIN if setting.words[setting.last.key].low in lx.LOCATIVE else NEW
    if (
        _place(setting, chunk)
        or _place(setting, setting.last)
        or label_end(setting.words, chunk.key) > chunk.key
    ):
        return NEW
    if chunk.kind == "prep":
        return _prep(setting, chunk)
    if chunk.kind == "verb":
        having = setting.words[setting.last.key].low in {"with", "without"} and setting.named(lx.BODY)
        if having and (chunk.negated or setting.words[chunk.key].low in _LOOKS):
            return JOIN
        tool = setting.named(lx.TOOLS) and setting.words[chunk.key].low in lx.TRANSITIVE | {"pointing"}
        return JOIN if tool and setting.words[setting.last.key].low in {"with", "without"} else NEW
    if chunk.kind == "grade":
        return _state(setting, chunk)
    return NEW


_LOOKS = frozenset({"hanging", "flowing", "showing", "sticking", "pointing", "tied", "blowing", "turned"})
_POSES = lx.ALONE_VERBS | lx.INTRANSITIVE
_HAIRDOS = frozenset({"ponytail", "bun", "braid", "braids", "pigtails", "pocket", "pockets", "air", "mouth"})


def _completes(setting: Setting, chunk: Chunk) -> bool:
    """What a count, a comparison or a direction still needs: "2nd | from left", "closest | to us"."""
    key, last = setting.words[chunk.key].low, setting.last
    said = {w.low for w in setting.words[last.key : last.end]}
    if last.kind == "grade" and said & lx.ORDINALS:
        return key == "from" or (key in {"in", "to"} and _told(setting, chunk) in {"line", "row", "last"})
    if last.kind == "grade" and said & (lx.COMPARATIVES | {"close", "next", "near"}):
        return key in {"to", "from", "by"} or (
            chunk.kind == "noun" and _told(setting, chunk) in {"us", "camera"}
        )
    if last.kind == "grade" and said & {"left", "right"}:
        return key in {"to"}
    turned = setting.words[last.end - 1].low in lx.DIRECTED
    return (last.kind == "verb" or turned) and key in {"to", "toward", "towards"}


def _told(setting: Setting, chunk: Chunk) -> str:
    return "" if chunk.noun is None else setting.words[chunk.noun].low


def _place(setting: Setting, chunk: Chunk) -> bool:
    """Whether a chunk says where in the picture something is, of itself."""
    words = setting.words
    if chunk.kind == "grade":
        return words[chunk.key].kind == "place" or words[chunk.key].low in lx.ORDINALS
    if (
        chunk.kind != "prep"
        or chunk.noun is None
        or words[chunk.key].low not in {"in", "on", "at", "from", "to"}
    ):
        return False
    garment = words[chunk.noun].low == "top" and chunk.noun - chunk.key > 1 and setting.animate
    return _told(setting, chunk) in lx.SIDES | {"row", "half", "end", "line", "column"} and not garment


def _prep(setting: Setting, chunk: Chunk) -> Verdict | None:
    key, told, last = setting.words[chunk.key].low, _told(setting, chunk), setting.last
    verb = setting.words[last.key]
    if last.kind == "verb" and setting.noun is None and verb.kind == "ed" and verb.low not in _POSES:
        return JOIN  # "topped with cream", "covered in snow"
    if key in {"with", "without"} or (key == "in" and told in lx.WORN | lx.COLORS):
        carried = setting.named(lx.WORN) and told in lx.PATTERNS
        if last.kind == "verb" and told in lx.TOOLS and setting.noun is not None:
            return JOIN  # "holding something with both hands"
        return JOIN if carried else NEW
    if setting.noun is None:
        return JOIN if last.kind == "verb" else NEW
    limb = setting.named(lx.BODY) or setting.noun.low == "back"
    if limb and (key in {"to", "on", "over", "behind", "toward", "towards", "against"} or told in _HAIRDOS):
        return JOIN
    if last.kind == "verb" and key in {"to", "over", "up", "into", "against", "from", "out"}:
        return JOIN
    if setting.animate and (told in {"phone", "cell", "cellphone"} or last.kind == "noun"):
        return NEW
    return None


def _state(setting: Setting, chunk: Chunk) -> Verdict:
    key = setting.words[chunk.key].low
    if setting.noun is None and setting.last.kind == "verb":
        return JOIN if key in {"alone", "tall", "still", "upright", "straight", "asleep", "open"} else NEW
    having = setting.words[setting.last.key].low in {"with", "without"}
    if having and setting.named(lx.BODY) and key not in lx.COLORS | lx.STATES:
        return JOIN
    return Verdict(True, sure=False) if having and key not in lx.COMPARATIVES else NEW
