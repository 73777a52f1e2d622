"""What the page of capacity predicts for several machines, beside what can be measured on one.

Command: ``python -m benchmarks.capacity [QUESTIONS…]``: as many questions in PostgreSQL (100,000 and 300,000, those of
Reddit, then copies with other words, as ``benchmarks.scale`` has them), and 10,000 to 40,000 of them in Milvus Lite, in
one collection and in several, each searched by title and body.

::

    bytes in PostgreSQL                      1.0 kB · n
    bytes of memory in Milvus, each vector compared (FLAT)   1.3 · (1.1 · 4 d + 1.2 · 8 · 68) · n
    processor time of words over S shards    S · t(n / S),  t(n) = a · (n / 10⁶)^p

Of memory the slope between the two largest sizes counts, since what a server needs anyway is no matter of n. 68 are the
terms of a question's title and text. a and p are those of the smallest and the largest collection, and predict the
others.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from askalike.index.milvus.client import Milvus, dense, number_field, sparse, text_field
from askalike.index.milvus.words import Counts, Lengths, asked, document, place
from askalike.index.words import FieldWeights
from askalike.store.postgres import PostgresStore
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question, Source
from benchmarks.engines import server_s
from benchmarks.postgres import FOLDER as SERVER
from benchmarks.postgres import database, server
from benchmarks.record import WORK, write
from benchmarks.scale import write_archive

COMMAND: Final = "python -m benchmarks.capacity"
FOLDER: Final = WORK / "capacity"
SIZES: Final = (100_000, 300_000)
IN_MILVUS: Final = (10_000, 20_000, 40_000)
SHARDS: Final = (1, 2, 4)
DIMENSIONS, QUERIES, TOGETHER, TERMS = 300, 100, 500, 68
LENGTHS: Final = Lengths(6.0, 60.0)


def questions(path: Path, first: int = 0, count: int | None = None) -> Iterator[Question]:
    """Yield some questions of an archive."""
    with path.open(encoding="utf-8") as lines:
        for line in islice(lines, first, None if count is None else first + count):
            row = json.loads(line)
            yield Question(row["id"], row["title"], row["body"])


# -- PostgreSQL ----------------------------------------------------------------------------------------------------


def in_postgresql(archive: Path, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Return what each number of questions takes in one database, and what its own index of words takes besides."""
    shutil.rmtree(SERVER, ignore_errors=True)
    SERVER.mkdir(parents=True)
    running = server()
    address = database(running, "capacity")
    store = PostgresStore.create(address, {})
    found: list[dict[str, float]] = []
    before, empty = 0, store.rows("SELECT pg_database_size(current_database())")[0][0]
    try:
        for size in sizes:
            began = time.perf_counter()
            some = questions(archive, before, size - before)
            store.load(some, Source(f"part{before}", "capacity"), lambda _: None)
            before, seconds = size, time.perf_counter() - began
            held = store.rows("SELECT pg_database_size(current_database())")[0][0]
            row = {"questions": size, "load_s": round(seconds, 1), "bytes_per_question": round((held - empty) / size)}
            found.append({**row, "predicted": 1_000})
            print(found[-1], flush=True)
        began = time.perf_counter()
        store.index_words()
        taken = store.rows("SELECT pg_relation_size('questions_by_words')")[0][0]
        found[-1] |= {"words_s": round(time.perf_counter() - began, 1), "words_bytes": round(taken / before)}
    finally:
        store.close()
        running.cleanup()
    return found


# -- Milvus Lite ---------------------------------------------------------------------------------------------------


def resident() -> int:
    """Return the bytes of memory of what this process has started."""
    return sum(one.memory_info().rss for one in psutil.Process().children(recursive=True))


class Texts:
    """Questions as sparse vectors, and queries with the frequencies of their terms."""

    def __init__(self, archive: Path, size: int) -> None:
        analyzer = Analyzer(TextSettings())
        read = [analyzer.prepare(one.title, one.body, one.markup) for one in questions(archive, 0, size)]
        self.rows = [document(one.title, [*one.title, *one.body], LENGTHS) for one in read]
        frequencies: dict[int, int] = {}
        for row in self.rows:
            for dimension in row:
                frequencies[dimension] = frequencies.get(dimension, 0) + 1
        drawn = np.random.default_rng(0).choice(size, QUERIES, replace=False).tolist()
        self.queries = []
        for one in (read[number] for number in drawn):
            weights = dict.fromkeys([*one.title, *one.body][:32], 1.0)
            counts = {
                term: Counts(frequencies.get(2 * place(term), 0), frequencies.get(2 * place(term) + 1, 0))
                for term in weights
            }
            self.queries.append(asked(weights, counts, size, FieldWeights()))


