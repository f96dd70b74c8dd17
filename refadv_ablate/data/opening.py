"""From the image name in an annotation file to the image, never outside the image roots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from refadv_ablate.boxes import Size
from refadv_ablate.data.images import AbsentImage, BytesImage, FileImage, below
from refadv_ablate.types import ImageRef

FOLDERS = ("", "images", "train2014", "val2017")
"""Where images are looked for beside the annotations, in this order, when no image root is named."""


@dataclass(frozen=True)
class ImageFolders:
    """Image roots, tried in order; below each, the whole relative name and then its last component.

    The second covers rows such as data/coco/train2014/COCO_train2014_000000000009.jpg.
    """

    roots: Sequence[Path]
    pixel_limit: int
    follow_links: bool = False
    _known: dict[str, FileImage] = field(default_factory=dict, repr=False, compare=False)

    def open(self, name: str, key: str) -> FileImage:
        """The image of this name. Raises ImageUnreadable where the name leads out of a root."""
        if name not in self._known:
            if len(self._known) > 4096:  # names repeat nearby; a whole set's need not be kept
                self._known.clear()
            self._known[name] = FileImage(self._path(name), key or name, self.pixel_limit)
        return self._known[name]

    def _path(self, name: str) -> Path:
        first: Path | None = None
        for root in self.roots:
            for form in dict.fromkeys((name, PurePosixPath(name.replace("\\", "/")).name)):
                path = below(root, form, self.follow_links)
                if path.is_file():
                    return path
                first = first or path
        return first or Path(name)


def image_roots(folder: Path, image_root: str | None) -> list[Path]:
    """The image root that is named, else the usual folders beside the annotations that exist."""
    if image_root is not None:
        return [Path(image_root)]
    return [folder / name for name in FOLDERS if (folder / name).is_dir()]


def image_of(
    image: str | bytes, key: str, size: Size | None, folders: ImageFolders | None, why_absent: str
) -> ImageRef:
    """The image of a row; without folders it is absent, for the reason given."""
    if isinstance(image, bytes):
        made = BytesImage(image, key, folders.pixel_limit if folders else 0)
    elif folders is None:
        return AbsentImage(key or image, size, why_absent)
    else:
        found = folders.open(image, key)
        if key:
            return found
        return (
            FileImage(found.path, found.digest()[:16], found.pixel_limit) if found.path.is_file() else found
        )
    return made if key else BytesImage(image, made.digest()[:16], made.pixel_limit)
