"""The prediction store under everything that happens to files: many writers, kill −9, full disks, damage."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from refadv_ablate.commands.store import run
from refadv_ablate.errors import UserError
from refadv_ablate.storage.answers import MemoryStore, Store, checksum, open_store
from refadv_ablate.storage.database import Row
from refadv_ablate.storage.jsonl import FieldError, read_jsonl
from refadv_ablate.storage.records import reply_from_json
from refadv_ablate.types import Reply, Usage
from tests.storage.store_writer import GROUP, N, fill, key, order, reply

WRITER = Path(__file__).with_name("store_writer.py")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a throw-away PostgreSQL cluster."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra: postgres)")
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    if not tools:
        pytest.skip("no PostgreSQL server is installed here")
    folder = tmp_path_factory.mktemp("postgres")
    as_user: list[str] = []
    if os.getuid() == 0:  # the server refuses to run as root
        if not shutil.which("runuser"):
            pytest.skip("runs as root, and there is no runuser to start a server as somebody else")
        as_user = ["runuser", "-u", "nobody", "--"]
        shutil.chown(folder, "nobody")
        for parent in folder.parents[:3]:  # a worker's folder, the run's, the user's
            if parent.name.startswith(("pytest-", "popen-")):
                parent.chmod(0o711)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    tool, data = str(tools[-1]), str(folder / "data")
    started = [*as_user, tool, "initdb", "-D", data, "-s", "-o", "-A trust -U refadv -E UTF8 --no-sync"]
    made = subprocess.run(started, capture_output=True, text=True, cwd=folder)
    if made.returncode:
        pytest.skip(f"no PostgreSQL cluster can be made here: {made.stderr.strip()[-200:]}")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    log = str(folder / "log")
    run = subprocess.run(
        [*as_user, tool, "-D", data, "-w", "-l", log, "-o", options, "start"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    if run.returncode:
        pytest.skip(f"PostgreSQL does not start here: {Path(log).read_text()[-300:]}")
    yield f"postgresql://refadv:secret@127.0.0.1:{port}/postgres"
    subprocess.run([*as_user, tool, "-D", data, "-m", "immediate", "stop"], capture_output=True, cwd=folder)


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
        with Store(url) as old, old.database.engine.begin() as connection:
            for table in ("replies",):
                connection.execute(sa.text(f"DELETE FROM {table}"))
    else:
        url = "none" if request.param == "memory" else f"sqlite:///{tmp_path}/deep/store.db"
    with open_store(url) as fresh:
        yield fresh


# ── what it keeps ───────────────────────────────────────────────────────────────────────────────


def test_replies_read_back_equal_and_absent_keys_are_absent(store: Store) -> None:
    fill(store, 0, 1_300, model="m")
    keys = [key(i) for i in range(1_500)]
    assert store.get_many(keys) == {key(i): reply(i) for i in range(1_300)}
    assert store.get_many([]) == {}


def test_the_first_answer_stays(store: Store) -> None:
    store.put_many([(key(1), reply(1, "first"))])
    store.put_many([(key(1), reply(1, "second")), (key(2), reply(2)), (key(2), reply(2, "twice"))])
    assert store.get_many([key(1), key(2)]) == {key(1): reply(1, "first"), key(2): reply(2)}


def test_a_failure_is_never_stored(store: Store) -> None:
    store.put_many([(key(1), Reply("", "error", error="503")), (key(2), reply(2))])
    assert store.get_many([key(1), key(2)]) == {key(2): reply(2)}


def test_any_text_is_kept(store: Store) -> None:
    odd = [
        "",
        "nul \x00 inside",
        "cut \ud83d",
        "'; DROP TABLE replies; --",
        "שלום 🦓 \u2028",
        "x" * 3_000_000,
    ]
    store.put_many([(key(i), Reply(text)) for i, text in enumerate(odd)])
    assert [r.text for r in map(store.get_many([key(i) for i in range(6)]).get, map(key, range(6)))] == odd


def test_a_store_opens_again_with_everything(tmp_path: Path) -> None:
    with Store("sub/store.db", base=tmp_path) as first:
        fill(first, 0, 10)
        copy = pickle.loads(pickle.dumps(first))
    assert (tmp_path / "sub" / "store.db").is_file()
    with copy:
        assert len(copy.get_many([key(i) for i in range(10)])) == 10


def test_a_child_process_made_by_fork_has_its_own_connections(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        fill(store, 0, 10)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                fill(store, 10, 20)
                status = 0 if len(store.get_many([key(i) for i in range(20)])) == 20 else 2
            finally:
                os._exit(status)
        fill(store, 20, 30)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(store.get_many([key(i) for i in range(30)])) == 30


# ── what it refuses ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite://", "lost with the process"),
        ("sqlite:///:memory:", "lost with the process"),
        ("sqlite:///file:x?mode=memory&uri=true", "lost with the process"),
        ("sqlite:///file:x.db?uri=true", "as sqlite:///FILE"),
        ("sqlite+aiosqlite:///x.db", "as sqlite:///FILE"),
        ("mysql://u:hidden@h/db", "mysql is not supported"),
        ("://", "no database URL"),
        ("postgresql+unheard://u:hidden@h/db", "driver that is not installed"),
        ("postgresql://u:hidden@127.0.0.1:1/db", "can't use the prediction store"),
    ],
)
def test_what_cannot_be_a_store_is_one_sentence(tmp_path: Path, url: str, says: str) -> None:
    if "use the prediction store" in says:
        pytest.importorskip("psycopg", reason="PostgreSQL's driver comes with the postgres extra")
    with pytest.raises(UserError, match=says) as caught:
        Store(url, tmp_path)
    assert "hidden" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_store_are_one_sentence(tmp_path: Path) -> None:
    text = tmp_path / "notes.db"
    text.write_text("these are notes\n" * 100)
    with pytest.raises(UserError, match="not a database"):
        Store(f"sqlite:///{text}")
    other = tmp_path / "mlflow.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE runs (id)")
    connection.close()
    with pytest.raises(UserError, match="another program"):
        Store(f"sqlite:///{other}")
    with pytest.raises(UserError, match="can't use the prediction store"):
        Store(f"sqlite:///{tmp_path}/notes.db/store.db")
    with pytest.raises(UserError, match="can't use the prediction store"):
        Store(f"sqlite:///{tmp_path}")


def test_another_schema_is_one_sentence(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with Store(url) as store, store.database.engine.begin() as connection:
        connection.execute(sa.text("UPDATE refadv_meta SET value = '2'"))
    with pytest.raises(UserError, match="has schema 2, this release reads 1"):
        Store(url)


def test_a_store_whose_making_was_cut_short_is_made_on(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:  # as kill -9 leaves it after one table
        connection.execute("CREATE TABLE refadv_meta (name VARCHAR(32) PRIMARY KEY, value TEXT NOT NULL)")
    with Store(str(path)) as store:
        store.put_many([(key(1), reply(1, "m"))])
    with Store(str(path)) as store:
        assert store.get_many([key(1)])


# ── several processes ───────────────────────────────────────────────────────────────────────────


def writers(url: str, names: str) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, WRITER, name, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in names
    ]


def release(running: list[subprocess.Popen[str]]) -> None:
    """Lets processes that have started up begin, all at once."""
    for process in running:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_processes_open_a_fresh_store_and_write_the_same_keys(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/fresh/store.db"
    if kind == "postgres":
        url = request.getfixturevalue("postgres")
        with Store(url) as old, old.database.engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE replies, refadv_meta"))
    running = writers(url, "abcd")
    release(running)
    for process in running:
        process.communicate(timeout=120)
    assert [process.returncode for process in running] == [0, 0, 0, 0]
    with Store(url) as store:
        found = store.get_many([key(i) for i in range(N)])
        authors = {row.key: row.model for row in store.database.rows("replies")}
    assert len(found) == len(authors) == N
    assert all(found[key(i)] == reply(i, authors[key(i)]) for i in range(N))


def test_threads_share_one_store(store: Store) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: fill(store, 0, 300, who=str(n)), range(4)))
        found = list(threads.map(lambda _: store.get_many([key(i) for i in range(300)]), range(4)))
    assert found[0] == found[1] == found[2] == found[3]
    assert all(found[0][key(i)] in [reply(i, str(n)) for n in range(4)] for i in range(300))


def test_kill_9_in_mid_write_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    (tmp_path / "store.db.lock").touch()
    before: dict[str, Reply] = {}
    for number, name in enumerate("abc"):
        (process,) = started = writers(url, name)
        release(started)
        assert process.stdout
        for _ in range(2 + 2 * number):
            process.stdout.readline()
        time.sleep(0.003 * number)
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        acknowledged = max([(2 + 2 * number) * GROUP, *map(int, rest.split())])
        todo = order(name)
        with Store(url) as store:
            kept = store.get_many([key(i) for i in range(N)])
            rows = list(store.database.rows("replies"))
        # everything acknowledged is there, older answers are untouched, groups are whole
        assert {key(i) for i in todo[:acknowledged]} <= set(kept)
        assert all(kept[k] == answer for k, answer in before.items())
        new = {i for i in todo if key(i) in kept and key(i) not in before}
        assert all(kept[key(i)] == reply(i, name) for i in new)
        groups = [{i for i in todo[g : g + GROUP] if key(i) not in before} for g in range(0, N, GROUP)]
        assert all(group <= new or not group & new for group in groups)
        assert len(rows) == len(kept)
        before = kept
    assert len(before) < N or pytest.fail("every process ended before it was killed")


def test_a_busy_store_is_waited_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with Store(url) as store:
        fill(store, 0, 10)
        code = (
            "import sqlite3, sys, time\n"
            f"c = sqlite3.connect({str(tmp_path / 'store.db')!r}, isolation_level=None)\n"
            "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); time.sleep(1); c.execute('COMMIT')\n"
        )
        holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert holder.stdout
        holder.stdout.readline()
        fill(store, 10, 20)
        holder.communicate()
        assert len(store.get_many([key(i) for i in range(20)])) == 20


# ── full disks and damage ───────────────────────────────────────────────────────────────────────


def test_a_full_disk_is_one_sentence_and_what_was_kept_stays(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        fill(store, 0, 100)

        @sa.event.listens_for(store.database.engine, "connect")
        def _limit(connection: sqlite3.Connection, _: object) -> None:
            connection.execute("PRAGMA max_page_count = 60")

        store.database.engine.dispose()
        with pytest.raises(
            UserError,
            match=r"the disk is full: the prediction store .*make room and give the same command again",
        ):
            fill(store, 100, 5_000)
        kept = store.get_many([key(i) for i in range(5_000)])
        assert len(kept) >= 100
        assert len(kept) % 100 == 0
        assert all(kept[key(i)] == reply(i) for i in range(len(kept)))


def test_a_file_size_limit_is_one_sentence_and_what_was_kept_stays(tmp_path: Path) -> None:
    code = f"""
import resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from tests.storage.store_writer import fill
from refadv_ablate.errors import UserError
from refadv_ablate.storage.answers import MemoryStore, Store, open_store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store("sqlite:///{tmp_path}/store.db")
fill(store, 0, 200)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    fill(store, 200, 20_000)
except UserError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "or is full; make room" in done.stdout or "the disk is full" in done.stdout, done.stderr
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        kept = store.get_many([key(i) for i in range(20_000)])
        assert len(kept) >= 200
        assert all(kept[key(i)] == reply(i) for i in range(len(kept)))


def test_a_changed_byte_or_a_misplaced_answer_is_found(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store(f"sqlite:///{path}") as store:
        fill(store, 0, 10)
        fill(store, 20, 30)
        with store.database.engine.begin() as connection:
            connection.execute(sa.text("UPDATE replies SET value = replace(value, 'stop', 'length')"))
        with pytest.raises(
            UserError, match=r"damaged \(row .* of replies: its checksum is wrong\); run .*store repair"
        ):
            store.get_many([key(3)])
    other = tmp_path / "other.db"
    with Store(f"sqlite:///{other}") as store:
        fill(store, 0, 2)
        with store.database.engine.begin() as connection:
            connection.execute(
                sa.text("UPDATE replies SET key = :new WHERE key = :old"), {"new": key(9), "old": key(1)}
            )
        with pytest.raises(UserError, match="checksum is wrong"):
            store.get_many([key(9)])


# ── repair and housekeeping ─────────────────────────────────────────────────────────────────────


def command(action: str, store: Path | str, **options: object) -> None:
    defaults = {"path": None, "model": None, "older_than_days": None, "dry_run": False}
    run(SimpleNamespace(store=str(store), command={**defaults, "action": action, **options}))


def large(path: Path) -> None:
    """A store with answers on overflow pages, deep enough for pages above the leaves."""
    with Store(str(path)) as store:
        fill(store, 0, 3_000, model="m")
        store.put_many([(key(i), Reply(f"{i} " * 4_000)) for i in range(3_000, 3_010)])


def expected(i: int) -> Reply:
    return reply(i) if i < 3_000 else Reply(f"{i} " * 4_000)


def overwrite(path: Path, page: int, size: int = 4096) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(random.Random(page).randbytes(size))


def trunk(path: Path, kind: int) -> int:
    """The number of a page of this kind in the file."""
    data = path.read_bytes()
    found = [n for n in range(2, len(data) // 4096 + 1) if data[(n - 1) * 4096] == kind]
    return found[0] if kind == 0x05 else found[len(found) // 2]


@pytest.mark.parametrize("which", ["header", "table trunk", "table leaf", "index leaf", "cut", "many"])
def test_repair_saves_every_sound_row(which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.db"
    large(path)
    kinds = {"table trunk": 0x05, "table leaf": 0x0D, "index leaf": 0x0A}
    pages = path.stat().st_size // 4096
    if which == "cut":
        with path.open("r+b") as file:
            file.truncate((pages - 40) * 4096 + 100)
    else:
        many = range(3, pages, pages // 8)
        for page in many if which == "many" else [1 if which == "header" else trunk(path, kinds[which])]:
            overwrite(path, page)
    before = path.read_bytes()
    if which != "index leaf":  # SQLite may find the table without it
        with pytest.raises(UserError, match=r"store repair store=sqlite:///"), Store(str(path)) as store:
            store.get_many([key(i) for i in range(3_010)])
    command("repair", path)
    said = capsys.readouterr().out
    with Store(str(path)) as store:
        kept = store.get_many([key(i) for i in range(3_010)])
        fill(store, 3_000, 3_100)  # it is a store like any other
    assert all(kept[key(i)] == expected(i) for i in range(3_010) if key(i) in kept)
    lost = 3_010 - len(kept)
    assert f"saved {len(kept):,} replies" in said
    if which in ("header", "table trunk", "index leaf"):
        assert lost == 0
        assert "no known answer is lost" in said
    else:
        assert 0 < lost < 300
        assert "lost, they will be asked again" in said
    (old,) = tmp_path.glob("store.db.damaged-*")
    assert old.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"store.db", "store.db.lock", old.name}


def test_repair_reads_the_log_of_a_killed_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.db"
    code = (
        "import os, signal, store_writer as w; s = w.Store({!r}); w.fill(s, 0, 300); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code.format(str(path))], cwd=WRITER.parent, check=False)
    assert (tmp_path / "store.db-wal").stat().st_size > 100_000
    with path.open("r+b") as file:
        file.write(b"\xff" * 100)
    command("repair", path)
    assert "saved 300 replies; no known answer is lost" in capsys.readouterr().out
    with Store(str(path)) as store:
        assert store.get_many([key(i) for i in range(300)]) == {key(i): reply(i) for i in range(300)}


def test_a_sound_store_survives_repair_whole(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    large(path)
    with Store(str(path)) as store:
        before = [list(store.database.rows(table)) for table in ("replies",)]
    command("repair", path)
    with Store(str(path)) as store:
        assert [list(store.database.rows(table)) for table in ("replies",)] == before


ODD: list[Any] = [
    Reply(["[1, 2, 3, 4]"]),  # type: ignore[arg-type]
    Reply(7),  # type: ignore[arg-type]
    Reply("x", usage=Usage(1.5, 2)),  # type: ignore[arg-type]
    Reply("x", usage=Usage(True, 2)),
    Reply("x", finish="abort"),  # type: ignore[arg-type]
    Reply("x", reasoning=None),  # type: ignore[arg-type]
    Reply("x", usage=None),  # type: ignore[arg-type]
    Reply("x", processed=(1.5, 2)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_reply_that_no_run_could_read_is_not_stored(odd: Reply, tmp_path: Path) -> None:
    with Store(str(tmp_path / "store.db")) as store:
        with pytest.raises(FieldError, match="can't be kept"):
            store.put_many([(key(0), reply(0)), (key(1), odd)])
        assert store.get_many([key(0), key(1)]) == {}  # all of them or none


def test_repair_drops_what_no_run_can_read_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, said = tmp_path / "store.db", ['{"text":["a"],"finish":"stop"}', "[]", "7", '{"text":']
    with Store(str(path)) as store:
        fill(store, 0, 20)
        odd = [
            Row(key(100 + i), value, checksum("replies", key(100 + i), value), 0.0, "m", "")
            for i, value in enumerate(said)
        ]
        store.database.put("replies", odd)
        for row in odd:
            with pytest.raises(UserError, match="store repair"):
                store.get_many([row.key])
    command("repair", path)
    assert "saved 20 replies; no known answer is lost; 4 dropped that" in capsys.readouterr().out
    with Store(str(path)) as store:
        found = store.get_many([key(i) for i in range(20)] + [row.key for row in odd])
    assert found == {key(i): reply(i) for i in range(20)}


def test_stats_export_and_prune(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if isinstance(store, MemoryStore):
        for action in ("stats", "export", "prune"):
            with pytest.raises(UserError, match="nothing to look at"):
                command(action, "none", model="x")
        return
    fill(store, 0, 700, model="qwen", run="r1")
    fill(store, 700, 800, model="internvl")
    command("stats", store.url)
    said = capsys.readouterr().out
    assert "secret" not in said
    assert "800 replies" in said
    assert [line.split()[:2] for line in said.splitlines()[2:4]] == [["100", "internvl"], ["700", "qwen"]]

    command("export", store.url, path=tmp_path / "all.jsonl.gz", model="qwen")
    rows = list(read_jsonl(tmp_path / "all.jsonl.gz"))
    assert {row["key"]: reply_from_json(row["reply"]) for row in rows} == {
        key(i): reply(i) for i in range(700)
    }
    assert {(row["model"], row["run"]) for row in rows} == {("qwen", "r1")}
    capsys.readouterr()
    command("export", store.url, model="internvl")
    assert len(capsys.readouterr().out.splitlines()) == 100

    with pytest.raises(UserError, match="would delete everything"):
        command("prune", store.url)
    with pytest.raises(UserError, match="older_than_days='x' needs a number"):
        command("prune", store.url, older_than_days="x")
    command("prune", store.url, older_than_days=1)
    command("prune", store.url, model="qwen", dry_run=True)
    assert len(store.get_many([key(i) for i in range(800)])) == 800
    command("prune", store.url, model="qwen", older_than_days=0)
    said = capsys.readouterr().out
    assert "700 answers would be deleted" in said
    assert "700 answers deleted" in said
    assert sorted(store.get_many([key(i) for i in range(800)])) == sorted(key(i) for i in range(700, 800))


def test_looking_at_a_store_never_makes_one(tmp_path: Path) -> None:
    for action in ("stats", "export", "prune", "repair"):
        with pytest.raises(UserError, match="there is no prediction store"):
            command(action, tmp_path / "absent.db", model="x")
    with pytest.raises(UserError, match=r"no `store stat`; did you mean 'stats'"):
        command("stat", tmp_path / "absent.db")
    assert list(tmp_path.iterdir()) == []


def test_a_hundred_thousand_lookups_stay_in_constant_queries(tmp_path: Path) -> None:
    with Store(f"{tmp_path}/store.db") as store:
        fill(store, 0, 2_000)
        queries = []
        sa.event.listen(store.database.engine, "before_cursor_execute", lambda *a: queries.append(a[2]))
        found = store.get_many([key(i % 2_000 if i % 2 else -i - 1) for i in range(100_000)])
    assert len(found) == 1_000
    assert len(queries) == 200
