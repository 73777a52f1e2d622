"""One probability that two texts ask the same, by which hits are ordered: a logistic function of ``features``. ::

    z(q, p)         = w · x(q, p)         w ≥ 0 of what is alike, w ≤ 0 of what differs
    P(grade ≥ 2)    = σ(b_2 + z)          a good answer to p helps q essentially: ``Hit.score``
    P(grade = 3)    = σ(b_3 + z)          whoever has answered p has answered q

The weights were learned once on judged questions of eleven forums (``python -m recipes.scorer``) and lie in the
package: one set for pairs of which both have vectors, and one for those that only words can compare, since the weight
of a shared word depends on whether meaning was compared too.

Source: McCullagh, "Regression Models for Ordinal Data", 1980: one slope, a threshold for each grade.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.search.calibration import UNMOVED, Update
from askalike.search.differences import DIFFERENCES
from askalike.search.engine import Engine, Floats
from askalike.search.features import ANSWERS, FEATURES, ReadQuery, features
from askalike.search.query import TermCounts
from askalike.search.texts import Text, reader_of
from askalike.text.analyzer import Analyzer
from askalike.types import Query, Question

FILE: Final = "scorer.json"
FORMAT: Final = 1
BY_WORDS: Final = "words"
BY_VECTORS: Final = "vectors"
VERSIONS: Final = (BY_WORDS, BY_VECTORS)
LEAST_SHOWN: Final = {BY_WORDS: 0.09, BY_VECTORS: 0.025}
"""The least probability that is worth showing: 19 of 20 titles of other subjects find nothing (known
answers of ``benchmarks.scorer``)."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """One version.

    Args:
        weights: of ``FEATURES``.  # (len(FEATURES),)
        related: b_2.
        same: b_3 ≤ b_2.
    """

    weights: Floats
    related: float
    same: float

    def logits(self, features: Floats) -> Floats:
        """Return b_2 + z of each pair.  # (N,)"""
        return np.round(features @ self.weights + self.related, 9)  # rows that are equal stay so in any product


def probability(logit: Floats) -> Floats:
    """Return σ of each.

    >>> probability(np.array([0.0, 1.0])).round(4).tolist()
    [0.5, 0.7311]
    """
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logit, -60, 60))))


def cosines_of(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> Floats:
    """Return the cosines of vectors (N, D) of length 1 with a query's (D,): equal ones for equal vectors.  # (N,)

    >>> cosines_of(np.array([[0.6, 0.8], [1.0, 0.0]], np.float32), np.array([1.0, 0.0], np.float32)).round(2).tolist()
    [0.6, 1.0]
    """
    cosines: Floats = np.einsum("nd,d->n", vectors, query).astype(np.float64)  # a product of matrices rounds by place
    return cosines


@cache
def scorers() -> Mapping[str, Scorer]:
    """Return the versions that the package carries, by name.

    Raises:
        DamagedModelError: the file is not as it was written.
    """
    return read_scorers((files("askalike.data") / FILE).read_bytes())


@cache
def digest() -> str:
    """Return what changes with the file of the package."""
    return hashlib.blake2b((files("askalike.data") / FILE).read_bytes(), digest_size=6).hexdigest()


def read_scorers(data: bytes) -> dict[str, Scorer]:
    """Return the versions in a file's bytes.

    Raises:
        DamagedModelError: they are not such a file, or one that was changed so that a pair that is more alike could
            get less.
    """
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}")
        return {name: _scorer(content["versions"][name]) for name in VERSIONS}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedModelError(
            f"the scorer of the package cannot be read: {error}", "install askalike again"
        ) from error


def _scorer(content: Mapping[str, Any]) -> Scorer:
    weights = {name: float(content["weights"].get(name, 0.0)) for name in FEATURES}
    if unknown := content["weights"].keys() - weights.keys():
        raise ValueError(f"weights of {', '.join(sorted(unknown))}")
    related, same = float(content["related"]), float(content["same"])
    if not all(map(math.isfinite, (*weights.values(), related, same))) or same > related:
        raise ValueError(f"thresholds {related} and {same}")
    if against := [name for name, weight in weights.items() if (weight > 0 if name in DIFFERENCES else weight < 0)]:
        raise ValueError(f"weights of the wrong sign of {', '.join(against)}")
    return Scorer(np.array(list(weights.values())), related, same)


