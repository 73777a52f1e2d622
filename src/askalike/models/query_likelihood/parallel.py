"""Pairs of texts that say the same or belong together, as a translation model learns from them.

Enters: questions' and answers' terms as ids. Leaves: ``Parallel``. May import: lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from askalike.models.query_likelihood.lists import TermLists

__all__ = ["Parallel"]

Texts = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Parallel:
    """P pairs of texts; text i of the sources is translated into text i of the targets, and no text is empty.

    Args:
        sources: their terms u.
        targets: their terms w.
    """

    sources: TermLists
    targets: TermLists

    @classmethod
    def of(cls, pairs: Iterable[tuple[Texts, Texts]], most: int | None = None) -> Parallel:
        """Return pairs without the terms that no vocabulary has, and without pairs of which nothing is left then.

        Args:
            most: of each text only so many terms are taken, the first, ≥ 1; None takes all.

        >>> made = Parallel.of([([1, -7, 2], [3, 1]), ([-7], [3])], most=1)
        >>> made.sources.ids.tolist(), made.targets.ids.tolist()
        ([1], [3])
        """
        known = [(_known(source, most), _known(target, most)) for source, target in pairs]
        kept = [(source, target) for source, target in known if len(source) and len(target)]
        return cls(TermLists.of(source for source, _ in kept), TermLists.of(target for _, target in kept))

    def __len__(self) -> int:
        """Return P."""
        return len(self.sources)

    def both_ways(self) -> Parallel:
        """Return every pair and the same turned round, 2P in all.

        Source: Xue, Jeon and Croft 2008 (SIGIR), P_pool: questions with answers and answers with questions are one set.

        >>> made = Parallel.of([([1], [2, 3])]).both_ways()
        >>> made.sources.ids.tolist(), made.targets.ids.tolist(), made.targets.starts.tolist()
        ([1, 2, 3], [2, 3, 1], [0, 2, 3])
        """
        return Parallel(_joined(self.sources, self.targets), _joined(self.targets, self.sources))


def _known(text: Texts, most: int | None) -> NDArray[np.int64]:
    ids = np.asarray(text, np.int64)
    return ids[ids > 0][:most]


def _joined(first: TermLists, second: TermLists) -> TermLists:
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return TermLists(np.concatenate([first.ids, second.ids]), starts)
