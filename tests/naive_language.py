"""The language models as loops over words, one by one as their equations have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

Table = Mapping[tuple[int, int], float]
"""(w, u) → t(w|u)."""


def ml(word: int, text: Sequence[int]) -> float:
    """Return P_ml(w|D)."""
    return text.count(word) / len(text) if text else 0.0


def background(word: int, counts: Sequence[int]) -> float:
    """Return P(w|C), where what was never seen counts as one."""
    return max(1, counts[word] if word > 0 else 1) / sum(counts)


def translated(word: int, text: Sequence[int], table: Table) -> float:
    """Return Σ_u t(w|u) P_ml(u|D)."""
    return sum(table.get((word, source), 0.0) * ml(source, text) for source in set(text))


class NaiveModelOne:
    """IBM's model 1 with loops over pairs, words and words."""

    def __init__(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], null: int | None = None) -> None:
        self.pairs = [([null, *source] if null is not None else list(source), list(target)) for source, target in pairs]
        words = {word for _, target in pairs for word in target}
        self.table = {(w, u): 1 / len(words) for source, target in self.pairs for u in source for w in target}

    def step(self) -> float:
        """Make t(w|u) anew and return the log likelihood before."""
        counts: Counter[tuple[int, int]] = Counter()
        likelihood = 0.0
        for source, target in self.pairs:
            for word in target:
                total = sum(self.table[word, u] for u in source)
                likelihood += log(total / len(source))
                for u in source:
                    counts[word, u] += self.table[word, u] / total  # type: ignore[assignment]
        totals: Counter[int] = Counter()
        for (_, u), count in counts.items():
            totals[u] += count
        self.table = {(word, u): count / totals[u] for (word, u), count in counts.items()}
        return likelihood