class ComparedQuery(NamedTuple):
    """A query, and what it is compared with.

    Args:
        counts: knows every term of the query; others are taken for words that no question has. None for a query that
            was read already, as its candidates were.
        candidates: as they are compared, or still to be read.
        cosines: 0 for a candidate without a vector; None where words alone are compared.  # (N,)
    """

    query: Query | ReadQuery
    counts: TermCounts | None
    candidates: Sequence[Question | Text]
    cosines: Floats | None = None


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a forum scores pairs by.

    Args:
        update: what the forum's own judgements changed.
        version: which weights score pairs of texts that both have a vector.
        are_linked: the pairs are linked as duplicates, so that what differs in their titles says nothing.
        reads_answers: words of a candidate's answers count; for whether two questions ask the same they do not.
    """

    analyzer: Analyzer
    update: Update = UNMOVED
    version: str = BY_WORDS
    are_linked: bool = False
    reads_answers: bool = True

    @property
    def threshold(self) -> float:
        """Return the least probability that is worth showing; see ``LEAST_SHOWN``."""
        return LEAST_SHOWN[self.version]

    def features(self, compared: Sequence[ComparedQuery]) -> Floats:
        """Return the features of each query and each of its candidates, query by query.  # (P, len(FEATURES))

        A candidate that several queries have is read once, where it is one object.
        """
        texts: list[Text] = []
        analyzers: list[Analyzer] = []
        place_of: dict[int, int] = {}  # a candidate → its place among the texts
        queries: list[ReadQuery] = []
        query_at: list[int] = []
        text_at: list[int] = []
        row_of: list[int] = []
        count = 0
        for comparison in compared:
            for candidate in comparison.candidates:
                if id(candidate) not in place_of:
                    place_of[id(candidate)] = len(texts)
                    analyzer = self.analyzer.of(candidate.language)
                    analyzers.append(analyzer)
                    if isinstance(candidate, Question):
                        reader = reader_of(analyzer)
                        candidate = reader.read(candidate.title, candidate.body, candidate.markup).text
                    texts.append(candidate)
            for query, places in self._readings(comparison):
                query_at += [len(queries)] * len(places)
                text_at += [place_of[id(comparison.candidates[place])] for place in places]
                row_of += [count + place for place in places]
                queries.append(query)
            count += len(comparison.candidates)
        cosines = np.zeros(count)
        end = 0
        for comparison in compared:
            start, end = end, end + len(comparison.candidates)
            if comparison.cosines is not None:
                cosines[start:end] = comparison.cosines
        rows = np.zeros((count, len(FEATURES)))
        rows[row_of] = features(
            queries, texts, (np.array(query_at, np.intp), np.array(text_at, np.intp)), analyzers, cosines[row_of]
        )
        return rows

    def _readings(self, compared: ComparedQuery) -> Iterator[tuple[ReadQuery, Sequence[int]]]:
        """Yield a query as it is read for candidates in each language, with their places."""
        query, counts = compared.query, compared.counts
        if isinstance(query, ReadQuery):
            yield query, range(len(compared.candidates))
            return
        assert counts is not None
        readings: dict[Analyzer, list[int]] = {}
        for place, candidate in enumerate(compared.candidates):
            readings.setdefault(self.analyzer.for_query(candidate.language, query.language), []).append(place)
        for reading, places in readings.items():
            text, terms, _ = reader_of(reading).read(query.title, query.body, query.markup)
            yield ReadQuery(text, [counts.known.get(term, 0) for term in terms], counts.size or 0), places

    def logits_beside(
        self, engine: Engine, query: Query, candidates: Sequence[Question | Text], cosines: Floats | None = None
    ) -> Floats:
        """Return the ``logits`` of a query that no search has read; the engine knows how common words are."""
        counts = TermCounts(engine)
        for prepared in self.analyzer.prepare_query(query.language, query.title, query.body, query.markup):
            counts.look_up([*prepared.title, *prepared.body])
        return self.logits([ComparedQuery(query, counts, candidates, cosines)])

    def logits(self, compared: Sequence[ComparedQuery]) -> Floats:
        """Return b_2 + z of each query and each of its candidates, query by query, before the forum's judgements.

        A pair without vectors is scored by its words.
        """
        rows = self._counted_features(compared)
        by_words = scorers()[BY_WORDS].logits(rows)
        has_vectors = rows[:, 0] != 0
        return np.where(has_vectors, scorers()[BY_VECTORS].logits(rows), by_words)

    def addends(self, compared: Sequence[ComparedQuery]) -> list[dict[str, float]]:
        """Return what the logit of each pair is the sum of: b_2 as ``base``, each w · x that is not 0 by the feature's
        name, and what the forum's ``judgements`` move."""
        logits = self.logits(compared)
        moves = self.update.moved(logits) - logits
        addends = []
        for row, move in zip(self._counted_features(compared), moves.tolist(), strict=True):
            scorer = scorers()[BY_VECTORS if row[0] != 0 else BY_WORDS]
            parts = dict(zip(FEATURES, (row * scorer.weights).tolist(), strict=True), judgements=move)
            addends.append({"base": scorer.related, **{name: part for name, part in parts.items() if part}})
        return addends

    def _counted_features(self, compared: Sequence[ComparedQuery]) -> Floats:
        """Return ``features`` with 0 for those that do not count."""
        rows = self.features(compared)
        if self.are_linked:
            rows[:, -len(DIFFERENCES) :] = 0
        if not self.reads_answers:
            rows[:, FEATURES.index(ANSWERS)] = 0
        return rows
