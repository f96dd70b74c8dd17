"""Where the experiment log lies: what a tracking URI means, seen from the launch directory."""

from __future__ import annotations

import os
from pathlib import Path

from refadv_ablate.errors import UserError


def tracking_uri(uri: str | None, launch_dir: Path) -> str:
    """The absolute tracking URI that is meant; see conf/tracking/mlflow.yaml. Raises UserError."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    given = uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"
    if "://" not in given and given != "databricks":
        what = "a file store, which MLflow has given up" if given.startswith("file:") else "no tracking URI"
        raise UserError(
            f"tracking.uri={given!r} is {what}; give sqlite:///FILE, http://HOST:PORT or postgresql://…"
        )
    if given.startswith("file:"):
        raise UserError(
            f"tracking.uri={given!r} is a file store, which MLflow has given up; give sqlite:///FILE"
        )
    if not given.startswith("sqlite"):
        return given
    try:
        url = make_url(given)
    except ArgumentError as error:
        raise UserError(f"tracking.uri={given!r} is no URI; give sqlite:///FILE") from error
    if not url.database or ":memory:" in given or "mode=memory" in given:
        raise UserError(f"tracking.uri={given!r} would be lost with the process; give sqlite:///FILE")
    path = Path(launch_dir).resolve() / Path(url.database).expanduser()
    # not rendered by SQLAlchemy, whose escapes of spaces and letters MLflow takes for a folder's name
    _, _, query = given.partition("?")
    shown = str(path).replace("%", "%25").replace("?", "%3F")
    return f"{url.drivername}:///{shown}" + (f"?{query}" if query else "")


def database_file(uri: str) -> Path | None:
    """The file of an absolute SQLite URI, None for a server."""
    from sqlalchemy.engine import make_url

    return Path(str(make_url(uri).database)) if uri.startswith("sqlite") else None
