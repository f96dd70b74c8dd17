"""Qualitative cases as a page and as LaTeX: image with boxes, expressions, both answers with their CoT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from refadv_ablate.boxes import Box
from refadv_ablate.data.images import encode
from refadv_ablate.report.pages.drawn import escaped, framed, marked, result
from refadv_ablate.report.pages.page import page_of
from refadv_ablate.report.pages.words import Segment, changes
from refadv_ablate.report.tables.latex import escape
from refadv_ablate.types import ImageRef, Record

TITLE = "Cases picked by rule"
SIDE = 640
"""Longest side of an image for LaTeX, pixels."""
LONGEST, LONGEST_PRINTED = 1500, 420
"""Characters of an answer or a reasoning trace on the page, and in LaTeX."""
COLORS = ((0, 122, 90), (0, 104, 163), (179, 77, 0))
LABELS = ("T", "O", "P")


@dataclass(frozen=True, slots=True)
class Case:
    """A pair of answers. source: a data URI of the image, or empty; drawn: the image for LaTeX, or empty."""

    original: Record
    perturbed: Record
    source: str = ""
    drawn: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Cases of one cell that flipped in one way in one bin of distractors, of `total` that did."""

    cell: str
    operator: str
    kind: str
    bin: str
    total: int
    cases: Sequence[Case]

    @property
    def heading(self) -> str:
        """As in: right → wrong, 4–6 distractors: 1 of 23."""
        shown = f"{len(self.cases)} of {self.total:,}"
        return f"{self.kind}, {self.bin} distractors: {shown}"


def rule(each: int, seed: int) -> str:
    """How the cases were picked, in a sentence."""
    number = "one case" if each == 1 else f"{each} cases"
    return (
        f"For each result, each kind of flip and each bin of distractors, {number} of those that flipped so, "
        f"in an order that seed {seed} alone decides; nobody chose them. They illustrate and prove nothing: "
        "the tables have the numbers."
    )


# ── the page ────────────────────────────────────────────────────────────────────────────────────


def page(groups: Sequence[Group], each: int, seed: int, command: str) -> str:
    """A whole document; every text is escaped."""
    key = (
        "<span class=target>target</span>, <span class=original>answer to the original</span>, "
        "<span class=perturbed>answer to the perturbed expression</span>"
    )
    head = (
        f"<header><h1>{TITLE}</h1><p class=soft>{escaped(rule(each, seed))} A hit is IoU ≥ 0.5.</p>"
        f"<p class='soft key'>{key}</p><pre>{escaped(command)}</pre></header>"
    )
    body = []
    for cell, members in groupby(groups, key=lambda group: group.cell):
        body.append(f"<h2><bdi>{escaped(cell)}</bdi></h2>")
        for group in members:
            body.append(f"<h3>{escaped(group.heading)}</h3>")
            body += [_article(case) for case in group.cases]
    return page_of(TITLE, head + "".join(body))


def _article(case: Case) -> str:
    before, after = case.original, case.perturbed
    boxes = list(zip(_boxes(case), ("target", "original", "perturbed"), ("", "", ""), strict=True))
    label = f"{before.expression}: the target and both answers"
    left, right = changes(before.expression, after.expression)
    return (
        f"<article class=ex><div class=pair>{framed(case.source, before.size, boxes, label)}<div>"
        f"{_answer('Original', left, before)}{_answer('Perturbed', right, after)}"
        f"<p class=soft><bdi>{escaped(before.example_id)}</bdi></p></div></div></article>"
    )


def _answer(title: str, words: Sequence[Segment], record: Record) -> str:
    parts = [f"<p><b>{title}:</b> <span dir=auto>{marked(words)}</span> ({escaped(result(record))})</p>"]
    for text in (record.reasoning, record.text):
        if text.strip():
            parts.append(f"<pre dir=auto>{escaped(_cut(text, LONGEST))}</pre>")
    return "".join(parts)


def _boxes(case: Case) -> tuple[Box | None, Box | None, Box | None]:
    """Those that lie on the image that is shown."""
    asked = None if case.perturbed.picture else case.perturbed.predicted
    return case.original.target, case.original.predicted, asked


def _cut(text: str, most: int) -> str:
    text = text.strip()
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters)"


# ── LaTeX ───────────────────────────────────────────────────────────────────────────────────────


def draw(image: ImageRef, pair: tuple[Record, Record], folder: Path, number: int) -> str:
    """The image with T, O and P boxes as a JPEG in cases_images/; returns its path against the folder.

    `pair` is (original, perturbed), `number` the case's. Raises ImageUnreadable.
    """
    from refadv_ablate.prompting.marks import draw_marks

    original, perturbed = pair
    picture = image.load()
    scale = min(1.0, SIDE / max(picture.size))
    shown = picture.resize((max(1, round(picture.width * scale)), max(1, round(picture.height * scale))))
    known = [
        (Box(*(scale * side for side in box.as_list())), label, color)
        for box, label, color in zip(
            (original.target, original.predicted, perturbed.predicted), LABELS, COLORS, strict=True
        )
        if box is not None
    ]
    boxes, labels, colors = ([part[i] for part in known] for i in range(3))
    drawn = draw_marks(shown, boxes, labels, colors=colors)  # type: ignore[arg-type]  # columns of one list
    name = f"cases_images/{number:03}.jpg"
    (folder / "cases_images").mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(encode(drawn, "jpeg", 85))
    return name


def latex(groups: Sequence[Group], each: int, seed: int) -> str:
    """A longtable for a document with graphicx, longtable and booktabs."""
    lines = [
        "% needs \\usepackage{graphicx,longtable,booktabs}; images lie in cases_images/ beside this file",
        "\\begin{longtable}{p{.3\\linewidth}p{.32\\linewidth}p{.32\\linewidth}}",
        f"\\caption{{{escape(TITLE)}. {escape(rule(each, seed))} T: target; O: answer to the original; "
        "P: answer to the perturbed expression.}\\\\",
        "\\toprule Image & Original & Perturbed \\\\ \\midrule \\endhead",
    ]
    for group in groups:
        heading = escape(f"{group.cell}: {group.heading}")
        lines.append(f"\\multicolumn{{3}}{{p{{.96\\linewidth}}}}{{\\textit{{{heading}}}}} \\\\")
        lines += [" & ".join(_cells(case)) + " \\\\" for case in group.cases]
        lines.append("\\midrule")
    return "\n".join([*lines[:-1], "\\bottomrule", "\\end{longtable}", ""])


def _cells(case: Case) -> Iterator[str]:
    yield f"\\includegraphics[width=\\linewidth]{{{case.drawn}}}" if case.drawn else escape("(no image)")
    for record in (case.original, case.perturbed):
        said = " ".join(_cut(t, LONGEST_PRINTED) for t in (record.reasoning, record.text) if t.strip())
        yield (
            f"\\textbf{{{escape(record.expression)}}} ({escape(result(record))})"
            + (f" \\newline {{\\footnotesize {escape(said)}}}" if said else "")
        )
