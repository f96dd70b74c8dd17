"""A device for each process of a sweep, and a sentence where there are too few."""

import subprocess
import sys

CODE = (
    "import sys, time; from pathlib import Path; from refadv_ablate.running.gpus import take_one;"
    "where = Path(sys.argv[1]); print(*[take_one([3, 5], where, 0.1) for _ in range(2)], flush=True);"
    "sys.stdin.read()"
)


def worker(folder):
    return subprocess.Popen(
        [sys.executable, "-c", CODE, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_each_process_takes_and_keeps_one(tmp_path):
    first = worker(tmp_path)
    assert first.stdout.readline() == "3 3\n"
    second = worker(tmp_path)
    assert second.stdout.readline() == "5 5\n"
    third = worker(tmp_path)
    assert "n_jobs to 2 or fewer" in third.communicate()[1]
    first.communicate("")
    fourth = worker(tmp_path)
    assert fourth.stdout.readline() == "3 3\n", "a device is free again when its process has ended"
    for process in (second, fourth):
        process.communicate("")
