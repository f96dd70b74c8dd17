"""From the image name in an annotation file to the image, never outside the image roots."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from refadv_ablate.boxes import Size
from refadv_ablate.data.images import AbsentImage, BytesImage, FileImage, below
from refadv_ablate.data.naming import UNKNOWN, Names, coco_name
from refadv_ablate.types import ImageRef

FOLDERS = ("", "images", "train2014", "val2017")
"""Where images are looked for beside the annotations, in this order, when no image root is named."""


@dataclass(frozen=True)
class ImageFolders:
    """Image roots, tried in order: the whole relative name first, then what `_trusted` allows of its end.

    The second covers rows such as data/coco/train2014/COCO_train2014_000000000009.jpg. names: of the whole
    set. notes: key → sentence on images that were found by less than their whole name.
    """

    roots: Sequence[Path]
    pixel_limit: int
    follow_links: bool = False
    names: Names = UNKNOWN
    notes: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    _known: dict[str, FileImage] = field(default_factory=dict, repr=False, compare=False)

    def open(self, name: str, key: str) -> FileImage:
        """The image of this name. Raises ImageUnreadable where the name leads out of a root."""
        if name not in self._known:
            if len(self._known) > 4096:  # names repeat nearby; a whole set's need not be kept
                self._known.clear()
            self._known[name] = FileImage(self._path(name), key or name, self.pixel_limit)
        return self._known[name]

    def _path(self, name: str) -> Path:
        wholes = [below(root, name, self.follow_links) for root in self.roots]
        for path in wholes:
            if path.is_file():
                return path
        parts = PurePosixPath(name.replace("\\", "/")).parts
        for root in self.roots:
            for drop in range(1, len(parts)):
                path = below(root, "/".join(parts[drop:]), self.follow_links)
                if path.is_file() and self._trusted(root, parts, drop, path):
                    return path
        return wholes[0] if wholes else Path(name)

    def _trusted(self, root: Path, parts: Sequence[str], drop: int, path: Path) -> bool:
        """Whether a file found without the first `drop` folders of its name is that image and no other.

        It is where the root ends with those folders. A root that lies beside or below the named folder
        holds other pictures. Else the last component must be unique in the set, and either COCO's or of
        a set in one folder, which has been renamed; that is told.
        """
        base = Path(os.path.abspath(root))  # noqa: PTH100 - resolve() would follow links
        if base.parts[-drop:] == tuple(parts[:drop]):
            return True
        for ancestor in base.parents[:4]:
            whole = ancestor.joinpath(*parts)
            if whole.is_file():
                return whole.samefile(path)
        if parts[-1] in self.names.shared:
            return False
        if coco_name(parts[-1]) or base.name == parts[drop - 1]:
            return True
        if self.names.folders == 1:
            self.notes["found_by_name"] = (
                f"the rows name images in {'/'.join(parts[:-1])}, and they were found by file name alone in "
                f"{root}: check that these are the same pictures"
            )
            return True
        return False


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
