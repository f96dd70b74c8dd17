"""The final answer within a reply's text: no thinking, no tool calls; and why an answer holds no box."""

from __future__ import annotations

import re
from collections.abc import Iterator

from refadv_ablate.parsing.brackets import Group, Value, Word, scan
from refadv_ablate.parsing.plain import plain
from refadv_ablate.types import NoBox

TRACE = re.compile(
    r"<\s{0,4}(/?)\s{0,4}(?:think|thinking|reasoning|thought|reflection|analysis)\s{0,4}>|◁(/?)think▷",
    re.IGNORECASE,
)
# What a model asks of a tool, and what the tool says, is no answer: its box is a crop (Qwen's zoom tool).
_TOOL = re.compile(
    r"<(/?)(\|?)(tool_call|tool_calls|tool_response|tool_result|function_call|function_calls"
    r"|function_response"
    r"|tool_use|tool|invoke|function|parameter)\b[^<>\n]{0,120}>",
    re.IGNORECASE,
)
# `img.crop((…))` in a program is a crop too, and `rgba(…)` is a colour
_CALL = re.compile(
    r"\b(?:image_)?(?:crop|zoom)\w{0,20}\((?:[^()\n]|\([^()\n]{0,200}\)){0,300}\)|\b(?:rgba?"
    r"|hsla?|cmyk)\s?\([^()\n]{0,80}\)",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"~~[^~\n]{1,400}~~")
_UNCLOSED = re.compile(r"<\|?(?:box_start|begin_of_box|box|det)\|?>[^<]{0,200}$")
_ANSWER = re.compile(
    r"<(/?)\|?(?:final[_ ]?)?answer\b[^<>\n]{0,120}>|<\|(/?)(?:begin|end)_of_answer\|>", re.IGNORECASE
)
_END = re.compile(r"<\|(?:im_end|endoftext|eot_id|end|user)\|>|</s>")
_REFUSAL = re.compile(
    r"\b(?:i(?:['’]?m| am)? (?:sorry|unable|not able|can(?:not|['’]t| not)|won['’]t"
    r"|do(?:n['’]t| not) (?:see|have|know))|sorry,|(?:unable|not able) to|i apologi[sz]e"
    r"|can(?:not|['’]t| not) (?:be )?(?:locat|identif|determin|provid|help|assist|see|tell|answer)"
    r"|as an ai|please (?:provide|specify|clarify|upload)|against my)"
    r"|无法|抱歉|对不起|不能|申し訳|できません|お答えできない|죄송|없습니다만|수 없습니다|수 없어"
    r"|\b(?:tut mir leid|kann (?:ich )?(?:leider )?(?:nicht|keine)|désolé|je ne peux|lo siento|no puedo"
    r"|desculpe|não posso|mi dispiace|non posso|извините|не могу|przepraszam|nie mogę|üzgünüm|xin lỗi"
    r"|ik kan (?:dat )?niet)|آسف|عذر|لا أستطيع|لا يمكنني|माफ|ขออภัย",
    re.IGNORECASE,
)
NOTHING = re.compile(
    r"\bthere (?:is|are|does|appears?|seems?)(?: to be| not seem to be)?(?: no|n['’]t| not)\b"
    r"|\b(?:no|none|neither|nothing)\b(?: of [\w ]{1,40})?[\w ,'’-]{0,60}\b(?:match|matches"
    r"|matched|fit|fits|found|present"
    r"|visible|exists?|corresponds?|visible|shown|detected|meets?|satisf\w+|appears?)\b"
    r"|\bno (?:such|matching|visible|object|person|result|bounding)"
    r"|\b(?:could|can|did)(?:n['’]t| ?not) (?:be )?(?:find|found|detect|locate any|see any|spot)"
    r"|\bdo(?:es)?(?: not|n['’]t) (?:appear|contain|show|exist|include|seem|see any|find)"
    r"|\b(?:is|are|was)(?:n['’]t| not) (?:visible|present|shown|in the image|found|there|any|depicted)"
    r"|没有|不存在|未找到|找不到|未发现|見つかりません|ありません|存在しません|見当たりません|いません"
    r"|찾을 수 없|없습니다|존재하지 않"
    r"|\bkein\w* .{0,60}(?:entspricht|gefunden|vorhanden|sichtbar|im bild|zu sehen|passt)"
    r"|nicht (?:gefunden|vorhanden|sichtbar)"
    r"|\baucun\w* |\bil n['’]y a pas|n['’]existe pas|\bning[uú]n|\bno hay\b|no se encuentra"
    r"|\bnenhum|não há|\bnessun"
    r"|\bнет (?:такого|такой|таких|объект|подходящ|ни одного|человека|никого)|не найден"
    r"|отсутству|لا يوجد|لا توجد"
    r"|\bgeen (?:enkel|object|persoon)|\bnie ma\b|\bkhông có\b|\bbulunamadı|\byok(?:tur)?\b|नहीं है|ไม่มี",
    re.IGNORECASE,
)
_NONE_WORDS = frozenset({"null", "none", "n/a", "na", "nil", "undefined", "nothing", "empty", "no box", "无"})
PLACEHOLDERS = frozenset(
    {"x1", "x2", "y1", "y2", "xmin", "ymin", "xmax", "ymax", "x_min", "y_min", "x_max", "y_max"}
)
"""Names of corners, which stand for numbers where an answer repeats the question's format."""


