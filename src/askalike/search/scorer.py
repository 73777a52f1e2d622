"""One probability that two texts ask the same, by which hits are ordered: a logistic function of what is alike. ::

    z(q, p)         = w · x(q, p)                                    x: ``features``, w ≥ 0 where more alike is likelier
    P(grade ≥ 2)    = σ(b_2 + z)          a good answer to p helps q essentially: ``Hit.score``
    P(grade = 3)    = σ(b_3 + z)          whoever has answered p has answered q

The weights were learned once on judged questions of eleven forums (``python -m benchmarks.scorer --learn``) and lie in
the package, in one version for each kind of evidence: words alone, an encoder whose words have vectors, one that reads
sentences as a whole.

Source: McCullagh, "Regression Models for Ordinal Data", 1980: one slope, a threshold for each grade.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.models.term_weighting import inverse_document_frequency
from askalike.search.calibration import UNMOVED, Update
from askalike.search.features import FEATURES, Cosines, Floats, WordTable, features
from askalike.search.query import TermCounts
from askalike.search.texts import Text, reader_of
from askalike.text.analyzer import Analyzer
from askalike.types import Query, Question

FILE: Final = "scorer.json"
FORMAT: Final = 1
WORDS: Final = "words"
WORD_VECTORS: Final = "words with vectors"
SENTENCES: Final = "sentences"
VERSIONS: Final = (WORDS, WORD_VECTORS, SENTENCES)
USUAL: Final = {WORDS: 0.08, WORD_VECTORS: 0.06, SENTENCES: 0.03}
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


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a forum scores pairs by.

    Args:
        table: the words that the encoder has vectors for; None where it has none, or where there is no encoder.
        usual: what is usual among the forum's cosines; None where there is no encoder.
        update: what the forum's own judgements changed.
        offsets: of the questions that draw wrong matches again and again, by their numbers.
        margin: of the forum, as a feature.
    """

    analyzer: Analyzer
    table: WordTable | None = None
    usual: Cosines | None = None
    update: Update = UNMOVED
    offsets: Mapping[int, float] = field(default_factory=dict)
    margin: float = 0.0

    def version(self) -> str:
        """Return which version scores pairs of texts that both have a vector."""
        return WORDS if self.usual is None else SENTENCES if self.table is None else WORD_VECTORS

    def features(
        self,
        query: Query | ReadQuery,
        counts: TermCounts | None,
        candidates: Sequence[Question | Text],
        vector: NDArray[np.float32] | None = None,
        cosines: Sequence[float] | None = None,
    ) -> Floats:
        """Return what is alike in a query and each question.  # (N, len(FEATURES))

        Args:
            counts: knows every term of the query; others are taken for words that no question has. None for a query
                that was read already, as its candidates were.
            candidates: as they are compared, or still to be read.
            vector: of the query; without it words alone are compared.
            cosines: with the questions, in their order.
        """
        if isinstance(query, ReadQuery):
            asked, frequencies, size = query
            texts = [one for one in candidates if isinstance(one, Text)]
            rarity = np.array([inverse_document_frequency(max(size, one), one) for one in frequencies])
            rarest = inverse_document_frequency(max(size, 1), 0)
            if vector is None or cosines is None or self.usual is None:
                return features(asked, rarity, texts, rarest, size=size, margin=self.margin)
            near = self.usual.of(vector, np.asarray(cosines, dtype=np.float64))
            common = self.usual.commonness(vector)
            return features(asked, rarity, texts, rarest, self.table, near, common, size, self.margin)
        assert counts is not None
        readings = [self.analyzer.asked(one.language, query.language) for one in candidates]
        several = list(dict.fromkeys(readings)) or [self.analyzer.of(query.language)]
        if len(several) > 1:  # those in one language at a time, as which the query is read
            found = np.zeros((len(candidates), len(FEATURES)))
            for reading in several:
                places = [place for place, one in enumerate(readings) if one is reading]
                some = [candidates[place] for place in places]
                theirs = None if cosines is None else [cosines[place] for place in places]
                found[places] = self.features(query, counts, some, vector, theirs)
            return found
        asked, terms, _ = reader_of(several[0]).read(query.title, query.body, query.markup)
        texts = [
            one
            if isinstance(one, Text)
            else reader_of(self.analyzer.of(one.language)).read(one.title, one.body, one.markup).text
            for one in candidates
        ]
        frequencies = [counts.known.get(term, 0) for term in terms]
        return self.features(ReadQuery(asked, frequencies, counts.size or 0), None, texts, vector, cosines)

    def logits(
        self,
        query: Query | ReadQuery,
        counts: TermCounts | None,
        candidates: Sequence[Question | Text],
        vector: NDArray[np.float32] | None = None,
        cosines: Sequence[float] | None = None,
    ) -> Floats:
        """Return b_2 + z of each question, before the forum's judgements; one without a vector is scored by its words.

        Args:
            cosines: 0 for a question without a vector.
        """
        found = self.features(query, counts, candidates, vector, cosines)
        by_words = scorers()[WORDS].logits(found)
        if vector is None or cosines is None or self.usual is None:
            return by_words
        return np.where(np.asarray(cosines) == 0, by_words, scorers()[self.version()].logits(found))
