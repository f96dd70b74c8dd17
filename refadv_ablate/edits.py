"""Edits of an image as values: what was done to the pixels can be read, stored, compared and done again.

An edited image exists as its source and the list of edits until it is loaded; nothing is kept on disk.
Its digest is that of the source, the edits and `VERSION`, so that answers to it have keys of their own,
and edits read back from a record give the same digest and the same pixels. Frame, as everywhere: pixels,
origin at the top left corner.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from refadv_ablate.boxes import SAME_FRAME, Box, BoxMap, Quad, Size
from refadv_ablate.seeding import digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    from refadv_ablate.types import ImageRef, Json

    Pixels = NDArray[np.uint8]

VERSION = 1
"""Raised whenever the same edits of the same source would give other pixels."""

Ink = Literal["surround", "gray", "noise"]
"""What covers a region: the median colour around it, mid-gray, or noise of every colour."""
GRAY = 128


class Edit:
    """Base of edits: frozen dataclasses of plain fields. The defaults leave size and frame as they are."""

    __slots__ = ()

    keeps_source: ClassVar[bool] = True
    """False where no pixel of the source is left: images of one size are then the same image."""

    def size(self, size: Size) -> Size:
        """(width, height) of the result for a source of this (width, height)."""
        return size

    def frame(self, size: Size) -> BoxMap:
        """From the source, of this (width, height), to the result."""
        return SAME_FRAME

    def apply(self, image: Image.Image) -> Image.Image:
        """RGB → RGB; the given image is not changed."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Mirror(Edit):
    """Left and right change places."""

    def frame(self, size: Size) -> BoxMap:
        """x → width − x."""
        return BoxMap.mirror(size[0])

    def apply(self, image: Image.Image) -> Image.Image:
        """Twice is the identity."""
        from PIL import Image

        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


@dataclass(frozen=True, slots=True)
class Blank(Edit):
    """A picture of the same size that shows nothing; `seed` is of the noise."""

    keeps_source: ClassVar[bool] = False

    ink: Literal["gray", "noise"] = "gray"
    seed: int = 0

    def apply(self, image: Image.Image) -> Image.Image:
        """Nothing of the given image but its size is used."""
        from PIL import Image

        if self.ink == "gray":
            return Image.new("RGB", image.size, (GRAY, GRAY, GRAY))
        return Image.fromarray(_noise((image.height, image.width), self.seed))


@dataclass(frozen=True, slots=True)
class Fill(Edit):
    """Boxes covered, each with its own ink; a pixel that a box touches is covered. `seed` is of the noise."""

    boxes: tuple[Quad, ...]
    ink: Ink = "surround"
    seed: int = 0

    def apply(self, image: Image.Image) -> Image.Image:
        """Pixels outside the boxes stay as they are; the colours around come from the source."""
        import numpy as np
        from PIL import Image

        source = np.asarray(image)
        pixels = source.copy()
        for index, box in enumerate(self.boxes):
            rows, columns = touched(box, image.size)
            shape = pixels[rows, columns].shape[:2]
            if 0 in shape:
                continue
            if self.ink == "noise":
                pixels[rows, columns] = _noise(shape, self.seed + index)
            else:
                pixels[rows, columns] = GRAY if self.ink == "gray" else around(source, rows, columns)
        return Image.fromarray(pixels)


@dataclass(frozen=True, slots=True)
class Grayscale(Edit):
    """Luminance alone (ITU-R BT.601), in three equal channels."""

    def apply(self, image: Image.Image) -> Image.Image:
        """Twice is once."""
        return image.convert("L").convert("RGB")


@dataclass(frozen=True, slots=True)
class Jpeg(Edit):
    """Compressed and read again; quality 1…95, Pillow's tables and chroma subsampling."""

    quality: int

    def apply(self, image: Image.Image) -> Image.Image:
        """Blocks and ringing of this quality."""
        from PIL import Image

        buffer = io.BytesIO()
        image.save(buffer, format="JPEG", quality=self.quality, exif=b"", icc_profile=None)
        with Image.open(buffer) as again:
            return again.convert("RGB")


@dataclass(frozen=True, slots=True)
class Blur(Edit):
    """Gaussian blur; `share`: its standard deviation as a fraction of the picture's shorter side."""

    share: float

    def apply(self, image: Image.Image) -> Image.Image:
        """Pillow's approximation by three box filters."""
        from PIL import ImageFilter

        return image.filter(ImageFilter.GaussianBlur(self.share * min(image.size)))


@dataclass(frozen=True, slots=True)
class Noise(Edit):
    """Gaussian noise of standard deviation `sigma` (of 255) on each channel of each pixel."""

    sigma: float
    seed: int = 0

    def apply(self, image: Image.Image) -> Image.Image:
        """Rounded and clipped to 0…255."""
        import numpy as np
        from PIL import Image

        pixels = np.asarray(image, np.float64)
        noise = np.random.Generator(np.random.PCG64(self.seed)).normal(0.0, self.sigma, pixels.shape)
        return Image.fromarray(np.clip(np.rint(pixels + noise), 0, 255).astype(np.uint8))


@dataclass(frozen=True, slots=True)
class Scale(Edit):
    """Both sides times `factor`, rounded to whole pixels and at least one."""

    factor: float

    def size(self, size: Size) -> Size:
        """(width, height)."""
        return max(1, round(size[0] * self.factor)), max(1, round(size[1] * self.factor))

    def frame(self, size: Size) -> BoxMap:
        """Each side by the factor that rounding left."""
        return BoxMap.between(size, self.size(size))

    def apply(self, image: Image.Image) -> Image.Image:
        """Bicubic, with antialiasing."""
        from PIL import Image

        return image.resize(self.size(image.size), Image.Resampling.BICUBIC)


