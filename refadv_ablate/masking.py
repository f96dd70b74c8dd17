"""Secrets: known by the name they stand under and by their value, and replaced by *** wherever text goes.

A secret is the value of an environment variable that is named like one or that a config names as the
place of a key (`api_key_env`), the login of a URL, and a query parameter or config key named like one.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from refadv_ablate.errors import printable

MASK = "***"
SHORTEST = 8
"""Characters below which a value is masked only where its name stands: it might be any word."""
VARIABLE = "REFADV_HIDDEN_"

_NAME = r"(?:api[-_]?key|access[-_]?key|subscription[-_]?key|(?:access|auth|bearer|hf)[-_]?token|secret(?:[-_]?key)?|password|passwd|authorization)"  # noqa: E501
_VARIABLE_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_KEY_NAME = re.compile(rf"(^|[._-]){_NAME}$|^token$", re.IGNORECASE)
_PATTERNS = (
    # user:password@ keeps the user; token@ is all secret
    re.compile(r"(?P<before>://(?:[^:/@?#\s'\"]*:)?)(?P<secret>[^/?#\s'\"]+)(?=@)"),
    re.compile(
        r"(?P<before>[?&;][\w.-]*(?:key|token|secret|password|passwd|pwd|sig|signature|auth|credentials?)=)"
        r"(?P<secret>[^&#;\s'\"]+)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?P<before>(?<![A-Za-z0-9]){_NAME}['\"]?(?:[=:](?![\s/])|:\s*(?=['\"]))['\"]?)(?P<secret>[^\s'\",}}&]+)",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<before>\bbearer\s+)(?P<secret>[\w.~+/=-]{8,})", re.IGNORECASE),
)
_learnt: set[str] = set()


def learn(config: Any, name: str = "") -> None:
    """Takes note of the secrets that a config holds or names, so that they are masked by value as well."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            learn(value, str(key))
    elif isinstance(config, list | tuple):
        for value in config:
            learn(value, name)
    elif isinstance(config, str):
        if name.endswith("_env"):
            _learnt.add(os.environ.get(config, "").strip())
        elif _KEY_NAME.search(name):
            _learnt.add(config)
        _replaced(config, _noted)


def _noted(secret: str) -> str:
    _learnt.add(secret)
    return secret


def learn_words(words: Sequence[str]) -> None:
    """As `learn`, for the words of a command."""
    for word in words:
        key, _, value = word.partition("=")
        learn(value, key.rpartition(".")[2])


def secrets() -> list[str]:
    """Every value that is known to be a secret, longest first."""
    named = {value.strip() for name, value in os.environ.items() if _VARIABLE_NAME.search(name)}
    return sorted((value for value in named | _learnt if len(value) >= SHORTEST), key=len, reverse=True)


def censored(text: str) -> str:
    """The text without secrets."""
    for secret in secrets():
        text = text.replace(secret, MASK)
    return _replaced(text, lambda _: MASK)


def masked(config: Any, name: str = "") -> Any:
    """The config without secrets: by the names of its keys, and within its texts."""
    if isinstance(config, Mapping):
        return {key: masked(value, str(key)) for key, value in config.items()}
    if isinstance(config, list | tuple):
        return [masked(value, name) for value in config]
    if config is not None and _KEY_NAME.search(name):
        return MASK
    return censored(config) if isinstance(config, str) else config


def hidden(words: Sequence[str]) -> list[str]:
    """The words of a command with each secret replaced by an interpolation of an environment variable.

    For a program that writes its words down: the values reach its workers with the environment.
    """
    stored: dict[str, str] = {}

    def reference(secret: str) -> str:
        name = stored.setdefault(secret, f"{VARIABLE}{len(stored)}")
        os.environ[name] = secret
        return f"${{oc.env:{name}}}"

    return [_hidden(word, reference) for word in words]


def _hidden(word: str, reference: Callable[[str], str]) -> str:
    key, equals, value = word.partition("=")
    if equals and value and _KEY_NAME.search(key.rpartition(".")[2]) and not value.startswith("${"):
        return f"{key}={reference(value)}"
    return _replaced(word, reference)


def told(word: str) -> str:
    """A word as `hidden` made it, as it is shown to people."""
    return censored(re.sub(rf"\$\{{oc\.env:{VARIABLE}\d+\}}", MASK, word))


def _replaced(text: str, make: Callable[[str], str]) -> str:
    def one(match: re.Match[str]) -> str:
        secret = match["secret"]
        return match["before"] + (secret if _no_secret(secret) else make(secret))

    for pattern in _PATTERNS:
        text = pattern.sub(one, text)
    return text


def _no_secret(text: str) -> bool:
    """Whether it only stands for a secret: a mask, an ellipsis, an interpolation."""
    return text in (MASK, "…", "...", "null") or text.startswith(("${", "$"))


def mask_logs() -> None:
    """Lets no log record of this process hold a secret or command a terminal, whoever writes it."""
    make = logging.getLogRecordFactory()
    if getattr(make, "masks", False):
        return

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = make(*args, **kwargs)
        try:
            text = made.getMessage()
        except (TypeError, ValueError):  # a format that doesn't fit: logging says so itself
            return made
        if (clean := printable(censored(text))) != text:
            made.msg, made.args = clean, None
        return made

    record.masks = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record)