def filled(milvus: Milvus, name: str, texts: Texts, among: range, *, has_vectors: bool) -> None:
    """Put some questions into a collection, and their vectors, drawn by chance, into another one."""
    chance = np.random.default_rng(0)
    milvus.create(name, [text_field("tags"), number_field("created_us")], sparse("words"))
    if has_vectors:
        milvus.create(f"{name}_vectors", [text_field("tags"), number_field("created_us")], dense("vector", DIMENSIONS))
    for start in range(0, len(among), TOGETHER):
        nums = among[start : start + TOGETHER]
        shared: list[dict[str, Any]] = [{"num": num, "tags": ",", "created_us": 0} for num in nums]
        milvus.upsert(name, [{**one, "words": texts.rows[one["num"]]} for one in shared])
        if has_vectors:
            vectors = chance.standard_normal((len(nums), DIMENSIONS), dtype=np.float32)
            pairs = zip(shared, vectors, strict=True)
            milvus.upsert(f"{name}_vectors", [{**one, "vector": vector} for one, vector in pairs])
    milvus.flush(name)


def words_ms(milvus: Milvus, names: Sequence[str], texts: Texts) -> float:
    """Return the engine's processor time of a search of all these collections, in milliseconds."""
    for name in names:  # read
        milvus.search(name, texts.queries[:1], 10)
    began = server_s()
    repeats = 5
    for _ in range(repeats):
        for query in texts.queries:
            for name in names:
                milvus.search(name, [query], 10)
    return 1000 * (server_s() - began) / repeats / len(texts.queries)


def in_milvus(archive: Path) -> dict[str, Any]:
    """Return memory by size, and processor time by the number of collections that hold the questions together."""
    most = max(IN_MILVUS)
    texts = Texts(archive, most)
    milvus = Milvus(f"milvus:{FOLDER / 'milvus.db'}", "capacity")
    memory: list[dict[str, float]] = []
    alone: dict[int, float] = {}
    try:
        for size in IN_MILVUS:
            before = resident()
            filled(milvus, f"n{size}", texts, range(size), has_vectors=True)
            alone[size] = words_ms(milvus, [f"n{size}"], texts)
            milvus.search(f"n{size}_vectors", [np.ones(DIMENSIONS, np.float32)], 10)
            memory.append({"questions": size, "bytes": resident() - before})
            print(memory[-1], round(alone[size], 2), flush=True)
        shards: list[dict[str, float]] = []
        power = float(np.log(alone[most] / alone[min(alone)]) / np.log(most / min(alone)))
        for count in SHARDS:
            names = [f"s{count}_{number}" for number in range(count)]
            for number, name in enumerate(names):
                filled(milvus, name, texts, range(number, most, count), has_vectors=False)
            predicted = count * alone[most] * (1 / count) ** power
            shards.append({"shards": count, "ms": round(words_ms(milvus, names, texts), 2), "predicted": predicted})
            print(shards[-1], flush=True)
    finally:
        milvus.close()
    slope = (memory[-1]["bytes"] - memory[1]["bytes"]) / (IN_MILVUS[-1] - IN_MILVUS[1])  # the first has the process
    terms = sum(map(len, texts.rows)) / len(texts.rows)
    return {
        "dimensions": DIMENSIONS,
        "terms": round(terms, 1),
        "memory": memory,
        "bytes_per_question": round(slope),
        "predicted": round(1.3 * (1.1 * 4 * DIMENSIONS + 1.2 * 8 * TERMS)),
        "words_ms": {str(size): round(one, 2) for size, one in alone.items()},
        "power": round(power, 2),
        "shards": [{**one, "predicted": round(one["predicted"], 2)} for one in shards],
    }


def main() -> None:
    """Measure and write results/capacity.json."""
    sizes = sorted(int(one) for one in sys.argv[1:]) or SIZES
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "settings")
    archive = FOLDER / "questions.jsonl"
    write_archive(archive, max(*sizes, *IN_MILVUS))
    found = {"milvus": in_milvus(archive), "postgresql": in_postgresql(archive, sizes)}
    print(found)
    write("capacity", " ".join([COMMAND, *sys.argv[1:]]), {**found, "load_average": os.getloadavg()})


if __name__ == "__main__":
    main()