@dataclass(frozen=True, slots=True)
class Pad(Edit):
    """Bands of this many pixels around the picture, in the median colour of its border."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0

    def size(self, size: Size) -> Size:
        """(width, height)."""
        return size[0] + self.left + self.right, size[1] + self.top + self.bottom

    def frame(self, size: Size) -> BoxMap:
        """Moved by the bands on the left and at the top."""
        return BoxMap(dx=self.left, dy=self.top)

    def apply(self, image: Image.Image) -> Image.Image:
        """The source lies within, pixel for pixel."""
        import numpy as np
        from PIL import Image

        pixels = np.asarray(image)
        border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        canvas = Image.new("RGB", self.size(image.size), _median(border))
        canvas.paste(image, (self.left, self.top))
        return canvas


# ── pixels ──────────────────────────────────────────────────────────────────────────────────────


def touched(box: Quad, size: Size) -> tuple[slice, slice]:
    """Rows and columns of the pixels that a box touches, within a picture of this (width, height)."""
    x1, y1, x2, y2 = box
    rows = slice(max(0, int(y1 // 1)), min(size[1], int(-(-y2 // 1))))
    return rows, slice(max(0, int(x1 // 1)), min(size[0], int(-(-x2 // 1))))


def around(pixels: Pixels, rows: slice, columns: slice) -> tuple[int, int, int]:
    """The median colour of the frame of two pixels around a region; mid-gray around the whole picture."""
    import numpy as np

    top, left = max(0, rows.start - 2), max(0, columns.start - 2)
    ring = np.ones(pixels[top : rows.stop + 2, left : columns.stop + 2].shape[:2], bool)
    ring[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left] = False
    found = pixels[top : rows.stop + 2, left : columns.stop + 2][ring]
    return _median(found) if len(found) else (GRAY, GRAY, GRAY)


def _median(colours: Pixels) -> tuple[int, int, int]:
    import numpy as np

    red, green, blue = np.median(colours, axis=0).astype(int).tolist()
    return red, green, blue


def _noise(shape: tuple[int, int], seed: int) -> Pixels:
    """Every colour equally likely in every pixel; (rows, columns, 3)."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(seed)).integers(0, 256, (*shape, 3), np.uint8)


# ── an edited image ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Edited:
    """An image after edits, one after another; the same image as its source for the inference."""

    of: ImageRef
    edits: tuple[Edit, ...]

    @property
    def key(self) -> str:
        """The key of the source."""
        return self.of.key

    @property
    def is_empty(self) -> bool:
        """Whether no pixel of the source is left."""
        return any(not edit.keeps_source for edit in self.edits)

    def size(self) -> Size:
        """(width, height) after the edits, without decoding."""
        size = self.of.size()
        for edit in self.edits:
            size = edit.size(size)
        return size

    def frame(self) -> BoxMap:
        """From the source to the result."""
        found, size = SAME_FRAME, self.of.size()
        for edit in self.edits:
            found, size = found.then(edit.frame(size)), edit.size(size)
        return found

    def load(self) -> Image.Image:
        """RGB. Raises ImageUnreadable where the source can't be read and is needed."""
        if self.edits and not self.edits[0].keeps_source:
            from PIL import Image

            image = Image.new("RGB", self.of.size())
        else:
            image = self.of.load()
        for edit in self.edits:
            image = edit.apply(image)
        return image

    def digest(self) -> str:
        """SHA-256 over the source's digest (its size alone where no pixel of it is left) and the edits."""
        blank = bool(self.edits) and not self.edits[0].keeps_source
        source: Json = list(self.of.size()) if blank else self.of.digest()
        return digest("edited", VERSION, source, to_json(self.edits))


def edited(image: ImageRef, *edits: Edit) -> ImageRef:
    """The image after further edits; itself where there are none."""
    if not edits:
        return image
    if isinstance(image, Edited):
        return Edited(image.of, (*image.edits, *edits))
    return Edited(image, edits)


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────

_KINDS: Mapping[str, type[Edit]] = {
    kind.__name__.lower(): kind for kind in (Mirror, Blank, Fill, Grayscale, Jpeg, Blur, Noise, Scale, Pad)
}


def to_json(edits: Sequence[Edit]) -> list[dict[str, Json]]:
    """Each edit as its name under `edit` and its fields."""
    return [{"edit": type(edit).__name__.lower(), **asdict(edit)} for edit in edits]  # type: ignore[call-overload]  # every edit is a dataclass


def from_json(rows: Sequence[Mapping[str, Json]]) -> tuple[Edit, ...]:
    """The edits again. Raises ValueError for what is none."""
    return tuple(_edit(row) for row in rows)


def _edit(row: Mapping[str, Json]) -> Edit:
    kind = _KINDS.get(row.get("edit", "")) if isinstance(row, Mapping) else None
    if kind is None:
        raise ValueError(f"{row!r} is no edit of an image; the edits are {', '.join(_KINDS)}")
    given: dict[str, Any] = {key: value for key, value in row.items() if key != "edit"}
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # as above
    if not given.keys() <= known:
        raise ValueError(f"the edit {row['edit']!r} has no {', '.join(sorted(given.keys() - known))}")
    if "boxes" in given:
        given["boxes"] = tuple(tuple(Box(*box).as_list()) for box in given["boxes"])
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(f"the edit {row['edit']!r} can't be read: {error}") from error
