"""`refadv-ablate ui`: MLflow's pages on the right store, or a sweep's folder sent there later."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError, nearest
from refadv_ablate.masking import censored
from refadv_ablate.tracking.uri import database_file, tracking_uri

QUIET = ("--uvicorn-opts", "--log-level warning")
"""A line for each file that a browser fetches would push the addresses off the screen."""


def run(cfg: Any) -> int:
    """Reads its keys under cfg.command, and where the log lies under cfg.tracking; blocks while it serves."""
    options = dict(cfg.command)
    actions = {"serve": serve, "log": send}
    action = str(options["action"])
    if action not in actions:
        raise UserError(f"there is no `ui {action}`; {nearest(action, actions)}")
    tracking = dict(cfg.tracking)
    if "MlflowTracker" not in str(tracking.get("_target_")):
        raise UserError("tracking=none keeps no log to look at; leave it out, or give tracking=mlflow")
    return actions[action](options, tracking)


def serve(options: Mapping[str, Any], tracking: Mapping[str, Any]) -> int:
    """Starts `mlflow ui`; returns its exit status when it ends."""
    uri = tracking_uri(tracking.get("uri"), Path.cwd())
    if uri.startswith("http"):
        print(f"MLflow is served already: {censored(uri)}")
        return 0
    path = database_file(uri)
    if path is not None and not path.is_file():
        raise UserError(f"there is no MLflow database {path}; run something first, or give tracking.uri=…")
    words, environment = command(uri, str(options["host"]), port(options), options.get("allowed_hosts"))
    address = f"http://{options['host']}:{words[-1]}"
    print(f"MLflow on {path or 'its database'}: {address} (Ctrl-C ends it)")
    for label, page in _pages(tracking, address):
        print(f"  {label}: {page}")
    sys.stdout.flush()
    with subprocess.Popen(words, env=environment) as server:  # noqa: S603 our own words, no shell
        try:
            return server.wait()
        except KeyboardInterrupt:
            server.terminate()
            return 0


def _pages(tracking: Mapping[str, Any], address: str) -> list[tuple[str, str]]:
    """The pages worth opening first; none where the log can't tell."""
    from refadv_ablate.tracking.mlflow import MlflowTracker

    keys = {key: value for key, value in tracking.items() if not key.startswith("_")}
    try:
        return MlflowTracker(**keys, launch_dir=Path.cwd()).pages(address)
    except Exception:  # the server that starts now says better what is wrong with its database
        return []


def command(uri: str, host: str, port: int, allowed: str | None) -> tuple[list[str], dict[str, str]]:
    """The words and the environment that start the pages; the URI may hold a password, so it isn't a word."""
    environment = {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_REGISTRY_STORE_URI": uri,  # else a line says that it is this one
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PYTHONWARNINGS": "ignore",  # of what MLflow's own packages will change some day
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # eight worker processes that viewing has no use for
    }
    environment.pop("MLFLOW_TRACKING_URI", None)
    path = database_file(uri)
    if path is not None:
        environment["MLFLOW_DEFAULT_ARTIFACT_ROOT"] = (path.parent / "mlartifacts").as_uri()
    more = ["--allowed-hosts", allowed] if allowed else []
    words = [sys.executable, "-m", "mlflow", "server", "--workers", "1", *more, *QUIET, "--host", host]
    return [*words, "--port", str(port)], environment


def port(options: Mapping[str, Any]) -> int:
    """The port to serve on. Raises UserError for one that is in use or none at all."""
    wanted = options["port"]
    if not isinstance(wanted, int) or not 0 <= wanted < 65536:
        raise UserError(f"port={wanted!r} needs a number from 0 to 65535")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(options["host"]), wanted))
        except OSError as error:
            raise UserError(
                f"host={options['host']} port={wanted}: {error.strerror}; choose another port=…"
            ) from error
        return int(probe.getsockname()[1])


def send(options: Mapping[str, Any], tracking: Mapping[str, Any]) -> int:
    """Logs the folder of a sweep."""
    from refadv_ablate.tracking.log_again import log_folder
    from refadv_ablate.tracking.mlflow import MlflowTracker

    if options.get("path") is None:
        raise UserError("ui log needs path=… (a folder such as results/sweeps/…)")
    keys = {key: value for key, value in tracking.items() if not key.startswith("_")}
    tracker = MlflowTracker(**keys, launch_dir=Path.cwd())
    for line in tracker.where(log_folder(tracker, Path(str(options["path"])))):
        print(line)
    return 0
