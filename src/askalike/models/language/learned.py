"""What a language model has learned beside the counts of its terms, and the same as arrays of a model's folder.

::

    starts (V + 1,) int64, sources (K,) int64, values (K,) float32          t(w|u)
    phrase_keys (P,) int64, phrase_starts (P + 1,) int64,
    phrase_sources (K,) int64, phrase_values (K,) float32                   P(w|t)
    topic_questions (V, K) float32, topic_answers (V, K) float32            φ, ψ

What has no number, such as the translations of a forum without answers, has no arrays.

Enters: what training has found, or arrays that may be hostile. Leaves: arrays, or ``Learned``. May import: its
neighbours in language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.language.kind import Kind
from askalike.models.topics.topics import Topics
from askalike.models.translation.phrase_book import PhraseBook
from askalike.models.translation.phrase_learning import MOST_TERMS
from askalike.models.translation.phrase_table import PhraseTable
from askalike.models.translation.translations import Translations

__all__ = ["Learned"]

Arrays = Mapping[str, NDArray[Any]]

_TABLE: Final = {"starts": np.dtype(np.int64), "sources": np.dtype(np.int64), "values": np.dtype(np.float32)}
_KEYS: Final = "phrase_keys"
_PHRASES: Final = "phrase_"
_PHRASE_NAMES: Final = (_KEYS, *(_PHRASES + name for name in _TABLE))
_MARGIN: Final = 1e-3
_TOPIC_NAMES: Final = ("topic_questions", "topic_answers")


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What was learned; what a kind does not learn is empty.

    Args:
        translations: t(w|u).
        phrases: P(w|t).
        topics: φ and ψ.
    """

    translations: Translations = field(default_factory=Translations.none)
    phrases: PhraseTable = field(default_factory=PhraseTable.none)
    topics: Topics = field(default_factory=Topics.none)

    @classmethod
    def none(cls, size: int) -> Learned:
        """Return nothing learned of V terms."""
        return cls(Translations.none(size), PhraseTable.none(size))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays of what is not empty."""
        arrays: dict[str, NDArray[np.generic]] = {}
        if len(self.translations):
            arrays |= {name: getattr(self.translations, name).astype(dtype) for name, dtype in _TABLE.items()}
        if len(self.phrases):
            arrays[_KEYS] = self.phrases.book.keys
            arrays |= {_PHRASES + name: getattr(self.phrases, name).astype(dtype) for name, dtype in _TABLE.items()}
        if len(self.topics.questions) > 1:
            arrays |= dict(zip(_TOPIC_NAMES, (self.topics.questions, self.topics.answers), strict=True))
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int, kind: Kind) -> Learned:
        """Return what ``to_arrays`` gave, of arrays in which ``fault`` finds nothing wrong.

        Args:
            size: V, ids of the vocabulary with 0.
            kind: says how topics were learned.
        """
        translations, phrases, topics = Translations.none(size), PhraseTable.none(size), Topics.none()
        if "values" in arrays:
            translations = Translations(arrays["starts"], arrays["sources"].astype(np.int32), arrays["values"])
        if _KEYS in arrays:
            keys, (starts, sources, values) = arrays[_KEYS], (arrays[_PHRASES + name] for name in _TABLE)
            phrases = PhraseTable(PhraseBook(keys, size, _depth(keys, size)), starts, sources, values)
        if (learning := kind.topic_learning) and _TOPIC_NAMES[0] in arrays:
            questions, answers = (arrays[name] for name in _TOPIC_NAMES)
            topics = Topics(questions, answers, learning.alpha, learning.answer_weight)
        return cls(translations, phrases, topics)

    @staticmethod
    def fault(arrays: Arrays, size: int, kind: Kind) -> str:
        """Return what is wrong with the arrays beside the counts of terms, or nothing."""
        groups = [tuple(_TABLE)]
        groups += [_PHRASE_NAMES] if kind.phrase_learning else []
        groups += [_TOPIC_NAMES] if kind.topic_learning else []
        held = [group for group in groups if set(group) & set(arrays)]
        if set(arrays) != {name for group in held for name in group}:
            expected = ", ".join(name for group in groups for name in group)
            return f"{', '.join(sorted(arrays))[:200]} beside counts, but expected counts, and perhaps {expected}"
        if "values" in arrays:
            if fault := _fault_of_rows(arrays, "", size):
                return fault
            if arrays["sources"].min() < 1 or arrays["sources"].max() >= size:
                return f"sources outside the {size - 1} terms of the vocabulary"
        if _KEYS in arrays and (fault := _fault_of_phrases(arrays, size)):
            return fault
        learning = kind.topic_learning
        return _fault_of_topics(arrays, (size, learning.topics)) if learning and _TOPIC_NAMES[0] in arrays else ""


def _fault_of_topics(arrays: Arrays, shape: tuple[int, int]) -> str:
    for name in _TOPIC_NAMES:
        found = arrays[name]
        if found.dtype != np.float32 or found.shape != shape:
            return f"{name} {found.dtype} {found.shape}, but expected float32 {shape}"
        if not ((found >= 0) & (found <= 1)).all() or found.sum(axis=0, dtype=np.float64).max() > 1 + _MARGIN:
            return f"{name} that are no probabilities of the words of a topic"
    return ""


def _fault_of_phrases(arrays: Arrays, size: int) -> str:
    keys = arrays[_KEYS]
    if keys.dtype != np.int64 or keys.ndim != 1:
        return f"{_KEYS} {keys.dtype} {keys.shape}, but expected one row of int64"
    before = keys // size - 1
    is_rising = bool((np.diff(keys) > 0).all()) and keys[0] > 0 and bool((before < np.arange(len(keys))).all())
    if not is_rising or (keys % size == 0).any() or _depth(keys, size) > MOST_TERMS:
        return (
            f"{_KEYS} that are no phrases of up to {MOST_TERMS} of {size - 1} terms, each with its beginnings before it"
        )
    if fault := _fault_of_rows(arrays, _PHRASES, len(keys)):
        return fault
    sources = arrays[_PHRASES + "sources"]
    if sources.min() < 0 or sources.max() >= len(keys):
        return f"{_PHRASES}sources outside the {len(keys)} phrases"
    return ""


def _fault_of_rows(arrays: Arrays, prefix: str, rows: int) -> str:
    """Return what is wrong with probabilities in rows, but for their sources."""
    starts, _, values = (arrays[prefix + name] for name in _TABLE)
    shapes = {"starts": (rows + 1,), "sources": (values.size,), "values": (values.size,)}
    for name, dtype in _TABLE.items():
        found = arrays[prefix + name]
        if found.dtype != dtype or found.shape != shapes[name]:
            return f"{prefix}{name} {found.dtype} {found.shape}, but expected {dtype} {shapes[name]}"
    if (starts[0], starts[-1]) != (0, len(values)) or np.diff(starts).min() < 0:
        return f"{prefix}starts from {starts[0]} to {starts[-1]}, but expected them to rise from 0 to {len(values)}"
    if not ((values > 0) & (values <= 1)).all():
        return f"{prefix}values that are no probabilities"
    return ""


def _depth(keys: NDArray[np.int64], size: int) -> int:
    """Return how many terms the longest of phrases has; above ``MOST_TERMS`` one more than that."""
    before = np.append(keys // size - 1, -1)  # the last is that of nothing
    places, found = np.arange(len(keys)), 0
    while (places >= 0).any() and found <= MOST_TERMS:
        places, found = before[places], found + 1
    return found
