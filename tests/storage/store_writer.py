"""A process that fills a prediction store, for tests that watch several of them or kill one."""

from __future__ import annotations

import random
import sys

from refadv_ablate.storage.answers import Store
from refadv_ablate.types import Reply, Usage

N, GROUP = 600, 30


def key(index: int) -> str:
    return f"{random.Random(index).getrandbits(256):064x}"


def reply(index: int, who: str = "") -> Reply:
    text = f'{{"bbox_2d": [{index}, 2, 3, 4]}} 左 {who} ' + "because " * (index % 40)
    return Reply(text, "stop", "reasoning", "", (640, 476), Usage(3, 4, 0.1), 0.1 + index / 3, 1)


def fill(store: Store, start: int, stop: int, who: str = "", **about: str) -> None:
    for first in range(start, stop, 100):
        store.put_many([(key(i), reply(i, who)) for i in range(first, min(first + 100, stop))], about)


def order(who: str) -> list[int]:
    indexes = list(range(N))
    random.Random(who).shuffle(indexes)
    return indexes


def main(who: str, url: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    with Store(url) as store:
        todo = order(who)
        for first in range(0, N, GROUP):
            store.put_many([(key(i), reply(i, who)) for i in todo[first : first + GROUP]], {"model": who})
            print(first + GROUP, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
