"""One forum of N questions: what it costs to build, to keep and to search, beside the rivals of its parts.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.scale --questions N`` (needs the bench group). The questions are those
of Reddit. Beyond the 224,741 that there are, they are copies with other words: of the words of each title and body, 30
in 100 are replaced by words drawn from all texts as often as they occur there, so that a copy is near its original and
not the same, and every word stays as common as it was; the vocabulary does not grow with the copies, as a real forum's
would.

The forum is built in a process of its own. Meanwhile this one takes the lock of writers for a moment, over and over, to
see how long another writer would have waited. Searches are of titles, and of titles and bodies, of real questions that
are in the forum and excluded from their answers. All times but those of indexing and waiting are processor time of one
thread, which a busy machine changes little. In turns with them run the parts of a search by title that no design can
avoid: the forum's encoder, bm25s as the best public words, and FAISS.

``--asked FOLDER…`` searches existing forums, as ``--keep`` leaves them, in turns, so that a machine that is fast at one
moment and slow at another favours none of them: titles, and titles and bodies.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from recipes.folders import WORK

from askalike import Filters, Forum, Query, Question
from benchmarks.record import memory_mb, option_parser, percentiles, processor_s, reddit_rows, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.scale"
REAL: Final = 224_741
REPLACED: Final = 0.3
POOL: Final = 300_000
"""Words that replacements are drawn from."""
ADDED: Final = 30
BLOCK: Final = 20
"""Queries of one turn of a forum."""
K: Final = 10
SAMPLED_EVERY_S: Final = 0.05
FORMS: Final = ("title", "title and body")
PARTS: Final = ("encoder", "bm25s", "FAISS")
REFINED: Final = 20
"""FAISS scores so many times as many as are wanted again."""
TRAINED: Final = 8_192
"""Vectors that FAISS learns its codes from."""
Key = TypeVar("Key", str, tuple[int, str])


# -- the questions -----------------------------------------------------------------------------------------------------


def replace_words(text: str, pool: list[str], chance: np.random.Generator) -> str:
    """Return a text of which some words are replaced by others.

    >>> replace_words("can birds fly in rain", ["cats"], np.random.default_rng(0))
    'can cats cats cats rain'
    """
    words = text.split()
    places = np.flatnonzero(chance.random(len(words)) < REPLACED)
    for place, drawn in zip(places.tolist(), chance.integers(len(pool), size=len(places)).tolist(), strict=True):
        words[place] = pool[drawn]
    return " ".join(words)


def write_archive(path: Path, size: int) -> None:
    """Write ``size`` questions: the real ones, then copies of them with other words."""
    pool: list[str] = []
    for row in reddit_rows():
        pool += row["body"].split()[:40]
        if len(pool) >= POOL:
            break
    chance, written = np.random.default_rng(0), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for copy in count():
            for row in reddit_rows(size - written):
                if copy:
                    title, body = (replace_words(row[name], pool, chance) for name in ("title", "body"))
                    row |= {"id": f"{row['id']}-{copy}", "title": title, "body": body}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                written += 1
            if written == size:
                return


# -- building ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def sampling(sample: Callable[[], None]) -> Iterator[None]:
    """Call a function every ``SAMPLED_EVERY_S`` seconds, on a thread, for as long as the context lasts."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(SAMPLED_EVERY_S):
            sample()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def build(folder: Path, archive: Path) -> dict[str, Any]:
    """Build the forum in this process; return what it took."""
    own_mb = 0

    def sample() -> None:
        nonlocal own_mb
        own_mb = max(own_mb, memory_mb("self", "RssAnon"))

    began = time.perf_counter()
    with sampling(sample), Forum.create(folder) as forum:
        report = forum.load(archive)
        encoded = forum.indexes.state().entries
    seconds = time.perf_counter() - began
    own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "questions": report.load.questions.added,
        "rejected": report.rejected,
        "encoded": encoded,
        "seconds": round(seconds, 1),
        "processor_s": {
            "this process": round(own.ru_utime + own.ru_stime, 1),
            "its workers": round(workers.ru_utime + workers.ru_stime, 1),
        },
        "peak_memory_mb": {
            "this process": own.ru_maxrss // 1024,
            "this process, without mapped files": own_mb,
        },
    }


