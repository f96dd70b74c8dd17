"""A table as Markdown, LaTeX, CSV, JSON or HTML."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from refadv_ablate.errors import printable
from refadv_ablate.report.tables.latex import escape
from refadv_ablate.report.tables.table import Column, Fact, Line, Table, Value
from refadv_ablate.types import Json

DASH = "–"
PROSE = 40
"""Characters above which a value of an HTML table is a sentence: it is wrapped and starts at the left."""


def markdown(table: Table) -> str:
    """Pipes in texts are escaped; the best of a column is bold."""
    heads = [*table.label_titles, *(_flat_title(column) for column in table.columns)]
    lines = [
        f"**{escape_markdown(table.title)}**",
        "",
        _md_row(heads),
        _md_row(["---"] * _left(table) + ["--:"] * len(table.columns)),
    ]
    for line in table.lines:
        cells = [_md_value(line.values.get(c.key), table.is_best(line, c)) for c in table.columns]
        lines.append(_md_row([*map(escape_markdown, line.labels), *cells]))
        if line.has_published:
            published = [_published(line, column) for column in table.columns]
            lines.append(
                _md_row(
                    [*[""] * (_left(table) - 1), "*published*", *(f"*{p}*" if p else "" for p in published)]
                )
            )
    return "\n".join([*lines, "", *(f"{escape_markdown(note)}  " for note in table.notes)]).rstrip() + "\n"


def latex(table: Table) -> str:
    r"""A booktabs environment, the interval below its value; any name compiles with pdflatex.

    A narrow table stands in one column of a page. One that is wider than the text is cut into parts below
    each other, each with the labels, so that nothing runs out of the page.
    """
    parts = list(_latex_parts(table))
    narrow = len(parts) == 1 and _latex_width(parts[0]) <= COLUMN_PT
    environment = "table" if narrow else "table*"
    notes = " ".join(escape(note) for note in table.notes)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{{environment}}}",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{escape(_UNNUMBERED.sub('', table.title))}. {notes}}}",
            rf"\label{{tab:{table.name}}}",
            "\n\n\\medskip\n".join(map(_tabular, parts)),
            rf"\end{{{environment}}}",
            "",
        ]
    )


COLUMN_PT, TEXT_PT = 230.0, 390.0
"""Points of a column of a two-column page, and of the text of a one-column page (ICLR: 5.5 inches)."""
CHARACTER_PT, SMALL_PT, GAP_PT = 4.4, 3.4, 6.0
"""Mean widths of a character of \\footnotesize and of \\tiny, and what stands between two columns."""


def _tabular(table: Table) -> str:
    groups = [(group, len(list(members))) for group, members in groupby(c.group for c in table.columns)]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{@{{}}{'l' * _left(table)}{'r' * len(table.columns)}@{{}}}}",
            r"\toprule",
            *(_latex_groups(table, groups) if any(group for group, _ in groups) else ()),
            _latex_row([*table.label_titles, *(c.title for c in table.columns)]),
            r"\midrule",
            *_latex_lines(table),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _latex_parts(table: Table) -> Iterator[Table]:
    """The table in parts no wider than the text; columns of one group stay together where they can."""
    labels = _latex_width(_part(table, ()))
    taken: list[Column] = []
    width = labels
    for _, members in groupby(table.columns, key=lambda column: column.group):
        group = list(members)
        whole = sum(_column_width(table, column) for column in group)
        blocks = [group] if labels + whole <= TEXT_PT else [[column] for column in group]
        for block in blocks:
            more = sum(_column_width(table, column) for column in block)
            if taken and width + more > TEXT_PT:
                yield _part(table, taken)
                taken, width = [], labels
            taken += block
            width += more
    if taken or not table.columns:
        yield _part(table, taken)


def _part(table: Table, columns: Sequence[Column]) -> Table:
    return Table(table.name, table.title, table.label_titles, tuple(columns), table.lines, table.notes)


def _latex_width(table: Table) -> float:
    """About how wide it will be, in points."""
    labels = zip(table.label_titles, *(line.labels for line in table.lines), strict=True)
    first = sum(CHARACTER_PT * max(map(len, texts)) + GAP_PT for texts in labels)
    return first + sum(_column_width(table, column) for column in table.columns)


def _column_width(table: Table, column: Column) -> float:
    width = CHARACTER_PT * len(column.title)
    group = [c for c in table.columns if c.group == column.group]
    width = max(width, CHARACTER_PT * len(column.group) / len(group)) if column.group else width
    values = [line.values[column.key] for line in table.lines if column.key in line.values]
    for value in values:
        below = max(len(value.interval()), len(value.published_text()))
        width = max(width, CHARACTER_PT * len(value.shown()), SMALL_PT * below)
    return width + GAP_PT


def as_csv(table: Table) -> str:
    """Fractions: value, bounds, n, images, published value, difference, within.

    Rounded to the digits that the interval leaves a meaning; the JSON beside it has all of them.
    """
    facts = all(isinstance(value, Fact) for line in table.lines for value in line.values.values())
    keys = ("value", "published") if facts else _JSON_KEYS
    heads = [f"{c.key}{'' if key == 'value' else f'_{key}'}" for c in table.columns for key in keys]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(title.lower().replace(" ", "_") for title in table.label_titles), *heads])
    for line in _repeated(table.lines):
        values = [_rounded(_json_value(line.values.get(column.key))) for column in table.columns]
        cells = [_csv_cell(value.get(key)) for value in values for key in keys]
        writer.writerow([*map(_csv_cell, line.labels), *cells])
    return out.getvalue()


def as_json(table: Table) -> str:
    """Every number as it was computed: fractions at full precision, not points; the same keys as CSV."""
    lines = [
        {
            "labels": dict(zip(table.label_titles, line.labels, strict=True)),
            "values": {c.key: _json_value(line.values.get(c.key)) for c in table.columns},
        }
        for line in _repeated(table.lines)
    ]
    tree = {"name": table.name, "title": table.title, "lines": lines, "notes": list(table.notes)}
    return json.dumps(tree, ensure_ascii=False, indent=1) + "\n"


def as_html(table: Table) -> str:
    """A <figure> with a table, for the pages of the report; the interval stands below its value."""
    head = "".join(f"<th scope=col class=l>{_e(title)}</th>" for title in table.label_titles)
    head += "".join(f"<th scope=col>{_e(column.title)}</th>" for column in table.columns)
    body = "".join(_html_line(table, line, new) for line, new in _section_starts(table))
    notes = "".join(f"<p class=note>{_e(note)}</p>" for note in table.notes)
    return (
        f"<figure class=table id={_e(table.name)}><figcaption>{_e(table.title)}</figcaption>"
        f"<div class=scroll tabindex=0 role=region aria-label={_quoted(table.title)}>"
        f"<table><thead>{_html_groups(table)}<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f"{notes}</figure>"
    )


FORMATS: Mapping[str, tuple[str, Callable[[Table], str]]] = {
    "markdown": (".md", markdown),
    "latex": (".tex", latex),
    "csv": (".csv", as_csv),
    "json": (".json", as_json),
    "html": (".html", as_html),
}
"""Name of a format → file suffix and writer."""


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────


def _left(table: Table) -> int:
    return len(table.label_titles)


def _flat_title(column: Column) -> str:
    return escape_markdown(f"{column.title}, {column.group}" if column.group else column.title)


_MD_SPECIALS = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]<>#|~$"} | {"\n": " "})


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, in a table cell too."""
    return text.translate(_MD_SPECIALS)


