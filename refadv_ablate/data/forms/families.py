"""The published forms of each family of sets: file names, columns, what is known against a split."""

from __future__ import annotations

from dataclasses import replace

from refadv_ablate.data.conventions import Convention, Order, Unit
from refadv_ablate.data.forms import columns
from refadv_ablate.data.forms.captions import CaptionedCoco
from refadv_ablate.data.forms.columns import Columns
from refadv_ablate.data.forms.hub import Hub
from refadv_ablate.data.forms.refer import ReferFiles
from refadv_ablate.data.forms.rows import Form
from refadv_ablate.data.forms.tables import Table


def refcoco_forms(
    stem: str,
    hub: str,
    split_by: str = "unc",
    vlm_r1: str | None = None,
    mixed: dict[str, str] | None = None,
) -> dict[str, Form]:
    """RefCOCO, RefCOCO+ and RefCOCOg: the forms differ in file names alone.

    stem: refcoco, refcoco+ or refcocog. split_by: whose splits the derived files follow (unc; umd for
    RefCOCOg). vlm_r1: the stem of VLM-R1's files. mixed: hub split → what is known against it.
    """
    return {
        "unc": ReferFiles(
            refs=("refs({split_by}).p", f"{stem}/refs({{split_by}}).p"),
            instances=("instances.json",),
        ),
        "mdetr": CaptionedCoco(
            files=(f"finetune_{stem}_{{split}}.json", f"OpenSource/finetune_{stem}_{{split}}.json"),
            split_by=split_by,
        ),
        "qwen": Table(columns.QWEN, (f"{stem}_{{split}}.jsonl",), split_by),
        "shikra": Table(columns.SHIKRA, (f"REC_{stem}_{split_by}_{{split}}.jsonl",), split_by),
        "vlm_r1": Table(
            columns.VLM_R1,
            (f"{vlm_r1 or stem}_{{split}}.json", f"rec_jsons_processed/{vlm_r1 or stem}_{{split}}.json"),
            split_by,
        ),
        **hub_forms(hub, columns.LMMS, split_by, mixed),
    }


def hub_forms(
    hub: str,
    columns: Columns,
    split_by: str = "",
    mixed: dict[str, str] | None = None,
    split: str = "{split}",
    files: tuple[str, ...] = ("data/{split}-*.parquet", "{split}-*.parquet"),
) -> dict[str, Form]:
    """A hub data set, streamed or downloaded: the same rows, so the same splits are refused."""
    filled = tuple(pattern.replace("{split}", split) for pattern in files)
    return {
        "parquet": Table(columns, filled, split_by, mixed),
        "hub": Hub(hub, columns, split, split_by, mixed),
    }


def ref_adv_forms(hub: str | None) -> dict[str, Form]:
    """Ref-Adv and Ref-Adv-s: a folder of rows and images, the hub's one split, or published predictions."""
    on_hub = hub_forms(hub or "", columns.REF_ADV, split="train")
    if hub is None:
        del on_hub["hub"]
    return {
        "folder": Table(columns.REF_ADV, ("samples.jsonl", "*.jsonl", "*.json")),
        "predictions": Table(columns.REF_ADV_PREDICTIONS, ("*_predictions.tsv", "*_predictions.jsonl")),
        **on_hub,
    }


def ref_l4_forms(hub: str) -> dict[str, Form]:
    """Ref-L4: one Parquet file a split, images in an archive beside it."""
    return hub_forms(hub, columns.REF_L4, files=("ref-l4-{split}.parquet",))


def finecops_forms() -> dict[str, Form]:
    """FineCops-Ref in the COCO-shaped form its authors recommend.

    The file of all expressions holds the negatives too; each names the positive that it was made from.
    """
    keep = ("id", "level", "negative_type", "negative_level", "negative_cate", "positive_id", "tuple_type")
    names = ("{split}_expression_%s_coco_format.json", "annotations/{split}_expression_%s_coco_format.json")
    positive, every = (tuple(name % which for name in names) for which in ("pos", "all"))
    return {
        "coco": CaptionedCoco(
            files=(*positive, *every),
            keep=keep,
            category_names=False,
            negatives=every,
            negative="negative_type",
        )
    }


def grefcoco_forms() -> dict[str, Form]:
    """gRefCOCO, of which only expressions with exactly one target are a REC set."""
    refs = ("grefs({split_by}).json", "grefs({split_by}).p")
    return {
        "refs": ReferFiles(refs=(*refs, *(f"grefcoco/{name}" for name in refs))),
        "mdetr": CaptionedCoco(files=("finetune_grefcoco_{split}.json",), split_by="unc"),
    }


def own_forms(
    image: str = "image",
    expression: str = "expression",
    box: str = "box",
    order: Order = "xyxy",
    unit: Unit = "pixels",
) -> dict[str, Form]:
    """One's own file with its column names and box convention, or any published table of rows."""
    own = replace(columns.OWN, image=(image,), expression=expression, box=box, boxes=Convention(order, unit))
    published = {
        "qwen": columns.QWEN,
        "shikra": columns.SHIKRA,
        "vlm_r1": columns.VLM_R1,
        "ref_adv": columns.REF_ADV,
        "predictions": columns.REF_ADV_PREDICTIONS,
    }
    files = ("*.jsonl", "*.json", "*.tsv", "*.csv", "*.parquet")
    return {"own": Table(own, files), **{label: Table(one) for label, one in published.items()}}
