"""From a row to an example, and everything that is wrong with the row."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace

from refadv_ablate.boxes import Box, Quad, Size
from refadv_ablate.data.conventions import SLACK, Convention, numbers
from refadv_ablate.data.expressions import unusable, visible
from refadv_ablate.data.forms.instances import Annotated, InstanceIndex
from refadv_ablate.data.forms.rows import Kind, Row, shown
from refadv_ablate.data.images import AbsentImage, BytesImage, FileImage
from refadv_ablate.data.naming import UNKNOWN, Names
from refadv_ablate.data.opening import ImageFolders, image_of
from refadv_ablate.data.orientation import Grid, orientation_of, shown_size, to_stored
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.storage.remembered import Remembered
from refadv_ablate.types import Example, ImageRef


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a row. `id`: of the example where one can be made, else the row's place."""

    kind: Kind
    id: str
    image: str
    detail: str

    @property
    def stops(self) -> bool:
        """Whether a run stops at it unless its kind is excluded."""
        return self.kind != "duplicate_expression"


class _WrongRowError(Exception):
    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.kind: Kind = kind


@dataclass
class Examiner:
    """Makes examples of one iteration's rows, in order; remembers ids and expressions it has seen.

    decode: opens every image to the last pixel, which finds truncated files.
    """

    convention: Convention
    folders: ImageFolders | None
    why_absent: str = ""
    instances: InstanceIndex | None = None
    decode: bool = False
    names: Names = UNKNOWN
    grid: Grid | None = None
    notes: dict[str, str] = field(default_factory=dict)
    repeats: bool = True
    """Whether expressions that are said of an image again are found."""
    _ids: Remembered = field(default_factory=Remembered)
    _said: Remembered = field(default_factory=Remembered)
    unclear: int = 0
    """Examples for which the instance annotations hold no image of their name that is clearly theirs."""
    _decoded: dict[str, str] = field(default_factory=dict)
    _oriented: set[str] = field(default_factory=set)
    _pictures: dict[str, str] = field(default_factory=dict)

    def examine(self, row: Row) -> tuple[Example | None, Finding | None]:
        """The example, what is wrong, or both: a duplicate is an example all the same."""
        name = row.image_key or (row.image if isinstance(row.image, str) else row.where)
        where = f"{row.where} (id {row.id})" if row.id else row.where
        try:
            _check_targets(row)  # first: such a row's picture may be one that was made for it
            image = self._image(row)
            box = self._box(row, image)
            self._check_text(row)
            example = self._example(row, image, box)
        except _WrongRowError as wrong:
            return None, Finding(wrong.kind, where, name, str(wrong))
        except ImageUnreadable as error:
            return None, Finding("broken_image", where, name, str(error))
        return self._unique(row, example)

    def size(self, row: Row) -> Size | None:
        """The annotated size, else the stored one where the image can be opened."""
        if row.size:
            return row.size
        try:
            return self._size_of(row, self._open(row))
        except ImageUnreadable:
            return None

    def turned(self, row: Row) -> bool:
        """Whether the row's image has an orientation of which nothing says whether its boxes follow it."""
        try:
            image = self._open(row)
            return self.grid is None and orientation_of(image) > 1 and row.size is None
        except ImageUnreadable:
            return False

    def _size_of(self, row: Row, image: ImageRef) -> Size | None:
        """The size that the row's boxes refer to."""
        if row.size or isinstance(image, AbsentImage):
            return row.size
        return shown_size(image.size(), orientation_of(image)) if self.grid == "shown" else image.size()

    def _open(self, row: Row) -> ImageRef:
        key = self.names.key(row.image_key) if row.image_key else ""
        image = image_of(row.image, key, row.size, self.folders, self.why_absent)
        if isinstance(image, BytesImage) and key:
            digest = image.digest()
            if self._pictures.setdefault(key, digest) != digest:  # "image.png" in every row, say
                return replace(image, key=digest[:16])
        return image

    def _image(self, row: Row) -> ImageRef:
        image = self._open(row)
        if isinstance(image, AbsentImage):
            return image
        if isinstance(image, FileImage) and not image.path.is_file():
            roots = ", ".join(str(root) for root in self.folders.roots) if self.folders else ""
            raise _WrongRowError(
                "missing_image",
                f"image {row.image!r} is not under {roots or 'any image root'}; set data.image_root to the "
                "folder with the images, or data.images=absent where only the annotations are wanted",
            )
        stored, orientation = image.size(), orientation_of(image)
        expected = shown_size(stored, orientation) if self.grid == "shown" else stored
        if row.size and expected != row.size:
            self._wrong_size(row, row.size, orientation, stored)
        if orientation > 1 and self.grid is None and (row.size is None or orientation < 5):
            self._turned(image)
        if self.decode and image.key not in self._decoded:
            self._decoded[image.key] = _load(image)
        if broken := self._decoded.get(image.key):
            raise ImageUnreadable(broken)
        return image

    def _turned(self, image: ImageRef) -> None:
        self._oriented.add(image.key)
        self.notes["orientation"] = (
            f"{len(self._oriented)} images have an EXIF orientation, and nothing says whether their boxes "
            "were made on the view that it shows or on the stored pixels, as which they are taken; look at "
            "some of them and declare data.grid=shown or data.grid=stored"
        )

    def _wrong_size(self, row: Row, annotated: Size, turn: int, stored: Size) -> None:
        sizes = f"annotated as {annotated[0]} × {annotated[1]}, stored as {stored[0]} × {stored[1]}"
        if annotated == stored[::-1] and turn >= 5 and self.grid != "shown":
            raise _WrongRowError(
                "transposed_size",
                f"image {row.image_key!r} is {sizes} with EXIF orientation {turn}: the boxes were made on "
                "the rotated view, which data.grid=shown declares",
            )
        if annotated == stored[::-1]:
            raise _WrongRowError(
                "transposed_size",
                f"image {row.image_key!r} is {sizes}, and no EXIF orientation explains it: the file has "
                "width and height swapped, or another image lies here",
            )
        raise _WrongRowError(
            "size_mismatch", f"image {row.image_key!r} is {sizes}: its boxes refer to another image"
        )

    def _check_text(self, row: Row) -> None:
        if row.targets < 0:
            raise _WrongRowError("no_expressions", "the record has no expressions at all")
        if not visible(row.expression):
            raise _WrongRowError("empty_expression", "the expression is empty")
        if wrong := unusable(row.expression):
            raise _WrongRowError("broken_expression", wrong)

    def _box(self, row: Row, image: ImageRef) -> Box:
        size = self._size_of(row, image)
        quad = numbers(row.box)
        if quad is None or not all(math.isfinite(v) for v in quad):
            raise _WrongRowError("degenerate_box", f"box {shown(row.box)} is not four finite numbers")
        return self._stored(self._inside(quad, size), image)

    def _stored(self, box: Box, image: ImageRef) -> Box:
        """A box of the file on the stored pixel grid."""
        if self.grid != "shown" or isinstance(image, AbsentImage):
            return box
        turn = orientation_of(image)
        return box if turn == 1 else to_stored(box, turn, image.size())

    def _inside(self, quad: Quad, size: Size | None) -> Box:
        try:
            box = Box(*self.convention.corners(quad, size))
        except ValueError:
            raise _WrongRowError(
                "degenerate_box", f"box {list(quad)} as {self.convention} has no area"
            ) from None
        if size and not box.inside(size, SLACK):
            raise _WrongRowError(
                "outside_image",
                f"box {list(quad)} as {self.convention} lies outside its image of {size[0]} × {size[1]}",
            )
        return box

    def _example(self, row: Row, image: ImageRef, box: Box) -> Example:
        category, candidates, distractors = row.category, row.candidates, row.distractors
        if self.grid == "shown":
            candidates = tuple(replace(one, box=self._stored(one.box, image)) for one in candidates)
        annotated = self._annotated(row, image)
        if annotated is not None:
            if self.grid == "shown":
                annotated = annotated.mapped(lambda one: self._stored(one, image))
            target = annotated.at(box)
            candidates = candidates or annotated.candidates()
            if target is not None:
                category = target.candidate.category or category
                distractors = annotated.distractors(target) if distractors is None else distractors
        return Example(
            id=row.id or content_id(image.key, row.expression, box),
            image=image,
            expression=row.expression,
            target=box,
            category=category,
            candidates=candidates,
            distractors=distractors,
            negation=row.negation,
            source=row.source,
            split=row.split,
            attributes=row.attributes,
        )

    def _annotated(self, row: Row, image: ImageRef) -> Annotated | None:
        if self.instances is None or not row.image_key:
            return None
        size = self._size_of(row, image)
        found, unclear = self.instances.find(row.image_key, self.names, size)
        if unclear:
            self.unclear += 1
            self.notes["instances"] = (
                f"{self.unclear} examples have no candidates: {self.instances.path.name} holds images of "
                "their file name, but which of them is theirs isn't clear from folders and sizes"
            )
        return found

    def _unique(self, row: Row, example: Example) -> tuple[Example | None, Finding | None]:
        times = self._ids.add(example.id)
        finding = self._repeated(example, times) if self.repeats else None
        if times > 1 and row.id:
            return None, Finding(
                "duplicate_id", example.id, example.image.key, f"{row.where}: the id was used before"
            )
        if times > 1:  # an id made from the content: the same words for the same box again
            example = replace(example, id=f"{example.id}-{times}")
            finding = finding and Finding(finding.kind, example.id, finding.image, finding.detail)
        return example, finding

    def _repeated(self, example: Example, times: int) -> Finding | None:
        said = hashlib.blake2b(_bytes(f"{example.image.key}\0{example.expression}"), digest_size=12)
        first = self._said.setdefault(said.hexdigest(), example.id)
        if first == example.id and times == 1:
            return None
        return Finding(
            "duplicate_expression",
            example.id,
            example.image.key,
            f"{example.expression!r} is said of this image before (id {first})",
        )


def content_id(key: str, expression: str, box: Box) -> str:
    """An id that is the same in every form of a set: from image, words and box, in whole pixels.

    Forms differ in the last bits of x + width; values with two decimals never lie near the rounding edge.
    """
    corners = ",".join(str(math.floor(value + 0.4951)) for value in box.as_list())
    content = hashlib.sha256(_bytes(f"{key}\0{expression}\0{corners}")).hexdigest()
    return f"{key.rpartition('.')[0] or key}-{content[:10]}"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _check_targets(row: Row) -> None:
    if row.targets == 0:
        raise _WrongRowError("no_target", "the expression refers to nothing in the image")
    if row.targets > 1:
        raise _WrongRowError("multi_target", f"the expression refers to {row.targets} instances")


def _load(image: ImageRef) -> str:
    try:
        image.load()
    except ImageUnreadable as error:
        return str(error)
    return ""
