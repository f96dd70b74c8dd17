"""Which server answers at an address, in which version, and what it calls the parts of a decoding.

OpenAI's protocol has no field for a repetition penalty, and a server that isn't told one takes the
checkpoint's own (vLLM, SGLang, transformers serve) or none (llama.cpp). So each is told in its own words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from refadv_ablate.types import Json, Sampling

SECONDS = 5.0
"""How long a server may take to say what it is; one that doesn't is asked for answers all the same."""
VERSIONS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("/version",),
    "sglang": ("/server_info", "/get_server_info"),
    "lmdeploy": (),
    "llamacpp": ("/props",),
}
"""Name of a server as it signs its list of models (`owned_by`) → where it tells its version."""
SENT = (
    "temperature", "top_p", "top_k", "min_p", "seed", "stop", "max_tokens", "max_completion_tokens",
    "repetition_penalty", "repeat_penalty", "frequency_penalty",
)  # fmt: skip
"""Fields of a call that say how it is decoded, in the words of one server or another."""

Get = Callable[[str], Awaitable[Any]]
"""GET of an address, or of a path under the server's own, as JSON; raises where that fails."""


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A server's name and version; both "" where it says neither."""

    name: str = ""
    version: str = ""

    def __str__(self) -> str:
        name = "transformers serve" if self.name == "transformers" else self.name
        return f"{name or 'OpenAI-compatible server'} {self.version or '(version not told)'}"

    def fields(self, sampling: Sampling) -> dict[str, Json]:
        """What a call has to say, beyond OpenAI's fields, to be decoded as declared."""
        penalty, drawn = sampling.repetition_penalty, sampling.temperature > 0
        if self.name == "transformers":  # frequency_penalty is 0 for a factor of 1 there; it takes no top_k
            return {"frequency_penalty": round(penalty - 1, 9)}
        if self.name == "llamacpp":
            return {"repeat_penalty": penalty} | ({"top_k": sampling.top_k, "min_p": 0.0} if drawn else {})
        if self.name in VERSIONS:
            few = {"top_k": sampling.top_k or -1, "min_p": 0.0} if drawn else {}
            return {"repetition_penalty": penalty} | few
        own = {"repetition_penalty": penalty} if penalty != 1 else {}
        return own | ({"top_k": sampling.top_k} if sampling.top_k and drawn else {})


def decoding(sent: Mapping[str, Json]) -> dict[str, Json]:
    """What a call said of its decoding, as it is kept with the answer."""
    return {name: sent[name] for name in SENT if name in sent}


class Known:
    """What answers at an address: asked once, and again where nothing was there yet."""

    def __init__(self, get: Get, base_url: str) -> None:
        self.kind = ServerKind()
        self._get, self._url, self._asked, self._lock = get, base_url, False, asyncio.Lock()

    async def __call__(self) -> ServerKind:
        """Never raises: where the server can't be reached, the request itself finds out and says so."""
        import openai

        async with self._lock:
            if not self._asked:
                try:
                    self.kind = await find_out(self._get, self._url)
                    self._asked = True
                except openai.APIError as error:
                    self._asked = isinstance(error, openai.APIStatusError)
        return self.kind


async def find_out(get: Get, base_url: str) -> ServerKind:
    """Asks a server what it is. Raises what `get` raises where it can't be reached."""
    root = base_url.rstrip("/").removesuffix("/v1")
    try:
        async with asyncio.timeout(SECONDS):
            models = await get("/models")
            listed = models.get("data") if isinstance(models, Mapping) else None
            first = listed[0] if isinstance(listed, list) and listed else None
            name = first.get("owned_by") if isinstance(first, Mapping) else None
            if name in VERSIONS:
                return ServerKind(str(name), await _version(get, root, VERSIONS[str(name)]))
            paths = (
                (await get(f"{root}/openapi.json")).get("paths", ()) if base_url.startswith("http://") else ()
            )
            return (
                ServerKind("transformers") if "/load_model" in paths and "/reset" in paths else ServerKind()
            )
    except (TimeoutError, AttributeError, ValueError):
        return ServerKind()


async def _version(get: Get, root: str, places: tuple[str, ...]) -> str:
    for place in places:
        try:
            told = await get(root + place)
        except Exception:  # noqa: S112  # another release has it elsewhere, or nowhere
            continue
        found = told.get("version") or told.get("build_info") if isinstance(told, Mapping) else None
        if isinstance(found, str):
            return found[:60]
    return ""
