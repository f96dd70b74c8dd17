"""What the harness itself costs beyond the model, and how that grows.

Each measurement is a fresh process of the real command line, so that start-up, memory and caches are
those that a user meets. The model is `replay` with answers as a model would write them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image

from refadv_ablate.seeding import generator

COLOURS = ("red", "green", "blue", "white", "black", "yellow")
THINGS = ("cup", "dog", "car", "bottle", "chair", "bird")
OPERATORS = "perturb=[bow,fixed,identity]"


def make_data(folder: Path, n: int, images: int = 400) -> tuple[Path, Path]:
    """A JSONL of n examples on `images` small pictures, and a file of answers to every condition."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(images):
        path = folder / "images" / f"{index:05d}.png"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            Image.new("RGB", (64, 48), (index % 255, 90, 120)).save(path)
    data, answers = folder / f"data{n}.jsonl", folder / f"answers{n}.jsonl"
    with data.open("w") as examples, answers.open("w") as replies:
        for index in range(n):
            rng = generator(7, index)
            x, y = rng.randrange(40), rng.randrange(30)
            first, second = (f"the {rng.choice(COLOURS)} {rng.choice(THINGS)}" for _ in range(2))
            text = f"{first} left of {second}"
            row = {
                "id": f"e{index}",
                "image": f"images/{index % images:05d}.png",
                "expression": text,
                "box": [x, y, x + 20, y + 15],
            }
            examples.write(json.dumps(row) + "\n")
            for condition in ("original", "bow", "fixed", "identity"):
                hit = rng.random() < 0.6
                box = [x, y, x + 20, y + 15] if hit else [0, 0, 10, 10]
                replies.write(
                    json.dumps({"example_id": f"e{index}", "condition": condition, "text": f"[{box}]"}) + "\n"
                )
    return data, answers


def timed(words: list[str], cwd: Path) -> tuple[float, float]:
    """Wall seconds and peak resident MB of one command."""
    started = time.perf_counter()
    # VmHWM, not ru_maxrss: the latter starts at the size of whoever forked this process
    code = (
        "import sys; from refadv_ablate.cli import main; status = main(sys.argv[1:]);"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'));"
        "print('PEAK', int(peak.split()[1]) / 1024); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=cwd, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode not in (0,):
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return seconds, float(done.stdout.rsplit("PEAK", 1)[1])


def row(
    what: str, against: str, ours: str, theirs: str, ratio: float, goal: str, met: bool, n: Any
) -> dict[str, Any]:
    return {
        "what": what,
        "against": against,
        "ours": ours,
        "theirs": theirs,
        "ratio": round(ratio, 3),
        "goal": goal,
        "met": met,
        "n": n,
    }


def run() -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        common = ["model=replay", "tracking=none", OPERATORS, "gallery=0", "pages=false"]

        def words(n: int, out: str) -> list[str]:
            data, answers = make_data(folder, n)
            return [*common, "data=jsonl", f"data.path={data}", f"model.engine.path={answers}", f"out={out}"]

        small, large = 10_000, 100_000
        start, _ = timed(words(100, "warm"), folder)
        t_small, m_small = timed(words(small, "small"), folder)
        t_large, m_large = timed(words(large, "large"), folder)
        per = 1000 * (t_large - start) / large
        growth = (t_large - start) / (10 * (t_small - start))
        rows.append(
            row(
                "harness ms per example (replay, 3 operators)",
                "goal",
                f"{per:.2f} ms",
                "1 ms",
                per,
                "≤ 1 ms",
                per <= 1,
                large,
            )
        )
        rows.append(
            row(
                "peak RSS, 10 × the examples",
                f"n = {small}",
                f"{m_large:.0f} MB",
                f"{m_small:.0f} MB",
                m_large / m_small,
                "flat",
                m_large / m_small <= 1.25,
                large,
            )
        )
        rows.append(
            row(
                "time, 10 × the examples",
                "linear",
                f"{t_large:.1f} s",
                f"{10 * (t_small - start) + start:.1f} s",
                growth,
                "≤ 1.1",
                growth <= 1.1,
                large,
            )
        )
        again, _ = timed(words(large, "large"), folder)
        t_pages, _ = timed([*words(large, "large"), "pages=true"], folder)
        rows.append(
            row(
                "rerun of a finished run",
                "first run",
                f"{again:.2f} s",
                f"{t_large:.1f} s",
                again / t_large,
                "≤ 0.05",
                again / t_large <= 0.05,
                large,
            )
        )
        rows.append(
            row(
                "the report page of that run, made afterwards",
                "the run",
                f"{t_pages:.1f} s",
                f"{t_large:.1f} s",
                t_pages / t_large,
                "—",
                True,
                large,
            )
        )
    return rows


if __name__ == "__main__":
    for line in run():
        print(line)
