"""What the comparing of questions asks of whatever stores likely pairs, and what is still to be compared.

Everything here can be made anew, but only by who holds the lock of comparing: a reader that finds the store damaged
says so, and the next who compares begins it again. A store that another process is writing is neither damaged nor old.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from askalike.errors import DamagedForumError


class DamagedPairsError(DamagedForumError):
    """The pairs cannot be read; they are begun again by who compares next."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions by their numbers.

    Args:
        first: the smaller number.
        score: in [0, 1].
        cosine: of their vectors, None where they have none.
        is_open: for people to judge; what they linked is not, and is kept for groups.
    """

    first: int
    second: int
    score: float
    cosine: float | None = None
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class PairPosition:
    """Where a page ended: the last pair in the order by score descending, then numbers."""

    score: float
    first: int
    second: int


_PRIME: Final = 2**31 - 1


def permanent_factors(seed: int) -> tuple[int, int, int, int]:
    """Return a, b, c and p of ``permanent_number`` = ((a · first + b · second + c) mod p) / p.

    Source: Carter and Wegman, "Universal Classes of Hash Functions", 1979: over all seeds, pairs are independent.
    """
    digest = hashlib.blake2b(f"permanent number {seed}".encode(), digest_size=12).digest()
    a, b, c = (int.from_bytes(digest[at : at + 4], "big") % (_PRIME - 1) + 1 for at in (0, 4, 8))
    return a, b, c, _PRIME


def permanent_number(first: int, second: int, seed: int) -> float:
    """Return a number in [0, 1) that belongs to a pair for good, as if drawn by chance."""
    a, b, c, prime = permanent_factors(seed)
    return (a * first + b * second + c) % prime / prime


class PairStore(Protocol):
    """Pairs of a forum; any thread reads, and whoever holds the lock of comparing writes.

    Every method raises BusyForumError where another process has the store locked for too long, DamagedPairsError where
    it is damaged or of another version, and ForumError where it cannot be read or written for another reason.
    """

    was_damaged: bool
    """Whether damage was met since ``mend``."""

    def close(self) -> None:
        """Close the store."""

    def state(self, key: str) -> str | None:
        """Return a value that was kept, or None; "version" grows with every writing, "begun" names the file."""

    def waiting(self) -> int:
        """Return how many questions are still to be compared."""

    def next_waiting(self, limit: int) -> list[int]:
        """Return the numbers of some questions that are to be compared, those that came last first."""

    def next_unread(self, limit: int) -> list[int]:
        """Return the numbers of some questions whose text is to be read, ascending."""

    def count(self, low: float = 0.0, high: float = 2.0) -> int:
        """Return how many open pairs there are with low ≤ score < high."""

    def drawn(self, low: float, high: float, limit: int, seed: int) -> list[Pair]:
        """Return the open pairs with low ≤ score < high that have the least ``permanent_number``, ascending."""

    def page(self, minimum: float, limit: int, after: PairPosition | None = None) -> list[Pair]:
        """Return open pairs of at least this score, best first, from after a position on."""

    def of(self, num: int) -> list[Pair]:
        """Return the pairs of one question."""

    def copies(self, num: int, limit: int) -> list[int]:
        """Return the smallest numbers of the questions with the text of this one, itself among them, ascending.

        Args:
            limit: at most this many; -1 for all.
        """

    def firsts(self, nums: Sequence[int]) -> dict[int, int]:
        """Return the smallest number of the questions with the text of each; those without a text are left out."""

    def texts(self, name: Literal["hash", "template"], nums: Iterable[int] | None = None) -> list[list[int]]:
        """Return the questions that have a text, or its template, in common, two at least, each list ascending.

        Args:
            nums: only those with one of these among them; None for all.
        """

    def among(self, nums: Iterable[int] | None, minimum: float) -> list[Pair]:
        """Return the pairs of at least this score of any of these questions, or of all for None, by their numbers."""

    def touched(self, after: int) -> list[int]:
        """Return the questions whose pairs or text have changed since a "version", ascending."""

    def writing(self) -> AbstractContextManager[PairStore]:
        """Keep everything that is written inside, or nothing."""

    def keep(self, key: str, value: str) -> None:
        """Keep a value."""

    def clear(self) -> None:
        """Forget all pairs and all that waits to be compared."""

    def add_waiting(self, nums: Iterable[int]) -> None:
        """Let these questions be compared."""

    def remove_waiting(self, num: int) -> None:
        """Say that a question was compared."""

    def put(self, pairs: Sequence[Pair]) -> None:
        """Store pairs; of two scores of a pair, one from each side, the greater counts."""

    def remove(self, pairs: Iterable[Pair]) -> None:
        """Forget pairs."""

    def add_unread(self, nums: Iterable[int]) -> None:
        """Let the text of these questions be read; what was kept of it is forgotten."""

    def forget_texts(self) -> None:
        """Forget what was read of every question."""

    def put_texts(self, texts: Mapping[int, tuple[bytes | None, bytes | None]]) -> None:
        """Keep what the texts of questions are known by, and what the title of each has in common with those that
        differ in dates and numbers alone; None for one that has gone, or has no words.
        """

    def mend(self) -> None:
        """Begin the store again if it is damaged; the caller holds the lock of comparing, so that nobody writes."""
