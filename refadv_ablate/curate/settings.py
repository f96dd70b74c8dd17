"""Settings of the stages that have no class of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from refadv_ablate.errors import UserError


@dataclass(frozen=True, slots=True)
class Verify:
    """Who annotates, and where the page is served.

    own: whether people also verify what they wrote themselves, which they can't find blind. skip_dropped:
    whether an expression that somebody has turned down is shown to nobody else.
    """

    annotators: tuple[str, ...] = ()
    needed: int = 3
    own: bool = False
    skip_dropped: bool = False
    host: str = "127.0.0.1"
    port: int = 8765
    hosts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.needed < 1:
            raise UserError(f"verify.needed={self.needed}: at least one verdict is needed")
        if not 1 <= self.port <= 65535:
            raise UserError(f"verify.port={self.port} is no port: 1 to 65535")
        if len(set(self.annotators)) < len(self.annotators):
            raise UserError("verify.annotators names somebody twice: give each annotator a name of their own")
        for name in self.annotators:
            if not re.fullmatch(r"\S(.{0,38}\S)?", name):
                raise UserError(f"verify.annotators: {name!r} is no name of 1 to 40 characters")

    def named(self) -> tuple[str, ...]:
        """The annotators. Raises UserError where there are none."""
        if not self.annotators:
            raise UserError("nobody is named: give the annotators, as in verify.annotators=[ana,ben,chi]")
        return self.annotators

    def allowed_hosts(self) -> list[str]:
        """Names under which the page may be asked for."""
        if self.hosts is not None:
            return list(self.hosts)
        local = ["127.0.0.1", "localhost", "[::1]", "::1"]
        return ["*"] if self.host in ("0.0.0.0", "::") else [self.host, *local]  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True)
class LabelStudio:
    """Exchange with Label Studio."""

    action: str = "export"
    path: Path | None = None
    image_prefix: str = "/data/local-files/?d="
    annotators: Mapping[int | str, str] | None = None

    def __post_init__(self) -> None:
        if self.action not in ("export", "import"):
            raise UserError(f"label_studio.action={self.action!r}: choose export or import")


@dataclass(frozen=True, slots=True)
class Export:
    """Where the set goes, and how its images are split."""

    to: Path | None = None
    splits: Mapping[str, float] | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        shares = list(self.shares.values())
        good = all(isinstance(s, int | float) and s > 0 for s in shares)
        if not shares or not good or abs(sum(shares) - 1) > 1e-6:
            raise UserError(f"export.splits={dict(self.shares)}: shares above 0 that sum to 1 are needed")
        for name in self.shares:
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) or name == "data":
                raise UserError(f"export.splits: {name!r} is no name for a split: letters, digits, - and _")

    @property
    def shares(self) -> Mapping[str, float]:
        """Split → share of the images."""
        return {"test": 1.0} if self.splits is None else self.splits


@dataclass(frozen=True, slots=True)
class Audit:
    """Which sets are compared, and how the main job is run."""

    data: Path | None = None
    against: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    perturb: tuple[str, ...] = ("bow", "fixed", "descriptor_deletion")
