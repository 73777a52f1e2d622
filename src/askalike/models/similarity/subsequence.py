"""The longest run that two sequences share, with gaps (subsequence) and without (substring), as a share of the longer.

Enters: strings, or lists of word numbers, of one query and N candidates. Leaves: similarities in [0, 1]; 0 where one
is empty. May import: ``similarity.distance``.

Source: Gusfield 1997, "Algorithms on Strings, Trees and Sequences", sections 7.4 and 11.6; the automaton of all
substrings is that of Blumer et al. 1985, "The smallest automaton recognizing the subwords of a text".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from askalike.models.similarity.distance import normalized

__all__ = ["SubstringAutomaton", "longest_common_subsequence", "longest_common_substring"]


def longest_common_subsequence(
    query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return ``LCS(a, b) / max(|a|, |b|)``, what is common in order, gaps allowed.  # (N,)

    >>> longest_common_subsequence("abcd", ["axcd"]).tolist()  # a, c, d
    [0.75]

    Raises:
        MissingExtraError: rapidfuzz is not installed.
    """
    return normalized("LCSseq", query, candidates)


def longest_common_substring(
    query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return ``longest common run / max(|a|, |b|)``, no gaps.  # (N,)

    >>> longest_common_substring("abcd", ["axcd"]).tolist()  # cd
    [0.5]
    """
    if not query:
        return np.zeros(len(candidates))
    automaton = SubstringAutomaton(query)
    longest = [automaton.longest_run(candidate) / max(len(query), len(candidate)) for candidate in candidates]
    return np.array(longest, dtype=np.float64)


class SubstringAutomaton:
    """The smallest automaton that accepts every run of a sequence; built and read in time linear in the lengths.

    State 0 is the empty run. ``_length[s]`` is the longest run that ends in state s, ``_link[s]`` the state of its
    longest suffix that occurs elsewhere too.

    >>> SubstringAutomaton("banana").longest_run("bandana")
    3
    """

    def __init__(self, sequence: Sequence[Hashable]) -> None:
        self._next: list[dict[Hashable, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        last = 0
        for symbol in sequence:
            last = self._extend(last, symbol)

    def longest_run(self, sequence: Sequence[Hashable]) -> int:
        """Return the length of the longest run of ``sequence`` that the automaton's sequence has too."""
        after, link, lengths = self._next, self._link, self._length
        state = length = best = 0
        for symbol in sequence:
            reached = after[state].get(symbol)
            while reached is None and state:
                state = link[state]
                length = lengths[state]
                reached = after[state].get(symbol)
            if reached is not None:
                state = reached
                length += 1
                if length > best:
                    best = length
        return best

    def _extend(self, last: int, symbol: Hashable) -> int:
        """Add a symbol after state ``last``, which is all that was read; return the state of all that is read now."""
        after, link = self._next, self._link
        new = self._state({}, self._length[last] + 1, 0)
        state = last
        while state >= 0 and symbol not in after[state]:
            after[state][symbol] = new
            state = link[state]
        if state >= 0:
            reached = after[state][symbol]
            if self._length[reached] > self._length[state] + 1:
                reached = self._divide(state, symbol, reached)
            link[new] = reached
        return new

    def _divide(self, state: int, symbol: Hashable, reached: int) -> int:
        """Take the shorter runs out of a state that also stands for longer ones; return their own state."""
        after, link = self._next, self._link
        shorter = self._state(dict(after[reached]), self._length[state] + 1, link[reached])
        while state >= 0 and after[state].get(symbol) == reached:
            after[state][symbol] = shorter
            state = link[state]
        link[reached] = shorter
        return shorter

    def _state(self, after: dict[Hashable, int], length: int, link: int) -> int:
        self._next.append(after)
        self._length.append(length)
        self._link.append(link)
        return len(self._next) - 1
