"""One run over several workers: the same answers as one process gives, whatever the shards."""

from dataclasses import replace

import pytest

from refadv_ablate.assets import build, compose, plain
from refadv_ablate.errors import ModelUnavailable, UserError
from refadv_ablate.models.ray import RayEngine
from refadv_ablate.prompting.prompts import Style
from refadv_ablate.types import Perturbed

pytest.importorskip("ray.data", reason="needs Ray: pip install 'refadv-ablate[ray]'")
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
    ),
]
LISTENER = {"_target_": "refadv_ablate.models.listeners.listener.Listener"}


@pytest.fixture(scope="module")
def cluster():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.fixture(scope="module")
def requests():
    from refadv_ablate.prompting import prompts

    config = compose(["data=shapes", "data.n=24"])
    model = dict(plain(config.model))
    model.pop("engine")
    spec = build(model, "model")
    found = []
    for example in build(config.data, "data"):
        perturbed = Perturbed(example, example, "unchanged")
        found.append(prompts.build(spec, Style("direct"), perturbed, "original", 0))
    return spec, found


def test_shards_give_the_answers_of_one_process(cluster, requests):
    spec, asked = requests
    alone = {r.id: reply.text for r, reply in build(LISTENER, spec=spec).answer(asked)}
    engine = RayEngine(spec=spec, inner_config=LISTENER, workers=2, batch=5, window=17)
    found = [(r, reply) for r, reply in engine.answer(iter(asked))]
    assert len(found) == len(asked)
    assert {r.id: reply.text for r, reply in found} == alone
    assert all(any(r is mine for mine in asked) for r, _ in found), "requests come back as they were given"


def test_the_identity_is_the_inner_engines(cluster, requests):
    spec, _ = requests
    engine = RayEngine(spec=spec, inner_config=LISTENER)
    assert engine.identity() == build(LISTENER, spec=spec).identity()


def test_a_worker_that_cannot_start_is_a_sentence(cluster, requests):
    spec, asked = requests
    engine = RayEngine(
        spec=spec, inner_config={"_target_": "refadv_ablate.models.listeners.listener.Nothing"}
    )
    with pytest.raises(ModelUnavailable, match=r"listener\.Nothing") as error:
        list(engine.answer(asked))
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=r"listener\.Nothing") as told:
        engine.identity()
    assert "\n" not in str(told.value)


def test_what_stops_a_worker_is_told_in_its_own_words(cluster, requests, tmp_path, capfd):
    spec, asked = requests
    inner = {"_target_": "refadv_ablate.models.transformers.Transformers"}
    engine = RayEngine(spec=replace(spec, checkpoint=str(tmp_path)), inner_config=inner, workers=1)
    with pytest.raises(ModelUnavailable, match=r"the folder has no config\.json"):
        list(engine.answer(asked[:2]))
    assert "ray.data" not in capfd.readouterr().err
