"""`refadv-ablate store stats|export|prune|repair`: what the prediction store holds, and its upkeep."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from refadv_ablate.errors import UserError, nearest
from refadv_ablate.types import Json

DAY = 86_400.0


def run(cfg: Any) -> int:
    """Reads its keys under cfg.command (see conf/command/store.yaml), and cfg.store as the main job does."""
    options = {**cfg.command, "store": cfg.store}
    actions: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
        "stats": stats,
        "export": export,
        "prune": prune,
        "repair": repair,
    }
    action = str(options["action"])
    if action not in actions:
        raise UserError(f"there is no `store {action}`; {nearest(action, actions)}")
    actions[action](options)
    return 0


def _open(options: Mapping[str, Any]) -> Any:
    """The database of a store that exists: looking at a store never makes one."""
    from refadv_ablate.storage.database import Database, resolve, shown

    url = str(options["store"])
    if url == "none":
        raise UserError("store=none keeps nothing, so there is nothing to look at; give a file or a URL")
    parsed = resolve(url)
    if parsed.get_backend_name() == "sqlite" and not Path(str(parsed.database)).is_file():
        raise UserError(f"there is no prediction store {shown(parsed)}; check store=…")
    return Database(parsed, create=False)


def stats(options: Mapping[str, Any]) -> None:
    """Prints answers per model with their age and room, and the size of the whole."""
    import sqlalchemy as sa

    from refadv_ablate.storage.database import TABLES, shown

    database = _open(options)
    print(f"{shown(database.url)}: {_room(database.size())} on disk")
    for name, table in TABLES.items():
        column = table.c
        size = sa.func.sum(sa.func.length(column.value))
        counted = sa.select(
            column.model, sa.func.count(), sa.func.min(column.created), sa.func.max(column.created), size
        )
        rows = database.all(counted.group_by(column.model).order_by(column.model))
        print(f"{sum(row[1] for row in rows):,} {name}")
        for model, count, first, last, characters in rows:
            label = model or "(no model named)"
            print(f"  {count:>10,}  {label:<32} {_day(first)} … {_day(last)}  {_room(characters)}")
    database.close()


def export(options: Mapping[str, Any]) -> None:
    """Writes one JSON line an answer: key, model, run, created, reply."""
    from refadv_ablate.storage.jsonl import to_line, write_jsonl

    rows = _exported(options)
    if options["path"] is not None:
        count = write_jsonl(Path(str(options["path"])), rows)
        print(f"{count:,} answers written to {options['path']}")
        return
    for row in rows:
        sys.stdout.write(to_line(row) + "\n")


def _exported(options: Mapping[str, Any]) -> Iterator[Mapping[str, Json]]:
    import json

    from refadv_ablate.storage.answers import checksum
    from refadv_ablate.storage.database import damaged

    database = _open(options)
    for row in database.rows("replies", _chosen("replies", options)):
        if checksum("replies", row.key, row.value) != row.checksum:
            raise UserError(damaged(database.url, f"row {row.key[:12]}… of replies: its checksum is wrong"))
        created = datetime.fromtimestamp(row.created, UTC).isoformat(timespec="milliseconds")
        yield {
            "key": row.key,
            "model": row.model,
            "run": row.run,
            "created": created,
            "reply": json.loads(row.value),
        }
    database.close()


def prune(options: Mapping[str, Any]) -> None:
    """Deletes the answers that the options choose; without a choice nothing is deleted."""
    where = _chosen("replies", options)
    if where is None:
        raise UserError(
            "store prune needs model=… or older_than_days=…; without them it would delete everything"
        )
    import sqlalchemy as sa

    from refadv_ablate.storage.database import TABLES

    database = _open(options)
    if options["dry_run"]:
        (count,) = database.all(sa.select(sa.func.count()).select_from(TABLES["replies"]).where(where))[0]
        print(f"{count:,} answers would be deleted")
    else:
        count = database.remove("replies", where)
        database.compact()
        print(f"{count:,} answers deleted; {_room(database.size())} on disk")
    database.close()


def repair(options: Mapping[str, Any]) -> None:
    """Saves every sound answer of a damaged SQLite store into a fresh file in its place."""
    from refadv_ablate.storage.database import resolve
    from refadv_ablate.storage.repair import repair as salvage

    url = resolve(str(options["store"]))
    if url.get_backend_name() != "sqlite":
        raise UserError(
            "store repair is for SQLite files; PostgreSQL has its own tools (pg_amcheck, pg_dump)"
        )
    result = salvage(url)
    kept = ", ".join(f"{count:,} {name}" for name, count in result.kept.items())
    lost = f"{result.lost:,} lost, they will be asked again" if result.lost else "no known answer is lost"
    if result.dropped:
        lost += f"; {result.dropped:,} dropped that no run can read, they will be asked again"
    print(f"saved {kept}; {lost}\nthe file as it was is kept as {result.damaged}")


def _chosen(table: str, options: Mapping[str, Any]) -> Any:
    """The condition that `model` and `older_than_days` make, or None for all rows."""
    import sqlalchemy as sa

    from refadv_ablate.storage.database import TABLES

    column, parts = TABLES[table].c, []
    if options["model"] is not None:
        parts.append(column.model == str(options["model"]))
    if options["older_than_days"] is not None:
        days = options["older_than_days"]
        if not isinstance(days, int | float) or isinstance(days, bool) or days < 0:
            raise UserError(f"older_than_days={days!r} needs a number of days, 0 or more")
        parts.append(column.created < time.time() - days * DAY)
    return sa.and_(*parts) if parts else None


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _room(size: float) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
