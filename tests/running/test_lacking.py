"""`--dry-run`: each cell with what it lacks, each lack once with the jobs that it concerns."""

import json

import pytest

from refadv_ablate import assets
from refadv_ablate.running import dry_run
from refadv_ablate.running.lacking import look


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch, tmp_path):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "REFADV_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def two_rows(tmp_path):
    """A file of two examples without candidates."""
    from PIL import Image

    Image.new("RGB", (64, 48), "white").save(tmp_path / "a.png")
    row = {"image": "a.png", "box": [1, 2, 30, 40]}
    lines = [json.dumps({**row, "expression": text}) for text in ("the left cup", "the red cup")]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    return ["data=jsonl", f"data.path={tmp_path}/rows.jsonl"]


def kinds(*words):
    return {lack.kind: lack for lack in look(assets.compose([*words]), "job").lacks}


def test_what_ships_in_the_box_lacks_nothing():
    assert kinds("limit=3") == {}
    assert kinds("model=tiny_internvl3", "limit=3") == {}


def test_files(tmp_path):
    lack = kinds("data=jsonl", "data.path=nope.jsonl")["files"]
    assert lack.stops and "nope.jsonl is not there" in lack.text
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"image": "gone.png", "expression": "a cup", "box": [0, 0, 9, 9]})
    )
    assert "gone.png" in kinds("data=jsonl", f"data.path={tmp_path}/rows.jsonl")["files"].text


def test_candidates(two_rows, tmp_path):
    lack = kinds(*two_rows, "model=gpt4o", "prompt=som")["candidates"]
    assert lack.stops and "2 of 2 examples" in lack.text
    assert "candidates" not in kinds(*two_rows, "model=gpt4o", "prompt=direct")
    (tmp_path / "boxes.json").write_text(json.dumps({"0": [[0, 0, 9, 9]], "a.png": [[0, 0, 9, 9]]}))
    words = ["model=gpt4o", "prompt=som_file", f"prompt.candidates.path={tmp_path}/boxes.json"]
    assert "candidates" not in kinds(*two_rows, *words)


def test_weights(monkeypatch):
    from huggingface_hub import constants

    words = ["model=qwen3_vl", "limit=2"]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    lack = kinds(*words)["weights"]
    assert lack.stops and "HF_HUB_OFFLINE" in lack.text
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    lack = kinds(*words)["weights"]
    assert not lack.stops and "Qwen/Qwen3-VL-8B-Instruct" in lack.text and "download" in lack.text
    assert kinds(*words, "model.checkpoint=./nothing")["weights"].stops
    assert kinds(*words, "backend=ray", "model.checkpoint=./nothing")["weights"].stops
    assert kinds(*words, "prompt=som_sam", "prompt.candidates.checkpoint=./none")["weights"].stops


def test_address_key_and_prompt(monkeypatch):
    assert kinds("model=qwen3_vl", "backend=openai", "limit=2")["address"].stops
    assert "OPENAI_API_KEY" in kinds("model=gpt4o", "limit=2")["key"].text
    assert "ANTHROPIC_API_KEY" in kinds("model=claude", "limit=2")["key"].text
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-123456")
    assert not any(lack.stops for lack in kinds("model=gpt4o", "limit=2").values())
    assert "no prompt of the style" in kinds("model=listener", "prompt=som", "limit=2")["prompt"].text


def test_money_is_told_and_stops_nothing():
    lack = kinds("model=gpt4o", "limit=2")["money"]
    # 9,011 tokens at 2.5 and 512 at 10 USD a million; two examples, original and one shuffle
    assert not lack.stops and "0.0276 USD" in lack.text and "4 requests 0.11 USD" in lack.text
    assert (
        "budget_usd=0.01 may end the run early"
        in kinds("model=gpt4o", "limit=2", "budget_usd=0.01")["money"].text
    )
    assert "money" not in kinds("model=gpt4o", "limit=2", "budget_usd=5")
    assert "money" not in kinds("model=qwen3_vl", "limit=2")


def test_requests_tokens_and_money_are_counted(capsys):
    cost = look(assets.compose(["model=gpt4o", "limit=3", "perturb=[bow,absent,subsets]"]), "job").cost
    draws = look(assets.compose(["model=gpt4o", "limit=3", "perturb=bow"]), "job").cost.requests - 3
    # the original twice, once with a prompt that allows to say "none"; parts are one at least
    assert cost.requests == 3 * 2 + draws + 3 + 3 and set(cost.open) == {"absent", "subsets"}
    assert cost.usd == pytest.approx((cost.tokens_in * 2.5 + cost.tokens_out * 10) / 1e6)
    dry_run.list_cells(["model=listener", "limit=3"])
    told = capsys.readouterr().out
    assert "6 requests" in told and "no price" in told
    dry_run.list_cells(["model=gpt4o,listener", "limit=3", "perturb=subsets"])
    told = capsys.readouterr().out
    assert "at least 12 requests" in told and "USD for 1 of 2 jobs" in told and "subsets: one request" in told


def test_each_lack_is_told_once_with_its_jobs(capsys):
    words = ["model=gpt4o,listener", "data=ref_adv_s,shapes", "prompt=direct", "limit=2"]
    assert dry_run.list_cells(words) == 1
    cells, _, rest = capsys.readouterr().out.partition("\n\n")
    assert [
        line.split("lacks ")[-1] if "lacks" in line else line.split()[0] for line in cells.splitlines()
    ] == [
        "files, key",
        "key",
        "files",
        "new",
    ]
    assert rest.count("data/ref_adv_s is not there") == 1
    assert "lacks files (2 of 4 jobs)" in rest and "lacks key (2 of 4 jobs)" in rest
    assert rest.rstrip().endswith("4 cells, 3 jobs that lack something")


def test_a_command_that_lacks_nothing_ends_well(capsys):
    assert dry_run.list_cells(["model=listener,control/oracle", "limit=2"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("2 cells")


def test_looking_writes_nothing(tmp_path):
    look(assets.compose(["limit=2"]), "job")
    assert list(tmp_path.iterdir()) == []
