"""Every recipe composes, names only what exists, says what it needs, and can be rehearsed."""

import re
from functools import cache
from pathlib import Path

import pytest

from refadv_ablate import assets
from refadv_ablate.report.loading import published

EXPERIMENTS = assets.asset_dir("experiments")
PAPER = sorted(path.stem for path in (EXPERIMENTS / "paper").glob("*.yaml"))
ROBUSTNESS = sorted(path.stem for path in (EXPERIMENTS / "robustness").glob("*.yaml"))
ASKED_FOR = (
    "table2_fixed_prompt",
    "table3_bag_of_words",
    "table4_descriptor_deletion",
    "table6_ref_adv_s",
    "table7_main",
)


@cache
def composed(*overrides: str):
    """Composing takes a tenth of a second, and recipes share most of their parts."""
    return assets.compose(list(overrides))


@cache
def swept(*overrides: str) -> dict[str, list[str]]:
    """What the sweep of a recipe goes over."""
    config = assets.compose(list(overrides), with_hydra=True)
    return {key: str(text).split(",") for key, text in config.hydra.sweeper.params.items()}


def test_the_papers_recipes_are_there():
    assert set(ASKED_FOR) <= set(PAPER)


@pytest.mark.parametrize("name", PAPER)
def test_a_header_says_what_it_needs_and_what_it_chose(name):
    text = (EXPERIMENTS / "paper" / f"{name}.yaml").read_text(encoding="utf-8")
    for part in (
        "# @package _global_\n# Table",
        f"-m paper={name}\n",
        "using=embedded limit=50",
        "GPU memory",
        "tokens",
        "hours",
        "estimates, nothing here was measured",
        "leaves a choice open",
    ):
        assert part in text, part
    assert all(len(line) <= 121 for line in text.splitlines())


@pytest.mark.parametrize("name", PAPER)
def test_each_cell_of_a_paper_recipe_composes(name):
    """Every value on its own: the product would only repeat them."""
    found = swept(f"paper={name}")
    assert set(found) == {"model", "data", "prompt"}
    for group, values in found.items():
        for value in values:
            config = composed(f"{group}={value}")
            assert config[group]._target_.startswith("refadv_ablate.")


def test_sized_models_name_their_checkpoint_and_the_papers_lines_are_all_run():
    asked: dict[str, set[str]] = {}
    for name in PAPER:
        table = name.split("_")[0]
        if table not in ("table6", "table7"):
            continue
        for model in swept(f"paper={name}")["model"]:
            spec = assets.plain(composed(f"model={model}").model)
            asked.setdefault(table, set()).update(
                map(published.model_key, (spec["checkpoint"], spec["name"]))
            )
    for table, column in (("table6", True), ("table7", False)):
        wanted = {
            f"{row['family']}-{row['model']}" if column else row["model"] for row in published.rows(table)
        } - {"CogVLM-Grounding", "GPT-4o", "Claude-3.5 Sonnet", "Gemini 2.5-Flash", "Gemini 2.5-Pro"}
        absent = {model for model in wanted if published.model_key(model) not in asked[table]}
        assert not absent


@pytest.mark.parametrize("name", PAPER)
def test_a_recipe_takes_the_place_of_its_data(name, monkeypatch):
    """A folder or a hub id as data.path, a form, or all sets below $REFADV_DATA, of each data set."""
    words = [f"paper={name}", "data.path=/data/some place", "data.form=hub"]
    whole = assets.sweep_params(words)
    assets.check(whole)
    forced = assets.forced(words, whole)
    assert forced == [f"paper={name}", "++data.path=/data/some place", "++data.form=hub"]
    assert composed(f"paper={name}", *forced[1:]) is not None, "as Hydra composes before it knows the jobs"
    monkeypatch.setenv("REFADV_DATA", "/elsewhere")
    for data in swept(f"paper={name}")["data"]:
        assert assets.plain(assets.compose([f"data={data}"]).data)["path"].startswith("/elsewhere/")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["paper=table6_ref_adv_s", "data.pth=x"], "data=ref_adv_s has no key 'pth'; did you mean 'path'"),
        (["paper=table6_ref_adv_s", "using=embedded", "data.path=x"], "data=shapes has no key 'path'"),
        (["data=ref_adv_s,shapes", "data.path=x"], "data=shapes has no key 'path'"),
        (["model=qwen3_vl,listener", "model.size=8B"], "model=listener has no key 'size'"),
        (["paper=tabel6_ref_adv_s"], "did you mean 'table6_ref_adv_s'"),
    ],
)
def test_a_key_that_one_of_the_jobs_lacks_is_named_with_its_option(words, said):
    with pytest.raises(assets.UserError, match=re.escape(said)):
        assets.check(assets.sweep_params(words))


@pytest.mark.parametrize("name", PAPER)
def test_a_rehearsal_needs_nothing_but_the_package(name):
    found = swept(f"paper={name}", "using=embedded")
    assert found["data"] == ["shapes"]
    for model in found["model"]:
        checkpoint = composed(f"model={model}").model.checkpoint.removeprefix("control/")
        assert not re.search("http|/", checkpoint)


@pytest.mark.parametrize("name", ROBUSTNESS)
def test_robustness_recipes_compose(name):
    text = (EXPERIMENTS / "robustness" / f"{name}.yaml").read_text(encoding="utf-8")
    assert f"-m robustness={name}" in text
    for group, values in swept(f"robustness={name}").items():
        for value in values:
            assert composed(f"{group}={value}") is not None


def test_recipes_are_listed_with_a_line_each():
    for group, names in (("paper", PAPER), ("robustness", ROBUSTNESS)):
        found = assets.options(group)
        assert sorted(found) == names
        assert all(len(about) > 20 for about in found.values())


def test_variants_for_sweeps_are_a_size_or_a_split_and_nothing_else():
    for path in [*Path(EXPERIMENTS / "model").glob("*.yaml"), *Path(EXPERIMENTS / "data").glob("*.yaml")]:
        body = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        assert len(body) == 4
        assert re.fullmatch(r"(size|split): \S+", body[-1])
