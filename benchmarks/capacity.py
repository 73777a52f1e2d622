"""What the page of capacity predicts for several machines, beside what can be measured on one.

Command: ``python -m benchmarks.capacity [QUESTIONS…]``: as many questions in PostgreSQL (100,000 to 1,000,000, those of
Reddit, then copies with other words, as ``benchmarks.scale`` has them), and 10,000 to 40,000 of them in Milvus Lite, in
one collection and in several, each searched by title and body.

::

    bytes in PostgreSQL                      1.0 kB · n
    bytes of memory in Milvus                Σ over kinds of collections of (a + b n)
    processor time of words over S shards    S · t(n / S),  t(n) = a · (n / 10⁶)^p

Memory is that of a process which has read a file with one kind: vectors, or words with their terms and the texts that
questions are compared by. b is the slope between the smallest and the largest of 10,000, 20,000 and 40,000 questions,
and predicts the other. Of words, a and p are those of the smallest and the largest collection, and predict the others.
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
from tests.milvus_server import stop_milvus

from askalike.index.cursor import Cursor
from askalike.index.milvus import client
from askalike.index.milvus.client import FILE, Milvus, number_field, sparse, text_field
from askalike.index.milvus.vectors import MilvusVectors
from askalike.index.milvus.words import Counts, Lengths, MilvusWords, asked, document, place
from askalike.index.word_indexer import entries_of
from askalike.index.words import FieldWeights
from askalike.store.postgres import PostgresStore
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Question, Source
from benchmarks.engines import START_S, server_s
from benchmarks.postgres import FOLDER as SERVER
from benchmarks.postgres import database, server
from benchmarks.record import WORK, write
from benchmarks.scale import write_archive

COMMAND: Final = "python -m benchmarks.capacity"
FOLDER: Final = WORK / "capacity"
SIZES: Final = (100_000, 300_000, 1_000_000)
IN_MILVUS: Final = (10_000, 20_000, 40_000)
SHARDS: Final = (1, 2, 4)
HELD: Final = (10_000, 20_000, 40_000)
DIMENSIONS, QUERIES, TOGETHER = 300, 100, 500
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


def filled(milvus: Milvus, name: str, texts: Texts, among: range) -> None:
    """Put the words of some questions into a collection."""
    milvus.create(name, [text_field("tags"), number_field("created_us")], sparse("words"))
    for start in range(0, len(among), TOGETHER):
        nums = among[start : start + TOGETHER]
        shared: list[dict[str, Any]] = [{"num": num, "tags": ",", "created_us": 0} for num in nums]
        milvus.upsert(name, [{**one, "words": texts.rows[one["num"]]} for one in shared])
    milvus.flush(name)


def _put(index: MilvusWords | MilvusVectors, numbered: Sequence[tuple[int, Question]]) -> None:
    """Put questions into an index, and their vectors, drawn by chance."""
    cursor = Cursor(numbered[-1][0], 0, is_complete=True, fingerprint="capacity")
    if isinstance(index, MilvusWords):
        analyzer = Analyzer(TextSettings())
        with index.writing() as words:
            for entry in entries_of(analyzer, numbered):
                words.put(entry)
            words.commit(cursor)
        return
    chance = np.random.default_rng(numbered[0][0])
    with index.writing() as vectors:
        drawn = chance.standard_normal((len(numbered), DIMENSIONS), dtype=np.float32)
        vectors.put([num for num, _ in numbered], drawn, dict(numbered))
        vectors.commit(cursor)


def _opened(kind: str) -> MilvusWords | MilvusVectors:
    milvus = Milvus(f"{FILE}{FOLDER / kind}.db", "capacity")
    made: MilvusWords | MilvusVectors = (
        MilvusWords(milvus, "words_capacity", "capacity")
        if kind == "words"
        else MilvusVectors(milvus, "vectors_capacity", "capacity")
    )
    made.reopen()
    return made


def _end(milvus: Milvus) -> None:
    """End the engine's process."""
    milvus.close()
    stop_milvus(milvus.address)


def held(archive: Path) -> list[dict[str, Any]]:
    """Return the memory of an engine that has read so many words, or vectors, again."""
    found: list[dict[str, Any]] = []
    for kind in ("words", "vectors"):
        before, memory = 0, dict[str, int]()
        for size in HELD:
            index = _opened(kind)
            if isinstance(index, MilvusWords) and not before:
                index.begin(0, LENGTHS)
            elif isinstance(index, MilvusVectors) and not before:
                index.begin(DIMENSIONS, 0)
            numbered = list(enumerate(questions(archive, before, size - before), before + 1))
            for start in range(0, len(numbered), HELD[0]):
                _put(index, numbered[start : start + HELD[0]])
            _end(index.milvus)
            before, index = size, _opened(kind)
            if isinstance(index, MilvusWords):
                index.texts([1])
                index.counts(["the"])
            else:
                index.search(np.ones((1, DIMENSIONS), np.float32), 10)
            memory[str(size)] = resident()
            _end(index.milvus)
            print(kind, size, memory[str(size)], flush=True)
        (least, middle, most), bytes_ = HELD, list(memory.values())
        slope = (bytes_[2] - bytes_[0]) / (most - least)
        foretold = bytes_[0] + slope * (middle - least)
        row = {"kind": kind, "bytes": memory, "bytes_per_question": round(slope)}
        found.append({**row, "error": round(foretold / bytes_[1] - 1, 3)})
    return found


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
    """Return memory by kind and size, and processor time by the number of collections that hold the questions."""
    most = max(IN_MILVUS)
    texts = Texts(archive, most)
    milvus = Milvus(f"{FILE}{FOLDER / 'milvus.db'}", "capacity")
    alone: dict[int, float] = {}
    try:
        for size in IN_MILVUS:
            filled(milvus, f"n{size}", texts, range(size))
            alone[size] = words_ms(milvus, [f"n{size}"], texts)
            print(size, round(alone[size], 2), flush=True)
        shards: list[dict[str, float]] = []
        power = float(np.log(alone[most] / alone[min(alone)]) / np.log(most / min(alone)))
        for count in SHARDS:
            names = [f"s{count}_{number}" for number in range(count)]
            for number, name in enumerate(names):
                filled(milvus, name, texts, range(number, most, count))
            predicted = count * alone[most] * (1 / count) ** power
            shards.append({"shards": count, "ms": round(words_ms(milvus, names, texts), 2), "predicted": predicted})
            print(shards[-1], flush=True)
    finally:
        _end(milvus)
    return {
        "dimensions": DIMENSIONS,
        "terms": round(sum(map(len, texts.rows)) / len(texts.rows), 1),
        "memory": held(archive),
        "words_ms": {str(size): round(one, 2) for size, one in alone.items()},
        "power": round(power, 2),
        "shards": [{**one, "predicted": round(one["predicted"], 2)} for one in shards],
    }


def main() -> None:
    """Measure and write results/capacity.json."""
    client.READ_TIMEOUT_S = START_S
    sizes = sorted(int(one) for one in sys.argv[1:]) or SIZES
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "settings")
    archive = FOLDER / "questions.jsonl"
    write_archive(archive, max(*sizes, *HELD))
    found = {"milvus": in_milvus(archive), "postgresql": in_postgresql(archive, sizes)}
    print(found)
    write("capacity", " ".join([COMMAND, *sys.argv[1:]]), {**found, "load_average": os.getloadavg()})


if __name__ == "__main__":
    main()
