"""A set of annotations as the pipeline sees it: found, read, checked row by row, turned into examples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from refadv_ablate.data.conventions import contradiction, numbers
from refadv_ablate.data.examining import Examiner, Finding
from refadv_ablate.data.expressions import unusable, visible
from refadv_ablate.data.forms.columns import naming
from refadv_ablate.data.forms.files import SUFFIXES, digest, first_record
from refadv_ablate.data.forms.hub import Hub
from refadv_ablate.data.forms.instances import load_instances
from refadv_ablate.data.forms.rows import KINDS, Form, Place, Row
from refadv_ablate.data.images import PIXEL_LIMIT
from refadv_ablate.data.naming import UNKNOWN, Names, full_name, last, names_of
from refadv_ablate.data.opening import ImageFolders, image_roots
from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Example, Json, NoTarget

OF_IMAGES = frozenset({"missing_image", "broken_image", "size_mismatch", "transposed_size", "outside_image"})
"""Kinds of bad rows that another state of the image files may mend."""

SAMPLE = 200
"""Rows at the start of a set on which its box convention is checked."""


@dataclass(frozen=True)
class Annotations:
    """A referring-expression set in any of its published forms.

    path: a folder, one of the set's files, or a hub id. image_root: where images lie; null looks beside
    the annotations (opening.FOLDERS). instances: instance annotations to join where the form has none
    (category, candidates, distractors). form: "auto" or one of `forms`. images=absent leaves them out.
    negation=rule sets the flag by cue rule (negation.py) where the set has none.
    grid: what boxes were made on where images have an EXIF orientation: the stored pixels, or the view that
    is shown; null: the stored pixels, with a warning. exclude: kinds of bad rows to leave out; each is
    counted in `excluded`. get: how to obtain the set.
    """

    name: str
    path: str
    forms: Mapping[str, Form]
    split: str = ""
    split_by: str = ""
    form: str = "auto"
    image_root: str | None = None
    images: Literal["files", "absent"] = "files"
    instances: str | list[str] | None = None
    exclude: Sequence[str] = ()
    follow_links: bool = False
    pixel_limit: int = PIXEL_LIMIT
    revision: str | None = None
    negation: Literal["stored", "rule"] = "stored"
    grid: Literal["stored", "shown"] | None = None
    get: str = ""
    _counts: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _notes: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _left: str | None = field(default=None, init=False, repr=False, compare=False)
    _looked_through: dict[str, Names] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for kind in self.exclude:
            if kind not in KINDS:
                raise UserError(f"data.exclude has no kind {kind!r}; {nearest(str(kind), KINDS)}")
        if self.form != "auto" and self.form not in self.forms:
            raise UserError(
                f"{self.name} has no form {self.form!r}; {nearest(self.form, ['auto', *self.forms])}"
            )

    @property
    def excluded(self) -> Mapping[str, int]:
        """Kind → rows left out by the latest iteration."""
        return dict(self._counts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the latest iteration noticed that a reader of its numbers should know."""
        return tuple(self._notes[kind] for kind in sorted(self._notes))

    @property
    def place(self) -> Place:
        """Where the set is looked for."""
        return Place(Path(self.path).expanduser(), self.split, self.split_by, self.revision)

    def __iter__(self) -> Iterator[Example]:
        """Examples in stored order. Raises UserError at the first bad row that isn't excluded."""
        self._counts.clear()
        repeats = "duplicate_expression" in self.exclude
        for example, finding in self.examined("broken_image" in self.exclude, repeats):
            if finding is not None and finding.kind in self.exclude:
                self._counts[finding.kind] = self._counts.get(finding.kind, 0) + 1
            elif finding is not None and finding.stops:
                where = finding.id if finding.id.startswith(self.name) else f"{self.name}: {finding.id}"
                raise UserError(
                    f"{where}: {finding.detail}; mend the data, or leave such rows out, "
                    f"counted, with data.exclude=[{finding.kind}]"
                )
            elif example is not None:
                yield self._flagged(example)

    def _flagged(self, example: Example) -> Example:
        if self.negation == "stored" or example.negation is not None:
            return example
        from refadv_ablate.data.negation import negated

        return replace(example, negation=negated(example.expression))

    def examined(
        self, decode: bool = False, repeats: bool = True
    ) -> Iterator[tuple[Example | None, Finding | None]]:
        """Each row as an example, a finding, or both; `exclude` plays no part. decode: open every image.

        repeats: find expressions that are said of an image again.

        Raises UserError for a set that can't be read, and for one whose boxes contradict their convention.
        """
        self._notes.clear()
        label, form = self.chosen()
        examiner = self._examiner(form, decode, repeats)
        rows = form.rows(self.place)
        start = list(islice(rows, SAMPLE))
        if not start:
            raise UserError(f"{self.name} has no rows in {self.path} (form {label}); check data.split")
        self._check_convention(label, form, examiner, start)
        for row in chain(start, rows):
            yield examiner.examine(row)

    def no_targets(self) -> Iterator[NoTarget]:
        """Expressions of the set that nothing on their image matches; those that can't be asked are left out.

        A negative about a picture that was made for it is left out too: that is no picture of the set.
        """
        _, form = self.chosen()
        own = getattr(form, "no_targets", None)
        names = self._names(form)
        for row in own(self.place) if own else form.rows(self.place):
            made = row.attributes.get("negative_cate") == "image"
            if row.targets == 0 and not made and visible(row.expression) and not unusable(row.expression):
                of, kind = (row.attributes.get(key) for key in ("positive_id", "negative_type"))
                key = names.key(row.image_key or full_name(str(row.image)))
                yield NoTarget(key, row.expression, str(of or ""), str(kind or ""))

    def chosen(self) -> tuple[str, Form]:
        """Label and reader of the form that is read. Raises UserError where it isn't clear or not there."""
        label = self.form if self.form != "auto" else self._detected()
        form = self.forms[label]
        if refusal := form.refusal(self.place):
            raise UserError(f"{self.name} can't be read from the form {label}: {refusal}")
        if self.form != "auto" and not isinstance(form, Hub) and not form.found(self.place):
            raise UserError(self._absence([label]))
        return label, form

    def fingerprint(self) -> Mapping[str, Json]:
        """Set, split and its provenance, form, box convention, digests of files, what is excluded."""
        label, form = self.chosen()
        stated: dict[str, Json] = {
            "name": self.name,
            "split": self.split,
            "split_by": self.split_by,
            "form": label,
            "boxes": str(form.boxes),
            "files": dict(form.fingerprint(self.place)),
            "exclude": sorted(self.exclude),
        }
        if self.instances:
            files = [digest(path) for path in self._instance_files()]
            stated["instances"] = files[0] if len(files) == 1 else files
        if self.negation == "rule":
            stated["negation"] = "rule"
        if self.grid == "shown":
            stated["grid"] = "shown"
        if self.images == "absent":
            stated["images"] = "absent"
        if self.images == "files" and not OF_IMAGES.isdisjoint(self.exclude):
            stated["left_out"] = self._left_out()
        return stated

    def _left_out(self) -> Json:
        """What exclusion leaves out now: it depends on the images, so images that arrive make another set."""
        if self._left is None:
            found = hashlib.sha256()
            for _, finding in self.examined(decode="broken_image" in self.exclude):
                if finding is not None and finding.kind in self.exclude:
                    found.update(f"{finding.kind} {finding.id}\n".encode("utf-8", "surrogatepass"))
            object.__setattr__(self, "_left", found.hexdigest()[:16])
        return self._left

    def _examiner(self, form: Form, decode: bool, repeats: bool) -> Examiner:
        absent = self.images == "absent" or (not form.has_images and self.image_root is None)
        why = "data.images=absent leaves images out" if form.has_images else "its table has no images"
        roots = image_roots(self.place.folder, self.image_root)
        names = self._names(form)
        folders = (
            None if absent else ImageFolders(roots, self.pixel_limit, self.follow_links, names, self._notes)
        )
        index = load_instances(self._instance_files(), self._stems(form)) if self.instances else None
        return Examiner(form.boxes, folders, why, index, decode, names, self.grid, self._notes, repeats)

    def _instance_files(self) -> list[Path]:
        given = [self.instances] if isinstance(self.instances, str) else list(self.instances or ())
        return [Path(path).expanduser() for path in given]

    def _stems(self, form: Form) -> frozenset[str] | None:
        """Names of the set's images without folder and suffix; None where a hub's rows would be streamed."""
        if isinstance(form, Hub) or not any(path.suffix == ".csv" for path in self._instance_files()):
            return None
        return frozenset(last(full).partition(".")[0] for full in _full_names(form.rows(self.place)))

    def _names(self, form: Form) -> Names:
        """What the image names of the whole set say; a hub's rows are not streamed twice for it."""
        if isinstance(form, Hub):
            return UNKNOWN
        files = repr(form.fingerprint(self.place)) + self.split
        if files not in self._looked_through:
            self._looked_through[files] = names_of(_full_names(form.rows(self.place)))
        return self._looked_through[files]

    def _check_convention(self, label: str, form: Form, examiner: Examiner, rows: Sequence[Row]) -> None:
        evidence = []
        for row in rows:
            quad = numbers(row.box)
            size = examiner.size(row) if quad else None
            if quad and size:
                evidence.append((quad, size))
        if finding := contradiction(form.boxes, evidence):
            if turned := sum(examiner.turned(row) for row in rows):
                finding += (
                    f"; {turned} of these images have an EXIF orientation: if the boxes were made on the "
                    "view that it shows, declare data.grid=shown"
                )
            raise UserError(f"{self.name} (form {label}) is refused: {finding}")

    def _detected(self) -> str:
        place = self.place
        if not place.path.exists():
            for label, form in self.forms.items():
                if isinstance(form, Hub) and form.id == self.path:
                    return label
        found = [label for label, form in self.forms.items() if form.found(place)]
        if len(found) > 1 and place.path.is_file():
            found = self._told_by_name(found)
        if len(found) > 1:
            ways = " or ".join(f"data.form={label}" for label in found)
            what = "can be read" if place.path.is_file() else f"holds {self.name}"
            raise UserError(f"{self.path} {what} in several forms; say {ways}")
        if not found:
            raise UserError(self._absence(list(self.forms)))
        return found[0]

    def _told_by_name(self, labels: Sequence[str]) -> list[str]:
        """Of the forms that a named file can be read in those whose files are called so, if there are any."""

        def called(label: str) -> bool:
            patterns = getattr(self.forms[label], "files", ())
            return any(self.place.path.match(pattern.replace("{split}", "*")) for pattern in patterns)

        return [label for label in labels if called(label)] or list(labels)

    def _absence(self, labels: Sequence[str]) -> str:
        path, place = self.path, self.place
        command = f"; get it with: {self.get.replace('{path}', path)}" if self.get else ""
        for label in labels:
            if lacks := self.forms[label].lacks(place):
                half = f"{self.name} is only half at {path}: {', '.join(lacks)} is missing (form {label})"
                return half + command
        if place.path.is_file():
            if place.path.stat().st_size == 0:
                return f"{path} is empty"
            columns = list(map(str, first_record(place.path))) if place.path.suffix in SUFFIXES else []
            has = f"; its records have: {', '.join(columns)}; {naming(columns)}" if columns else ""
            return f"{path} has none of the forms that are known here ({', '.join(labels)}){has}"
        streams = [
            f"data.form={label} streams {form.id}"
            for label, form in self.forms.items()
            if isinstance(form, Hub)
        ]
        what = (
            "is not there"
            if not place.path.exists()
            else f"holds no file of {self.name} ({', '.join(labels)})"
        )
        return "; ".join([f"{path} {what}: set data.path" + command, *streams])


def _full_names(rows: Iterator[Row]) -> Iterator[str]:
    """Names of images, up to the first row that can't be read: the iteration proper says what is wrong."""
    try:
        for row in rows:
            if isinstance(row.image, bytes):
                return  # the bytes tell images apart
            yield row.image_key or full_name(row.image)
    except UserError:
        return
