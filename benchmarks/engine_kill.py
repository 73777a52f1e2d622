"""Vectors in a real Milvus server that is killed again and again: is every acknowledged one there?

Command: ``python -m benchmarks.engine_kill SERVER [KILLS]``: SERVER is a folder that the package ``milvus`` 2.3.5 of
PyPI has unpacked its server into and started it from once (``MilvusServer.set_base_dir``); that version has no sparse
vectors, so that words are not measured. A writer puts, replaces and removes vectors, some at a time, each time with the
cursor. The server is killed (SIGKILL) at a random moment and started again. What was acknowledged is then read back by
number and looked for by its vector.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from askalike.errors import EngineError
from askalike.index.cursor import Cursor
from askalike.index.milvus.client import Milvus
from askalike.index.milvus.vectors import MilvusVectors
from askalike.types import Question
from benchmarks.record import write

COMMAND: Final = "python -m benchmarks.engine_kill SERVER"
KILLS, DIMENSIONS, TOGETHER, LONGEST_S, START_S = 20, 32, 30, 5.0, 300.0
ADDRESS: Final = "milvus://127.0.0.1:19530"


def started(folder: Path) -> subprocess.Popen[bytes]:
    """Start the server, and return it when it answers."""
    environment = {**os.environ, "MILVUS_RUN_DIR": str(folder / "run"), "LD_LIBRARY_PATH": str(folder / "bin")}
    with (folder / "server.log").open("ab") as log:
        command = [str(folder / "bin" / "milvus"), "run", "standalone"]
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        with contextlib.suppress(EngineError):
            milvus = Milvus(ADDRESS, "probe")
            milvus.call("list_collections")
            milvus.close()
            return server
        time.sleep(0.5)
    server.kill()
    sys.exit(f"the server in {folder} does not answer")


class Writer(threading.Thread):
    """Writes until the engine refuses; ``held`` are the seeds of acknowledged vectors, None of those removed."""

    def __init__(self, index: MilvusVectors, seed: int, held: dict[int, int | None], unknown: set[int]) -> None:
        super().__init__()
        self._index = index
        self._chance = random.Random(seed)
        self._held = held
        self._unknown = unknown
        self._base = 1_000_000 * (seed + 1)
        self.acknowledged = 0

    def run(self) -> None:
        """Write."""
        for step in range(1_000_000):
            first = self._base + step * TOGETHER
            nums = list(range(first, first + TOGETHER - 3))
            known = [num for num, seed in self._held.items() if seed is not None and num not in self._unknown]
            nums += self._chance.sample(known, min(2, len(known)))  # replaced
            gone = [num for num in self._chance.sample(known, min(1, len(known))) if num not in nums]
            seeds = {num: first + place for place, num in enumerate(nums)}
            try:
                with self._index.writing() as writer:
                    questions = {num: Question(str(num), "") for num in nums}
                    writer.put(nums, np.stack([vector(seed) for seed in seeds.values()]), questions)
                    writer.remove(gone)
                    writer.commit(Cursor(first, 0, is_complete=True, fingerprint="kill"))
            except EngineError:
                self._unknown.update(nums, gone)
                return
            self._held.update(seeds)
            self._held.update(dict.fromkeys(gone))
            self._unknown.difference_update(nums, gone)
            self.acknowledged += len(nums) + len(gone)


def vector(seed: int) -> Any:
    """Return a direction of chance."""
    found = np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return found / np.linalg.norm(found)


def opened(forum: str) -> MilvusVectors:
    """Return the index through a new connection, once the server has loaded its collections again."""
    until = time.monotonic() + START_S
    while True:
        index = MilvusVectors(Milvus(ADDRESS, forum), "vectors_kill", "kill")
        try:
            index.reopen()
            if index.exists:
                index.count()
            return index
        except EngineError as error:
            index.milvus.close()
            if time.monotonic() > until:
                sys.exit(str(error))
        time.sleep(0.5)


def wrong(index: MilvusVectors, held: dict[int, int | None], unknown: set[int]) -> dict[str, int]:
    """Return how many acknowledged writes are not there, by number and by vector."""
    there = {num for num, seed in held.items() if seed is not None} - unknown
    gone = {num for num, seed in held.items() if seed is None} - unknown
    wanted = sorted(there)
    found, matrix = index.vectors(wanted)
    known = dict(zip(found.tolist(), matrix, strict=True))
    by_number = sum(
        num not in known or not np.allclose(known[num], vector(held[num] or 0), atol=1e-5) for num in wanted
    )
    by_vector = 0
    for start in range(0, len(wanted), 100):
        some = wanted[start : start + 100]
        near = index.search(np.stack([vector(held[num] or 0) for num in some]), 1)
        by_vector += sum(not one or one[0][0] != num for num, one in zip(some, near, strict=True))
    return {
        "by number": by_number,
        "by vector": by_vector,
        "removed and there": len(gone & set(index.numbers().tolist())),
    }


def main() -> None:
    """Measure and write results/engine-kill.json."""
    folder, kills = Path(sys.argv[1]).absolute(), int(sys.argv[2]) if len(sys.argv) > 2 else KILLS
    chance, forum = random.Random(0), f"kill{os.getpid()}"
    held: dict[int, int | None] = {}
    unknown: set[int] = set()
    acknowledged, restarts = 0, []
    server = started(folder)
    index = opened(forum)
    index.begin(DIMENSIONS, 0)
    for kill in range(kills):
        writer = Writer(opened(forum), kill, held, unknown)
        writer.start()
        time.sleep(chance.uniform(0.5, LONGEST_S))
        server.kill()
        server.wait()
        index.milvus.close()
        writer.join()
        acknowledged += writer.acknowledged
        began = time.monotonic()
        server = started(folder)
        index = opened(forum)
        restarts.append(round(time.monotonic() - began, 1))
        print(f"kill {kill + 1}: {acknowledged:,} acknowledged, {wrong(index, held, unknown)}", flush=True)
    found = wrong(index, held, unknown)
    index.milvus.forget("vectors")
    server.kill()
    server.wait()
    body = {
        "kills": kills,
        "acknowledged": acknowledged,
        "unknown": len(unknown),
        "wrong": found,
        "restart_s": restarts,
    }
    print(body)
    write("engine-kill", COMMAND if kills == KILLS else f"{COMMAND} {kills}", {"server": "Milvus 2.3.5", **body})


if __name__ == "__main__":
    main()
