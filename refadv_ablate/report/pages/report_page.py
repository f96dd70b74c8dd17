"""The page of a report, as HTML and as Markdown: everything inline or beside it, no script, no network."""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from refadv_ablate.report.figures.inline_svg import inline
from refadv_ablate.report.pages.gallery import static
from refadv_ablate.report.tables.formats import as_html, markdown
from refadv_ablate.report.tables.formats import escape_markdown as plain
from refadv_ablate.report.tables.table import Table
from refadv_ablate.statistics.formatting import interval, operator_name, p_holm, points
from refadv_ablate.statistics.verdicts import ALPHA, ruled_out, verdict
from refadv_ablate.storage.jsonl import atomic
from refadv_ablate.types import Comparison, Json

MOST_HEADLINES = 6


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure's file (SVG, with a PNG of the same name) and what it shows."""

    path: Path
    caption: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a page holds, however it is written."""

    title: str
    comparisons: Sequence[Comparison]
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    failures: Sequence[tuple[str, str]] = ()
    warnings: Sequence[tuple[str, str]] = ()
    """(cell or file, sentence)."""
    meta: Mapping[str, Json] = field(default_factory=dict)
    galleries: Sequence[tuple[str, str]] = ()
    """(name, relative address)."""
    said: Sequence[str] = ()
    """Sentences that come before those of the single cells."""


def write_pages(folder: Path, content: Content) -> list[Path]:
    """report.html and report.md."""
    pages = {"report.html": html_page(content), "report.md": markdown_page(content, folder)}
    for name, text in pages.items():
        with atomic(folder / name) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in pages]


# ── what both pages say ─────────────────────────────────────────────────────────────────────────


def headline(comparison: Comparison) -> str:
    """One sentence on the main Δ, without more certainty than there is."""
    delta = comparison.deltas.get("acc50")
    who = f"{comparison.model} on {comparison.data}"
    if delta is None or delta.delta.value is None:
        return f"{operator_name(comparison)}, {who}: no Δ ({delta.delta.note if delta else 'not computed'})."
    change, bounds = delta.delta, interval(delta.delta)
    size = f"Δ {points(change.value or 0, signed=True)} {bounds or '(no interval)'} points"
    said = verdict(delta)
    if said in ("unchanged", "none"):
        return f"{operator_name(comparison)}, {who}: {size}; {change.note or 'no test'}."
    words = {
        "falls": "accuracy falls",
        "rises": "accuracy rises",
        "too few images": f"too few images to decide ({change.images:,}; p {p_holm(delta)})",
        "disagree": f"undecided: the interval leaves 0 out, the test doesn't (p {p_holm(delta)})",
        "not told apart": f"no change that can be told from chance (p {p_holm(delta)}; {ruled_out(delta)})",
    }
    return f"{operator_name(comparison)}, {who}: {words[said]}, {size}."


def in_short(content: Content) -> list[str]:
    """What was found, in sentences; of many differences the first few."""
    more = len(content.said) - MOST_HEADLINES
    rest = [f"{more} more differences are in the tables."] if more > 0 else []
    return [*content.said[:MOST_HEADLINES], *rest, *headlines(content.comparisons)]


def headlines(comparisons: Sequence[Comparison]) -> list[str]:
    """A sentence for each, or, of many, how many fell, rose, and did neither."""
    sentences = [headline(c) for c in comparisons]
    if len(sentences) <= MOST_HEADLINES:
        return sentences
    counts = Counter(verdict(c.deltas["acc50"]) if "acc50" in c.deltas else "none" for c in comparisons)
    rest = (
        ("not told apart", f"no change can be told from chance (p ≥ {ALPHA}, Holm)"),
        ("unchanged", "not one answer changed"),
        ("too few images", "there are too few images to decide"),
        ("disagree", "interval and test disagree"),
        ("none", "there is no Δ or no test"),
    )
    others = [f"in {counts[key]} {words}" for key, words in rest if counts[key]]  # type: ignore[index]
    moved = f"Of {len(sentences)} cells accuracy falls in {counts['falls']}, rises in {counts['rises']}"
    return ["; ".join([moved, *others]) + "."]


def _facts(meta: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    for key, value in meta.items():
        if key == "command" or value in (None, "", [], {}):
            continue
        tree = _parsed(value)
        if isinstance(tree, Mapping):
            yield key, ", ".join(f"{name} {text}" for name, text in tree.items())
        elif isinstance(tree, list):
            yield key, ", ".join(map(str, tree))
        else:
            yield key, str(tree)


def _parsed(value: Json) -> Json:
    """A text that is a JSON object, as the object."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────


