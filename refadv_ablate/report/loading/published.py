"""The numbers of the paper, shipped with the package, and which of our names they belong to."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

TABLES = {
    "table1": "table1_statistics.csv",
    "table2": "table2_fixed_prompt.csv",
    "table3": "table3_bag_of_words.csv",
    "table4": "table4_one_descriptor_deletion.csv",
    "table6": "table6_ref_adv_s.csv",
    "table7": "table7_ref_adv_main.csv",
}
DATASETS: Mapping[str, str] = {
    "refcoco": "RefCOCO",
    "refcoco_plus": "RefCOCO+",
    "refcocog": "RefCOCOg",
    "ref_adv": "Ref-Adv",
    "ref_adv_s": "Ref-Adv-s",
}
"""Data sets of the paper in its order, by the key that its tables use."""


_MEANT = {"internvl37b": "internvl38b"}
"""Table 7 says InternVL-3-7B; the checkpoint of that size is InternVL3-8B."""


@cache
def rows(table: str) -> tuple[Mapping[str, str], ...]:
    """The published rows of table1 … table7, as text."""
    text = (files("refadv_ablate.report.loading") / "published_tables" / TABLES[table]).read_text(
        encoding="utf-8"
    )
    return tuple(csv.DictReader(text.splitlines()))


def value(row: Mapping[str, str] | None, key: str) -> float | None:
    """A published percentage as a fraction; None where the table has none."""
    text = (row or {}).get(key, "").strip()
    return round(float(text) / 100, 6) if text else None


def dataset_key(name: str) -> str:
    """refcoco_val_unc → refcoco, RefCOCO+ → refcoco_plus; a name of no published set as it is."""
    plain = re.sub(r"[^a-z0-9]+", "", name.lower().replace("+", "plus"))
    for key in ("refadvs", "refadv", "refcocog", "refcocoplus", "refcoco"):
        if plain.startswith(key):
            return {"refadvs": "ref_adv_s", "refadv": "ref_adv", "refcocoplus": "refcoco_plus"}.get(key, key)
    return name


def model_key(name: str) -> str:
    """What is left of a model's name when spelling is: OpenGVLab/InternVL3-14B-hf → internvl314b.

    "Instruct" goes, since the paper's tables differ in saying it; "Thinking" and sizes stay.
    """
    last = name.lower().rpartition("/")[2]
    last = re.sub(r"(?<=\d)[._p](?=\d)", "", last)
    plain = re.sub(r"[^a-z0-9]+|instruct|(?<![a-z])hf(?![a-z])", "", last)
    return _MEANT.get(plain, plain)


def find(table: str, names: tuple[str, ...], **equal: str) -> Mapping[str, str] | None:
    """The published row of a model known under any of `names`; `equal` restricts other columns."""
    keys = {model_key(name) for name in names if name}
    for row in rows(table):
        full = f"{row['family']}-{row['model']}" if "family" in row else row["model"]
        if model_key(full) in keys and all(row[column] == text for column, text in equal.items()):
            return row
    return None
