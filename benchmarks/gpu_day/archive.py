"""One file to send back: texts alone, without images, weights, keys, or the name of whoever ran it."""

from __future__ import annotations

import getpass
import io
import platform
import re
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.engines.environments import ROOT
from refadv_ablate.masking import censored

PATTERNS = (
    "report.md",
    "machine.json",
    "steps/*.json",
    "download-*/command.log",
    "tasks/*/server.log",
    "tasks/*/log-*/command.log",
    "tasks/*/pace.json",
    "tasks/*/doctor/report.txt",
    "tasks/*/run/cells/*/predictions.jsonl",
    "tasks/*/run/cells/*/summary.json",
    "tasks/*/run/cells/*/config.yaml",
)
NOBODY = ("root", "localhost", "user", "ubuntu")
LONGEST = 20_000_000
"""Bytes of a file above which its middle is left out: a log may repeat itself for hours."""


def pack(out: Path) -> Path:
    """Writes `<out>.tar.gz` beside the folder of the day; an interrupted one leaves the old file."""
    target = out.with_suffix(".tar.gz")
    half = target.with_suffix(".partial")
    with tarfile.open(half, "w:gz") as tar:
        for path in files(out):
            data = cleaned(_text(path), out).encode()
            member = tarfile.TarInfo(f"{out.name}/{path.relative_to(out)}")
            member.size, member.mtime, member.mode = len(data), int(path.stat().st_mtime), 0o644
            tar.addfile(member, io.BytesIO(data))
    half.replace(target)
    return target


def files(out: Path) -> Iterator[Path]:
    """What is packed: every file that has a place in PATTERNS, and nothing that a link leads to."""
    for pattern in PATTERNS:
        yield from (path for path in sorted(out.glob(pattern)) if path.is_file() and not path.is_symlink())


def _text(path: Path) -> str:
    data = path.read_bytes()
    if len(data) > LONGEST:
        data = data[: LONGEST // 2] + b"\n[ ... ]\n" + data[-LONGEST // 2 :]
    return data.decode("utf-8", errors="replace")


def cleaned(text: str, out: Path) -> str:
    """Without secrets, paths of this machine, its name and its user's."""
    text = censored(text)
    for path, stands in ((out, "OUT"), (ROOT, "CHECKOUT"), (Path.home(), "~")):
        if len(str(path)) > 1:
            text = text.replace(str(path), stands)
    for name in _own_names():
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "***", text)
    return text


def _own_names() -> Sequence[str]:
    """Names of user and host that are long enough to be nothing else; root and localhost tell nothing."""
    found = {platform.node()}
    with suppress(OSError, KeyError):
        found.add(getpass.getuser())
    return sorted(name for name in found if len(name) > 3 and name not in NOBODY)
