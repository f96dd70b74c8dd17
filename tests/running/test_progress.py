"""The live display: quiet when not a terminal, counts that are right, warnings that are seen at once."""

import io
import time

from refadv_ablate.boxes import Box
from refadv_ablate.running.progress import Display
from refadv_ablate.types import NoBox, Reading, Reply


def fed(display):
    display.reply("original", Reading(Box(0, 0, 1, 1)), 0.9, Reply("x", attempts=3), False)
    display.reply("original", Reading(NoBox("unparsable", "prose")), 0.0, Reply("x"), False)
    display.reply("bow", Reading(Box(0, 0, 1, 1)), 0.2, Reply("x"), True)
    display.reply("bow", None, None, Reply("", "error", error="HTTP 500"), False)
    return display


def test_the_line_says_what_was_done_and_what_went_wrong():
    display = fed(Display(8, "m · d"))
    line = display.line(display.started + 1.5)
    assert line.startswith("4/8 · 2.0/s · 0:02 left")
    for words in ("stored 1", "retries 2", "unparsed 1", "missing 1", "original 50.0", "bow 0.0"):
        assert words in line


def test_off_a_terminal_only_warnings_are_written(capsys):
    with Display(8, "m · d") as display:
        fed(display)
        display.warn("frame: all boxes look like pixels")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "warning: frame: all boxes look like pixels\n"


def test_on_a_terminal_it_draws_and_leaves_nothing_behind(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with Display(8, "internvl3 · ref_adv_s · bow") as display:
        display._shown = time.monotonic() - 1
        fed(display)
        display.warn("[not markup]")
    text = screen.getvalue()
    assert "internvl3 · ref_adv_s · bow" in text
    assert "1/8" in text
    assert "[not markup]" in text


def test_hours_are_shown_as_hours():
    display = fed(Display(100_000, "m"))
    assert ":" in display.line(display.started + 60).split("left")[0].split("·")[2]
    assert display.line(display.started + 1).count(":") == 2
