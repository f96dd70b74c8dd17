"""No name, answer or server's word commands a terminal, on the screen or copied from a page."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from refadv_ablate.report.console import console
from refadv_ablate.report.pages import gallery
from refadv_ablate.report.pages.drawn import escaped
from refadv_ablate.report.pages.report_page import Content, html_page
from refadv_ablate.report.tables import formats, results
from tests.report.making import comparison, records

CODE = "evil\x1b[2J\x9b31m name"


def test_names_in_the_table_of_a_run_are_spelled_out():
    screen = Console(width=140, record=True)
    with screen.capture() as captured:
        cell = replace(comparison(CODE, CODE, CODE, prompt=CODE, warnings=(CODE,)), variant=CODE)
        screen.print(console([cell]))
    assert "\x1b[2J" not in captured.get() and "\x9b" not in captured.get()
    assert "\\x1b[2J" in captured.get()


def test_pages_hold_no_control_characters(tmp_path):
    cell = comparison(CODE, CODE, CODE, warnings=(CODE,))
    table = results.results([cell])
    pages = [
        html_page(Content(CODE, [cell], [table], [], [(CODE, CODE)], [(CODE, CODE)], {"command": CODE})),
        formats.as_html(table),
        escaped(CODE),
    ]
    original = replace(next(records(1)), example_id=CODE, text=CODE, category=CODE, expression=CODE)
    perturbed = replace(original, condition="bow", reasoning=CODE, reason=CODE)
    path = gallery.write(tmp_path / "g.html", [(original, perturbed)], lambda _id: None, title=CODE)
    pages.append(path.read_text(encoding="utf-8"))
    for page in pages:
        assert not any(c in page for c in ("\x1b", "\x9b", "\\u001b", "\\u009b"))


def test_a_secret_in_a_mistake_of_the_curation_is_masked(capsys, monkeypatch):
    from refadv_ablate.curate.cli import main

    monkeypatch.setenv("CURATION_API_KEY", "sk-very-secret-value")
    assert main(["prepare", "source=sk-very-secret-value\x1b[2J"]) == 2
    said = capsys.readouterr().err
    assert "sk-very-secret-value" not in said and "\x1b" not in said
