"""Images of every kind that sets contain become RGB on their stored pixel grid, or say why they can't."""

from __future__ import annotations

import hashlib
import io
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from refadv_ablate.data import images
from refadv_ablate.data.images import AbsentImage, BytesImage, FileImage, below, encode, resized, to_rgb
from refadv_ablate.errors import ImageUnreadable
from refadv_ablate.types import ImageRef


def picture(width: int = 40, height: int = 30) -> Image.Image:
    """A smooth gradient, which JPEG keeps nearly as it is."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, np.full_like(x, 90)], axis=-1).astype(np.uint8))


def stored(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=form, **options)
    return buffer.getvalue()


def file(folder: Path, data: bytes, name: str = "a.png") -> FileImage:
    path = folder / name
    path.write_bytes(data)
    return FileImage(path, key=name)


def off(a: Image.Image, b: Image.Image) -> float:
    return float(np.abs(np.asarray(a, float) - np.asarray(b, float)).max())


def test_every_image_kind_is_an_image_ref(tmp_path: Path) -> None:
    data = stored(picture())
    kinds = [file(tmp_path, data), BytesImage(data, "a"), AbsentImage("a", (40, 30))]
    kinds.append(resized(kinds[0], (20, 15)))
    assert all(isinstance(kind, ImageRef) for kind in kinds)
    assert [kind.size() for kind in kinds] == [(40, 30)] * 3 + [(20, 15)]


GREY = picture().convert("L")
MODES = [
    ("1", picture().convert("1"), "PNG", 0),
    ("L", GREY, "PNG", 0),
    ("LA", picture().convert("LA"), "PNG", 0),
    ("P", picture().quantize(64), "PNG", 0),
    ("P of a GIF", picture().quantize(64), "GIF", 0),
    ("RGB", picture(), "PNG", 0),
    ("RGBA", picture().convert("RGBA"), "PNG", 0),
    ("CMYK JPEG", picture().convert("CMYK"), "JPEG", 12),
    ("YCbCr JPEG", picture(), "JPEG", 16),
    ("I;16", Image.fromarray(np.asarray(GREY).astype(np.uint16) * 257), "PNG", 0),
    ("I", Image.fromarray(np.asarray(GREY).astype(np.int32) * 257), "TIFF", 0),
    ("F", Image.fromarray(np.asarray(GREY).astype(np.float32) / 255), "TIFF", 1),
    ("LAB", picture().convert("RGB"), "WEBP", 20),
]


@pytest.mark.parametrize(("name", "image", "form", "tolerance"), MODES, ids=[m[0] for m in MODES])
def test_modes_become_rgb_with_the_same_picture(
    name: str, image: Image.Image, form: str, tolerance: int
) -> None:
    loaded = BytesImage(stored(image, form), "a").load()
    assert loaded.mode == "RGB"
    wanted = GREY if image.mode.startswith(("I", "F")) else image
    assert off(loaded, wanted.convert("RGB")) <= tolerance


def test_alpha_lies_over_white() -> None:
    clear = Image.new("RGBA", (4, 4), (200, 0, 0, 0))
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 128))
    assert to_rgb(clear).getpixel((0, 0)) == (255, 255, 255)
    assert to_rgb(half).getpixel((0, 0)) == pytest.approx((127, 127, 127), abs=1)
    assert to_rgb(Image.new("LA", (2, 2), (0, 0))).getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["L", "RGB", "P"])
def test_transparency_chunks_lie_over_white(mode: str) -> None:
    image = Image.new(mode, (4, 4), 0)
    key = (0, 0, 0) if mode == "RGB" else 0
    loaded = BytesImage(stored(image, transparency=key), "a").load()
    assert loaded.getpixel((1, 1)) == (255, 255, 255)


def test_exif_orientation_is_kept_out_of_the_pixels(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[images.EXIF_ORIENTATION] = 6
    image = file(tmp_path, stored(picture(40, 30), "JPEG", exif=exif), "a.jpg")
    assert image.size() == (40, 30) == image.load().size
    assert image.orientation() == 6
    assert off(image.load(), picture(40, 30)) < 10
    assert "exif" not in Image.open(io.BytesIO(encode(image.load(), "jpeg"))).info


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("keep", [0.0, 0.1, 0.7])
def test_truncated_files_are_unreadable_and_named(tmp_path: Path, form: str, keep: float) -> None:
    noisy = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    data = stored(noisy, form)
    image = file(tmp_path, data[: int(len(data) * keep)], "cut.img")
    with pytest.raises(ImageUnreadable, match=r"cut\.img"):
        image.load()


# Pillow warns of broken metadata that it skips: what is asked here is the exception
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_flipped_bytes_never_give_another_error() -> None:
    for form in ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"):
        data = bytearray(stored(picture(), form))
        rng = np.random.default_rng(1)
        for _ in range(60):
            broken = bytearray(data)
            for at in rng.integers(0, len(data), 8):
                broken[at] = int(rng.integers(0, 256))
            image = BytesImage(bytes(broken), "x", pixel_limit=10_000_000)
            try:
                image.load()
            except ImageUnreadable as error:
                assert "image x" in str(error)


def test_one_pixel_and_slivers(tmp_path: Path) -> None:
    assert file(tmp_path, stored(Image.new("RGB", (1, 1), "red"))).load().getpixel((0, 0)) == (255, 0, 0)
    sliver = BytesImage(stored(Image.new("L", (1, 3000))), "s")
    assert sliver.load().size == (1, 3000)
    assert resized(sliver, (1, 10)).load().size == (1, 10)


def test_enormous_images_are_refused_by_our_own_limit(tmp_path: Path) -> None:
    small = FileImage(file(tmp_path, stored(picture())).path, "a", pixel_limit=1000)
    with pytest.raises(ImageUnreadable, match=r"40 × 30 pixels.*pixel_limit"):
        small.size()
    big = stored(Image.new("1", (14_000, 8_000)))  # above Pillow's warning, below our limit
    assert BytesImage(big, "big").size() == (14_000, 8_000)
    with pytest.raises(ImageUnreadable, match="pixel_limit"):
        BytesImage(big, "big", pixel_limit=100_000_000).load()
    assert Image.MAX_IMAGE_PIXELS


def test_a_missing_file_says_what_to_set(tmp_path: Path) -> None:
    image = FileImage(tmp_path / "nowhere.jpg", "nowhere.jpg")
    for ask in (image.size, image.load, image.digest):
        with pytest.raises(ImageUnreadable, match=r"nowhere\.jpg is missing.*data\.image_root"):
            ask()


def test_nothing_is_opened_before_it_is_asked_for(tmp_path: Path) -> None:
    assert FileImage(tmp_path / "nowhere.jpg", "n").key == "n"
    assert resized(AbsentImage("n", (8, 8)), (4, 4)).key == "n"


def test_digest_is_of_the_stored_bytes_and_follows_a_change(tmp_path: Path) -> None:
    data = stored(picture())
    image = file(tmp_path, data)
    assert image.digest() == hashlib.sha256(data).hexdigest() == BytesImage(data, "b").digest()
    other = stored(picture(41, 30))
    image.path.write_bytes(other)
    assert image.digest() == hashlib.sha256(other).hexdigest()
    assert image.size() == (41, 30)
    assert resized(image, (4, 4)).digest() not in (image.digest(), resized(image, (4, 5)).digest())


@pytest.mark.parametrize(
    "name", ["../up.png", "a/../../up.png", "/etc/hostname", "..\\up.png", "", "a\0b", "a/../.."]
)
def test_no_name_leaves_the_root(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "up.png").write_bytes(stored(picture()))
    with pytest.raises(ImageUnreadable):
        below(root, name)


def test_links_out_of_the_root_need_to_be_allowed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "up.png").write_bytes(stored(picture()))
    (root / "link.png").symlink_to(tmp_path / "up.png")
    with pytest.raises(ImageUnreadable, match="follow_links"):
        below(root, "link.png")
    assert FileImage(below(root, "link.png", follow_links=True), "l").size() == (40, 30)


def test_names_inside_the_root_are_found(tmp_path: Path) -> None:
    assert below(tmp_path, "a/./b/../c.png") == tmp_path / "a" / "c.png"
    assert below(tmp_path, str(tmp_path / "a.png")) == tmp_path / "a.png"


def test_absent_images_refuse_with_a_sentence() -> None:
    with pytest.raises(ImageUnreadable, match=r"data\.image_root"):
        AbsentImage("x.jpg").size()
    with pytest.raises(ImageUnreadable, match=r"x\.jpg"):
        AbsentImage("x.jpg", (3, 4)).load()


def test_encoding_is_deterministic_and_faithful() -> None:
    image = picture()
    assert encode(image) == encode(image.copy())
    assert off(Image.open(io.BytesIO(encode(image))), image) == 0
    jpeg = Image.open(io.BytesIO(encode(image.convert("RGBA"), "jpeg", 95)))
    assert jpeg.mode == "RGB"
    assert off(jpeg, image) < 10


def test_resizing_to_the_same_size_is_the_image_itself() -> None:
    image = BytesImage(stored(picture()), "a")
    assert resized(image, (40, 30)) is image
    assert resized(image, (20, 15)).load().size == (20, 15)
    with pytest.raises(ValueError, match="resize"):
        resized(image, (0, 3))


def test_references_travel_between_processes_and_threads(tmp_path: Path) -> None:
    image = file(tmp_path, stored(picture()))
    assert pickle.loads(pickle.dumps(image)) == image
    sizes: list[tuple[int, int]] = []
    threads = [threading.Thread(target=lambda: sizes.append(image.load().size)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [(40, 30)] * 8


def test_colours_of_twelve_bits_in_sixteen_are_refused_and_not_shown_black(tmp_path):
    """Written by hand: Pillow writes no PNG of 16 bits a colour."""
    import struct
    import zlib

    def png(value: int) -> bytes:
        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        rows = b"".join(b"\0" + struct.pack(">3H", value, value, value) * 4 for _ in range(4))
        header = struct.pack(">2I5B", 4, 4, 16, 2, 0, 0, 0)
        body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + body

    (tmp_path / "12.png").write_bytes(png(4000))
    (tmp_path / "16.png").write_bytes(png(40_000))
    with pytest.raises(ImageUnreadable, match="10 or 12 bits in 16"):
        FileImage(tmp_path / "12.png", "12").load()
    assert FileImage(tmp_path / "16.png", "16").load().getpixel((0, 0)) == (156, 156, 156)
