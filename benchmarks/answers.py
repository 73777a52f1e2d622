"""What the words of answers bring to candidates, and what they cost the word index.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.answers``. Candidates of judged queries (``recipes.scorer.pairs``), of
the seven forums that have answers, are put in BM25's order with answers weighed by each of ``WEIGHTS``: graded nDCG@5
of all that were judged, and how many of those with grade 2 or 3 are among the 50 best of the forum; differences to no
weight are paired over queries. The cost is that of the Slicer forum's words, indexed with and without answers in turns
in one process: processor time, bytes on disk, and a search by title, words alone. Writes ``results/answers.json``.
"""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
from recipes.scorer.pairs import graded, graded_ndcg, open_forum

from askalike.executors.processes import Processes
from askalike.forum import Forum
from askalike.index.catchup import catch_up
from askalike.index.local import LocalEngine
from askalike.index.word_indexer import fingerprint, word_indexer
from askalike.index.words import FieldWeights, WordIndex
from askalike.progress import SilentProgress
from askalike.search.query import QuerySettings, TermCounts, weigh
from askalike.types import Filters, Query, Question
from benchmarks.record import compare, option_parser, processor_s, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.answers"
FORUMS: Final = ("devops", "slicer", "math", "quantum", "cardano", "homenet", "scicomp")
WEIGHTS: Final = (0.0, 0.05, 0.1, 0.2, 0.4)
MEASURES: Final = ("ndcg@5", "recall@50")
DEPTH: Final = 50
GOOD: Final = 2
COSTS_OF: Final = "slicer"
ROUNDS: Final = 2
SEARCHES: Final = 200


def outcomes(name: str) -> Iterator[tuple[str, float, float]]:
    """Yield measure, weight and outcome of each judged query of a forum that has good candidates."""
    with open_forum(name) as forum:
        searcher = forum.indexes.searcher()
        assert isinstance(searcher.engine, LocalEngine)
        for _, site, identifier, form, grades in graded():
            if site != name:
                continue
            numbers = forum.store.nums_by_id([identifier, *grades])
            query = forum.question(identifier)
            judged = [key for key in grades if key in numbers]
            prepared = searcher.analyzer.prepare(query.title, "" if form == "title" else query.body, query.markup)
            terms = weigh(prepared, QuerySettings(), TermCounts(searcher.engine))
            weights = {term: weighed.weight for term, weighed in terms.items()}
            known = np.array([grades[key] for key in judged])
            good = [numbers[key] for key in judged if grades[key] >= GOOD]
            for weight in WEIGHTS:
                engine = replace(searcher.engine, fields=FieldWeights(answers=weight))
                scores = engine.lexical_scores(weights, [numbers[key] for key in judged])
                if known.any():
                    of_judged = np.array([scores.get(numbers[key], 0.0) for key in judged])
                    yield "ndcg@5", weight, graded_ndcg(of_judged, known)
                if good:
                    others = Filters(exclude_ids=frozenset([identifier]))
                    best = {number for number, _ in engine.lexical(weights, DEPTH, others)}
                    yield "recall@50", weight, float(np.mean([number in best for number in good]))


def candidates() -> dict[str, Any]:
    """Return each measure by weight, and how much better that is than without answers."""
    by_weight: dict[tuple[str, float], list[float]] = {}
    for name in FORUMS:
        for measure, weight, outcome in outcomes(name):
            by_weight.setdefault((measure, weight), []).append(outcome)
    rows: dict[str, Any] = {}
    for weight in WEIGHTS:
        for measure in MEASURES:
            values = by_weight[measure, weight]
            rows.setdefault(f"{weight:g}", {})[measure] = {
                "queries": len(values),
                "mean": round(100 * statistics.fmean(values), 1),
                **compare(values, by_weight[measure, 0.0]),
            }
    return rows


def index_cost(forum: Forum, folder: Path, *, with_answers: bool) -> dict[str, float]:
    """Index a forum's words; return what that takes, and what a search of them takes."""
    store, searcher = forum.store, forum.indexes.searcher()
    index = WordIndex.create(folder, applied=store.last_change(), fingerprint=fingerprint(searcher.analyzer))
    indexer = word_indexer(index, searcher.analyzer, Processes(1))
    questions_alone = mock.patch.object(indexer, "read", lambda log, questions: questions)
    if not with_answers:
        questions_alone.start()
    seconds = processor_s(lambda: catch_up(store, indexer, SilentProgress()))
    mock.patch.stopall()
    engine = LocalEngine(store, index.snapshot(), FieldWeights() if with_answers else FieldWeights(answers=0.0))
    words = replace(searcher, engine=engine)
    questions = random.Random(0).sample(list(forum.questions()), SEARCHES)
    return {
        "index_s": round(seconds, 1),
        "mb": round(sum(path.stat().st_size for path in folder.iterdir()) / 1e6, 1),
        "search_ms": round(1_000 * statistics.median(search_times(words, questions)), 2),
    }


def search_times(words: Any, questions: Sequence[Question]) -> list[float]:
    """Return the processor time of each search by a title, after some that warm up."""
    queries = [Query(question.title) for question in questions]
    words.search(queries[:20])
    return [processor_s(lambda query=query: words.search([query])) for query in queries]  # type: ignore[misc]


def costs() -> dict[str, Any]:
    """Return the medians of the rounds with and without answers."""
    rounds: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    with open_forum(COSTS_OF) as forum, tempfile.TemporaryDirectory() as folder:
        for place in range(ROUNDS):
            for name, runs in rounds.items():
                runs.append(index_cost(forum, Path(folder) / f"{name}-{place}", with_answers=name == "with"))
        counts = forum.store.counts()
    rows: dict[str, Any] = {
        name: {key: round(statistics.median(run[key] for run in runs), 2) for key in runs[0]}
        for name, runs in rounds.items()
    }
    return rows | {"questions": counts.questions, "answers": counts.answers}


def main() -> None:
    """Measure and write the result."""
    option_parser(__doc__).parse_args()
    write("answers", COMMAND, {"candidates": candidates(), "costs": costs()})


if __name__ == "__main__":
    main()
