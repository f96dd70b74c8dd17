"""Where the prediction store keeps its rows: tables in SQLite or PostgreSQL, through SQLAlchemy Core."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from refadv_ablate.errors import UserError

T = TypeVar("T")
SCHEMA = 1
CHUNK = 500
"""Keys per query; SQLite allows 32,766 parameters, shorter statements are compiled once and reused."""
BUSY_SECONDS = 60.0
"""How long another process may hold the write lock before ours is an error."""
ATTEMPTS = 5

metadata = sa.MetaData()
meta = sa.Table(
    "refadv_meta",
    metadata,
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)


def _table(name: str) -> sa.Table:
    return sa.Table(
        name,
        metadata,
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("checksum", sa.String(16), nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
    )


TABLES = {"replies": _table("replies")}
"""Answers of models. Stores of version 0.1.0 also have a table `texts`, always empty, that nothing reads."""


class Row(NamedTuple):
    """A line of a table; `value` is JSON, `created` seconds since 1970, `model` and `run` labels."""

    key: str
    value: str
    checksum: str
    created: float
    model: str
    run: str


def resolve(url: str, base: Path | str | None = None) -> URL:
    """The absolute URL that is meant, with the driver. Raises UserError for one that can't be a store."""
    if "://" not in url and url:
        url = f"sqlite:///{url}"
    try:
        parsed = make_url(url.replace("postgres://", "postgresql://", 1))
    except ArgumentError as error:
        raise UserError(f"store={url!r} is no database URL; give sqlite:///FILE or postgresql://…") from error
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return parsed.set(drivername="postgresql+psycopg") if "+" not in parsed.drivername else parsed
    if kind != "sqlite":
        raise UserError(
            f"store={shown(parsed)}: {kind} is not supported; give sqlite:///FILE or postgresql://…"
        )
    name = parsed.database or ":memory:"
    if ":memory:" in name or "mode=memory" in url:
        raise UserError(
            f"store={url!r} would be lost with the process; give a file, or store=none to keep nothing"
        )
    if parsed.drivername != "sqlite" or name.startswith("file:"):
        raise UserError(f"store={url!r}: give SQLite stores as sqlite:///FILE")
    return parsed.set(database=str(Path(base or Path.cwd()).resolve() / Path(name).expanduser()))


def shown(url: URL) -> str:
    """The URL without its password; a file as its path."""
    return url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string()


def damaged(url: URL, what: str) -> str:
    """The sentence for a store that can't be trusted any more."""
    hint = (
        f"run `refadv-ablate store repair store=sqlite:///{url.database}` to save every sound answer"
        if url.get_backend_name() == "sqlite"
        else "restore the database from a backup, or delete the row to have it asked again"
    )
    return f"the prediction store {shown(url)} is damaged ({what}); {hint}"