def _md_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md_value(value: Value | None, best: bool) -> str:
    if value is None:
        return DASH
    text = escape_markdown(value.shown())
    return " ".join(filter(None, (f"**{text}**" if best else text, value.interval())))


def _published(line: Line, column: Column) -> str:
    value = line.values.get(column.key)
    return value.against_published() if value else ""


# ── LaTeX ───────────────────────────────────────────────────────────────────────────────────────


# LaTeX numbers tables by itself
_UNNUMBERED = re.compile(r"^Table \d+: ")


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(escape(cell) for cell in cells) + r" \\"


def _latex_groups(table: Table, groups: Sequence[tuple[str, int]]) -> Iterator[str]:
    cells, rules, at = [""] * _left(table), [], _left(table) + 1
    for group, width in groups:
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(group)}}}" if group else " & " * (width - 1))
        rules += [rf"\cmidrule(lr){{{at}-{at + width - 1}}}"] if group else []
        at += width
    yield " & ".join(cells) + r" \\"
    yield " ".join(rules)


def _latex_lines(table: Table) -> Iterator[str]:
    blank = [""] * _left(table)
    for line, new in _section_starts(table):
        if line is not table.lines[0]:
            yield r"\addlinespace" if new else r"\addlinespace[1.5pt]"
        values = [line.values.get(column.key) for column in table.columns]
        best = [table.is_best(line, column) for column in table.columns]
        yield _latex_cells(map(escape, line.labels), map(_latex_value, values, best))
        if any(map(_bounds, values)):
            yield _latex_cells(blank, map(_small, map(_bounds, values)))
        if line.has_published:
            yield _latex_cells(
                [*blank[1:], _small("published")], [_small(_published(line, c)) for c in table.columns]
            )


