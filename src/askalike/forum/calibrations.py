"""What a forum scores pairs by: the package's scorer, and what its own judgements change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.index.vector_set import VectorSet
from askalike.search.calibration import WEIGHTS, posterior
from askalike.search.engine import Engine, Floats
from askalike.search.scorer import BY_VECTORS, BY_WORDS, Scoring, cosines_of, probability
from askalike.search.texts import Text
from askalike.store import Store
from askalike.text.analyzer import Analyzer
from askalike.types import DrawnBy, Feedback, Query, Question

MOST_VERDICTS: Final = 500
"""The newest so many move probabilities."""
MOST_JUDGED: Final = 5_000
"""The newest so many prove thresholds."""
SCORED_ANEW: Final = 2_000
"""In a forum of at most so many vectors judged pairs are scored anew after every change, so that scores depend on what
the forum holds alone; a larger one keeps their scores until another model answers."""


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A judged pair by the numbers of its questions, with its logit before the forum's judgements."""

    pair: tuple[int, int]
    logit: float
    is_same: bool
    by: DrawnBy


Encode = Callable[[Sequence[Question]], NDArray[np.float32]]
"""Questions → their vectors (N, D)."""


class PairProbabilities:
    """Scores pairs of questions as the default search does, before a forum's judgements, by any encoder.

    Args:
        engine: knows how common words are, and the texts of the forum's questions with the words of their answers.
        numbers: the numbers of the forum's questions by their ids.
        encode: returns the vectors of questions; None where words alone are compared.
        encode_queries: those of what is searched for.
    """

    def __init__(
        self,
        scoring: Scoring,
        engine: Engine,
        numbers: Callable[[Sequence[str]], Mapping[str, int]],
        encode: Encode | None = None,
        encode_queries: Encode | None = None,
    ) -> None:
        self._scoring, self._engine, self._numbers = scoring, engine, numbers
        self._encode, self._encode_queries = encode, encode_queries or encode

    def score(self, query: Question, candidates: Sequence[Question]) -> Floats:
        """Return how likely each candidate asks the same, in [0, 1].  # (N,)"""
        cosines = None
        if self._encode is not None and self._encode_queries is not None:
            [vector] = self._encode_queries([query])
            if vector.any():
                cosines = cosines_of(self._encode(candidates), vector)
        texts = self._texts(candidates)
        return probability(self._scoring.logits_beside(self._engine, _as_asked(query), texts, cosines))

    def _texts(self, candidates: Sequence[Question]) -> list[Question | Text]:
        """Return the forum's questions as they are compared; others as they are."""
        numbers = self._numbers([candidate.id for candidate in candidates])
        texts = self._engine.texts(list(numbers.values()))
        return [texts.get(numbers.get(candidate.id, 0), candidate) for candidate in candidates]


