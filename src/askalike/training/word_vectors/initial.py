"""The word vectors that an encoder begins with: found ones where there are any, drawn ones for the other words.

Enters: a vocabulary and ``FoundVectors``. Leaves: ``Initial``, one row an id. May import: found, encode.vocabulary,
errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.training.word_vectors.found import FoundVectors

__all__ = ["Initial", "InitialSettings", "UnknownRow", "initial_embedding"]

UnknownRow = Literal["zero", "rare mean", "random"]
"""``zero``: unknown words say nothing. ``rare mean``: they are like the rarest known ones. ``random``: drawn."""


@dataclass(frozen=True, slots=True)
class InitialSettings:
    """How the first vectors are made.

    Args:
        unknown: what row 0 is.
        rare_count: words at the vocabulary's end that ``rare mean`` takes the mean of, ≥ 1.
        has_unit_norm: found vectors are multiplied so that their mean length is 1.

    Raises:
        SettingError: a value that is not listed or out of range.
    """

    unknown: UnknownRow = "rare mean"
    rare_count: int = 1000
    has_unit_norm: bool = True

    def __post_init__(self) -> None:
        if self.unknown not in get_args(UnknownRow) or self.rare_count < 1:
            raise SettingError(
                f"unknown row {self.unknown!r} with rare_count {self.rare_count}, "
                f"expected one of: {', '.join(get_args(UnknownRow))}; and ≥ 1"
            )


@dataclass(frozen=True, slots=True)
class Initial:
    """The first word vectors.

    Args:
        embedding: (V, D) float32.
        missing: the known words that no vector was found for, in the vocabulary's order.
    """

    embedding: NDArray[np.float32]
    missing: tuple[str, ...]


def initial_embedding(vocabulary: Vocabulary, found: FoundVectors, settings: InitialSettings, *, seed: int) -> Initial:
    """Return a row for each id.

    A word without a vector gets one drawn from N(0, s²) in each dimension, s² being the mean square of the found
    numbers, so that its length is theirs; where none was found, s² = 1/D.

    Args:
        found: of any words; those outside the vocabulary are left out.

    >>> found = FoundVectors(("cat", "dog"), np.array([[3, 4], [0, 5]], np.float32))
    >>> initial_embedding(Vocabulary(["dog", "cat"]), found, InitialSettings(), seed=0).embedding.round(2).tolist()
    [[0.30000001192092896, 0.8999999761581421], [0.0, 1.0], [0.6000000238418579, 0.800000011920929]]
    """
    random = np.random.default_rng(seed)
    dimensions = found.vectors.shape[1]
    rows: Mapping[str, int] = {word: row for row, word in enumerate(found.words)}
    places = np.array([rows.get(word, -1) for word in vocabulary.words], np.int64)
    has_vector = places >= 0
    given = found.vectors[places[has_vector]].astype(np.float64)  # (n, D)
    if settings.has_unit_norm:
        given /= float(np.linalg.norm(given, axis=1).mean()) or 1.0 if len(given) else 1.0
    scale = float(np.sqrt(np.mean(given**2))) if len(given) else dimensions**-0.5
    embedding = np.zeros((len(vocabulary), dimensions))  # (V, D)
    known = embedding[1:]
    known[has_vector] = given
    known[~has_vector] = random.normal(0, scale, (int((~has_vector).sum()), dimensions))
    if settings.unknown == "rare mean" and len(given):
        embedding[UNKNOWN] = given[-settings.rare_count :].mean(axis=0)
    elif settings.unknown == "random":
        embedding[UNKNOWN] = random.normal(0, scale, dimensions)
    missing = tuple(word for word, is_found in zip(vocabulary.words, has_vector, strict=True) if not is_found)
    return Initial(embedding.astype(np.float32), missing)
