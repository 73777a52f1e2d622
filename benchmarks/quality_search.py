"""The search as its users get it, beside words alone and encoders alone, on every real set.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.quality_search --test``; MiniLM is in ``ASKALIKE_MINILM``. Without
``--test`` only dev splits are scored and nothing is written; with it the test splits too, into
``results/quality-search.json``. ``--only SET`` scores one set and writes nothing. Forums are built by the first run;
after that it takes minutes: what a forum holds is not encoded again.

- ``bm25`` is the search by words alone (on SemEval and Quora the exact formula), ``general`` and ``minilm`` the cosine
  of an encoder alone, in the same forum.
- ``search, general`` is what askalike does as it is installed, and ``search, minilm`` what it does in a forum that
  MiniLM encodes: the default ranker, probability.
- ``…, not learned here``: by weights of the scorer that were learned without the set's forum (``benchmarks.scorer``).
  SemEval is Qatar's; nothing was learned from Quora.

Retrieval asks for ten hits, the default of a search, and ten of each system count. Where
candidates or pairs are given, the probability of each decides, in a forum that holds all questions of the set.
Intervals are bootstrap percentiles over queries (pairs), 95 %; tests are paired randomisation tests.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.tasks import RerankTask, VectorScorer
from askalike.forum import Forum
from askalike.models.encoder_settings import MAX_CHARACTERS
from askalike.models.text_encoder import TextEncoder, text_of
from askalike.models.text_questions import TextQuestions
from askalike.search.scorer import Scorer
from benchmarks.quality_rows import pair_rows, ranking_rows, shown
from benchmarks.quality_sets import ENCODERS, TASKS, Task, forum_of
from benchmarks.record import option_parser, write
from benchmarks.scorer import left_out, using
from benchmarks.systems import (
    RETRIEVAL_MEASURES,
    LexicalSearch,
    PairTask,
    Search,
    System,
    Vectors,
    judge,
)

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.quality_search --test"
LEARNED_HERE: Final = {"travel": "travel", "slicer": "slicer", "semeval": "qatar"}
"""Set → the forum whose judged pairs the scorer learned from."""
NOT_LEARNED: Final = ", not learned here"
SHOWN: Final = 10


class Known:
    """A text encoder with the vectors of a forum's questions, so that no test encodes them again.

    Differs from the encoder as a query through it does from a document: by the rounding of the batch.
    """

    def __init__(self, forum: Forum, encoder: TextEncoder) -> None:
        self._encoder, self.name, self.dimensions = encoder, encoder.name, encoder.dimensions
        ids, vectors = forum.models.vectors()
        questions = forum.store.questions_by_id(ids)
        texts = (text_of(questions[identifier], MAX_CHARACTERS) for identifier in ids)
        self._vectors = dict(zip(texts, vectors, strict=True))

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts.  # (N, D)"""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, self._encoder.encode_document(missing), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same as ``encode_query``: MiniLM has no prompts."""
        return self.encode_query(texts)


@contextmanager
def opened(name: str, encoder: str) -> Iterator[Forum]:
    """Yield the forum that holds a set, with the vectors of an encoder."""
    with Forum.open(forum_of(name, encoder), encoder=ENCODERS[encoder]) as forum:
        vectors = forum.indexes.answering()
        assert vectors is not None
        if isinstance(vectors.encoder, TextQuestions):
            vectors.encoder.encoder = Known(forum, vectors.encoder.encoder)
        yield forum


def systems_of(forums: Mapping[str, Forum]) -> dict[str, System]:
    """Return the systems by their names."""
    alone: dict[str, System] = {"bm25": LexicalSearch()}
    searches: dict[str, System] = {}
    for encoder, forum in forums.items():
        vectors = forum.indexes.answering()
        assert vectors is not None
        alone[encoder] = Vectors(VectorScorer(vectors))
        searches[f"search, {encoder}"] = Search(forum)
    return alone | searches


def answers_of(task: Task, systems: Mapping[str, System]) -> dict[str, Any]:
    """Return a task's run, or scores of pairs, by each system."""
    if isinstance(task, PairTask):
        return {name: system.pairs(task).tolist() for name, system in systems.items()}
    if isinstance(task, RerankTask):
        return {name: system.rerank(task) for name, system in systems.items()}
    return {name: system.retrieve(task) for name, system in systems.items()}


def score_task(
    task: Task, systems: Mapping[str, System], weights: Mapping[str, Scorer] | None = None
) -> dict[str, Any]:
    """Return the table of one task; ``SHOWN`` questions that a system retrieves count.

    Args:
        weights: of the scorer, learned without the set's forum; None where nothing was learned from it.
    """
    answers = answers_of(task, systems)
    if weights is not None:
        with using(weights):
            searches = {name: system for name, system in systems.items() if isinstance(system, Search)}
            answers |= {f"{name}{NOT_LEARNED}": answer for name, answer in answers_of(task, searches).items()}
    if isinstance(task, PairTask):
        return pair_rows(answers, task.labels)
    if isinstance(task, RerankTask):
        return ranking_rows({name: judge(task, run) for name, run in answers.items()}, task.main)
    measures = [measure for measure in RETRIEVAL_MEASURES if _cut(measure) <= SHOWN]
    runs = {name: {query: ranking[:SHOWN] for query, ranking in run.items()} for name, run in answers.items()}
    return ranking_rows({name: judge(task, run, measures) for name, run in runs.items()}, task.main)


def _cut(measure: str) -> int:
    """Return how many places a measure looks at; 0 for one that looks at all there are."""
    return int(measure.partition("@")[2] or 0)


def score_set(name: str, parts: Sequence[str]) -> dict[str, Any]:
    """Return the tables of a set's tasks."""
    tables: dict[str, Any] = {}
    with opened(name, "general") as general, opened(name, "minilm") as minilm:
        systems = systems_of(dict(zip(ENCODERS, (general, minilm), strict=True)))
        weights = left_out(LEARNED_HERE[name]) if name in LEARNED_HERE else None
        for part in parts:
            for title, task in TASKS[name](general, part).items():
                tables[title] = score_task(task, systems, weights)
                print(f"{title}\n{shown(tables[title])}", flush=True)
    return tables


def main() -> None:
    """Score the sets and write the result."""
    parser = option_parser(__doc__)
    parser.add_argument("--only", action="append", choices=list(TASKS), help="one set; nothing is written")
    parser.add_argument("--test", action="store_true", help="score the test splits too, and write the result")
    options = parser.parse_args()
    parts = ("dev", "test") if options.test else ("dev",)
    tables: dict[str, Any] = {}
    for name in options.only or TASKS:
        began, before = time.monotonic(), time.process_time()
        tables |= score_set(name, parts)
        print(
            f"{name}: {time.monotonic() - began:.0f} s, {time.process_time() - before:.0f} s of processor", flush=True
        )
    if options.test and not options.only:
        write("quality-search", COMMAND, {"shown": SHOWN, "tables": tables})


if __name__ == "__main__":
    main()