def _latex_cells(labels: Iterable[str], values: Iterable[str]) -> str:
    return " & ".join([*labels, *values]) + r" \\"


def _small(text: str) -> str:
    return rf"{{\tiny {escape(text)}}}" if text else ""


def _bounds(value: Value | None) -> str:
    return "" if value is None else value.interval()


def _latex_value(value: Value | None, best: bool) -> str:
    text = "--" if value is None else escape(value.shown())
    return rf"\textbf{{{text}}}" if best else text


# ── CSV and JSON ────────────────────────────────────────────────────────────────────────────────

_JSON_KEYS = ("value", "low", "high", "n", "images", "published", "difference", "within")


def _json_value(value: Value | None) -> dict[str, Json]:
    if value is None:
        return {}
    if isinstance(value, Fact):
        return {"value": value.text, "published": value.published or None}
    estimate = value.estimate
    row: dict[str, Json] = {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "images": estimate.images,
        "published": value.published,
        "difference": value.difference,
        "within": value.within,
    }
    return row | ({"note": estimate.note} if estimate.note else {})


FEWEST_DIGITS, MOST_DIGITS = 3, 6
"""Decimals of a fraction: a tenth of a point, as everywhere, and more where an interval is very narrow."""


def _rounded(value: Mapping[str, Json]) -> dict[str, Json]:
    """Fractions with the decimals at which the interval has two digits; those without one as points are."""
    low, high = value.get("low"), value.get("high")
    digits = FEWEST_DIGITS
    if low is not None and high is not None and high > low:
        digits = min(MOST_DIGITS, max(FEWEST_DIGITS, 1 - math.floor(math.log10(high - low))))
    return {key: round(each, digits) if isinstance(each, float) else each for key, each in value.items()}


def _csv_cell(value: Json) -> Json:
    """A spreadsheet would run a text that begins like a formula."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t"):
        return f"'{value}"
    return "" if value is None else value


def _repeated(lines: Sequence[Line]) -> Iterator[Line]:
    """An empty label means "as above": machines want it said."""
    last: tuple[str, ...] = ()
    for line in lines:
        first = line.labels[0] or (last[0] if last else "")
        last = (first, *line.labels[1:])
        yield Line(last, line.values, line.section, line.ranked)


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────


def _e(text: str) -> str:
    return html.escape(printable(text), quote=True)


def _quoted(text: str) -> str:
    return f'"{_e(text)}"'


def _section_starts(table: Table) -> Iterator[tuple[Line, bool]]:
    before: str | None = None
    for line in table.lines:
        yield line, line.section != before
        before = line.section


def _html_groups(table: Table) -> str:
    if not any(column.group for column in table.columns):
        return ""
    cells = f"<td colspan={_left(table)}></td>"
    for group, members in groupby(column.group for column in table.columns):
        cells += f"<th scope=colgroup colspan={len(list(members))}>{_e(group)}</th>"
    return f"<tr class=groups>{cells}</tr>"


def _html_line(table: Table, line: Line, new: bool) -> str:
    names = [f"<bdi>{_e(label)}</bdi>" for label in line.labels]
    if line.link and names:
        names[-1] = f'<a href="{_e(line.link)}">{names[-1]}</a>'
    labels = "".join(f"<th scope=row class=l>{name}</th>" for name in names)
    cells = "".join(_html_value(line.values.get(c.key), table.is_best(line, c)) for c in table.columns)
    return f"<tr{' class=new' if new else ''}>{labels}{cells}</tr>"


def _html_value(value: Value | None, best: bool) -> str:
    if value is None:
        return f"<td class=none>{DASH}</td>"
    text, bounds, published = _e(value.shown()), value.interval(), value.against_published()
    cell = f"<b>{text}</b>" if best else text
    cell += f"<small>{_e(bounds)}</small>" if bounds else ""
    if published:
        cell += f'<small class=published title="published (ours − published)">{_e(published)}</small>'
    return f"<td{' class=prose' if len(text) > PROSE else ''}>{cell}</td>"