def html_page(content: Content) -> str:
    """Self-contained: figures inline, no script, no network."""
    parts = [f"<header><h1><bdi>{_e(content.title)}</bdi></h1>{_command(content)}</header>"]
    if content.comparisons:
        items = "".join(f"<li><bdi>{_e(text)}</bdi></li>" for text in in_short(content))
        first = "".join(_picture(i, p) for i, p in enumerate(content.pictures[:1]))
        parts.append(f"<section><h2>In short</h2><ul class=short>{items}</ul>{first}</section>")
    parts.append(_notices(content))
    parts.append(_section("Tables", "".join(map(_table, content.tables))))
    rest = list(enumerate(content.pictures))[1 if content.comparisons else 0 :]
    parts.append(_section("Figures", "".join(_picture(i, p) for i, p in rest)))
    links = "".join(f'<li><a href="{_e(address)}">{_e(name)}</a></li>' for name, address in content.galleries)
    parts.append(_section("Examples", f"<ul>{links}</ul>" if links else ""))
    facts = "".join(f"<dt>{_e(key)}</dt><dd><bdi>{_e(text)}</bdi></dd>" for key, text in _facts(content.meta))
    parts.append(_section("How it was done", f"<dl>{facts}</dl>" if facts else ""))
    return page_of(content.title, "".join(parts))


def _table(table: Table) -> str:
    """Long tables of details are folded."""
    if table.name not in ("metrics", "parts"):
        return as_html(table)
    return f"<details><summary>{_e(table.title)}</summary>{as_html(table)}</details>"


def _picture(index: int, picture: Picture) -> str:
    svg = inline(picture.path.read_text(encoding="utf-8"), f"f{index}-", picture.caption)
    return f"<figure class=picture>{svg}<figcaption>{_e(picture.caption)}</figcaption></figure>"


def page_of(title: str, body: str) -> str:
    """A whole HTML document in the report's style; `body` is markup."""
    style = static("page.css") + static("report.css")
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{_e(title)}</title><style>{style}</style></head>\n<body><main>{body}</main></body></html>\n"
    )


def _command(content: Content) -> str:
    command = content.meta.get("command")
    return f"<p class=soft>To do it again:</p><pre>{_e(str(command))}</pre>" if command else ""


def _notices(content: Content) -> str:
    boxes = (("notice bad", "Failed", content.failures), ("notice", "To mind", content.warnings))
    return "".join(_notice(*box) for box in boxes if box[2])


def _notice(kind: str, title: str, items: Sequence[tuple[str, str]]) -> str:
    lines = "".join(
        f"<li>{f'<b><bdi>{_e(cell)}</bdi></b> ' if cell else ''}{_e(text)}</li>" for cell, text in items
    )
    return f'<div class="{kind}"><h2>{title}: {len(items)}</h2><ul>{lines}</ul></div>'


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>" if body else ""


def _e(text: str) -> str:
    return html.escape(text, quote=True)


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────


def markdown_page(content: Content, folder: Path) -> str:
    """The same for a repository or a chat; figures by relative path."""
    lines = [f"# {plain(content.title)}", ""]
    if command := content.meta.get("command"):
        lines += ["To do it again:", "", *_indented(str(command)), ""]
    lines += [f"- {plain(text)}" for text in in_short(content)]
    for title, items in (("Failed", content.failures), ("To mind", content.warnings)):
        if items:
            named = (f"**{plain(cell)}** {plain(text)}" if cell else plain(text) for cell, text in items)
            lines += ["", f"## {title}", "", *(f"- {line}" for line in named)]
    lines += ["", "## Tables", ""] if content.tables else []
    lines += [f"{markdown(table)}" for table in content.tables]
    lines += ["## Figures", ""] if content.pictures else []
    for picture in content.pictures:
        where = os.path.relpath(picture.path.with_suffix(".png"), folder)
        lines += [f"![{plain(picture.caption)}]({where})", "", f"*{plain(picture.caption)}*", ""]
    lines += ["## Examples", ""] if content.galleries else []
    lines += [f"- [{plain(name)}](<{address}>)" for name, address in content.galleries]
    facts = list(_facts(content.meta))
    lines += (
        ["", "## How it was done", "", *(f"- {plain(key)}: {plain(text)}" for key, text in facts)]
        if facts
        else []
    )
    return "\n".join(lines) + "\n"


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