def build_watched(folder: Path, archive: Path) -> dict[str, Any]:
    """Build the forum in another process; return what it took, and how long another writer would have waited."""
    database, longest_wait_s = folder / "archive.sqlite", 0.0

    def sample() -> None:
        nonlocal longest_wait_s
        if not database.with_name("archive.sqlite-wal").exists():
            return
        began = time.perf_counter()
        with contextlib.closing(sqlite3.connect(database, timeout=600, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        longest_wait_s = max(longest_wait_s, time.perf_counter() - began)

    with sampling(sample):
        words = [sys.executable, "-m", "benchmarks.scale", "--build", str(folder), str(archive)]
        printed = subprocess.check_output(words, text=True)
    report: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return report | {
        "longest wait of another writer, s": round(longest_wait_s, 2),
        "load_5_min_at_end": round(os.getloadavg()[1], 2),
    }


def disk_mb(folder: Path) -> dict[str, float]:
    """Return the megabytes of each part of a forum."""
    sizes: dict[str, float] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            part = path.relative_to(folder).parts[0]
            sizes[part] = sizes.get(part, 0.0) + path.stat().st_size / 1e6
    sizes["all"] = sum(sizes.values())
    return {part: round(size, 2) for part, size in sorted(sizes.items())}


# -- searching ---------------------------------------------------------------------------------------------------------


def searches(forum: Forum, questions: Iterable[Question], form: str) -> list[Callable[[], object]]:
    """Return searches for each of a forum's questions."""

    def search(question: Question) -> object:
        own = Filters(exclude_ids=frozenset([question.id]))
        body = question.body if form == FORMS[1] else ""
        return forum.search(Query(question.title, body, question.markup, K, own, is_canonical=True))

    return [partial(search, question) for question in questions]


def parts(forum: Forum, questions: list[Question], folder: Path) -> dict[str, list[Callable[[], object]]]:
    """Return the work that no search can avoid, for each title, by name.

    The forum's encoder on the title; bm25s, mapped from disk, over all terms of the forum; FAISS over its vectors, by
    codes of 4 bits whose best are scored again.
    """
    import bm25s
    import faiss

    vectors = forum.indexes.answering()
    assert vectors is not None
    numbers, texts = forum.store.numbers(), []
    for question in forum.questions():
        prepared = forum.analyzer.prepare(question.title, question.body, question.markup)
        texts.append([*prepared.title, *prepared.body])
    rival = bm25s.BM25(backend="numba")
    rival.index(texts, show_progress=False)
    rival.save(str(folder / "bm25s"))
    rival = bm25s.BM25.load(str(folder / "bm25s"), mmap=True)
    rival.activate_numba_scorer()
    known = rival.vocab_dict

    def by_words(terms: list[str]) -> object:
        return rival.retrieve([terms], k=K, show_progress=False) if terms else None

    stored = vectors.index.vectors(numbers)[1]  # (N, D)
    dimensions = stored.shape[1]
    proposing = faiss.index_factory(dimensions, f"PQ{dimensions // 4}x4fs", faiss.METRIC_INNER_PRODUCT)
    codes = faiss.IndexRefineFlat(proposing)
    codes.k_factor = REFINED
    codes.train(stored[:: max(1, len(stored) // TRAINED)])
    codes.add(stored)
    aims = [vectors.encode_queries([Question("", question.title)]) for question in questions]
    terms = [forum.analyzer.prepare(question.title, "", question.markup).title for question in questions]
    return {
        "encoder": [partial(vectors.encode_queries, [Question("", question.title)]) for question in questions],
        "bm25s": [partial(by_words, [term for term in dict.fromkeys(of_one) if term in known]) for of_one in terms],
        "FAISS": [partial(codes.search, aim, K) for aim in aims],
    }


def in_turns(work: Mapping[Key, Sequence[Callable[[], object]]]) -> dict[Key, dict[str, float]]:
    """Return percentiles of the processor time of each kind of work, a block of each in turn.

    The first turn warms up.
    """
    seconds: dict[Key, list[float]] = {name: [] for name in work}
    longest = max(map(len, work.values()))
    for start in range(-BLOCK, longest, BLOCK):
        for name, pieces in work.items():
            spent = [processor_s(piece) for piece in pieces[max(0, start) : max(0, start) + BLOCK]]
            seconds[name] += spent if start >= 0 else []
    return {name: percentiles(spent) for name, spent in seconds.items()}


def search_in_turns(folders: list[Path], queries: int) -> list[dict[str, Any]]:
    """Return what searches of several forums take, in turns."""
    with contextlib.ExitStack() as stack:
        forums = [stack.enter_context(Forum.open(folder)) for folder in folders]
        smallest = min(REAL, *(len(forum) for forum in forums))
        numbers = random.Random(0).sample(range(1, smallest + 1), queries)
        sample = list(forums[0].store.questions_by_num(numbers).values())
        work = {(place, form): searches(forum, sample, form) for place, forum in enumerate(forums) for form in FORMS}
        seconds = in_turns(work)
        return [
            {"questions": len(forum), **{form: seconds[place, form] for form in FORMS}}
            for place, forum in enumerate(forums)
        ]


def added_until_found(forum: Forum, questions: list[Question]) -> dict[str, float]:
    """Return what it takes until an added question is found."""
    seconds: list[float] = []
    for number, question in enumerate(questions):
        new = Question(f"added-{number}", f"{question.title} zzadded{number}", question.body, question.markup)
        seconds.append(processor_s(partial(forum.add, new)))
        assert forum.similar(f"zzadded{number}", k=1, ranker="words")[0].question.id == new.id
    forum.delete([f"added-{number}" for number in range(len(questions))])
    return percentiles(seconds)


def measure(folder: Path, *, size: int, queries: int) -> dict[str, Any]:
    """Build a forum of ``size`` questions below ``folder``, and measure all."""
    shutil.rmtree(folder, ignore_errors=True)
    path, archive = folder / "forum", folder / "questions.jsonl"
    write_archive(archive, size)
    body: dict[str, Any] = {"questions": size, "copies": max(0, size - REAL), "queries": queries}
    body["indexing"] = build_watched(path, archive)
    body["disk_mb"] = disk_mb(path)
    archive.unlink()
    with Forum.open(path) as forum:
        numbers = random.Random(0).sample(range(1, min(size, REAL) + 1), queries)
        sample = list(forum.store.questions_by_num(numbers).values())
        work = {form: searches(forum, sample, form) for form in FORMS} | parts(forum, sample, folder)
        body["search"] = in_turns(work)
        least = sum(body["search"][name]["p50_ms"] for name in PARTS)
        body["by title, of the sum of its parts"] = round(body["search"]["title"]["p50_ms"] / least, 2)
        body["added until found"] = added_until_found(forum, sample[:ADDED])
    return body | {"load_15_min_at_end": round(os.getloadavg()[2], 2)}


def main() -> None:
    """Measure one size."""
    parser = option_parser(__doc__)
    parser.add_argument("--questions", type=int, default=REAL)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--keep", action="store_true", help="leave the forum, for --asked and other measurements")
    parser.add_argument("--asked", nargs="+", type=Path, metavar="FOLDER", help="search these forums in turns instead")
    parser.add_argument("--build", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.asked:
        rows = search_in_turns(options.asked, options.queries)
        load = round(os.getloadavg()[2], 2)
        write("sizes-in-turns", f"{COMMAND} --asked FOLDER…", {"rows": rows, "load_15_min_at_end": load})
    elif options.build:
        print(json.dumps(build(*options.build)))
    else:
        folder = WORK / f"scale-{options.questions}"
        body = measure(folder, size=options.questions, queries=options.queries)
        write(f"scale-{options.questions}", f"{COMMAND} --questions {options.questions}", body)
        if not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
