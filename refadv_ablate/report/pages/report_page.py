"""The page of a report, as HTML and as Markdown: everything inline or beside it, no script, no network."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from refadv_ablate.errors import printable
from refadv_ablate.report.figures.inline_svg import inline
from refadv_ablate.report.loading.contrasting import Family
from refadv_ablate.report.pages.in_short import Sentence, in_short
from refadv_ablate.report.pages.page import page_of
from refadv_ablate.report.pages.shots import Shot, shot_row
from refadv_ablate.report.tables.formats import as_html, markdown
from refadv_ablate.report.tables.formats import escape_markdown as plain
from refadv_ablate.report.tables.table import Table
from refadv_ablate.storage.jsonl import atomic
from refadv_ablate.types import Comparison, Json


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
    galleries: Mapping[str, str] = field(default_factory=dict)
    """`cell_name` → relative address."""
    shots: Sequence[Shot] = ()
    """A few flips to look at."""
    examples: str = ""
    """Relative address of the page of examples across all cells."""
    families: Sequence[Family] = ()
    """Differences between the cells."""


def write_pages(folder: Path, content: Content) -> list[Path]:
    """report.html and report.md."""
    pages = {"report.html": html_page(content), "report.md": markdown_page(content, folder)}
    for name, text in pages.items():
        with atomic(folder / name) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    return [folder / name for name in pages]


# ── what both pages say ─────────────────────────────────────────────────────────────────────────


def _short(content: Content) -> list[Sentence]:
    return in_short(content.comparisons, content.families, content.galleries)


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
        items = "".join(
            f"<li><bdi>{_e(each.text)}</bdi>{_links(each.links)}</li>" for each in _short(content)
        )
        first = "".join(_picture(i, p) for i, p in enumerate(content.pictures[:1]))
        seen = shot_row(content.shots, content.examples)
        both = f"<div class=first>{first}<div>{seen}</div></div>" if seen else first
        parts.append(f"<section><h2>In short</h2><ul class=short>{items}</ul>{both}</section>")
    parts.append(_notices(content))
    parts.append(_section("Tables", "".join(map(_table, content.tables))))
    rest = list(enumerate(content.pictures))[1 if content.comparisons else 0 :]
    parts.append(_section("Figures", "".join(_picture(i, p) for i, p in rest)))
    galleries = content.galleries.items()
    links = "".join(f'<li><a href="{_e(address)}">{_e(name)}</a></li>' for name, address in galleries)
    parts.append(_section("Examples", f"<ul>{links}</ul>" if links else ""))
    facts = "".join(f"<dt>{_e(key)}</dt><dd><bdi>{_e(text)}</bdi></dd>" for key, text in _facts(content.meta))
    parts.append(_section("How it was done", f"<dl>{facts}</dl>" if facts else ""))
    return page_of(content.title, "".join(parts))


def _links(links: Sequence[tuple[str, str]]) -> str:
    named = ", ".join(f'<a href="{_e(address)}"><bdi>{_e(name)}</bdi></a>' for name, address in links)
    return f" <span class=soft>Examples: {named}</span>" if named else ""


def _table(table: Table) -> str:
    """Long tables of details are folded."""
    if table.name not in ("metrics", "parts", "landings"):
        return as_html(table)
    return f"<details><summary>{_e(table.title)}</summary>{as_html(table)}</details>"


def _picture(index: int, picture: Picture) -> str:
    svg = inline(picture.path.read_text(encoding="utf-8"), f"f{index}-", picture.caption)
    return f"<figure class=picture>{svg}<figcaption>{_e(picture.caption)}</figcaption></figure>"


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
    return html.escape(printable(text), quote=True)


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────


def markdown_page(content: Content, folder: Path) -> str:
    """The same for a repository or a chat; figures by relative path."""
    lines = [f"# {plain(content.title)}", ""]
    if command := content.meta.get("command"):
        lines += ["To do it again:", "", *_indented(str(command)), ""]
    lines += [
        " ".join([f"- {plain(each.text)}", *(f"[{plain(name)}](<{to}>)" for name, to in each.links)])
        for each in _short(content)
    ]
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
    lines += [f"- [{plain(name)}](<{address}>)" for name, address in content.galleries.items()]
    facts = list(_facts(content.meta))
    lines += (
        ["", "## How it was done", "", *(f"- {plain(key)}: {plain(text)}" for key, text in facts)]
        if facts
        else []
    )
    return "\n".join(lines) + "\n"


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
