"""224,741 Reddit questions: indexing rate, memory, size; search latency beside three rivals on the same terms.

Command: ``python -m benchmarks.index_and_search``. The index is built in a process of its own, whose peak memory is
the operating system's count; where the package carries a model, it encodes the questions too. The rivals get the
project's terms, so that only the search is compared; they rank, while ``Forum.similar`` also reads the questions, their
answers and the words that matched. Its first row is the default ranker, named in the result; the others are named.
"""

from __future__ import annotations

import gc
import itertools
import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from askalike.forum import Forum
from askalike.search import SearchSettings
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Filters, Question
from benchmarks.record import WORK, need_data, percentiles, write

FORUM = WORK / "reddit.forum"
QUERIES = 1000
SLOW_QUERIES = 50
K = 10
COMMAND = "python -m benchmarks.index_and_search"


def build(folder: Path, limit: int | None = None) -> dict[str, Any]:
    """Index the Reddit questions in this process and say what it took."""
    began = time.perf_counter()
    with Forum.create(folder) as forum:
        phases: list[tuple[str, float]] = []

        class Watch:
            def start(self, phase: str, total: int, unit: str) -> None:
                phases.append((phase.split()[0], time.perf_counter()))

            def advance(self, count: int) -> None: ...

            def notice(self, text: str) -> None:
                print(text)

        report = forum.load(need_data("reddit/questions.jsonl.gz"), progress=Watch())
        info, forum_vectors = forum.info(), forum.vectors
    ended = time.perf_counter()
    starts = [moment for _, moment in phases] + [ended]
    return {
        "questions": report.load.questions.added,
        "rejected": report.rejected,
        "encoded": forum_vectors.entries,
        "seconds": round(ended - began, 2),
        "questions_per_s": round(report.load.questions.added / (ended - began)),
        "phase_s": {name: round(starts[place + 1] - moment, 2) for place, (name, moment) in enumerate(phases)},
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "size_mb": round(info.size_bytes / 1e6, 1),
        "archive_mb": round((folder / "archive.sqlite").stat().st_size / 1e6, 1),
    }


def timed(search: Callable[[Question], object], queries: list[Question]) -> dict[str, float]:
    """Return the latencies of one search over the queries, after a short warm-up."""
    for query in queries[:20]:
        search(query)
    seconds: list[float] = []
    for query in queries:
        began = time.perf_counter()
        search(query)
        seconds.append(time.perf_counter() - began)
    return percentiles(seconds)


def main() -> None:
    """Measure everything and write the result."""
    if len(sys.argv) > 1 and sys.argv[1] == "build":
        print(json.dumps(build(FORUM)))
        return
    shutil.rmtree(FORUM, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.index_and_search", "build"], capture_output=True, text=True, check=True
    )
    indexing = json.loads(done.stdout.splitlines()[-1])
    print(indexing)
    forum = Forum.open(FORUM)
    everything = list(forum.questions())
    sample = random.Random(0).sample(everything, QUERIES)
    latencies: dict[str, dict[str, dict[str, float]]] = {"title": {}, "title and body": {}}
    has_vectors = bool(forum.vectors.model)
    rankers = (None, "lexical", "vector") if has_vectors else (None,)
    for kind, ranker in itertools.product(latencies, rankers):
        name = f"askalike Forum.similar, {ranker}" if ranker else "askalike Forum.similar"
        latencies[kind][name] = timed(
            lambda query, kind=kind, ranker=ranker: forum.similar(  # type: ignore[misc]
                query.title,
                query.body if kind != "title" else "",
                K,
                markup=query.markup,
                filters=Filters(exclude_ids=frozenset([query.id])),
                ranker=ranker,
            ),
            sample,
        )
        print(kind, name, latencies[kind][name])
    forum.close()
    analyzer = Analyzer(TextSettings())
    documents = [joined(analyzer, question) for question in everything]
    del everything
    gc.collect()
    builds: dict[str, float] = {}
    for name, rival in (("bm25s (numba)", _bm25s), ("SQLite FTS5", _fts5), ("rank_bm25", _rank_bm25)):
        began = time.perf_counter()
        search = rival(documents)
        builds[name] = round(time.perf_counter() - began, 1)
        for kind in latencies:
            queries = sample if name.startswith("bm25s") else sample[:SLOW_QUERIES]

            def ask(query: Question, kind: str = kind, search: Callable[[list[str]], object] = search) -> object:
                prepared = analyzer.prepare(query.title, query.body if kind != "title" else "", query.markup)
                return search(prepared.title + prepared.body)

            latencies[kind][name] = timed(ask, queries)
            print(kind, name, latencies[kind][name])
        del search
        gc.collect()
    write(
        "index-and-search",
        COMMAND,
        {"data": "reddit/questions.jsonl.gz", "k": K, "queries": QUERIES, "queries_of_slow_rivals": SLOW_QUERIES}
        | {
            "default_ranker": SearchSettings().ranker,
            "indexing": indexing,
            "rivals_build_s": builds,
            "search": latencies,
        },
    )


def joined(analyzer: Analyzer, question: Question) -> list[str]:
    """Return the terms of title and body."""
    prepared = analyzer.prepare(question.title, question.body, question.markup)
    return prepared.title + prepared.body


def _bm25s(documents: list[list[str]]) -> Callable[[list[str]], object]:
    import bm25s

    index = bm25s.BM25(backend="numba")
    index.index(documents, show_progress=False)
    index.activate_numba_scorer()
    known = index.vocab_dict

    def search(terms: list[str]) -> object:
        kept = [term for term in terms if term in known]
        return index.retrieve([kept], k=K, show_progress=False) if kept else []

    return search


def _rank_bm25(documents: list[list[str]]) -> Callable[[list[str]], object]:
    import numpy as np
    from rank_bm25 import BM25Okapi

    index = BM25Okapi(documents)

    def search(terms: list[str]) -> object:
        return np.argpartition(-index.get_scores(terms), K)[:K]

    return search


def _fts5(documents: list[list[str]]) -> Callable[[list[str]], object]:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE d USING fts5(terms, content='', tokenize=\"unicode61 tokenchars '/.-_:@+#'\")"
    )
    connection.executemany("INSERT INTO d (terms) VALUES (?)", ((" ".join(terms),) for terms in documents))

    def search(terms: list[str]) -> object:
        query = " OR ".join('"' + term.replace('"', "") + '"' for term in dict.fromkeys(terms))
        if not query:
            return []
        return connection.execute("SELECT rowid FROM d WHERE d MATCH ? ORDER BY rank LIMIT ?", (query, K)).fetchall()

    return search


if __name__ == "__main__":
    main()