class Scorings:
    """The scoring of a forum; any thread may ask. It is worked out when a verdict has come, or another model."""

    def __init__(self, store: Store, analyzer: Analyzer) -> None:
        self._store = store
        self._analyzer = analyzer
        self._guard = threading.Lock()
        self._known: tuple[object, Scoring] = (None, Scoring(analyzer))
        self._logits: dict[tuple[int, int], float] = {}
        self._logits_of: object = None
        self._judged_at: tuple[int, tuple[int, int]] = (-1, (0, 0))

    def scoring(self, vectors: VectorSet | None, engine: Engine) -> Scoring:
        """Return what pairs are scored by now.

        Args:
            vectors: the set that answers, None where words alone are compared.
            engine: of the same state.

        Raises:
            ModelError: the model cannot be read; only where people have judged pairs.
        """
        state = (self._looked_at(vectors), self._feedback_version())
        known = self._known
        if known[0] != state:
            with self._guard:
                if self._known[0] != state:
                    self._known = (state, self._fit(vectors, engine))
                known = self._known
        return known[1]

    def _looked_at(self, vectors: VectorSet | None) -> object:
        """Return what changes when judged pairs are to be scored anew."""
        if vectors is None:
            return None
        is_small = vectors.index.entries <= SCORED_ANEW
        return vectors.fingerprint, vectors.index.cursor.is_complete, self._store.last_change() if is_small else 0

    def _feedback_version(self) -> tuple[int, int]:
        """Return which verdicts there are; counted anew only when the store has changed."""
        last = self._store.last_change()
        known, version = self._judged_at
        if known != last:
            version = self._store.judgement_version()
            self._judged_at = (last, version)
        return version

    def _fit(self, vectors: VectorSet | None, engine: Engine) -> Scoring:
        scoring = self._before_judgements(vectors)
        verdicts = self._store.judgements()[-MOST_VERDICTS:]
        judged = list(self._judged(scoring, verdicts, vectors, engine)) if verdicts else []
        if not judged:
            return scoring
        logits, is_same = [pair.logit for pair in judged], [pair.is_same for pair in judged]
        update = posterior(logits, is_same, [WEIGHTS[pair.by] for pair in judged])
        return replace(scoring, update=update)

    def judged(self, vectors: VectorSet | None, engine: Engine) -> list[JudgedPair]:
        """Return the pairs that count, with their logits before the forum's judgements."""
        with self._guard:
            verdicts = self._store.judgements()[-MOST_JUDGED:]
            return list(self._judged(self._before_judgements(vectors), verdicts, vectors, engine))

    def logits(
        self, pairs: Sequence[tuple[int, int]], vectors: VectorSet | None, engine: Engine
    ) -> dict[tuple[int, int], float]:
        """Return the logits before the forum's judgements of the pairs whose questions are there.

        Args:
            pairs: of the numbers of two questions; the first is the query.
        """
        with self._guard:
            self._keep_logits(self._before_judgements(vectors), pairs, vectors, engine)
            return {pair: self._logits[pair] for pair in pairs if pair in self._logits}

    def _before_judgements(self, vectors: VectorSet | None) -> Scoring:
        """Return the scoring of texts and vectors alone; logits by another state are forgotten."""
        looked_at = self._looked_at(vectors)
        if self._logits_of != looked_at:
            self._logits.clear()
            self._logits_of = looked_at
        return Scoring(self._analyzer, version=BY_WORDS if vectors is None else BY_VECTORS)

    def _judged(
        self, scoring: Scoring, verdicts: list[Feedback], vectors: VectorSet | None, engine: Engine
    ) -> Iterator[JudgedPair]:
        """Yield the pairs whose questions are there."""
        numbers = self._store.nums_by_id(
            [judgement for it in verdicts for judgement in (it.question_id, it.candidate_id)]
        )
        pairs = [
            (numbers.get(judgement.question_id, 0), numbers.get(judgement.candidate_id, 0)) for judgement in verdicts
        ]
        self._keep_logits(scoring, pairs, vectors, engine)
        for pair, judgement in zip(pairs, verdicts, strict=True):
            if pair in self._logits:
                yield JudgedPair(pair, self._logits[pair], judgement.verdict == "duplicate", judgement.draw.by)

    def _keep_logits(
        self, scoring: Scoring, pairs: Sequence[tuple[int, int]], vectors: VectorSet | None, engine: Engine
    ) -> None:
        wanted = [pair for pair in pairs if all(pair) and pair not in self._logits]
        questions = self._store.questions_by_num(sorted({num for pair in wanted for num in pair})) if wanted else {}
        self._logits.update(
            _logits(scoring, [pair for pair in wanted if questions.keys() >= set(pair)], questions, vectors, engine)
        )


def _as_asked(question: Question) -> Query:
    return Query(question.title, question.body, markup=question.markup, language=question.language)


def _logits(
    scoring: Scoring,
    pairs: list[tuple[int, int]],
    questions: Mapping[int, Question],
    vectors: VectorSet | None,
    engine: Engine,
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the logit of each pair, the first as the query."""
    stored = None if vectors is None else engine.stored_vectors(sorted(questions))
    vector_of = {} if stored is None else dict(zip(stored[0].tolist(), stored[1], strict=True))
    for first, second in pairs:
        cosines = None
        if first in vector_of and second in vector_of:
            cosines = np.array([float(vector_of[first] @ vector_of[second])])
        [logit] = scoring.logits_beside(engine, _as_asked(questions[first]), [questions[second]], cosines)
        yield (first, second), float(logit)
