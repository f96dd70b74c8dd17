"""What calls need to know of a server, and the sentences for one that answers nobody any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from refadv_ablate.models.servers.retrying import UNREADABLE, Failure

if TYPE_CHECKING:
    from refadv_ablate.models.servers.budget import Budget
    from refadv_ablate.models.servers.pace import Limit
    from refadv_ablate.types import ModelSpec


class Server(Protocol):
    """The settings of an engine whose requests go to a server; models.openai.OpenAI documents each."""

    spec: ModelSpec
    timeout: float
    deadline: float
    attempts: int
    patience: float
    first_patience: float
    first_failures: int
    backoff_base: float
    backoff_cap: float
    longest_rest: float
    retries: int
    budget: Budget
    limit: Limit

    @property
    def url(self) -> str:
        """Where requests are sent."""

    def option(self, name: str, default: Any) -> Any:
        """A setting of the engine, of the model for this engine, or the default."""


def fatal(server: Server, failure: Failure) -> str:
    """Every request would be refused like this one."""
    name = server.option("served_name", server.spec.checkpoint)
    return (
        f"{server.url} refuses every request for {name!r} ({failure.reason}): check the key in "
        f"{server.option('api_key_env', 'OPENAI_API_KEY')}, the model's name "
        "(backend.served_name=…) and the address (backend.base_url=…)"
    )


def starved(server: Server, failure: Failure, answers: int) -> str:
    """A rate limit let nothing through for too long."""
    return (
        f"{server.url} has refused every call for {server.patience:g} s ({failure.reason}); the "
        f"{answers} answers so far are kept: run the same command again when it takes more"
    )


def gone(server: Server, failure: Failure, answers: int) -> str:
    """The server answers nothing, or nothing that could be read, after so many answers."""
    url = server.url
    if not answers and failure.reason.startswith("HTTP"):
        return f"the server at {url} answers with nothing but errors ({failure.reason}): look at its log"
    if not answers and failure.reason.startswith(UNREADABLE):
        return (
            f"what answers at {url} speaks no chat completions ({failure.reason}): check "
            "backend.base_url=…, which ends in /v1 on most servers"
        )
    if not answers:
        return f"no server answers at {url} ({failure.reason}): start it, or give backend.base_url=…"
    return (
        f"the server at {url} stopped answering ({failure.reason}) and did not come back within "
        f"{server.patience:g} s; the {answers} answers so far are kept: run the same "
        "command again when it is back"
    )
