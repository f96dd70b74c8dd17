"""The annotation page in a real browser: three annotators at once, and a server that is killed meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate.curate.annotation.answers import outcomes, sheet
from refadv_ablate.curate.annotation.items import load_items, order, standing
from refadv_ablate.curate.cli import main
from refadv_ablate.curate.ledger import Ledger
from refadv_ablate.curate.scenes import load_scenes

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ["ana", "ben", "chi"]
PHONE = {"viewport": {"width": 390, "height": 760}, "has_touch": True, "is_mobile": True}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"no Chromium at {CHROMIUM}; set CHROMIUM to its path"),
]


def until(page: Any, condition: str) -> None:
    """Polls from outside: the page's own policy forbids the evaluation that Playwright's waiting uses."""
    deadline = time.monotonic() + 20
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"never: {condition}"
        page.wait_for_timeout(20)


class Server:
    """The stage verify in a process of its own, as a person starts it."""

    def __init__(self, out: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.out = out
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = [f"out={self.out}", f"verify.annotators=[{','.join(NAMES)}]", f"verify.port={self.port}"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "refadv_ablate.curate", "verify", *words], stdout=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, "the server ended"
            time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        assert self.process
        self.process.send_signal(how)
        self.process.wait(20)
        if self.process.stdout:
            self.process.stdout.close()


@pytest.fixture
def server(out: Path) -> Iterator[Server]:
    one = Server(out)
    one.start()
    yield one
    if one.process and one.process.poll() is None:
        one.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


def open_page(browser: Any, server: Server, name: str, **more: Any) -> Any:
    page = browser.new_context(**more).new_page()
    page.set_default_timeout(15_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.goto(server.url)
    page.wait_for_selector("#annotator option:nth-child(2)", state="attached")
    page.select_option("#annotator", name)
    page.wait_for_selector("#blind:not([hidden])")
    return page


def point_at(page: Any, box: Any, size: Any) -> None:
    """Clicks (or taps) the middle of a box given in pixels of the stored image."""
    until(
        page, "document.querySelector('#image').complete && document.querySelector('#image').naturalWidth > 0"
    )
    page.locator("#stage").scroll_into_view_if_needed()
    at = page.locator("#stage").bounding_box()
    x, y = box.center
    x, y = at["x"] + x / size[0] * at["width"], at["y"] + y / size[1] * at["height"]
    if page.evaluate("navigator.maxTouchPoints > 0"):
        page.touchscreen.tap(x, y)
    else:
        page.mouse.click(x, y)


def current(page: Any, items: Any, name: str) -> Any:
    return items[page.evaluate("task.item")]


def verdict(page: Any, keys: str) -> None:
    page.wait_for_selector("#verdict:not([hidden])")
    for key in keys:
        page.keyboard.press(key)
    until(page, "!document.querySelector('#save').disabled")
    done = page.evaluate("task.done")
    page.keyboard.press("Enter")
    until(page, f"task.done > {done} || task.item === null")


def test_three_annotators_at_once_with_the_server_killed_in_between(
    browser: Any, server: Server, out: Path
) -> None:
    scenes = load_scenes(out)
    items = {i.id: i for i in load_items(out, scenes)}
    pages = {n: open_page(browser, server, n, **(PHONE if n == "chi" else {})) for n in NAMES}
    rounds = 4
    expected = {n: [i.id for i in order(list(items.values()), n, 0)] for n in NAMES}
    assert len({tuple(e) for e in expected.values()}) == 3, "each in an order of their own"
    for turn in range(rounds):
        for name, page in pages.items():
            item = current(page, items, name)
            assert item.id == expected[name][turn]
            assert page.text_content("#expression") == item.expression
            assert page.locator(".gold").count() == page.locator("b.gold").count(), (
                "no gold box before the answer"
            )
            point_at(page, item.gold, item.scene.size)
            if turn == 1 and name == "ana":
                server.kill()  # the answer meets no server
                page.click("#confirm")
                page.wait_for_selector("#banner:not([hidden])")
                assert "safe in this browser" in page.text_content("#banner")
                server.start()
                page.wait_for_selector("#verdict:not([hidden])")
            else:
                page.keyboard.press("Enter") if name != "chi" else page.tap("#confirm")
            page.wait_for_selector("#verdict:not([hidden])")
            assert page.text_content("#outcome").startswith("Your choice (blue) is the same")
            if turn == 2 and name == "ben":
                page.click("#q-correct [data-value=true]")
                server.kill()
                with contextlib.suppress(Exception):
                    page.reload()  # the browser too begins anew, in the middle of an item
                server.start()
                page.goto(server.url)
                page.wait_for_selector("#verdict:not([hidden])")
                assert current(page, items, name).id == item.id, "it goes on at the same item"
            verdict(page, "yy")
    for page in pages.values():
        assert page.problems == []
        page.context.close()
    rows = Ledger(out / "answers.jsonl").rows()
    assert len(rows) == 2 * rounds * len(NAMES), "nothing lost, nothing doubled"
    answers = sheet(rows)
    for name in NAMES:
        said = [answers[name][key] for key in expected[name][:rounds]]
        assert all(s.blind and s.verdict and s.verdict["correct"] and s.verdict["hard"] for s in said)
    found = outcomes(list(items.values()), answers, needed=3)
    common = set.intersection(*(set(expected[n][:rounds]) for n in NAMES))
    assert {o.item.id for o in found if o.state == "kept"} == common


def test_an_answer_survives_a_server_and_a_browser_that_both_die(
    browser: Any, server: Server, out: Path
) -> None:
    page = open_page(browser, server, "ana")
    items = {i.id: i for i in load_items(out, load_scenes(out))}
    item = current(page, items, "ana")
    point_at(page, item.gold, item.scene.size)
    server.kill()
    page.keyboard.press("Enter")
    until(page, "JSON.parse(localStorage.getItem('refadv-unsent')).length === 1")
    context = page.context
    page.close()  # the tab is gone; what it kept is not
    server.start()
    again = context.new_page()
    again.goto(server.url)
    again.wait_for_selector("#verdict:not([hidden])")
    assert again.evaluate("task.item") == item.id
    assert len(Ledger(out / "answers.jsonl").rows()) == 1
    context.close()


def test_everything_can_be_done_by_keyboard_and_taken_back(browser: Any, server: Server, out: Path) -> None:
    page = open_page(browser, server, "ben")
    first = page.evaluate("task.item")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Escape")
    assert page.locator("#confirm").is_disabled()
    page.keyboard.press("0")
    page.wait_for_selector("#verdict:not([hidden])")
    assert "found nothing" in page.text_content("#outcome")
    verdict(page, "nyn")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#verdict:not([hidden])")
    page.keyboard.press("b")
    until(page, f"task.item === {first!r}")
    page.click("#q-correct [data-value=true]")
    page.fill("#note", "changed <b>my</b> mind")
    page.keyboard.press("Enter")
    until(page, f"task.item !== {first!r}")
    said = sheet(Ledger(out / "answers.jsonl"))["ben"][first]
    assert said.blind and said.blind["none"] is True
    assert said.verdict and said.verdict["correct"] is True and said.verdict["reconsidered"] is False
    assert said.verdict["note"] == "changed <b>my</b> mind"
    page.context.close()


def test_two_browsers_of_one_annotator_share_the_work_and_a_late_answer_changes_nothing(
    browser: Any, server: Server, out: Path
) -> None:
    items = {i.id: i for i in load_items(out, load_scenes(out))}
    laptop, phone = open_page(browser, server, "ana"), open_page(browser, server, "ana", **PHONE)
    first, second = laptop.evaluate("task.item"), phone.evaluate("task.item")
    assert first != second
    point_at(laptop, items[first].gold, items[first].scene.size)
    laptop.keyboard.press("Enter")
    laptop.wait_for_selector("#verdict:not([hidden])")
    phone.evaluate(f"load({first!r})")  # the same item in both, with the verdict open
    until(phone, f"task.item === {first!r}")
    verdict(laptop, "yy")
    phone.click("#q-correct [data-value=false]")
    phone.click("#q-hard [data-value=false]")
    phone.click("#save")
    phone.wait_for_selector("#banner:not([hidden])")
    assert "that verdict stands" in phone.text_content("#banner")
    assert phone.evaluate("task.item") not in (first, None)
    rows = Ledger(out / "answers.jsonl").rows()
    assert [(r["kind"], r.get("correct")) for r in rows] == [("blind", None), ("verdict", True)]
    laptop.keyboard.press("Control+z")  # back, though the next one is not begun
    until(laptop, f"task.item === {first!r}")
    laptop.click("#q-hard [data-value=false]")
    laptop.keyboard.press("Enter")
    until(laptop, f"task.item !== {first!r}")
    assert sheet(Ledger(out / "answers.jsonl"))["ana"][first].verdict["hard"] is False  # type: ignore[index]
    assert laptop.problems == phone.problems == []
    for page in (laptop, phone):
        page.context.close()


def test_progress_and_agreement_are_live(browser: Any, server: Server, out: Path) -> None:
    watcher = browser.new_context().new_page()
    watcher.goto(f"{server.url}/progress")
    watcher.wait_for_selector("#people tr")
    assert watcher.text_content("#count").startswith("0 kept")
    page = open_page(browser, server, "ben")
    for _ in range(5):
        page.keyboard.press("0")
        verdict(page, "yyy")
    until(page, "document.querySelector('#count').textContent.includes('left')")
    assert "about 0 min left" in page.evaluate("pace({pace: 0, done: 5, total: 24})"), "0 s is a pace, too"
    until(watcher, "document.querySelector('#people').textContent.includes('5 of 24')")
    page.context.close()
    watcher.context.close()


def test_a_box_can_be_drawn_and_odd_texts_are_shown_and_not_run(
    browser: Any, server: Server, out: Path
) -> None:
    server.kill()
    scene = next(iter(load_scenes(out)))
    nasty = '<img src=x onerror=alert(1)> ‏الكلب 🐶 & "quotes"'
    Ledger(out / "authored.jsonl").append(
        {"annotator": "ana", "scene": scene, "target": 1, "distractor": 2, "expression": nasty, "key": "k"}
    )
    server.start()
    page = open_page(browser, server, "chi")
    items = {i.id: i for i in load_items(out, load_scenes(out))}
    odd = next(i for i in items.values() if i.expression == nasty)
    for _ in range(len(items)):
        item = current(page, items, "chi")
        if item.id == odd.id:
            break
        page.keyboard.press("0")
        verdict(page, "nnn")
    assert page.text_content("#expression") == nasty
    assert page.locator("#expression img").count() == 0
    box, size = odd.gold, odd.scene.size
    until(page, "document.querySelector('#image').complete")
    at = page.locator("#stage").bounding_box()
    sx, sy = at["width"] / size[0], at["height"] / size[1]
    page.mouse.move(at["x"] + box.x1 * sx, at["y"] + box.y1 * sy)
    page.mouse.down()
    page.mouse.move(at["x"] + box.x2 * sx, at["y"] + box.y2 * sy, steps=4)
    page.mouse.up()
    page.click("#confirm")
    page.wait_for_selector("#verdict:not([hidden])")
    assert "is the same" in page.text_content("#outcome")
    page.context.close()


def test_people_write_expressions_for_pairs_of_their_choice(browser: Any, server: Server, out: Path) -> None:
    page = open_page(browser, server, "ana")
    page.goto(f"{server.url}/author")
    page.wait_for_selector("#work:not([hidden])")
    page.wait_for_selector(".hit")
    page.locator(".hit").nth(0).click()
    page.locator(".hit").nth(1).click(force=True)
    page.fill("#text", "the 2nd one")
    page.click("#save")
    page.wait_for_selector("#banner:not([hidden])")
    assert "it holds a digit" in page.text_content("#banner")
    page.fill("#text", "the one beside the edge, not its twin")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#written li")
    page.click("#written button")
    page.wait_for_selector("#written li", state="detached")
    assert page.input_value("#text") == "the one beside the edge, not its twin", "its words can be mended"
    page.click("#save")
    page.wait_for_selector("#written li")
    page.keyboard.press("PageDown")
    until(page, "scene.index === 1")
    assert "1 written" in page.text_content("#count")
    rows = standing(Ledger(out / "authored.jsonl").rows())
    assert [r["expression"] for r in rows] == ["the one beside the edge, not its twin"]
    assert rows[0]["target"] != rows[0]["distractor"]
    page.context.close()
    server.kill(signal.SIGINT)
    assert main(["status", f"out={out}"]) == 0
