"""export: the kept expressions as a data set with Ref-Adv-s's columns, JSON lines and Parquet."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from refadv_ablate.curate.annotation.items import Item
from refadv_ablate.curate.settings import Export
from refadv_ablate.data.forms.files import digest as file_digest
from refadv_ablate.data.negation import negated
from refadv_ablate.errors import UserError
from refadv_ablate.seeding import generator
from refadv_ablate.storage.jsonl import write_json, write_jsonl
from refadv_ablate.types import Json

PROMPTS = ("prompts", "judge_prompt", "compose_prompt")
"""Which words an expression was made with; the digests are those of provenance.json, which has the words."""


def split_of(sha256: str, splits: Mapping[str, float], seed: int) -> str:
    """The split of an image: by its content and the seed alone, so that no image is in two."""
    at = generator(seed, "split", sha256).random()
    bound = 0.0
    for name, share in splits.items():
        bound += share
        if at < bound:
            return name
    return list(splits)[-1]


def row(number: int, item: Item, file_name: str, split: str) -> dict[str, Json]:
    """Ref-Adv-s's columns, then ours: category, candidates, attributes, split."""
    scene = item.scene
    others = len(scene.boxes) - 1 + scene.left_out
    return {
        "row_idx": number,
        "image": f"images/{file_name}",
        "file_name": file_name,
        "normal_caption": item.expression,
        "solution": item.gold.as_list(),
        "width": scene.size[0],
        "height": scene.size[1],
        "image_source": scene.source,
        "human_authored": item.human,
        "use_negation": negated(item.expression),
        "distractors": str(others),
        "category": scene.category,
        "candidates": [{"box": box.as_list(), "category": scene.category} for box in scene.boxes],
        "attributes": {
            "item": item.id,
            "scene": scene.id,
            "method": str(item.made.get("method", "")),
            "polarity": str(item.made.get("polarity", "")),
            **{key: str(item.made.get(key, "")) for key in PROMPTS},
            "look_alike": scene.boxes[item.distractor - 1].as_list(),
        },
        "split": split,
    }


def export(
    kept: Sequence[Item], settings: Export, folder: Path, seed: int, provenance: Mapping[str, Json]
) -> dict[str, int]:
    """Writes folder/<split>/{samples.jsonl, images/, provenance.json} and folder/data/<split>-*.parquet.

    Built beside its place and moved there, so that a set is whole or absent. Returns rows by split.
    """
    if not kept:
        raise UserError("no expression is kept yet, so there is nothing to export: finish the stage verify")
    if folder.exists() and not settings.overwrite:
        raise UserError(f"{folder} is there already: add export.overwrite=true, or give export.to=")
    if folder.exists() and any(folder.iterdir()) and not list(folder.glob("*/provenance.json")):
        raise UserError(f"{folder} holds something else than an exported set, which is not overwritten")
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    counts = {}
    names = file_names(kept)
    try:
        for split in settings.shares:
            own = [i for i in kept if split_of(i.scene.sha256, settings.shares, seed) == split]
            if own:
                counts[split] = _write_split(own, names, split, part / split, provenance)
        (part / "README.md").write_text(card(counts, provenance), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
    except OSError as error:
        raise UserError(
            f"{folder} can't be written ({error.strerror or error}: {error.filename}); check space and rights"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return counts


def file_names(items: Sequence[Item]) -> dict[str, str]:
    """Image digest → file name: the image's own, made unique where two images share one."""
    names: dict[str, str] = {}
    for item in items:
        own = Path(item.scene.image)
        name = own.name
        if name in names.values() and names.get(item.scene.sha256) != name:
            name = f"{own.stem}-{item.scene.sha256[:8]}{own.suffix}"
        names.setdefault(item.scene.sha256, name)
    return names


def _write_split(
    items: Sequence[Item], names: Mapping[str, str], split: str, folder: Path, provenance: Mapping[str, Json]
) -> int:
    (folder / "images").mkdir(parents=True)
    for item in items:
        target = folder / "images" / names[item.scene.sha256]
        if not target.exists():
            shutil.copyfile(item.scene.file(), target)
            if file_digest(target) != item.scene.sha256:
                raise UserError(
                    f"{item.scene.file()} has changed since the stage prepare, so its boxes may be wrong: "
                    "run prepare again with another out="
                )
    rows = [row(n, item, names[item.scene.sha256], split) for n, item in enumerate(items)]
    write_jsonl(folder / "samples.jsonl", rows)
    write_parquet(rows, folder, folder.parent / "data" / f"{split}-00000-of-00001.parquet")
    write_json(folder / "provenance.json", provenance)
    return len(rows)


def write_parquet(rows: Sequence[Mapping[str, Any]], folder: Path, path: Path) -> None:
    """The rows with the bytes of their image files below `folder`, as the hub keeps such sets."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    floats = pa.list_(pa.float64())
    types: dict[str, Any] = {
        "row_idx": pa.int64(),
        "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        "file_name": pa.string(),
        "normal_caption": pa.string(),
        "solution": floats,
        "width": pa.int64(),
        "height": pa.int64(),
        "image_source": pa.string(),
        "human_authored": pa.bool_(),
        "use_negation": pa.bool_(),
        "distractors": pa.string(),
        "category": pa.string(),
        "candidates": pa.list_(pa.struct([("box", floats), ("category", pa.string())])),
        "attributes": pa.struct(
            [(k, pa.string()) for k in ("item", "scene", "method", "polarity", *PROMPTS)]
            + [("look_alike", floats)]
        ),
        "split": pa.string(),
    }
    features = {name: _feature(kind) for name, kind in types.items()} | {"image": {"_type": "Image"}}
    schema = pa.schema(
        list(types.items()), metadata={"huggingface": json.dumps({"info": {"features": features}})}
    )
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(rows), 100):  # images of one row group in memory at a time
            chunk = [
                {**r, "image": {"bytes": (folder / r["image"]).read_bytes(), "path": r["file_name"]}}
                for r in rows[start : start + 100]
            ]
            writer.write_table(pa.Table.from_pylist(chunk, schema=schema))


def _feature(kind: Any) -> Json:
    """A pyarrow type in the words of the `datasets` library."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return {"feature": _feature(kind.value_type), "_type": "List"}
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _feature(kind.field(i).type) for i in range(kind.num_fields)}
    dtype = {"double": "float64"}.get(str(kind), str(kind))
    return {"dtype": dtype, "_type": "Value"}


def card(counts: Mapping[str, int], provenance: Mapping[str, Json]) -> str:
    """A README for the set."""
    rows = "\n".join(f"| {split} | {n} |" for split, n in counts.items())
    facts = "\n".join(f"- {line}" for line in provenance.get("agreement", ()))
    return f"""# Referring expressions with hard distractors

Made with the curation pipeline of refadv-ablate {provenance.get("version", "")}. Columns are those of
Ref-Adv-s (`normal_caption` is the expression, `solution` the referent's box, x1 y1 x2 y2 in pixels of the
stored image), and `category`, `candidates`, `attributes`, `split`. Images keep their own licences.

| split | expressions |
|---|---|
{rows}

{facts}

`data/` has the same rows as Parquet with the images inside.

Ask a model: `python -m refadv_ablate data=ref_adv_s data.path=<folder of a split> perturb=bow model=…`
"""
