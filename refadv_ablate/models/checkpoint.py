"""Where weights are, what identifies them, and one sentence where they can't be had."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from refadv_ablate.errors import ModelUnavailable
from refadv_ablate.types import ModelSpec

PROBE_SECONDS = 5.0
ROUTE_SECONDS = 1.0
"""For a first connection to the hub, before its client with its retries is asked."""
REMEDY = (
    "give model.checkpoint=FOLDER with the weights or another hub id, or ask a server with "
    "backend=openai backend.base_url=…; model=tiny_internvl3 ships in the box and needs no hub"
)
MODEL_FILES = ("*.safetensors", "*.bin", "*.json", "*.jinja", "*.txt")
EDGE = 1 << 20
SAMPLES = 512
SAMPLE = 4096


def unavailable(spec: ModelSpec, cause: str, remedy: str = REMEDY) -> ModelUnavailable:
    """The sentence: checkpoint, cause, what to do."""
    return ModelUnavailable(f"{spec.name} can't be loaded from {spec.checkpoint}: {cause}; {remedy}")


def local_folder(checkpoint: str) -> Path | None:
    """The folder that is meant, if any; a hub id that also is a folder here means the folder."""
    path = Path(checkpoint).expanduser()
    return path if path.is_dir() else None


def locate(spec: ModelSpec) -> str:
    """What `from_pretrained` takes, after a quick look whether it can be had at all.

    Without this look the hub's client would try for minutes. Raises ModelUnavailable.
    """
    folder = local_folder(spec.checkpoint)
    if folder is not None:
        if not (folder / "config.json").is_file():
            raise unavailable(
                spec, "the folder has no config.json, so it is no checkpoint in the hub's layout"
            )
        return str(folder)
    if spec.checkpoint.startswith(("/", ".", "~")) or spec.checkpoint.count("/") != 1:
        raise unavailable(spec, "there is no such folder")
    if not _cached(spec):
        _probe(spec)
    return spec.checkpoint


def lacking(spec: ModelSpec) -> Iterator[tuple[str, str, bool]]:
    """("weights", one sentence, whether a run can't start so), without asking the hub."""
    from huggingface_hub import constants

    hub_id = not spec.checkpoint.startswith(("/", ".", "~")) and spec.checkpoint.count("/") == 1
    elsewhere = hub_id and local_folder(spec.checkpoint) is None and not _cached(spec)
    if elsewhere and not constants.HF_HUB_OFFLINE:
        told = "is not on this machine; the run would download it from the hub when it starts"
        yield "weights", f"{spec.checkpoint} {told}", False
        return
    try:
        locate(spec)
    except ModelUnavailable as error:
        yield "weights", str(error), True


def _cached(spec: ModelSpec) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(spec.checkpoint, "config.json", revision=spec.revision), str)


def _probe(spec: ModelSpec) -> None:
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if constants.HF_HUB_OFFLINE:
        raise unavailable(spec, "it is not in the local cache, and HF_HUB_OFFLINE forbids the download")
    _connect(spec, constants.ENDPOINT)
    try:
        HfApi().model_info(spec.checkpoint, revision=spec.revision, timeout=PROBE_SECONDS)
    except GatedRepoError as error:
        remedy = f"accept its terms at {constants.ENDPOINT}/{spec.checkpoint} and set HF_TOKEN"
        raise unavailable(spec, "it is gated", remedy) from error
    except RevisionNotFoundError as error:
        raise unavailable(
            spec, f"it has no revision {spec.revision!r}", "give another model.revision"
        ) from error
    except RepositoryNotFoundError as error:
        raise unavailable(spec, "the hub has no such model (a private one needs HF_TOKEN)") from error
    except HfHubHTTPError as error:
        raise unavailable(spec, f"the hub refuses ({str(error).splitlines()[0]})") from error
    except Exception as error:
        # whatever transport the client uses: no route, no name, a proxy, a timeout
        cause = f"the hub at {constants.ENDPOINT} can't be reached ({type(error).__name__})"
        raise unavailable(spec, cause) from error


def _connect(spec: ModelSpec, endpoint: str) -> None:
    """Raises ModelUnavailable where nothing listens at the hub's address; behind a proxy it can't be told."""
    if getproxies():
        return
    parts = urlsplit(endpoint)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        socket.create_connection((parts.hostname or "", port), ROUTE_SECONDS).close()
    except OSError as error:
        cause = f"the hub at {endpoint} can't be reached ({error.strerror or type(error).__name__})"
        raise unavailable(spec, cause) from error


def explain(spec: ModelSpec, error: Exception) -> ModelUnavailable:
    """The sentence for what `from_pretrained` raised."""
    import transformers

    text = " ".join(str(error).split())
    version = f"transformers {transformers.__version__}"
    if "trust_remote_code" in text:
        remedy = "model.trust_remote_code=true allows that, after you have read it"
        return unavailable(spec, f"its code is not part of {version} and would be run from the hub", remedy)
    if "does not recognize this architecture" in text or "Unrecognized" in text:
        return unavailable(
            spec, f"{version} does not know its architecture", f"install a newer one, or {REMEDY}"
        )
    if spec.trust_remote_code:
        cause = f"its own code does not run with {version} ({type(error).__name__}: {text[:200]})"
        return unavailable(spec, cause, f"serve it with the versions its authors name, or {REMEDY}")
    return unavailable(spec, text[:300] or type(error).__name__)


def fingerprint(checkpoint: str) -> str | None:
    """A hash of a local folder's files; None for a hub id.

    Of a large file: name, size, first and last MiB, and 512 blocks in between, since a fine-tuned
    checkpoint may differ from its base in the attention of the middle layers alone.
    """
    folder = local_folder(checkpoint)
    if folder is None:
        return None
    seen = hashlib.sha256()
    for path in sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern)}):
        size = path.stat().st_size
        seen.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            seen.update(file.read(EDGE))
            if size > EDGE:
                for number in range(1, SAMPLES):
                    file.seek(size * number // SAMPLES)
                    seen.update(file.read(SAMPLE))
                file.seek(-EDGE, os.SEEK_END)
                seen.update(file.read(EDGE))
    return seen.hexdigest()
