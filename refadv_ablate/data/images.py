"""Images: opened when they are needed, always RGB, always on the stored pixel grid.

The size that boxes refer to is the *stored* pixel grid: an EXIF orientation is not applied, because
COCO, OpenImages, GQA and every set built on them annotate what a plain decoder gives. For a set made on
rotated views, data.grid=shown turns its boxes (orientation.py); one that doesn't say is warned about.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np
from PIL import Image

from refadv_ablate.boxes import Size
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.types import ImageRef

PIXEL_LIMIT = 180_000_000
"""Pixels above which an image is refused rather than decoded (540 MB as RGB); Pillow's own refusal."""

EXIF_ORIENTATION = 0x0112

_DECODE_ERRORS = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error)
# what Pillow's decoders are known to raise on broken files

_opening = threading.Lock()


def below(root: Path, name: str, follow_links: bool = False) -> Path:
    """The file `name` under `root`; names come from annotation files and are not trusted.

    Raises ImageUnreadable for a name that is absolute outside the root, climbs out with "..", or is a
    link that leads out (unless `follow_links`).
    """
    if not name or "\0" in name:
        raise ImageUnreadable(f"image name {name!r} is no file name; mend the annotation file")
    posix = PurePosixPath(name.replace("\\", "/"))
    base = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
    path = Path(os.path.normpath(base / posix))
    if not path.is_relative_to(base):
        raise ImageUnreadable(
            f"image path {name!r} leads out of the image root {root}; mend the annotation file "
            "or set data.image_root"
        )
    try:
        inside = follow_links or path.resolve().is_relative_to(base.resolve())
        path.stat()
    except FileNotFoundError:
        return path
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long or of no encoding
        cause = getattr(error, "strerror", None) or "no possible file name"
        raise ImageUnreadable(f"image {name[:80]!r} can't be looked up ({cause}); mend the file") from error
    if not inside:
        raise ImageUnreadable(
            f"image {name!r} is a link that leads out of the image root {root}; "
            "data.follow_links=true allows it"
        )
    return path


@dataclass(frozen=True, slots=True)
class FileImage:
    """An image in a file. Make `path` with `below` where its name comes from outside."""

    path: Path
    key: str
    pixel_limit: int = PIXEL_LIMIT

    def size(self) -> Size:
        """(width, height) from the header."""
        return _file_facts(*_stamp(self.path), self.pixel_limit)[0]

    def orientation(self) -> int:
        """EXIF orientation, 1 where there is none. Never applied; `data.check` compares sizes with it."""
        return _file_facts(*_stamp(self.path), self.pixel_limit)[1]

    def load(self) -> Image.Image:
        """RGB, stored pixel grid. Raises ImageUnreadable."""
        _stamp(self.path)
        return _decoded(self.path, str(self.path), self.pixel_limit)

    def digest(self) -> str:
        """SHA-256 of the file."""
        return _file_digest(*_stamp(self.path))


@dataclass(frozen=True, slots=True)
class BytesImage:
    """An image held as the bytes of its file, as hub rows and parquet tables carry it."""

    data: bytes = field(repr=False)
    key: str = ""
    pixel_limit: int = PIXEL_LIMIT

    def size(self) -> Size:
        """(width, height) from the header."""
        with _opened(io.BytesIO(self.data), self.key, self.pixel_limit) as image:
            return image.size

    def orientation(self) -> int:
        """EXIF orientation, 1 where there is none."""
        with _opened(io.BytesIO(self.data), self.key, self.pixel_limit) as image:
            return _orientation(image)

    def load(self) -> Image.Image:
        """RGB, stored pixel grid. Raises ImageUnreadable."""
        return _decoded(io.BytesIO(self.data), self.key, self.pixel_limit)

    def digest(self) -> str:
        """SHA-256 of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class AbsentImage:
    """An image that isn't here: enough for statistics on annotations, refused when it is opened."""

    key: str
    annotated: Size | None = None
    why: str = "data.images=absent leaves images out"

    def size(self) -> Size:
        """The annotated (width, height). Raises ImageUnreadable where there is none."""
        if self.annotated is None:
            raise self._refusal()
        return self.annotated

    def load(self) -> Image.Image:
        """Always raises ImageUnreadable."""
        raise self._refusal()

    def digest(self) -> str:
        """SHA-256 of the name: there are no bytes."""
        return hashlib.sha256(f"absent:{self.key}".encode()).hexdigest()

    def _refusal(self) -> ImageUnreadable:
        return ImageUnreadable(
            f"image {self.key!r} is not here: {self.why}; set data.image_root to the folder with the images"
        )


@dataclass(frozen=True, slots=True)
class ResizedImage:
    """Another image at another size; still the same image for the inference."""

    of: ImageRef
    target: Size

    @property
    def key(self) -> str:
        """The key of the image it was made from."""
        return self.of.key

    def size(self) -> Size:
        """The size after resizing."""
        return self.target

    def load(self) -> Image.Image:
        """RGB, bicubic."""
        image = self.of.load()
        if image.size == self.target:
            return image
        return image.resize(self.target, Image.Resampling.BICUBIC)

    def digest(self) -> str:
        """SHA-256 over the original's digest and the size."""
        return hashlib.sha256(f"{self.of.digest()}:{self.target[0]}x{self.target[1]}".encode()).hexdigest()