def final_answer(text: str) -> str | NoBox:
    """What follows the thinking trace, without tool calls, within the last `<answer>`, in plain signs."""
    text = plain(text)
    trace = list(TRACE.finditer(text))
    if trace:
        if "/" not in trace[-1].groups():
            return NoBox("truncated", "the thinking trace is not closed, so there is no answer")
        text = _outside(text, trace)
    if not text.strip():
        return NoBox("empty", "nothing follows the thinking trace")
    text = _without_tools(_END.sub(" ", text))
    if not text.strip():
        return NoBox("unparsable", "a tool call and no answer")
    text = _STRUCK.sub(" ", _answer_tag(text))
    if not text.strip():
        return NoBox("empty", "the answer tag is empty")
    if '\\"' in text and not re.search(r'(?<!\\)"', text.strip().strip('"')):
        text = text.strip().strip('"').replace('\\"', '"').replace("\\n", "\n")
    return text


def _outside(text: str, trace: list[re.Match[str]]) -> str:
    """What follows the last trace; what stands before it where nothing follows."""
    after = text[trace[-1].end() :]
    if after.strip() or len(trace) < 2 or "/" in trace[-2].groups():
        return after
    before = trace[-3].end() if len(trace) > 2 else 0
    return text[before : trace[-2].start()]


def _without_tools(text: str) -> str:
    """The text outside `<tool_call>…</tool_call>` and its like; one that is not closed takes the rest."""
    text = _CALL.sub(" ", text)
    kept, position, waiting = [], 0, ""
    for tag in _TOOL.finditer(text):
        closing, name = tag[1] == "/", tag[3].lower()
        if not waiting and not closing:
            kept.append(text[position : tag.start()])
            waiting = name
        elif waiting == name and closing:
            waiting, position = "", tag.end()
    return " ".join([*kept, "" if waiting else text[position:]]) if kept else text


def _answer_tag(text: str) -> str:
    """What the last answer tag encloses, whatever its case; the text itself where there is none."""
    tags = list(_ANSWER.finditer(text))
    opened = [i for i, tag in enumerate(tags) if "/" not in tag[0][:3] and not tag[0].startswith("<|end_")]
    if not opened:
        return text
    index = opened[-1]
    closed = index + 1 < len(tags)
    inside = text[tags[index].end() : tags[index + 1].start() if closed else len(text)]
    return inside if inside.strip() or not closed else text[tags[index + 1].end() :]


def no_box(text: str) -> NoBox:
    """Why a final answer without a box has none."""
    bare = re.sub(r"<[^<>]{0,30}>|```\w{0,10}", " ", text[:400]) if len(text) <= 400 else ""
    bare = bare.strip("\"'`*.![](){} \n").lower()
    if not text.strip():
        return NoBox("empty", "nothing follows the thinking trace")
    if bare in _NONE_WORDS:
        return NoBox("empty", "the answer lists no box")
    groups = scan(text)
    told = _in_groups(groups)
    if told is not None:
        return told
    if NOTHING.search(text) and not _sorry_first(text):
        return NoBox("empty", "the answer says in prose that nothing matches")
    if _UNCLOSED.search(text[-300:]) and re.search(r"\d", text[-300:]):
        return NoBox("truncated", "the answer ends within a box")
    if re.search(r"<\|?loc_?\d+\|?>", text):
        return NoBox("unparsable", "location tokens of another family")
    if _REFUSAL.search(text):
        return NoBox("refused", "the answer says in prose that it gives no box")
    return NoBox("unparsable", "no box in the answer")


def _sorry_first(text: str) -> bool:
    refusal, nothing = _REFUSAL.search(text), NOTHING.search(text)
    return refusal is not None and nothing is not None and refusal.start() < nothing.start()


def _in_groups(groups: list[Group]) -> NoBox | None:
    """What the brackets of an answer say about the box that is missing."""
    atoms = [leaf for group in groups for leaf in leaves(group)]
    words = {str(atom).lower() for atom in atoms if isinstance(atom, Word)}
    if groups and not atoms and all(group.closed for group in groups):
        return NoBox("empty", "the answer lists no box")
    if words & PLACEHOLDERS or any("x1" in word for word in words):
        return NoBox("unparsable", "a placeholder such as [x1, y1, x2, y2] stands where numbers should")
    if words & {"nan", "inf", "infinity", "-inf", "-infinity"}:
        return NoBox("unparsable", "a value is not a finite number")
    spoken = {str(atom).lower() for atom in atoms if isinstance(atom, str)}
    numbers = any(isinstance(atom, float) for atom in atoms)
    if spoken & _NONE_WORDS and not numbers and words <= _NONE_WORDS | {"true", "false"}:
        return NoBox("empty", "the answer lists no box")
    if words & {"true", "false"}:
        return NoBox("unparsable", "a truth value stands where a number should")
    if any("%" in word for word in words):
        return NoBox("unparsable", "percentages are not in the family's frame")
    if groups and not groups[-1].closed and (atoms or groups[-1].opener == "{"):
        return NoBox("truncated", "the answer ends within a list")
    return None


def leaves(group: Group) -> Iterator[Value]:
    """Everything in a group and the groups inside it that is no group."""
    waiting = [iter(group.items)]
    while waiting:
        for _, value in waiting[-1]:
            if isinstance(value, Group):
                waiting.append(iter(value.items))
                break
            yield value
        else:
            waiting.pop()
