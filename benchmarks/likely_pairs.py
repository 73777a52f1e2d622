"""What finding all likely pairs of a forum costs, and how many of the exact ones are found.

Command: ``python -m benchmarks.likely_pairs`` (the first 20,000 questions of Reddit; ``--questions N`` for more,
``--forum FOLDER`` for a forum that is there). All questions are compared as ``Forum.duplicates`` does, in one process a
core. The exact pairs are those of questions drawn by chance, each scored beside the 300 nearest of all vectors, without
codes, and the 300 best by all of its words: the five likeliest other texts, as far as they have a probability of .1. A
pair that was found from its other side counts as found.

``--drawn N`` compares only so many questions, in blocks drawn by chance, in one process: what a question costs where
comparing all takes long; and how many of the exact pairs of others drawn by chance are found from their own side.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import time
from collections.abc import Container, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from askalike import Forum
from askalike.forum.duplicates import compare
from askalike.forum.engine import LocalEngine
from askalike.forum.pairs import BLOCK, LEAST_SCORE, PARTNERS, _as_query, _plain, _side_by_side
from askalike.progress import SilentProgress
from askalike.search import Searcher
from askalike.types import Question
from benchmarks.record import WORK, need_data, write

DEPTH = 300
TOGETHER = 20
"""Questions that are compared exactly at a time, each with twice ``DEPTH`` others."""


def made(count: int) -> Path:
    """Return the folder of a forum of the first questions of Reddit, made anew."""
    folder, archive = WORK / f"likely-pairs-{count}.forum", WORK / f"likely-pairs-{count}.jsonl"
    shutil.rmtree(folder, ignore_errors=True)
    WORK.mkdir(parents=True, exist_ok=True)
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt") as lines, archive.open("w") as file:
        file.writelines(islice(lines, count))
    with Forum.create(folder) as forum:
        forum.load(archive)
    archive.unlink()
    return folder


def processor_s() -> float:
    """Return the processor time of this process and of those that it has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class _Exact:
    """Vectors of which all are looked at."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, "search_exactly" if name == "search" else name)


def exact(forum: Forum, questions: dict[int, Question]) -> dict[tuple[int, int], float]:
    """Return the exact pairs of some questions."""

    def pairs_of(searcher: Searcher) -> dict[tuple[int, int], float]:
        asked = {num: _as_query(one, DEPTH) for num, one in questions.items()}
        plain = _plain(searcher, asked)
        assert isinstance(plain.engine, LocalEngine)
        join = replace(plain.settings.join, depth=DEPTH, scored=2 * DEPTH)
        engine = replace(plain.engine, vectors=cast(Any, _Exact(plain.engine.vectors)))
        plain = replace(plain, engine=engine, settings=replace(plain.settings, join=join))
        pairs: dict[tuple[int, int], float] = {}
        for num, found in zip(asked, plain.closest(list(asked.values())), strict=True):
            firsts = forum.pairs.store.firsts([one.key for one in found])
            best: dict[int, float] = {}
            for one in found:
                first = firsts.get(one.key, one.key)
                if first != num and len(best) < PARTNERS:
                    best.setdefault(first, one.score)
            ends = {(min(num, first), max(num, first)): score for first, score in best.items() if score >= LEAST_SCORE}
            pairs |= ends
        return pairs

    return forum._indexes.ask(pairs_of)


def measure(folder: Path, sample: int) -> dict[str, Any]:
    """Compare all questions of a forum, and some exactly."""
    for path in folder.glob("pairs.sqlite*"):
        path.unlink()
    with Forum.open(folder) as forum:
        began, spent = time.perf_counter(), processor_s()
        forum.pairs.read_texts()
        read, read_spent = time.perf_counter(), processor_s()
        compare(forum, SilentProgress())
        ended, all_spent = time.perf_counter(), processor_s()
        numbers = forum._store.numbers()
        alone = alone_of(forum, sample)
        true = exact_pairs(forum, alone)
        held = {(one.first, one.second): one.score for one in forum.pairs.store.among(None, LEAST_SCORE)}
        return {
            "questions": len(numbers),
            "seconds": {"reading texts": round(read - began, 1), "comparing": round(ended - read, 1)},
            "processor_s": {
                "reading texts": round(read_spent - spent, 1),
                "comparing": round(all_spent - read_spent, 1),
                "a question, ms": round(1000 * (all_spent - spent) / len(numbers), 2),
            },
            "pairs": len(held),
            "load_15_min_at_end": round(os.getloadavg()[2], 2),
            "questions compared exactly": len(alone),
        } | recall(true, held)


def measure_drawn(folder: Path, count: int, sample: int) -> dict[str, Any]:
    """Compare blocks of questions drawn by chance, and those of the exact pairs last."""
    with Forum.open(folder) as forum:
        forum.pairs.read_texts()
        numbers = forum._store.numbers()
        began = time.process_time()
        ordered = forum._indexes.ask(partial(_side_by_side, nums=numbers))
        ordering = time.process_time() - began
        blocks = range(0, len(ordered), BLOCK)
        drawn = random.Random(1).sample(blocks, min(max(1, count // BLOCK), len(blocks)))
        forum.pairs.partners(list(forum.questions_by_number(ordered[:BLOCK]).items()))  # loads what is needed
        compared, spent = 0, 0.0
        for start in drawn:
            some = list(forum.questions_by_number(ordered[start : start + BLOCK]).items())
            began = time.process_time()
            forum.pairs.partners(some)
            spent += time.process_time() - began
            compared += len(some)
        alone = alone_of(forum, sample)
        true = exact_pairs(forum, alone)
        held: set[tuple[int, int]] = set()
        for start in range(0, len(alone), BLOCK):
            found = forum.pairs.partners(list(forum.questions_by_number(alone[start : start + BLOCK]).items()))
            held |= {(one.first, one.second) for pairs in found.values() for one in pairs}
        return {
            "questions": len(numbers),
            "questions compared": compared,
            "processor_s": {
                "putting all in order": round(ordering, 1),
                "a question, ms": round(1000 * spent / compared, 2),
            },
            "load_15_min_at_end": round(os.getloadavg()[2], 2),
            "questions compared exactly": len(alone),
        } | recall(true, held)


def alone_of(forum: Forum, sample: int) -> list[int]:
    """Return questions drawn by chance, without copies, which are compared as the first of them."""
    numbers = forum._store.numbers()
    drawn = random.Random(0).sample(numbers, min(sample, len(numbers)))
    firsts = forum.pairs.store.firsts(drawn)
    return [num for num in drawn if firsts.get(num, num) == num]


def exact_pairs(forum: Forum, alone: list[int]) -> dict[tuple[int, int], float]:
    """Return the exact pairs of some questions."""
    true: dict[tuple[int, int], float] = {}
    for start in range(0, len(alone), TOGETHER):
        true |= exact(forum, forum.questions_by_number(alone[start : start + TOGETHER]))
    return true


def recall(true: Mapping[tuple[int, int], float], held: Container[tuple[int, int]]) -> dict[str, Any]:
    """Return how many of the exact pairs were found, from some probabilities on."""
    found: dict[str, Any] = {}
    for least in (LEAST_SCORE, 0.3, 0.5):
        likely = [pair for pair, score in true.items() if score >= least]
        share = round(sum(pair in held for pair in likely) / max(1, len(likely)), 4)
        found[f"from {least}"] = {"there are": len(likely), "found": share}
    return {"exact pairs": found}


def main() -> None:
    """Measure one forum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20_000)
    parser.add_argument("--sample", type=int, default=600)
    parser.add_argument("--forum", type=Path, help="a forum that is there; its pairs are made anew")
    parser.add_argument("--drawn", type=int, help="compare only so many questions, drawn by chance")
    given = parser.parse_args()
    folder = given.forum or made(given.questions)
    body = measure_drawn(folder, given.drawn, given.sample) if given.drawn else measure(folder, given.sample)
    size, only = body["questions"], f" --drawn {given.drawn}" if given.drawn else ""
    print(json.dumps(body, indent=1))
    name = f"likely-pairs-{size}-drawn" if given.drawn else f"likely-pairs-{size}"
    write(name, f"python -m benchmarks.likely_pairs --questions {size}{only}", body)


if __name__ == "__main__":
    main()
