"""MLflow's own pages, opened in a browser on what the tracker logged."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from refadv_ablate.commands import ui
from refadv_ablate.errors import UserError
from refadv_ablate.tracking import views
from refadv_ablate.tracking.mlflow import LAUNCH, MlflowTracker
from tests.tracking.test_tracking import cell_folder, comparison, info

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MODELS, OPERATORS = ("qwen2.5vl-72b", "internvl3-14b"), ("bow", "fixed", "descriptor_deletion")


@dataclass
class Served:
    """A sweep of two models and three operators behind a running server."""

    address: str
    parent: str
    children: list[str]

    def compare(self) -> str:
        runs, experiments = quote(json.dumps(self.children)), quote('["1"]')
        return f"{self.address}/#/compare-runs?runs={runs}&experiments={experiments}"

    def run(self, run_id: str, artifact: str = "") -> str:
        return f"{self.address}/#/experiments/1/runs/{run_id}{f'/artifacts/{artifact}' if artifact else ''}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if not CHROMIUM.exists():
        pytest.skip("no Chromium is installed here (/usr/bin/chromium)")
    pytest.importorskip("playwright", reason="playwright is not installed (extra: dev)")
    folder = tmp_path_factory.mktemp("ui")
    before = os.environ.get(LAUNCH)
    tracker = MlflowTracker(uri=f"sqlite:///{folder}/mlflow.db", launch_dir=folder)
    tracker.prepare()
    cells = [
        comparison(model, operator, drop=0.1 + 0.05 * i + 0.04 * j)
        for i, model in enumerate(MODELS)
        for j, operator in enumerate(OPERATORS)
    ]
    parent = tracker.open_sweep(
        "model=qwen2_5vl,internvl3 perturb=bow,fixed,descriptor_deletion", {"sweep": "s"}
    )
    children = []
    for cell in cells:
        children.append(tracker.open_cell(parent, info(cell)))
        tracker.finish_cell(children[-1], cell, cell_folder(folder, cell))
    tracker.close_sweep(parent, cells, folder / "none", [("glm · cot · bow", "failed: no weights")])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words, environment = ui.command(tracker.resolved, "127.0.0.1", port, None)
    log = (folder / "server.log").open("w")
    server = subprocess.Popen(words, env=environment, stdout=log, stderr=log, cwd=folder)
    try:
        _wait(f"http://127.0.0.1:{port}/health", server, folder / "server.log")
        yield Served(f"http://127.0.0.1:{port}", parent, children)
    finally:
        server.terminate()
        server.wait(30)
        log.close()
        os.environ.pop(LAUNCH, None)
        if before is not None:
            os.environ[LAUNCH] = before


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(0.5)
    pytest.fail(f"the server does not answer: {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        found = tools.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS, headless=True)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1500, "height": 1100})
    opened.set_default_timeout(60_000)
    # MLflow opens its assistant over the page on a first visit
    opened.add_init_script("localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')")
    yield opened
    opened.close()


def keep(page: Any, name: str) -> None:
    """A picture for people, where REFADV_SCREENSHOTS names a folder."""
    if folder := os.environ.get("REFADV_SCREENSHOTS"):
        page.wait_for_timeout(1500)
        page.screenshot(path=f"{folder}/{name}.png")


@pytest.mark.browser
def test_children_compare_by_model_and_operator(served: Served, page: Any) -> None:
    page.goto(served.compare())
    page.get_by_text("Comparing 6 Runs").wait_for()
    plot = page.locator(".js-plotly-plot, .parcoords").first
    plot.wait_for()
    page.locator("svg text", has_text="perturb").first.wait_for()
    drawn = set(page.locator("svg text").all_text_contents())
    assert {"model", "perturb", "acc50/delta"} <= drawn  # the plot opens on Δ
    assert {"bow", "fixed"} <= drawn
    assert any(text.startswith("internvl3") for text in drawn)
    body = page.inner_text("body")
    for model in MODELS:
        for operator in OPERATORS:
            assert f"{operator} · {model}" in " ".join(body.split())
    assert "acc50/delta_ci_low" in page.content()
    keep(page, "mlflow-compare-desktop")


@pytest.mark.browser
def test_the_comparison_can_be_read_on_a_phone(served: Served, page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(served.compare())
    page.get_by_text("Comparing 6 Runs").wait_for()
    page.get_by_label("Toggle sidebar").first.click()
    name = page.get_by_text("bow · qwen2.5vl-72b").first
    name.scroll_into_view_if_needed()
    box = name.bounding_box()
    assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    keep(page, "mlflow-compare-phone")


@pytest.mark.browser
def test_the_parent_shows_the_table_and_every_delta(served: Served, page: Any) -> None:
    page.goto(served.run(served.parent))
    page.get_by_text("n/cells").first.wait_for()
    body = page.inner_text("body")
    assert "original against perturbed on the same examples" in body
    assert "data: refcoco+_val; prompt: direct" in body
    assert "no weights" in page.content()
    for model in MODELS:  # the child runs, which come a moment later
        page.get_by_text(f"bow · {model}").first.wait_for()
    keep(page, "mlflow-parent")
    page.goto(served.run(served.parent, "summary.html"))
    frame = page.frame_locator("iframe").first
    frame.get_by_text("descriptor_deletion").first.wait_for()
    assert "−10.0 [−15.0, −5.0]" in frame.locator("table").first.inner_text()
    keep(page, "mlflow-summary")


@pytest.mark.browser
def test_predictions_open_as_a_table_and_texts_are_no_markup(served: Served, page: Any) -> None:
    page.goto(served.run(served.children[0], "predictions_table.json"))
    page.get_by_text("View as table").wait_for()
    page.get_by_text("ex3").first.wait_for()
    assert "ball <b>red</b> a" in page.inner_text("body")
    assert page.locator("b", has_text="red").count() == 0
    keep(page, "mlflow-predictions")


@pytest.mark.browser
def test_a_saved_view_opens_with_columns_charts_and_tables(served: Served, page: Any) -> None:
    name = views.of_sweep(served.parent)
    page.goto(views.address(served.address, "1", name))
    page.get_by_text("6 matching runs").wait_for()
    page.locator("[role=columnheader]", has_text="acc50/delta_ci_low").first.wait_for()
    heads = page.locator("[role=columnheader]").evaluate_all(
        "all => all.map(e => [e.getBoundingClientRect().left, e.innerText])"
    )
    told = " ".join(text for _, text in sorted(heads))  # the grid's own order isn't what people see
    assert 0 <= told.find("perturb") < told.find("acc50/delta") < told.find("acc50/delta_ci_low")
    keep(page, "mlflow-view")
    page.goto("about:blank")  # another fragment alone loads nothing anew
    page.goto(views.address(served.address, "1", name, "CHART"))
    page.get_by_text("Original against perturbed").first.wait_for()
    page.get_by_text("Parallel Coordinates").wait_for()
    keep(page, "mlflow-view-charts")
    page.goto("about:blank")  # another fragment alone loads nothing anew
    page.goto(views.address(served.address, "1", name, "ARTIFACT"))
    page.get_by_text("Compare:").first.wait_for()
    page.get_by_text("ex3").first.wait_for()
    keep(page, "mlflow-view-tables")


# ── the command ─────────────────────────────────────────────────────────────────────────────────

MLFLOW = {
    "_target_": "refadv_ablate.tracking.mlflow.MlflowTracker",
    "uri": None,
    "experiment": "refadv-ablate",
}


def config(**options: object) -> SimpleNamespace:
    keys = {"action": "serve", "host": "127.0.0.1", "port": 0, "allowed_hosts": None, "path": None}
    tracking = options.pop("tracking", MLFLOW)
    return SimpleNamespace(command={**keys, **options}, tracking=tracking)


def test_mistakes_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(UserError, match=r"there is no MLflow database .*mlflow\.db; run something first"):
        ui.run(config())
    with pytest.raises(UserError, match="no `ui server`; did you mean 'serve'"):
        ui.run(config(action="server"))
    with pytest.raises(UserError, match="tracking=none keeps no log"):
        ui.run(config(tracking={"_target_": "refadv_ablate.tracking.mlflow.NoTracker"}))
    with pytest.raises(UserError, match=r"ui log needs path="):
        ui.run(config(action="log"))
    (tmp_path / "mlflow.db").touch()
    with pytest.raises(UserError, match="port='x' needs a number"):
        ui.run(config(port="x"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match="choose another port"):
            ui.run(config(port=taken.getsockname()[1]))
    assert ui.run(config(tracking={**MLFLOW, "uri": "http://node:5000"})) == 0
    assert "http://node:5000" in capsys.readouterr().out


def test_a_password_is_in_the_environment_and_not_in_the_words() -> None:
    words, environment = ui.command("postgresql://u:hidden@h/db", "0.0.0.0", 7, "node7:7")
    assert "hidden" not in " ".join(words)
    assert environment["MLFLOW_BACKEND_STORE_URI"] == "postgresql://u:hidden@h/db"
    assert words[words.index("--allowed-hosts") + 1] == "node7:7"
    assert shutil.which(words[0])
