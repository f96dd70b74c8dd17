"""RefCOCO, RefCOCO+, RefCOCOg and gRefCOCO as their authors publish them: refs and instances.

Files: refs(unc).p, refs(umd).p, refs(google).p (lichengunc/refer) or grefs(unc).json/.p
(henghuiding/gRefCOCO), beside instances.json. Boxes are COCO's x y width height.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refadv_ablate.data.conventions import Convention
from refadv_ablate.data.forms.files import digest, read_json
from refadv_ablate.data.forms.instances import Annotated, InstanceIndex, load_instances
from refadv_ablate.data.forms.pickles import read_pickle
from refadv_ablate.data.forms.rows import Place, Row
from refadv_ablate.data.naming import full_name
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Json


@dataclass(frozen=True, slots=True)
class ReferFiles:
    """refs: alternatives for the file of refs, with {split_by}; instances: for the instance annotations."""

    refs: tuple[str, ...] = ("refs({split_by}).p",)
    instances: tuple[str, ...] = ("instances.json",)
    has_images: bool = True

    @property
    def boxes(self) -> Convention:
        """COCO's. Rows carry corners already: instances know their own convention."""
        return Convention("xyxy")

    def found(self, place: Place) -> tuple[Path, ...]:
        """The refs and the instances, where both are there."""
        refs, instances = self._parts(place)
        return (*refs, *instances) if refs and instances else ()

    def lacks(self, place: Place) -> tuple[str, ...]:
        """What is missing where the other half is there."""
        refs, instances = self._parts(place)
        if bool(refs) == bool(instances):
            return ()
        missing = self.instances if refs else self.refs
        return (missing[0].replace("{split_by}", place.split_by),)

    def refusal(self, place: Place) -> str:
        """Nothing: refs name their splits, which `rows` checks."""
        return ""

    def fingerprint(self, place: Place) -> Mapping[str, Json]:
        """Digests of both files."""
        return {path.name: digest(path) for path in self.found(place)}

    def rows(self, place: Place) -> Iterator[Row]:
        """One row per sentence of the refs of the split."""
        (refs_path,), (instances_path,) = self._parts(place)
        refs = read_pickle(refs_path) if refs_path.suffix == ".p" else read_json(refs_path)
        if not isinstance(refs, list) or not all(isinstance(ref, dict) for ref in refs):
            raise UserError(f"{refs_path} holds no list of refs; get it again")
        splits = {str(ref.get("split")) for ref in refs}
        if place.split not in splits:
            raise UserError(f"{refs_path} has no split {place.split!r}; {nearest(place.split, splits)}")
        index = load_instances([instances_path])
        for ref in refs:
            if ref.get("split") == place.split:
                where = f"{refs_path.name}, ref {ref.get('ref_id')}"
                try:
                    yield from _rows(where, ref, index)
                except (KeyError, TypeError, AttributeError) as error:
                    raise UserError(f"{where} is no ref ({type(error).__name__}: {error})") from error

    def _parts(self, place: Place) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        named = place.path.is_file()
        if named and not place.path.name.startswith(("refs(", "grefs(")):
            return (), ()
        refs = (place.path,) if named else place.first(self.refs)
        beside = Place(refs[0].parent, place.split, place.split_by) if refs else place
        return refs, beside.first(self.instances)


def _rows(where: str, ref: Mapping[str, Any], index: InstanceIndex) -> Iterator[Row]:
    image = index.by_image.get(ref["image_id"])
    if image is None:
        raise UserError(
            f"{where} is about image {ref['image_id']}, which {index.path} lacks: the two files don't belong "
            "together"
        )
    ids = ref["ann_id"] if isinstance(ref["ann_id"], list) else [ref["ann_id"]]
    ids = [] if ids in ([-1], [None]) else ids
    sentences = ref["sentences"]
    common = _Referent(where, image, ids, index)
    if not sentences:
        yield common.row("", -1, ref["split"])
    for sentence in sentences:
        yield common.row(sentence["sent"], len(ids), ref["split"])


@dataclass(frozen=True, slots=True)
class _Referent:
    where: str
    image: Annotated
    ids: list[int]
    index: InstanceIndex

    def row(self, text: str, targets: int, split: str) -> Row:
        box: list[float] = []
        instance = None
        if len(self.ids) == 1:
            instance = self.image.by_id(self.ids[0])
            if instance is None and self.ids[0] not in self.index.without_area:
                raise UserError(
                    f"{self.where} has annotation {self.ids[0]}, which {self.index.path} lacks there: "
                    "the two files don't belong together"
                )
            box = instance.candidate.box.as_list() if instance else []
        return Row(
            where=self.where,
            image=self.image.name,
            image_key=full_name(self.image.name),
            expression=text,
            box=box,
            size=self.image.size,
            targets=targets,
            category=instance.candidate.category if instance else None,
            ann_id=instance.id if instance else None,
            candidates=self.image.candidates(),
            distractors=self.image.distractors(instance) if instance else None,
            split=split,
        )
