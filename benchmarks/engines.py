"""A forum whose questions Milvus Lite finds, beside one that finds them itself: how alike, and how fast.

Command: ``python -m benchmarks.engines``: questions of Reddit, 200 of them asked by title in both
forums in turn, by the default ranker, by words, and by vectors; what filling takes; and
how long 600 writes, 20 a second, take until they can be found in the engine.
The overlap is the share of the local ten best that the engine finds too, the mean over all queries. A query is asked
``REPEATS`` times of each forum in turn, and its least time counts, since other work takes the machine now and then;
processor times are of all. With ``--again`` the forums of the run before are asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil
from recipes.folders import WORK

from askalike.forum import Forum
from askalike.index.milvus import client
from askalike.index.milvus.vectors import MilvusVectors
from askalike.index.vectors import VectorIndex
from askalike.processes import one_blas_thread
from askalike.types import Filters, Query, Question
from benchmarks.record import option_parser, percentiles, write, write_reddit

COMMAND: Final = "python -m benchmarks.engines"
QUESTIONS, QUERIES, WARMING, REPEATS = 2_000, 200, 10, 3
WRITES, WRITES_PER_S = 600, 20
FOLDER: Final = WORK / "engines"
START_S: Final = 300
"""Milvus Lite reads its file at the first call."""
RANKERS: Final = (None, "words", "meaning")


def filled(size: int) -> tuple[dict[str, Forum], dict[str, float]]:
    """Return both forums with the same questions, and the seconds that filling them took."""
    path = write_reddit(FOLDER / "questions.jsonl", size)
    forums, seconds = {}, {}
    if (FOLDER / "seconds.json").exists():
        return {name: Forum.open(FOLDER / name) for name in ("local", "milvus")}, json.loads(
            (FOLDER / "seconds.json").read_text()
        )
    for name in ("local", "milvus"):
        forums[name] = Forum.create(FOLDER / name)
        if name == "milvus":
            forums[name].indexes.use_engine(f"milvus:{FOLDER / 'milvus.db'}")
        began = time.perf_counter()
        forums[name].load(path)
        seconds[name] = round(time.perf_counter() - began, 1)
        print(name, seconds[name], flush=True)
    (FOLDER / "seconds.json").write_text(json.dumps(seconds))
    return forums, seconds


def server_s() -> float:
    """Return the processor time of what this process has started, which Milvus Lite is."""
    ticks, found = os.sysconf("SC_CLK_TCK"), 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found += (int(fields[11]) + int(fields[12])) / ticks
    return found


def compared(forums: dict[str, Forum], asked: Sequence[Question], ranker: str | None) -> dict[str, Any]:
    """Return times and overlap of one ranker."""
    seconds: dict[str, list[float]] = {name: [] for name in forums}
    used = dict.fromkeys(forums, 0.0)
    shared: list[float] = []
    before_s = server_s()
    for question in [*asked[:WARMING], *asked]:
        query = Query(question.title, filters=Filters(exclude_ids=frozenset([question.id])), ranker=ranker)
        found: dict[str, set[str]] = {}
        least = dict.fromkeys(forums, float("inf"))
        for _ in range(REPEATS):
            for name, forum in forums.items():
                began, before = time.perf_counter(), time.process_time()
                hits = forum.search(query).hits
                least[name] = min(least[name], time.perf_counter() - began)
                used[name] += time.process_time() - before
                found[name] = {hit.question.id for hit in hits}
        for name, one in least.items():
            seconds[name].append(one)
        if found["local"]:
            shared.append(len(found["local"] & found["milvus"]) / len(found["local"]))
    used["milvus"] += server_s() - before_s
    times = {name: percentiles(values[WARMING:]) for name, values in seconds.items()}
    return {
        "overlap_at_10": round(sum(shared[WARMING:]) / max(1, len(shared[WARMING:])), 4),
        "search": times,
        "processor_ms": {name: round(1000 * one / REPEATS / (WARMING + len(asked)), 2) for name, one in used.items()},
        "p50_ratio": round(times["milvus"]["p50_ms"] / times["local"]["p50_ms"], 2),
    }


def indexed(forum: Forum) -> dict[str, Any]:
    """Return how long a write takes until the engine has it, at so many writes a second while one follower indexes."""
    questions = [Question(f"new{place}", one.title, one.body) for place, one in enumerate(forum.questions(), 1)]
    waiting: queue.SimpleQueue[float] = queue.SimpleQueue()
    written, seconds = threading.Event(), list[float]()

    def follow() -> None:
        while not written.is_set() or not waiting.empty():
            stored = waiting.qsize()  # these at least are seen by what follows
            forum.catch_up()
            now = time.perf_counter()
            seconds.extend(now - waiting.get() for _ in range(stored))
            time.sleep(0.01)

    forum.add(questions[WRITES])  # the engine reads what it has left to read
    follower = threading.Thread(target=follow)
    follower.start()
    used = time.process_time() + server_s()
    for place in range(WRITES):
        began = time.perf_counter()
        forum.put_unindexed(questions[place])
        waiting.put(began)
        time.sleep(max(0.0, 1 / WRITES_PER_S - (time.perf_counter() - began)))
    written.set()
    follower.join()
    used = time.process_time() + server_s() - used
    forum.delete([one.id for one in questions[: WRITES + 1]])
    found = {"writes": WRITES, "per_second": WRITES_PER_S, "processor_ms": round(1000 * used / WRITES, 2)}
    return found | {name: one for name, one in percentiles(seconds).items() if name != "mean_ms"}


def nearest(forums: dict[str, Forum], asked: Sequence[Question]) -> dict[str, float]:
    """Return the share of the ten exactly nearest vectors that the engine finds; equally near ones count."""
    local, there = (forums[name].indexes.answering() for name in ("local", "milvus"))
    assert local is not None
    assert there is not None
    assert isinstance(local.index, VectorIndex)
    assert isinstance(there.index, MilvusVectors)
    shared = 0.0
    with one_blas_thread():
        vectors = local.encode(asked)
    for vector in vectors:
        exact = local.index.search_exactly(vector[None], 10)[0]
        least = exact[-1][1] - 1e-4  # the local vectors are kept in 16 bits
        [rows] = there.index.nearest(vector[None], 10, "")
        shared += sum(cosine >= least for _, cosine in rows) / len(exact)
    return {"AUTOINDEX": round(shared / len(vectors), 4)}


def main() -> None:
    """Measure and write results/engines.json."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--again", action="store_true", help="search the forums of the run before")
    options = parser.parse_args()
    size = options.questions
    client.READ_TIMEOUT_S = START_S
    if not options.again:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "settings")
    forums, seconds = filled(size)
    asked = random.Random(0).sample(list(forums["local"].questions()), QUERIES)
    forums["milvus"].encode()
    compared(forums, asked[:WARMING], None)  # the engine reads its file
    found = {ranker or "default": compared(forums, asked, ranker) for ranker in RANKERS}
    found_nearest = nearest(forums, asked)
    memory_mb = round(sum(one.memory_info().rss for one in psutil.Process().children(recursive=True)) / 1e6)
    found_indexed = indexed(forums["milvus"])
    print(found, found_nearest, found_indexed)
    for forum in forums.values():
        forum.close()
    body = {
        "questions": size,
        "queries": QUERIES,
        "repeats": REPEATS,
        "load_s": seconds,
        "load_average": os.getloadavg(),
        "rankers": found,
        "nearest": found_nearest,
        "memory_mb": memory_mb,
        "indexed": found_indexed,
    }
    if size == QUESTIONS:
        write("engines", COMMAND, body)


if __name__ == "__main__":
    main()
