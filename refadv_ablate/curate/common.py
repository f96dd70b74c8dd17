"""What the stages share: the scalar keys of their config, and what they print."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refadv_ablate import assets
from refadv_ablate.curate.scenes import Scene, load_scenes
from refadv_ablate.errors import UserError


@dataclass(frozen=True, slots=True)
class Common:
    """The scalar keys of conf/curate/config.yaml. dry_run: say what would be asked, and ask nothing."""

    out: Path
    seed: int
    limit: int | None
    progress: str
    dry_run: bool = False

    @classmethod
    def of(cls, config: Any, dry_run: bool = False) -> Common:
        """Raises UserError for a value of the wrong type."""
        values = {name: config[name] for name in ("out", "seed", "limit", "progress")}
        common: Common = assets.build({"_target_": "refadv_ablate.curate.common.Common", **values}, "config")
        if common.limit is not None and common.limit < 1:
            raise UserError(f"limit={common.limit}: give at least 1, or leave it out for all scenes")
        return cls(common.out.absolute(), common.seed, common.limit, common.progress, dry_run)

    def scenes(self) -> dict[str, Scene]:
        """The scenes that this command is about."""
        found = load_scenes(self.out)
        return dict(list(found.items())[: self.limit]) if self.limit else found


def say(line: str) -> None:
    """A line of a stage's report."""
    print(line)
