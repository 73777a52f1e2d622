"""Texts of like length together, each distinct word of a batch once.

Enters: texts as ids. Leaves: ``Batch`` values. May import: errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError

__all__ = ["Batch", "check_size", "of_like_length"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some texts that have words, the longest first.

    Args:
        texts: which of all texts they are.  # (B,)
        distinct: the ids that occur in them, each once.  # (U,)
        places: row of ``distinct`` for each word, 0 where a text has ended.  # (T, B)
        lengths: words of each text.  # (B,)
    """

    texts: NDArray[np.intp]
    distinct: NDArray[np.intp]
    places: NDArray[np.intp]
    lengths: NDArray[np.intp]


def check_size(size: int) -> None:
    """Refuse a batch size that is none.

    Raises:
        SettingError: it is not at least 1.
    """
    if size < 1:
        raise SettingError(f"batch_size {size}, but expected at least 1", "256 is usual")


def of_like_length(texts: Sequence[Sequence[int] | NDArray[np.int64]], size: int) -> Iterator[Batch]:
    """Yield the texts that have words in batches of ``size``, by falling length.

    >>> for batch in of_like_length([[7], [], [5, 7, 5], [9, 9]], 2):
    ...     batch.texts.tolist(), batch.distinct.tolist(), batch.places.T.tolist(), batch.lengths.tolist()
    ([2, 3], [5, 7, 9], [[0, 1, 0], [2, 2, 0]], [3, 2])
    ([0], [7], [[0]], [1])
    """
    lengths = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    for begin in range(0, len(order), size):
        rows = order[begin : begin + size]
        distinct, inverse = np.unique(np.concatenate([texts[row] for row in rows]), return_inverse=True)
        has_word = np.arange(lengths[rows[0]]) < lengths[rows][:, None]  # (B, T)
        places = np.zeros(has_word.shape, dtype=np.intp)
        places[has_word] = inverse
        yield Batch(rows, distinct, places.T, lengths[rows])
