"""The gallery as a file, and as a browser shows it."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from refadv_ablate.boxes import BoxMap
from refadv_ablate.data.images import BytesImage, encode
from refadv_ablate.edits import Mirror, to_json
from refadv_ablate.report.pages import gallery
from refadv_ablate.report.pages.thumbnails import INLINE_BYTES, Thumbnails, small
from refadv_ablate.storage.records import write_records
from tests.report.making import NASTY, records


def noisy(key: str, size=(640, 480), seed=0) -> BytesImage:
    import numpy as np

    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype="uint8")
    return BytesImage(encode(Image.fromarray(pixels), "jpeg", 90), key)


def pairs(n: int):
    return list(zip(records(n), records(n, seed=1, condition="bow", hit=0.4), strict=True))


def images(n: int, size=(160, 120)):
    kept = {f"image{i}": noisy(f"image{i}", size, i) for i in range((n + 1) // 2)}
    return {r.example_id: kept[r.image_key] for r in records(n)}


def data_of(page: str, name: str):
    block = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    return json.loads(block[1])


# ── the file ────────────────────────────────────────────────────────────────────────────────────


def test_the_page_is_self_contained_and_holds_every_image_once(tmp_path):
    path = gallery.write(tmp_path / "g.html", pairs(20), images(20).get, title="t")
    page = path.read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert page.count('<script type="text/plain" id="img-') == 10
    assert "default-src &#x27;none&#x27;" in page


def test_no_text_can_leave_its_data_block(tmp_path):
    title = "</title><script>alert(1)</script> @@DATA@@ @@SCRIPT@@"
    path = gallery.write(tmp_path / "g.html", pairs(10), lambda _id: None, title=title)
    page = path.read_text(encoding="utf-8")
    assert page.count("</script>") == page.count("<script")
    assert page.count("<script>") == 1
    assert "<script>alert" not in page
    assert "<img" not in page
    cards = data_of(page, "cards-0")
    assert " ".join(text for _, text in cards[4]["words"][0]).startswith(NASTY[4])


def test_half_a_surrogate_pair_does_not_break_the_page(tmp_path):
    original, perturbed = pairs(1)[0]
    path = gallery.write(
        tmp_path / "g.html", [(original, replace(perturbed, text="cut \ud83d"))], lambda _id: None, title="x"
    )
    assert data_of(path.read_text(encoding="utf-8"), "cards-0")[0]["p"]["text"] == "cut \ud83d"


def test_a_card_says_what_happened():
    original, perturbed = pairs(3)[2]
    assert gallery.flip(replace(original, iou=0.5), replace(perturbed, iou=0.49)) == "rw"
    assert gallery.flip(replace(original, iou=0.4), replace(perturbed, iou=0.5)) == "wr"
    assert gallery.flip(replace(original, iou=0.9), replace(perturbed, iou=0.5)) == "rr"
    assert gallery.flip(replace(original, iou=0.0), replace(perturbed, iou=0.4)) == "ww"
    assert gallery.flip(replace(original, iou=None), replace(perturbed, iou=0.4)) == "na"


def test_a_changed_picture_stands_beside_the_original(tmp_path):
    original, perturbed = pairs(1)[0]
    moved = BoxMap.mirror(160)
    mirrored = replace(
        perturbed,
        picture={"edits": to_json((Mirror(),))},
        frame=moved,
        target=moved(original.target),
        predicted=moved(perturbed.predicted),
    )
    other = replace(perturbed, picture={"of": "b", "edits": []}, expectation="reject")
    own, another = noisy("a", (160, 120)), noisy("b", (80, 100), seed=3)
    page = gallery.write(
        tmp_path / "g.html",
        [(original, perturbed), (original, mirrored), (original, other)],
        lambda _id: own,
        title="t",
        others={"b": another}.__getitem__,
    ).read_text(encoding="utf-8")
    same, turned, wrong = data_of(page, "cards-0")
    assert "made" not in same and same["img"] == turned["img"] == wrong["img"] == 0
    assert turned["made"]["img"] == 1 and turned["made"]["size"] == [160, 120]
    assert turned["made"]["target"] == [round(v, 1) for v in moved(original.target).as_list()]
    assert turned["p"]["box"] == same["p"]["box"], "on the original picture the box goes back"
    assert wrong["made"] == {**wrong["made"], "img": 2, "size": [80, 100], "target": None}
    assert page.count('<script type="text/plain" id="img-') == 3


def test_a_limited_gallery_keeps_flips_and_says_how_many_there_were(tmp_path):
    kinds = ["rr", "rw", "ww", "rr", "wr", "rr", "rr", "rw"]
    assert gallery.choose(kinds, None) == list(range(8))
    assert gallery.choose(kinds, 3) == [1, 4, 7]
    kept = gallery.choose(kinds, 5)
    assert {1, 4, 7} < set(kept)
    assert kept == sorted(kept)
    page = gallery.write(tmp_path / "g.html", pairs(60), lambda _id: None, title="t", most=12).read_text()
    about = data_of(page, "about")
    assert about["total"] == 60
    assert sum(count for _, count in about["kinds"].values()) == 60
    assert len(data_of(page, "cards-0")) == 12


def test_pairs_meet_in_any_order_and_with_several_draws():
    first = list(records(4))
    second = [replace(r, draw=draw) for draw in (0, 1) for r in records(4, seed=1, condition="bow")]
    found = list(gallery.pairs_of([*second[:3], *first, *second[3:]]))
    assert len(found) == 8
    assert all(a.example_id == b.example_id and a.condition == "original" for a, b in found)
    assert {(b.example_id, b.draw) for _, b in found} == {(r.example_id, r.draw) for r in second}


@given(st.randoms(use_true_random=False), st.integers(1, 5), st.integers(1, 2))
@settings(deadline=None, max_examples=60)
def test_few_originals_are_held_and_the_pairs_are_the_same(rng, window, memory):
    """Whatever the order: of a run (together), one condition after the other, or mixed."""
    arms = [*records(9), *records(9, seed=1, condition="bow"), *records(7, seed=2, condition="fixed")]
    rng.shuffle(arms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery, "WINDOW", window)
        patch.setattr("refadv_ablate.storage.remembered.MOST", memory)
        found = list(gallery.pairs_of(iter(arms), lambda: iter(arms)))
    name = lambda pair: (pair[1].example_id, pair[1].condition)  # noqa: E731  # a key function
    assert sorted(found, key=name) == sorted(gallery.pairs_of(arms), key=name)
    assert len(found) == 16


def test_perturbed_answers_without_an_original_have_no_pair_and_are_not_held(monkeypatch):
    monkeypatch.setattr(gallery, "WINDOW", 2)
    arms = [*records(3), *records(9, seed=1, condition="bow")]
    assert len(list(gallery.pairs_of(arms, lambda: iter(arms)))) == 3


def test_what_a_page_shows_is_chosen_in_two_readings():
    made = pairs(60)
    chosen = gallery.Chosen.of(iter(made), 12)
    assert chosen == gallery.Chosen.of(made, 12)
    kinds = [gallery.flip(*pair) for pair in made]
    assert list(chosen.pairs) == [made[place] for place in gallery.choose(kinds, 12)]
    assert chosen.counts == {kind: kinds.count(kind) for kind in gallery.FLIPS}
    assert gallery.Chosen.of(made, None).pairs == made


def test_thumbnails_stay_small_even_of_noise():
    assert len(small(noisy("n", (2000, 1500)))) <= INLINE_BYTES
    with Image.open(__import__("io").BytesIO(small(noisy("n", (40, 30))))) as picture:
        assert picture.size == (40, 30)  # never enlarged


def test_images_can_lie_in_a_folder_and_old_ones_go(tmp_path):
    for n in (6, 2):
        path = gallery.write(tmp_path / "g.html", pairs(n), images(n).get, title="t", images="folder")
        assert len(list((tmp_path / "g_images").iterdir())) == n // 2
    sources = re.findall(r'id="img-\d+">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert all((tmp_path / source).is_file() for source in sources)
    assert len(sources) == 1


def test_an_unreadable_image_leaves_the_rest(tmp_path):
    broken = {r.example_id: BytesImage(b"not an image", r.image_key) for r in records(4)}
    page = gallery.write(tmp_path / "g.html", pairs(4), broken.get, title="t").read_text(encoding="utf-8")
    assert [card["img"] for card in data_of(page, "cards-0")] == [None] * 4


def test_a_cells_folder_becomes_a_page(tmp_path):
    class Drawn:
        name = "drawn"

        def __iter__(self):
            from types import SimpleNamespace

            refs = images(10)
            return iter(SimpleNamespace(id=key, image=image) for key, image in refs.items())

    write_records(tmp_path / "predictions.jsonl", [r for pair in pairs(10) for r in pair])
    (tmp_path / "summary.json").write_text('{"operator": "bow", "model": "m", "data": "d", "prompt": "cot"}')
    page = gallery.from_cell(tmp_path, Drawn(), most=4).read_text(encoding="utf-8")
    assert "<title>bow · m · d · cot</title>" in page
    assert all(card["img"] is not None for card in data_of(page, "cards-0"))


# ── the browser ─────────────────────────────────────────────────────────────────────────────────

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="module")
def browser():
    import shutil

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=chromium, args=FLAGS.split())
        yield running
        running.close()


def opened(browser, path, width=1280, height=900):
    """A page without network, and the list of what went wrong on it."""
    page = browser.new_context(viewport={"width": width, "height": height}, offline=True).new_page()
    wrong: list[str] = []
    page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.on("dialog", lambda d: (wrong.append(f"dialog {d.message}"), d.dismiss()))
    page.goto(path.as_uri())
    page.wait_for_selector(".card")
    return page, wrong


@pytest.mark.browser
def test_a_browser_shows_texts_as_texts_and_runs_none(tmp_path, browser):
    path = gallery.write(tmp_path / "g.html", pairs(10), images(10).get, title=NASTY[0])
    page, wrong = opened(browser, path)
    assert page.inner_text("h1") == NASTY[0]
    shown = page.inner_text("#grid")
    assert "<script>alert('x')</script>" in shown
    assert "الكلب" in shown
    assert page.locator("#grid script, #grid img[src=x]").count() == 0
    assert page.locator(".card img").count() == 10
    assert page.evaluate("[...document.images].every((i) => i.complete && i.naturalWidth > 0)")
    assert wrong == []
    page.context.close()


@pytest.mark.browser
def test_filters_search_pages_and_keys_work(tmp_path, browser):
    from playwright.sync_api import expect

    both = pairs(3000)
    path = gallery.write(tmp_path / "g.html", both, images(40).get, title="t")
    page, wrong = opened(browser, path)
    where = page.locator("#where")
    assert page.locator(".card").count() == 24
    kinds = [gallery.flip(*pair) for pair in both]
    page.keyboard.press("1")
    assert page.inner_text("#where") == f"1–24 of {kinds.count('rw'):,}"
    page.keyboard.press("n")
    assert page.inner_text("#where").startswith("25–48 of")
    page.click("text=clear")
    expect(where).to_contain_text("3,000")
    page.keyboard.press("/")
    page.keyboard.type("NUMBER 2999")
    expect(page.locator(".card")).to_have_count(1)
    page.fill("#q", "")
    page.select_option("#neg", "1")
    expect(where).to_contain_text("of 600")
    page.select_option("#neg", "")
    page.select_option("#n", "4-6")
    wanted = sum(4 <= a.distractors <= 6 for a, _ in both)
    expect(where).to_contain_text(f"of {wanted:,}")
    page.select_option("#n", "")
    page.fill("#low", "0.9")
    wanted = sum((a.iou or 0) >= 0.9 for a, _ in both)
    expect(where).to_contain_text(f"of {wanted:,}")
    assert wrong == []
    page.context.close()


@pytest.mark.browser
def test_an_example_opens_large_and_the_arrows_go_on(tmp_path, browser):
    path = gallery.write(tmp_path / "g.html", pairs(30), images(30).get, title="t")
    page, wrong = opened(browser, path)
    page.select_option("#sort", "data")
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(300)
    page.locator("body").press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert "case00001" in page.inner_text("dialog")
    page.keyboard.press("ArrowRight")
    assert "case00002" in page.inner_text("dialog")
    for _ in range(25):
        page.keyboard.press("ArrowRight")
    assert "case00027" in page.inner_text("dialog")  # across the page break
    page.keyboard.press("Escape")
    assert not page.evaluate("document.querySelector('dialog').open")
    assert page.evaluate("document.activeElement.textContent.includes('case00027')")
    assert wrong == []
    page.context.close()


@pytest.mark.browser
def test_a_view_has_an_address_and_the_largest_drop_is_first(tmp_path, browser):
    from playwright.sync_api import expect

    both = pairs(40)
    path = gallery.write(tmp_path / "g.html", both, images(40).get, title="t", back="../report.html")
    page, wrong = opened(browser, path)
    drops = [((a.iou or 0) - (b.iou or 0), a.example_id) for a, b in both]
    assert max(drops)[1] in page.locator(".card").first.inner_text()
    assert page.locator("header a").get_attribute("href") == "../report.html"
    page.select_option("#nobox", "op")
    lacking = sum(a.predicted is None or b.predicted is None for a, b in both)
    expect(page.locator("#where")).to_contain_text(f"of {lacking}")
    assert "nobox=op" in page.url
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#example=case00007&sort=data")
    assert "case00007" in page.inner_text("dialog")
    assert "example=case00007" in page.url
    page.keyboard.press("Escape")
    page.wait_for_function("!location.hash.includes('example')")
    assert "sort=data" in page.url
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#example=none&kind=rw,constructor&cond=%3Cb%3E")
    expect(page.locator("#where")).to_contain_text("not among those on this page")
    assert wrong == []
    page.context.close()


@pytest.mark.browser
def test_it_fits_a_phone(tmp_path, browser):
    long = [
        (replace(a, expression="unbreakable" * 30), replace(b, text="x" * 3000, category="y" * 300))
        for a, b in pairs(4)
    ]
    path = gallery.write(tmp_path / "g.html", long, images(4).get, title="t" * 200)
    page, wrong = opened(browser, path, 390, 844)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#q").is_visible()
    assert wrong == []
    page.context.close()


def test_pictures_of_one_name_are_one_thumbnail_each_and_a_copy_is_not_drawn_again(tmp_path):
    def of(colour):
        return BytesImage(encode(Image.new("RGB", (8, 8), colour)), "0001.png")

    shown = Thumbnails(tmp_path / "images")
    assert [shown.add(of(colour)) for colour in ("red", "blue", "red")] == [0, 1, 0]
    assert len(set(shown.sources)) == len(list((tmp_path / "images").iterdir())) == 2


def test_a_card_judges_an_answer_by_what_its_question_expects(tmp_path):
    original, perturbed = pairs(1)[0]
    right = replace(original, iou=1.0, outcome="box", predicted=original.target)
    rejecting = replace(perturbed, expectation="reject", outcome="none", predicted=None, iou=0.0)
    stays = replace(right, condition="bow", expectation="reject")
    assert gallery.flip(right, rejecting) == "rr" and gallery.flip(right, stays) == "rw"
    away = replace(stays, expectation="directional", iou=0.0)
    assert gallery.flip(right, away) == "na", "nobody knows the other object's box"
    assert gallery.flip(right, replace(away, original_target=original.target, iou=0.9)) == "rr"
    path = gallery.write(tmp_path / "g.html", [(right, stays)], lambda _id: None, title="t")
    (card,) = data_of(path.read_text(encoding="utf-8"), "cards-0")
    assert (card["o"]["ok"], card["p"]["ok"], card["p"]["old"], card["p"]["iou"]) == (True, False, True, None)
