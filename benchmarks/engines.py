"""A forum whose questions Milvus Lite finds, beside one that finds them itself: how alike, and how fast.

Command: ``python -m benchmarks.engines``. Both forums hold questions of Reddit; the titles of 200 of them are searched
for in turns, by the default ranker, by words, and by vectors. Also measured: what filling takes, and how long 600
writes, 20 a second, take until they can be found in the engine. The overlap is the share of the local ten best that the
engine finds too, the mean over all queries. Each forum is searched ``REPEATS`` times, and the least time counts, since
other work takes the machine now and then; processor times are of all.
"""

from __future__ import annotations

import os
import queue
import random
import shutil
import statistics
import threading
import time
from collections.abc import Mapping, Sequence
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


def load_forums(size: int) -> tuple[dict[str, Forum], dict[str, float]]:
    """Return both forums with the same questions, and the seconds that filling them took."""
    archive = write_reddit(FOLDER / "questions.jsonl", size)
    forums = {name: Forum.create(FOLDER / name) for name in ("local", "milvus")}
    forums["milvus"].indexes.use_engine(f"milvus:{FOLDER / 'milvus.db'}")
    return forums, {name: load_seconds(forum, archive) for name, forum in forums.items()}


def load_seconds(forum: Forum, archive: Path) -> float:
    """Load an archive; return how many seconds that took."""
    began = time.perf_counter()
    forum.load(archive)
    return round(time.perf_counter() - began, 1)


def server_s() -> float:
    """Return the processor time of what this process has started, which Milvus Lite is."""
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children())


def search_in_turns(
    forums: Mapping[str, Forum], questions: Sequence[Question], ranker: str | None = None, repeats: int = 1
) -> dict[str, Any]:
    """Search two forums for the same titles in turns; return times, and how many of the first one's ten both have.

    Args:
        repeats: searches for each title; the least time counts.
    """
    first, second = forums
    seconds: dict[str, list[float]] = {name: [] for name in forums}
    processor_s = dict.fromkeys(forums, 0.0)
    shares: list[float] = []
    for place, question in enumerate([*questions[:WARMING], *questions]):
        query = Query(question.title, filters=Filters(exclude_ids=frozenset([question.id])), ranker=ranker)
        hits: dict[str, set[str]] = {}
        least = dict.fromkeys(forums, float("inf"))
        for _ in range(repeats):
            for name, forum in forums.items():
                began, before = time.perf_counter(), time.process_time()
                result = forum.search(query)
                least[name] = min(least[name], time.perf_counter() - began)
                processor_s[name] += (time.process_time() - before) / repeats
                hits[name] = {hit.question.id for hit in result.hits}
        if place >= WARMING:
            for name, spent in least.items():
                seconds[name].append(spent)
            if hits[first]:
                shares.append(len(hits[first] & hits[second]) / len(hits[first]))
    times = {name: percentiles(values) for name, values in seconds.items()}
    return {
        "overlap_at_10": round(statistics.fmean(shares), 4),
        "search": times,
        "processor_ms": {name: 1000 * spent / (WARMING + len(questions)) for name, spent in processor_s.items()},
        "p50_ratio": round(times[second]["p50_ms"] / times[first]["p50_ms"], 2),
    }


def compare_ranker(forums: Mapping[str, Forum], questions: Sequence[Question], ranker: str | None) -> dict[str, Any]:
    """Return times and overlap of one ranker; processor times with those of the engine's process."""
    before_s = server_s()
    row = search_in_turns(forums, questions, ranker, REPEATS)
    row["processor_ms"]["milvus"] += 1000 * (server_s() - before_s) / REPEATS / (WARMING + len(questions))
    row["processor_ms"] = {name: round(spent, 2) for name, spent in row["processor_ms"].items()}
    return row


def write_delays(forum: Forum) -> dict[str, Any]:
    """Return how long a write takes until the engine has it, at ``WRITES_PER_S`` while one thread indexes."""
    questions = [
        Question(f"new{place}", question.title, question.body) for place, question in enumerate(forum.questions(), 1)
    ]
    waiting: queue.SimpleQueue[float] = queue.SimpleQueue()
    is_written, seconds = threading.Event(), list[float]()

    def follow() -> None:
        while not is_written.is_set() or not waiting.empty():
            stored = waiting.qsize()  # these at least are seen by what follows
            forum.catch_up()
            now = time.perf_counter()
            seconds.extend(now - waiting.get() for _ in range(stored))
            time.sleep(0.01)

    forum.add(questions[WRITES])  # the engine reads what it has left to read
    follower = threading.Thread(target=follow)
    follower.start()
    before_s = time.process_time() + server_s()
    for question in questions[:WRITES]:
        began = time.perf_counter()
        forum.put_unindexed(question)
        waiting.put(began)
        time.sleep(max(0.0, 1 / WRITES_PER_S - (time.perf_counter() - began)))
    is_written.set()
    follower.join()
    spent_s = time.process_time() + server_s() - before_s
    forum.delete([question.id for question in questions[: WRITES + 1]])
    return {
        "writes": WRITES,
        "per_second": WRITES_PER_S,
        "processor_ms": round(1000 * spent_s / WRITES, 2),
        **percentiles(seconds),
    }


def nearest(forums: Mapping[str, Forum], questions: Sequence[Question]) -> dict[str, float]:
    """Return the share of the ten exactly nearest vectors that the engine finds; equally near ones count."""
    local, remote = (forums[name].indexes.answering() for name in ("local", "milvus"))
    assert local is not None
    assert remote is not None
    assert isinstance(local.index, VectorIndex)
    assert isinstance(remote.index, MilvusVectors)
    shared = 0.0
    with one_blas_thread():
        vectors = local.encode(questions)
    for vector in vectors:
        exact = local.index.search_exactly(vector[None], 10)[0]
        least = exact[-1][1] - 1e-4  # the local vectors are kept in 16 bits
        [rows] = remote.index.nearest(vector[None], 10, "")
        shared += sum(cosine >= least for _, cosine in rows) / len(exact)
    return {"AUTOINDEX": round(shared / len(vectors), 4)}


def main() -> None:
    """Measure and write results/engines.json."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    size = parser.parse_args().questions
    client.READ_TIMEOUT_S = START_S
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "settings")
    forums, load_s = load_forums(size)
    questions = random.Random(0).sample(list(forums["local"].questions()), QUERIES)
    forums["milvus"].encode()
    search_in_turns(forums, questions[:WARMING])  # the engine reads its file
    body = {
        "questions": size,
        "queries": QUERIES,
        "repeats": REPEATS,
        "load_s": load_s,
        "load_average": os.getloadavg(),
        "rankers": {ranker or "default": compare_ranker(forums, questions, ranker) for ranker in RANKERS},
        "nearest": nearest(forums, questions),
        "memory_mb": round(sum(child.memory_info().rss for child in psutil.Process().children(recursive=True)) / 1e6),
        "indexed": write_delays(forums["milvus"]),
    }
    for forum in forums.values():
        forum.close()
    print(body)
    if size == QUESTIONS:
        write("engines", COMMAND, body)


if __name__ == "__main__":
    main()
