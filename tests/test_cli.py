"""The command line: help, mistakes, exit codes; nothing heavy is imported for any of them."""

import importlib
import subprocess
import sys

import pytest

from refadv_ablate import assets, cli

HEAVY = ("torch", "transformers", "mlflow", "spacy", "matplotlib", "pandas", "datasets", "scipy")


def spoken(argv, capsys):
    status = cli.main(argv)
    out, err = capsys.readouterr()
    return status, out, err


def test_a_group_lists_all_its_options(capsys):
    status, out, _ = spoken(["--help", "model"], capsys)
    assert status == 0
    assert all(f"  {name} " in out for name in assets.options("model"))


def test_help_lists_commands_and_groups_on_one_screen(capsys):
    status, out, _ = spoken(["--help"], capsys)
    assert status == 0
    assert len(out.splitlines()) <= 64
    for word in (
        "perturb=",
        "bow",
        "model=",
        "data=",
        "doctor",
        "selftest",
        "seed: 0",
    ):
        assert word in out
    assert max(map(len, out.splitlines())) < 190


@pytest.mark.parametrize("command", sorted(cli.commands()))
def test_each_command_has_help(command, capsys):
    status, out, _ = spoken([command, "--help"], capsys)
    assert status == 0
    assert command in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["perturb=bwo"], "did you mean 'bow'"),
        (["model=internvl33"], "did you mean 'internvl3'"),
        (["perturb=bag_of_words"], "did you mean 'bow'"),
        (["perturb=shuffle"], "did you mean 'bow'"),
        (["perturb=[bow fixed]"], "'perturb=[bow,fixed]'"),
        (["prompt=CoT"], "did you mean 'cot'"),
        (["model=listener,replay"], "add -m to sweep\n"),
        (["perturb=bow,fixed"], "or write 'perturb=[bow,fixed]' for all in one run"),
        (
            ["model=Qwen/Qwen2.5-VL-7B-Instruct"],
            "model=qwen2_5_vl model.checkpoint=Qwen/Qwen2.5-VL-7B-Instruct",
        ),
        (["model=internvl3", "model.size=7B"], "sizes: 1B, 2B, 8B"),
        (["report", "results"], "it takes make, compare, cases, contrast"),
        (["compare"], "did you mean `report compare`?"),
        (
            ["robustness=noise_floor", "using=embedded"],
            "using= is a key of some recipes alone: paper=table2_fixed_prompt, paper=table3_bag_of_words",
        ),
        (["model=nothing_like_it"], "--help model"),
        (["seed=abc"], "seed='abc'"),
        (["limit=0"], "limit=0: give at least 1"),
        (["max_missing=2"], "a share of the answers"),
        (["report", "sorce=files"], "did you mean 'source'"),
        (["data=[shapes,refcoco]"], "sweep over several with -m data=shapes,refcoco"),
        (["budget_usd=-1"], "give dollars"),
        (["gallery=-1"], "0 for no gallery"),
        (["fail_fast=3"], "fail_fast=3"),
        (["metrics=acc50"], "a list, such as [a,b]"),
        (["perturb=[]"], "no perturbation is chosen"),
        (["out=/proc/nowhere"], "out=/proc/nowhere can't be written to"),
        (["retry=maybe"], "choose from none, format"),
        (["perturb.bow.n_shuffles=many"], "n_shuffles='many'"),
        (["perturb=bow,fixed"], "add -m"),
        (["hydra/launcher=joblib"], "no effect without -m"),
        (["-m", "hydra/launcher=nowhere"], "pip install 'refadv-ablate[cluster]'"),
        (["stat"], "did you mean 'stats'"),
        (["--multirn"], "did you mean '--multirun'"),
        (["data=jsonl", "data.path=/no/such/file.jsonl"], "/no/such/file.jsonl"),
        (["data=shapes", "data.n=-3"], "n"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(argv, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = spoken(argv, capsys)
    assert status == 2
    assert words in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "results").exists(), "a mistake leaves nothing behind"
    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.parametrize(
    "argv", [["--help"], ["model=internvl33"], ["seed=abc"], ["perturb.bow.n_shufles=1"]]
)
def test_help_and_mistakes_import_nothing_heavy(argv, tmp_path):
    code = (
        "import sys; from refadv_ablate import cli; cli.main(sys.argv[1:]);"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "HEAVY []" in done.stdout


def test_the_jobs_of_one_model_follow_each_other(capsys, tmp_path, monkeypatch):
    from refadv_ablate.running import job

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["refadv-ablate"])
    ran = []
    monkeypatch.setattr(
        job.Job, "execute", lambda own, *_: ran.append((own.parts.spec.name, *own.parts.operators))
    )
    words = ["perturb=bow,fixed", "tracking=none", "model=listener,listener_unordered"]
    spoken(["-m", *words], capsys)
    expected = [(m, o) for m in ("listener", "listener-unordered") for o in ("bow", "fixed")]
    assert ran == expected
    _, out, _ = spoken(["-m", "--dry-run", *words], capsys)
    assert [line.split()[1].split("--")[0] for line in out.splitlines()[:4]] == [m for m, _ in expected]


@pytest.mark.parametrize("name", sorted(cli.commands()))
def test_each_command_is_a_function_of_its_module(name):
    assert callable(importlib.import_module(f"refadv_ablate.commands.{name}").run)


def test_a_secret_in_the_configuration_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123456")
    status, _, err = spoken(["model.checkpoint=sk-secret-123456"], capsys)
    assert status == 2
    assert "$OPENAI_API_KEY" in err
    assert "sk-secret" not in err