def resized(image: ImageRef, size: Size) -> ImageRef:
    """`image` at (width, height), lazily; itself where it has that size already."""
    if min(size) < 1:
        raise ValueError(f"cannot resize to {size}")
    return image if image.size() == tuple(size) else ResizedImage(image, (size[0], size[1]))


def encode(image: Image.Image, form: Literal["png", "jpeg"] = "png", quality: int = 95) -> bytes:
    """The bytes of a PNG, or of a JPEG of this quality, without metadata; equal pixels give equal bytes."""
    buffer = io.BytesIO()
    rgb = to_rgb(image)
    if form == "jpeg":
        rgb.save(buffer, format="JPEG", quality=quality, exif=b"", icc_profile=None)
    else:
        # level 1 takes a quarter of the default's time on photographs, for 7% more bytes
        rgb.save(buffer, format="PNG", icc_profile=None, compress_level=1)
    return buffer.getvalue()


def to_rgb(image: Image.Image) -> Image.Image:
    """Mode RGB: alpha over white, 16-bit and 32-bit samples scaled to 8, CMYK and palettes converted."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_to_8_bit(np.asarray(image), image.mode)).convert("RGB")
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        rgba = image.convert("LA").convert("RGBA") if image.mode == "La" else image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, rgba).convert("RGB")
    return image.convert("RGB")


def _to_8_bit(samples: np.ndarray, mode: str) -> np.ndarray:
    """Full range to 0…255: of 10, 12 or 16 bits for integers above 255, of 1.0 for floats up to 1."""
    values = np.nan_to_num(samples.astype(np.float64), nan=0.0)
    top = float(values.max(initial=0.0))
    if mode.startswith("I") and top > 255:
        # cameras and scanners put 10 and 12 bits into 16: read as 16 bits they would be black
        values = values * (255.0 / next(full for full in (1023, 4095, max(65535, top)) if top <= full))
    elif mode == "F" and top <= 1.0:
        values = values * 255.0
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


@contextmanager
def _opened(source: Path | io.BytesIO, name: str, limit: int) -> Iterator[Image.Image]:
    """Opens the header under our own pixel limit; every failure becomes ImageUnreadable."""
    try:
        with _opening:  # Pillow's limit is a global of its module: ours applies instead
            theirs, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
            try:
                image = Image.open(source)
            finally:
                Image.MAX_IMAGE_PIXELS = theirs
        with image:
            width, height = image.size
            if width * height > limit:
                raise ImageUnreadable(
                    f"image {name} has {width} × {height} pixels, more than the {limit:,} allowed; "
                    "raise data.pixel_limit or exclude it"
                )
            yield image
    except _DECODE_ERRORS as error:
        raise ImageUnreadable(
            f"image {name} can't be read ({_cause(error)}); replace the file or exclude broken_image"
        ) from error


def _decoded(source: Path | io.BytesIO, name: str, limit: int) -> Image.Image:
    with _opened(source, name, limit) as image:
        deep = any("16" in str(tile[-1]) for tile in getattr(image, "tile", ()))
        image.load()
        rgb = to_rgb(image).copy()
    if deep and image.mode.startswith("RGB") and int(np.asarray(rgb).max()) < 16:
        # Pillow keeps the upper byte of 16-bit colours alone: what is in the lower one is lost
        raise ImageUnreadable(
            f"image {name} holds colours of 10 or 12 bits in 16, which would be read as black; "
            "convert it to 8 bits a colour, or exclude broken_image"
        )
    return rgb


def _cause(error: Exception) -> str:
    text = str(error)
    return "not an image that Pillow knows" if "cannot identify" in text else text or type(error).__name__


def _stamp(path: Path) -> tuple[Path, int, int]:
    """Path, time and length: a file that changes is read again. Raises ImageUnreadable if it isn't there."""
    try:
        status = path.stat()
    except OSError as error:
        raise ImageUnreadable(
            f"image {path} is missing ({error.strerror}); set data.image_root to the folder with the images"
        ) from error
    if not stat.S_ISREG(status.st_mode):  # a pipe would be waited on for ever
        raise ImageUnreadable(f"image {path} is no file; mend the annotation file")
    return path, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8192)
def _file_facts(path: Path, _time: int, _length: int, limit: int) -> tuple[Size, int]:
    with _opened(path, str(path), limit) as image:
        return image.size, _orientation(image)


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(EXIF_ORIENTATION, 1))
    except (*_DECODE_ERRORS, TypeError):  # broken metadata doesn't make pixels unreadable
        return 1


@lru_cache(maxsize=65536)  # asked for by keys and records, in passes over the whole set
def _file_digest(path: Path, _time: int, _length: int) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ImageUnreadable(f"image {path} can't be read ({error.strerror}); mend its rights") from error
