"""A tab-separated file is read as it was written: with quoting or without, as its own quotes tell."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from refadv_ablate.data.forms.files import records
from refadv_ablate.data.forms.quoting import quoted_text
from refadv_ablate.report.loading import refadv_files

TEXTS = ['the sign that says "STOP"', 'the "blue" cup', "the red cup", 'the man with a 7" tablet']


def written(texts: list[str], quoting: int, quotechar: str = '"') -> str:
    out = io.StringIO()
    rows = csv.writer(out, delimiter="\t", quoting=quoting, quotechar=quotechar)  # type: ignore[arg-type]
    rows.writerow(["id", "expression", "box"])
    rows.writerows([n, text, "[1, 2, 3, 4]"] for n, text in enumerate(texts))
    return out.getvalue()


def bare(texts: list[str]) -> str:
    return "id\texpression\tbox\n" + "".join(f"{n}\t{text}\t[1, 2, 3, 4]\n" for n, text in enumerate(texts))


LONE = ['"left one', 'left "one', 'the 7" tablet', '"stop"', 'left one"']
CASES = [
    (written(TEXTS, csv.QUOTE_MINIMAL), TEXTS),
    (written(TEXTS, csv.QUOTE_ALL), TEXTS),
    (written(TEXTS, csv.QUOTE_NONNUMERIC), TEXTS),
    (written(["two\nlines", "a\ttab", "plain"], csv.QUOTE_MINIMAL), ["two\nlines", "a\ttab", "plain"]),
    (written(["", "plain"], csv.QUOTE_ALL), ["", "plain"]),
    (bare(TEXTS), TEXTS),
    (bare(LONE), LONE),
    (bare(['"stop"', "red", "blue", "left"]), ['"stop"', "red", "blue", "left"]),  # a quotation, whole
    (bare(['"left one', 'the one at the end"', "x"]), ['"left one', 'the one at the end"', "x"]),
    (bare(['a "" pair', "x"]), ['a "" pair', "x"]),
    (bare(["'single'", "x"]), ["'single'", "x"]),
]


@pytest.mark.parametrize(("content", "texts"), CASES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_texts_are_as_they_were(tmp_path: Path, content: str, texts: list[str], end: str) -> None:
    path = tmp_path / "d.tsv"
    if "two\nlines" not in content:
        content = content.replace("\r\n", "\n").replace("\n", end)
    path.write_bytes(content.encode())
    assert [record["expression"] for _, record in records(path)] == texts


def test_the_same_rows_as_csv_and_tsv(shared: Path) -> None:
    (folder,) = (shared / "faults").glob("07*")
    tables = [[record for _, record in records(folder / name)] for name in ("d.csv", "d.tsv")]
    assert tables[0] == tables[1]
    assert tables[1][1]["expression"] == 'the "blue" cup'


def test_the_published_table_has_no_quoting(shared: Path) -> None:
    path = shared / "data" / "ref_adv_s_predictions.tsv"
    text = path.read_text(encoding="utf-8")
    assert not quoted_text(text)
    lines = text.splitlines()
    at = lines[0].split("\t").index("normal_caption")
    found = [record["normal_caption"] for _, record in records(path)]
    assert found == [line.split("\t")[at] for line in lines[1:]]
    assert any('"' in caption for caption in found)


def test_published_predictions_that_were_written_again_keep_their_captions(tmp_path: Path) -> None:
    rows = [["row_idx", "normal_caption", "gt_bbox_xyxy", "pred_box_xyxy_first", "first_iou"]]
    rows += [[str(n), text, "1,2,30,40", "1,2,30,40", "1.0"] for n, text in enumerate(TEXTS)]
    path = tmp_path / "x_predictions.tsv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows(rows)
    assert [row.record.expression for row in refadv_files.read_tsv(path)] == TEXTS
    assert refadv_files.first_line(path)["normal_caption"] == TEXTS[0]
