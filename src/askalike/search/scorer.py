"""One probability that two texts ask the same, by which hits are ordered: a logistic function of what is alike. ::

    z(q, p)         = w · x(q, p)                                    x: ``features``, w ≥ 0 where more alike is likelier
    P(grade ≥ 2)    = σ(b_2 + z)          a good answer to p helps q essentially: ``Hit.score``
    P(grade = 3)    = σ(b_3 + z)          whoever has answered p has answered q

The weights were learned once on judged questions of eleven forums (``python -m recipes.scorer``) and lie in
the package, in one version for words alone and one for words and vectors.

Source: McCullagh, "Regression Models for Ordinal Data", 1980: one slope, a threshold for each grade.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.models.term_weighting import inverse_document_frequency
from askalike.search.calibration import UNMOVED, Update
from askalike.search.features import FEATURES, Asked, Cosines, Floats, features
from askalike.search.query import TermCounts
from askalike.search.texts import Text, reader_of
from askalike.text.analyzer import Analyzer
from askalike.types import Query, Question

FILE: Final = "scorer.json"
FORMAT: Final = 1
WORDS: Final = "words"
SENTENCES: Final = "sentences"
VERSIONS: Final = (WORDS, SENTENCES)
USUAL: Final = {WORDS: 0.08, SENTENCES: 0.03}
"""The least probability that a widget shows: 9 of 10 titles of other subjects find nothing (by
``benchmarks.judgements``)."""

FREE: Final = frozenset({"commonness", "size of the forum", "margin of the forum"})
"""What is no likeness of a pair and may count against it; all others never do."""


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
        held = json.loads(data)
        if held["format"] != FORMAT:
            raise ValueError(f"format {held['format']!r}")
        return {name: _scorer(held["versions"][name]) for name in VERSIONS}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedModelError(
            f"the scorer of the package cannot be read: {error}", "install askalike again"
        ) from error


def _scorer(held: Mapping[str, Any]) -> Scorer:
    weights = {name: float(held["weights"].get(name, 0.0)) for name in FEATURES}
    if unknown := held["weights"].keys() - weights.keys():
        raise ValueError(f"weights of {', '.join(sorted(unknown))}")
    related, same = float(held["related"]), float(held["same"])
    if not all(map(math.isfinite, (*weights.values(), related, same))) or same > related:
        raise ValueError(f"thresholds {related} and {same}")
    if against := [name for name, weight in weights.items() if weight < 0 and name not in FREE]:
        raise ValueError(f"weights below 0 of {', '.join(against)}")
    return Scorer(np.array(list(weights.values())), related, same)


class ReadQuery(NamedTuple):
    """A query that was read already.

    Args:
        frequencies: in how many questions each term is, those of the title first.  # (T,)
        size: how many questions there are.
    """

    text: Text
    frequencies: Sequence[int]
    size: int


class Compared(NamedTuple):
    """A query, and what it is compared with.

    Args:
        counts: knows every term of the query; others are taken for words that no question has. None for a query that
            was read already, as its candidates were.
        candidates: as they are compared, or still to be read.
        vector: of the query; without it words alone are compared.
        cosines: with the candidates, in their order; 0 for one without a vector.
    """

    query: Query | ReadQuery
    counts: TermCounts | None
    candidates: Sequence[Question | Text]
    vector: NDArray[np.float32] | None = None
    cosines: Sequence[float] | None = None

    @property
    def has_vector(self) -> bool:
        """Whether vectors are compared too."""
        return self.vector is not None and self.cosines is not None


@dataclass(slots=True)
class _Block:
    """Pairs whose features are made together.

    Args:
        places: of the pairs, among all.
    """

    asked: list[Asked] = field(default_factory=list)
    query_at: list[int] = field(default_factory=list)
    text_at: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    cosines: list[Floats] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a forum scores pairs by.

    Args:
        usual: what is usual among the forum's cosines; None where there is no encoder.
        update: what the forum's own judgements changed.
        offsets: of the questions that draw wrong matches again and again, by their numbers.
        margin: of the forum, as a feature.
    """

    analyzer: Analyzer
    usual: Cosines | None = None
    update: Update = UNMOVED
    offsets: Mapping[int, float] = field(default_factory=dict)
    margin: float = 0.0

    def version(self) -> str:
        """Return which version scores pairs of texts that both have a vector."""
        return WORDS if self.usual is None else SENTENCES

    def features(self, compared: Sequence[Compared]) -> Floats:
        """Return what is alike in each query and each of its candidates, query by query.  # (P, len(FEATURES))

        A candidate that several queries have is read once, where it is one object.
        """
        texts: list[Text] = []
        read: dict[int, int] = {}  # a candidate → its place among these
        blocks = {True: _Block(), False: _Block()}
        count = 0
        for one in compared:
            block = blocks[one.has_vector and self.usual is not None]
            for candidate in one.candidates:
                if id(candidate) not in read:
                    read[id(candidate)] = len(texts)
                    if isinstance(candidate, Question):
                        reader = reader_of(self.analyzer.of(candidate.language))
                        candidate = reader.read(candidate.title, candidate.body, candidate.markup).text
                    texts.append(candidate)
            commonness, near = 0.0, None
            if one.vector is not None and one.cosines is not None and self.usual is not None:
                commonness = self.usual.commonness(one.vector)
                near = self.usual.of(one.vector, np.asarray(one.cosines, dtype=np.float64))
            for query, some in self._readings(one):
                size = max(query.size, 1)
                rarity = np.array([inverse_document_frequency(max(size, found), found) for found in query.frequencies])
                block.query_at += [len(block.asked)] * len(some)
                block.text_at += [read[id(one.candidates[place])] for place in some]
                block.places += [count + place for place in some]
                if near is not None:
                    block.cosines.append(near[some])
                rarest = inverse_document_frequency(size, 0)
                block.asked.append(Asked(query.text, rarity, rarest, commonness, query.size, self.margin))
            count += len(one.candidates)
        found = np.zeros((count, len(FEATURES)))
        for has_vectors, block in blocks.items():
            if block.places:
                pairs = np.array(block.query_at), np.array(block.text_at)
                near = np.concatenate(block.cosines) if has_vectors else None
                found[block.places] = features(block.asked, texts, pairs, near)
        return found

    def _readings(self, one: Compared) -> Iterator[tuple[ReadQuery, Sequence[int]]]:
        """Yield a query as it is read for candidates in each language, with their places."""
        query, counts = one.query, one.counts
        if isinstance(query, ReadQuery):
            yield query, range(len(one.candidates))
            return
        assert counts is not None
        readings: dict[Analyzer, list[int]] = {}
        for place, candidate in enumerate(one.candidates):
            readings.setdefault(self.analyzer.asked(candidate.language, query.language), []).append(place)
        for reading, some in readings.items():
            asked, terms, _ = reader_of(reading).read(query.title, query.body, query.markup)
            yield ReadQuery(asked, [counts.known.get(term, 0) for term in terms], counts.size or 0), some

    def logits(self, compared: Sequence[Compared]) -> Floats:
        """Return b_2 + z of each query and each of its candidates, query by query, before the forum's judgements.

        One without a vector is scored by its words.
        """
        found = self.features(compared)
        by_words = scorers()[WORDS].logits(found)
        if self.usual is None:
            return by_words
        cosines = [one.cosines if one.has_vector else np.zeros(len(one.candidates)) for one in compared]
        has_none = np.concatenate([np.zeros(0), *map(np.asarray, cosines)]) == 0
        return np.where(has_none, by_words, scorers()[self.version()].logits(found))
