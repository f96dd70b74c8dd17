"""Secrets are masked by name and by value, wherever text leaves the process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from refadv_ablate import masking
from refadv_ablate.cli import main
from refadv_ablate.masking import censored, hidden, learn, learn_words, masked, told
from refadv_ablate.models.openai import OpenAI
from tests.models.asking import spec
from tests.models.server import BOX, Fail, Say, Server

SECRET = "pa55word-of-mine"


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(masking, "_learnt", set())
    before = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(before)


WORDS = [
    f"backend.base_url=http://me:{SECRET}@host:1/v1",
    f"backend.base_url=http://{SECRET}@host:1/v1",
    f"backend.base_url=http://me:{SECRET}@x@host:1/v1",
    f"backend.base_url='http://host/v1?api-key={SECRET}'",
    f"backend.base_url='http://host/v1?a=1&access_token={SECRET}&b=2'",
    f"backend.extra_body.api_key={SECRET}",
    f"+backend.extra_body.Authorization={SECRET}",
    f"+backend.extra_body={{api_key:{SECRET},top_k:1}}",
    f"tracking.uri=http://me:{SECRET}@mlflow.example",
    f"store=postgresql://me:{SECRET}@db/answers",
    f"backend.base_url=http://a:{SECRET}@one/v1,http://b:{SECRET}@two/v1",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_holds_a_secret_shows_none(word: str) -> None:
    assert SECRET not in censored(word) and masking.MASK in censored(word)
    (kept,) = hidden([word])
    assert SECRET not in kept and "${oc.env:REFADV_HIDDEN_0}" in kept
    assert SECRET not in told(kept) and "REFADV_HIDDEN" not in told(kept)


@pytest.mark.parametrize("word", [w for w in WORDS if "@x@" not in w])
def test_a_secret_of_a_word_is_masked_by_value_elsewhere(word: str) -> None:
    learn_words([word])
    assert SECRET not in censored(f"the server said: {SECRET} is wrong")


@pytest.mark.parametrize("word", [w for w in WORDS if "@x@" not in w])
def test_hydra_reads_the_hidden_words_as_the_same(word: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    def values(text: str) -> list[Any]:
        override = OverridesParser.create().parse_override(text)
        found = list(override.sweep_iterator()) if override.is_sweep_override() else [override.value()]
        made = OmegaConf.create({"v": [str(v).strip("'") if not isinstance(v, dict) else v for v in found]})
        read = OmegaConf.to_container(made, resolve=True)
        assert isinstance(read, dict)
        return [str(v) for v in read["v"]]

    assert values(hidden([word])[0]) == values(word)


@pytest.mark.parametrize(
    "text",
    [
        "backend.api_key_env=OPENAI_API_KEY",
        "needs an API key in the environment variable OPENAI_API_KEY: export OPENAI_API_KEY=…",
        "backend.token_limit=max_completion_tokens",
        "model.checkpoint=org/name data.path=/a/b:c",
        "https://docs.example/page?n=3&key_points=2#top",
        "ask me at someone@example.org",
        "the answer [1, 2, 3, 4] token: x",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert censored(text) == text
    if " " not in text:
        assert hidden([text]) == [text]


def test_a_config_is_masked_by_the_names_of_its_keys() -> None:
    config = {
        "extra_body": {"api_key": "short", "top_k": 1, "max_tokens": 5},
        "api_key_env": "SOME_VAR",
        "url": [f"http://x:{SECRET}@h"],
        "prompt": {"key": "direct", "token_limit": "max_tokens"},
        "password": None,
    }
    assert masked(config) == {
        "extra_body": {"api_key": "***", "top_k": 1, "max_tokens": 5},
        "api_key_env": "SOME_VAR",
        "url": ["http://x:***@h"],
        "prompt": {"key": "direct", "token_limit": "max_tokens"},
        "password": None,
    }


def test_a_key_whose_variable_is_not_named_like_one_is_known_by_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_VENDOR", SECRET)
    learn({"backend": {"api_key_env": "MY_VENDOR"}})
    assert censored(f"wrong key {SECRET}") == "wrong key ***"


def test_logs_of_any_library_hold_none(caplog: pytest.LogCaptureFixture) -> None:
    learn_words([WORDS[0]])
    masking.mask_logs()
    with caplog.at_level(logging.INFO):
        logging.getLogger("hydra").info("#%d : %s", 0, WORDS[0])
    assert SECRET not in caplog.text and "#0 : " in caplog.text


def test_a_key_in_the_body_is_sent_and_identifies_nothing() -> None:
    one, other = (
        OpenAI(
            spec=spec(), base_url="http://127.0.0.1:9/v1", extra_body={"api_key": key, "top_k": 1}
        ).identity()
        for key in (SECRET, "another")
    )
    assert one == other and SECRET not in str(one)
    plain = OpenAI(spec=spec(), base_url="http://127.0.0.1:9/v1", extra_body={"top_k": 1}).identity()
    assert plain["extra_body"] == {"top_k": 1}  # the key of an answer that needs no secret is as it was


@pytest.mark.parametrize("fails", [False, True])
def test_a_sweep_leaves_no_secret_anywhere(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFADV_SWEEP", "")
    monkeypatch.setenv("OPENAI_API_KEY", "none-needed")
    echo = Fail(401, f"no such user: {SECRET}")
    with Server(lambda n, body: echo if fails else Say(BOX)) as server:
        url = server.url.replace("http://", f"http://me:{SECRET}@")
        status = main(
            [
                *(
                    "-m",
                    "data=shapes",
                    "model=qwen3_vl",
                    "backend=openai",
                    f"backend.base_url={url}",
                    "perturb=bow",
                ),
                *(f"+backend.extra_body.api_key={SECRET}-too", "data=shapes", "data.n=2", "gallery=0"),
                *("tracking=none", "progress=off", "pages=false"),
            ]
        )
        assert server.bodies[0]["api_key"] == f"{SECRET}-too"
        assert server.headers[0]["Authorization"]
    assert status == (1 if fails else 0)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "multirun.yaml" for path in files)
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
    assert not [path for path in tmp_path.rglob("*") if SECRET in path.name]
