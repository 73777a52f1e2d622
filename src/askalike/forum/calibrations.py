"""What a forum scores pairs by: the package's scorer, what is usual among the forum's cosines, its own judgements."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from askalike.forum.engine import EncoderWords
from askalike.index.vector_set import VectorSet
from askalike.processes import one_blas_thread
from askalike.search.calibration import posterior
from askalike.search.engine import Engine
from askalike.search.features import Cosines
from askalike.search.query import TermCounts
from askalike.search.scorer import Scoring
from askalike.store import Store
from askalike.text.analyzer import Analyzer
from askalike.types import Feedback, Query, Question

MOST_VERDICTS: Final = 500
"""The newest so many count."""
SAMPLE: Final = 300


class Scorings:
    """The scoring of a forum; any thread may ask. It is worked out when a verdict has come, or another model."""

    def __init__(self, store: Store, analyzer: Analyzer) -> None:
        self._store = store
        self._analyzer = analyzer
        self._guard = threading.Lock()
        self._known: tuple[object, Scoring] = (None, Scoring(analyzer))
        self._plain: tuple[object, Scoring] = (None, Scoring(analyzer))
        self._logits: dict[tuple[int, int], float] = {}
        self._judged_at: tuple[int, tuple[int, int]] = (-1, (0, 0))

    def of(self, vectors: VectorSet | None, engine: Engine) -> Scoring:
        """Return what pairs are scored by now.

        Args:
            vectors: the set that answers, None where words alone are compared.
            engine: of the same state.

        Raises:
            ModelError: the model cannot be read; only where people have judged pairs.
        """
        state = (_sample_of(vectors), self._feedback_version())
        known = self._known
        if known[0] != state:
            with self._guard:
                if self._known[0] != state:
                    self._known = (state, self._made(vectors, engine))
                known = self._known
        return known[1]

    def _feedback_version(self) -> tuple[int, int]:
        """Return which verdicts there are; counted anew only when the store has changed."""
        last = self._store.last_change()
        known, version = self._judged_at
        if known != last:
            version = self._store.judgement_version()
            self._judged_at = (last, version)
        return version

    def _made(self, vectors: VectorSet | None, engine: Engine) -> Scoring:
        scoring = self._before_judgements(vectors)
        verdicts = self._store.judgements()[-MOST_VERDICTS:]
        judged = list(self._judged(scoring, verdicts, vectors, engine)) if verdicts else []
        return replace(scoring, update=posterior(*zip(*judged, strict=True))) if judged else scoring

    def _before_judgements(self, vectors: VectorSet | None) -> Scoring:
        """Return the scoring of texts and vectors alone; looked at anew while a forum grows to what is sampled."""
        looked_at = _sample_of(vectors)
        if self._plain[0] != looked_at:
            self._logits.clear()
            self._plain = (looked_at, self._read(vectors))
        return self._plain[1]

    def _read(self, vectors: VectorSet | None) -> Scoring:
        if vectors is None:
            return Scoring(self._analyzer)
        numbers = vectors.index.numbers()
        chosen = np.random.default_rng(0).choice(numbers, min(SAMPLE, len(numbers)), replace=False)
        _, sample = vectors.index.vectors(chosen)
        with one_blas_thread():
            usual = Cosines.among(sample[np.any(sample, axis=1)])
        if vectors.settings is not None:  # a text encoder knows nothing of single words
            return Scoring(self._analyzer, None, usual)
        return Scoring(self._analyzer, EncoderWords(vectors), usual)

    def _judged(
        self, scoring: Scoring, verdicts: list[Feedback], vectors: VectorSet | None, engine: Engine
    ) -> Iterator[tuple[float, bool]]:
        """Yield logit and verdict of the pairs whose questions are there."""
        numbers = self._store.nums_by_id([one for it in verdicts for one in (it.question_id, it.candidate_id)])
        pairs = [(numbers.get(one.question_id, 0), numbers.get(one.candidate_id, 0)) for one in verdicts]
        wanted = [pair for pair in pairs if all(pair) and pair not in self._logits]
        held = self._store.questions_by_num(sorted({num for pair in wanted for num in pair})) if wanted else {}
        self._logits.update(
            _logits(scoring, [pair for pair in wanted if held.keys() >= set(pair)], held, vectors, engine)
        )
        for pair, one in zip(pairs, verdicts, strict=True):
            if pair in self._logits:
                yield self._logits[pair], one.verdict == "duplicate"


def _sample_of(vectors: VectorSet | None) -> object:
    return None if vectors is None else (vectors.fingerprint, min(vectors.index.entries, SAMPLE))


def _logits(
    scoring: Scoring,
    pairs: list[tuple[int, int]],
    held: Mapping[int, Question],
    vectors: VectorSet | None,
    engine: Engine,
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the logit of each pair, the first as the query."""
    known = {}
    if vectors is not None and held:
        found, matrix = vectors.index.vectors(sorted(held))
        known = {int(num): vector for num, vector in zip(found, matrix, strict=True) if vector.any()}
    for pair in pairs:
        asked, other = held[pair[0]], held[pair[1]]
        counts = TermCounts(engine)
        prepared = scoring.analyzer.prepare(asked.title, asked.body, asked.markup)
        counts.look_up([*prepared.title, *prepared.body])
        vector, near = known.get(pair[0]), known.get(pair[1])
        cosine = [float(vector @ near)] if vector is not None and near is not None else None
        query = Query(asked.title, asked.body, markup=asked.markup)
        yield pair, float(scoring.logits(query, counts, [other], vector if cosine else None, cosine)[0])
