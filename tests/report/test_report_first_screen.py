"""What a page shows first: flips as pictures that open the galleries, and examples across all models."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from refadv_ablate.boxes import Box
from refadv_ablate.commands.report import run
from refadv_ablate.report.figures.inline_svg import inline
from refadv_ablate.report.pages import across, examples, gallery, shots
from refadv_ablate.report.pages.across import Answer, Shown
from refadv_ablate.storage import remembered
from refadv_ablate.storage.records import write_records
from refadv_ablate.types import ORIGINAL
from tests.report.making import NASTY, records


def example(name: str = "case 1", *, picture: bool = False) -> Shown:
    """Two models, of which the second loses the example under bow."""
    original = replace(next(records(1, hit=1.0)), outcome="box", iou=0.9, predicted=Box(5, 5, 45, 35))
    kept = replace(original, condition="bow", expression="one quoted the sign")
    lost = replace(kept, iou=0.0, predicted=Box(90, 80, 120, 100), picture={"edits": []} if picture else {})
    return Shown(
        name,
        "shapes",
        "data:image/jpeg;base64,AAAA",
        [
            Answer("a", "direct", ORIGINAL, original),
            Answer("a", "direct", "bow", kept, "a/gallery.html#example=case%201"),
            Answer("b", "direct", ORIGINAL, original),
            Answer("b", "direct", "bow", lost, "b/gallery.html#example=case%201"),
        ],
    )


def test_a_shot_is_a_flip_that_opens_the_gallery_at_its_example():
    (shot,) = shots.choose([example()])
    assert (shot.perturbed.model, shot.perturbed.condition) == ("b", "bow")
    markup = shots.shot_row([shot], "examples.html")
    assert 'href="b/gallery.html#example=case%201"' in markup
    assert "IoU 0.90 ✓ → IoU 0.00 ✗" in markup
    assert "&lt;script&gt;" in markup and "<script" not in markup
    assert markup.count("<rect") == 6, "three boxes, each over its rim"


def test_no_box_is_drawn_on_an_image_that_it_is_not_of():
    assert shots.choose([example(picture=True)]) == []
    assert Answer("b", "", "bow", example(picture=True).answers[3].record).box is None


def test_every_cell_has_its_turn_and_the_row_stays_short():
    many = [example(f"case {i}") for i in range(20)]
    assert len(shots.choose(many)) == shots.MOST
    assert shots.shot_row([], "") == ""


def test_the_page_of_examples_has_a_row_for_each_answer_and_no_script(tmp_path):
    assert examples.write(tmp_path / "examples.html", [example()]) == "examples.html"
    page = (tmp_path / "examples.html").read_text(encoding="utf-8")
    assert page.count("<tr class=k") == 4
    assert 'id="case%201"' in page
    assert "<script" not in page
    assert examples.write(tmp_path / "examples.html", []) == ""
    assert not (tmp_path / "examples.html").exists()


def test_a_report_links_rows_shots_and_examples_to_pages_that_are_there(tmp_path):
    for model in ("alpha", "beta"):
        both = [*records(20), *records(20, seed=1, condition="bow", hit=0.3)]
        write_records(tmp_path / "in" / model / "predictions.jsonl", both)
        (tmp_path / "in" / model / "summary.json").write_text(
            f'{{"model": "{model}", "data": "shapes", "prompt": "direct", "operator": "bow", "planned": 20}}'
        )
    from tests.report.test_report_pages import config

    run(config(path=str(tmp_path / "in"), to=str(tmp_path / "out"), gallery=20))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    links = set(re.findall(r'href="([^"#]+)', page))
    assert "examples.html" in links
    assert len([link for link in links if link.endswith("gallery.html")]) == 2
    assert all((tmp_path / "out" / link).is_file() for link in links)
    assert ">alpha · shapes · direct · bow</a>" in page
    table = (tmp_path / "out" / "tables" / "results.html").read_text(encoding="utf-8")
    inner = set(re.findall(r'href="([^"#]+)', table))
    assert inner and all((tmp_path / "out" / "tables" / link).is_file() for link in inner)


def test_examples_that_changed_sides_in_most_cells_come_first(tmp_path):
    from refadv_ablate.report.loading.sources import from_files
    from refadv_ablate.report.loading.study import study

    both = [*records(30, hit=1.0), *records(30, seed=1, condition="bow", hit=0.5)]
    write_records(tmp_path / "predictions.jsonl", both)
    found = study(from_files([tmp_path]), n_boot=200)
    shown = across.gather(found.pairs, {}, most=3)
    assert len(shown) == 3
    assert all(len(each.answers) == 2 for each in shown)


def test_which_examples_come_first_does_not_depend_on_what_is_held(tmp_path, monkeypatch):
    from refadv_ablate.report.loading.sources import from_files
    from refadv_ablate.report.loading.study import study

    for place, operator in enumerate(("bow", "fixed"), 1):
        arms = [*records(30, hit=1.0), *records(30, seed=place, condition=operator, hit=0.5)]
        write_records(tmp_path / operator / "predictions.jsonl", arms)
    found = study(from_files([tmp_path]), n_boot=200)
    whole = across.gather(found.pairs, {}, most=20)
    assert len(whole[0].flips) == 2 and len(whole[-1].flips) < 2
    monkeypatch.setattr(gallery, "WINDOW", 4)
    monkeypatch.setattr(remembered, "MOST", 4)
    assert across.gather(found.pairs, {}, most=20) == whole


def test_a_figure_takes_the_colours_of_the_page():
    svg = '<svg width="10pt"><path style="fill: #ffffff; stroke: #D55E00"/><g style="stroke: #123456"/></svg>'
    shown = inline(svg, "f0-", NASTY[0])
    assert "fill: var(--raised, #ffffff); stroke: var(--perturbed, #D55E00)" in shown
    assert "stroke: #123456" in shown
    assert "<script" not in shown


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_reach_the_contrast_that_readers_need(theme: str):
    """WCAG AA, 4.5 to 1, of every colour that text has on the grounds that it stands on."""
    sheet = (Path(examples.__file__).parent / "static" / "page.css").read_text(encoding="utf-8")
    light, dark = sheet.split("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", light if theme == "light" else dark))
    for ink in ("ink", "soft", "accent", "target", "original", "perturbed", "bad"):
        for ground in ("paper", "raised", "sunk"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
    for ground in ("gone", "new", "moved", "warn"):
        assert contrast(found["ink"], found[ground]) >= 4.5, ground


def contrast(one: str, other: str) -> float:
    """Of two colours, by WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