class Database:
    """The tables in SQLite or PostgreSQL, through SQLAlchemy Core."""

    def __init__(self, url: URL, create: bool = True) -> None:
        self.url = url
        self.sqlite = url.get_backend_name() == "sqlite"
        self._engine = _engine(url)
        self._pid = os.getpid()
        self._insert = sqlite.insert if self.sqlite else postgresql.insert
        self._select = {name: _select(table) for name, table in TABLES.items()}
        try:
            self._retry(lambda: self._prepare(create))
        except UserError:
            self.close()
            raise

    def get(self, table: str, keys: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """See Backend. Raises UserError."""
        for start in range(0, len(keys), CHUNK):
            found = self.all(self._select[table], {"keys": list(keys[start : start + CHUNK])})
            yield from (tuple(row) for row in found)

    def put(self, table: str, rows: Sequence[Row]) -> None:
        """See Backend. Raises UserError, also for a full disk."""
        statement = self._insert(TABLES[table]).on_conflict_do_nothing()
        values = [row._asdict() for row in rows]

        def write() -> None:
            with self.engine.begin() as connection:
                connection.execute(statement, values)

        self._retry(write)

    def rows(self, table: str, where: sa.ColumnElement[bool] | None = None) -> Iterator[Row]:
        """All rows in the order of their keys, a page at a time."""
        source, after = TABLES[table], ""
        while True:
            statement = sa.select(source).where(source.c.key > after).order_by(source.c.key).limit(CHUNK)
            page = self.all(statement if where is None else statement.where(where))
            yield from (Row(*row) for row in page)
            if len(page) < CHUNK:
                return
            after = page[-1][0]

    def all(self, statement: sa.Executable, values: dict[str, Any] | None = None) -> Sequence[Any]:
        """Every row of a query. Raises UserError."""

        def read() -> Sequence[Any]:
            with self.engine.connect() as connection:
                return connection.execute(statement, values).fetchall()

        return self._retry(read)

    def remove(self, table: str, where: sa.ColumnElement[bool]) -> int:
        """Deletes rows; gives how many."""

        def delete() -> int:
            with self.engine.begin() as connection:
                return connection.execute(sa.delete(TABLES[table]).where(where)).rowcount

        return self._retry(delete)

    def compact(self) -> None:
        """Gives the room of deleted rows back to the disk (SQLite; PostgreSQL does so by itself)."""
        if self.sqlite:
            with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                self._retry(lambda: connection.exec_driver_sql("VACUUM"))
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        if not self.sqlite:
            names = ", ".join(f"pg_total_relation_size('{name}')" for name in TABLES)
            return sum(self.all(sa.text(f"SELECT {names}"))[0])
        files = [Path(f"{self.url.database}{side}") for side in ("", "-wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    @property
    def engine(self) -> sa.Engine:
        """Connections of this process: those of a parent process are not ours to use after a fork."""
        if os.getpid() != self._pid:
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        return self._engine

    def close(self) -> None:
        """See Backend."""
        self._engine.dispose()

    def _prepare(self, create: bool) -> None:
        if self._version() is None:
            if not create:
                raise UserError(f"{shown(self.url)} holds no prediction store; check store=…")
            with self._creation() as connection:
                metadata.create_all(connection)
                statement = self._insert(meta).on_conflict_do_nothing()
                connection.execute(statement, {"name": "schema", "value": str(SCHEMA)})
        version = self._version()
        if version != str(SCHEMA):
            raise UserError(
                f"the prediction store {shown(self.url)} has schema {version}, this release reads {SCHEMA}; "
                "install the release that made it, or give another store=…"
            )

    def _version(self) -> str | None:
        if self.sqlite and not Path(str(self.url.database)).exists():
            return None
        with self.engine.connect() as connection:
            names = sa.inspect(connection).get_table_names()
            if meta.name in names:
                # None between the first table and this row, which SQLite doesn't make in one step
                found: str | None = connection.execute(
                    sa.select(meta.c.value).where(meta.c.name == "schema")
                ).scalar()
                return found
        if names and self.sqlite:
            raise UserError(f"{shown(self.url)} is a database of another program; give another store=…")
        return None

    @contextmanager
    def _creation(self) -> Iterator[sa.Connection]:
        """A transaction in which this process alone creates tables."""
        if not self.sqlite:
            with self.engine.begin() as connection:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7240917)"))
                yield connection
            return
        from filelock import FileLock

        path = Path(str(self.url.database))
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock", timeout=BUSY_SECONDS):
            with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                # Stays in the file; switching ignores the busy timeout, so it is done under the lock.
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            with self.engine.begin() as connection:
                yield connection

    def _retry(self, work: Callable[[], T]) -> T:
        """Runs a transaction again where another process stood in its way; other errors are one sentence."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return work()
            except DBAPIError as error:
                if attempt == ATTEMPTS or not _passing(error):
                    raise UserError(self._sentence(error)) from error
                time.sleep(random.uniform(0.5, 1.0) * 0.1 * 2**attempt)
            except OSError as error:
                raise UserError(f"can't use the prediction store {shown(self.url)}: {error}") from error
        raise AssertionError("unreachable")

    def _sentence(self, error: DBAPIError) -> str:
        cause = " ".join(str(error.orig).split())
        if "disk is full" in cause or "No space left" in cause:
            return (
                f"the disk is full: the prediction store {shown(self.url)} can't be written; make room and "
                "give the same command again, every answer stored before is kept"
            )
        if "disk I/O error" in cause:
            return (
                f"the disk of the prediction store {shown(self.url)} fails ({cause}), or is full; make room "
                "or mend it and give the same command again, every answer stored before is kept"
            )
        if "locked" in cause:
            return f"the prediction store {shown(self.url)} has been locked by another process for too long"
        if "malformed" in cause or "not a database" in cause or "checksum" in cause:
            return damaged(self.url, cause)
        return f"can't use the prediction store {shown(self.url)}: {cause}"


def _select(table: sa.Table) -> sa.Select[Any]:
    keys: sa.BindParameter[list[str]] = sa.bindparam("keys", expanding=True)
    return sa.select(table.c.key, table.c.value, table.c.checksum).where(table.c.key.in_(keys))


def _passing(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    cause = str(error.orig)
    code = getattr(error.orig, "sqlstate", None)
    locked = isinstance(error, OperationalError) and "locked" in cause
    return locked or code in ("40001", "40P01", "55P03") or (code is None and error.connection_invalidated)


def _engine(url: URL) -> sa.Engine:
    try:
        if url.get_backend_name() != "sqlite":
            return sa.create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10})
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    except (ImportError, NoSuchModuleError) as error:
        raise UserError(
            f"{url.drivername} needs a driver that is not installed ({error}); "
            "pip install 'refadv-ablate[postgres]'"
        ) from error
    sa.event.listen(engine, "connect", _on_connect)
    return engine


def _on_connect(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    # In WAL mode NORMAL outlives kill -9; a power cut may cost the last seconds, which are asked again.
    # FULL would wait for the disk at each answer.
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
