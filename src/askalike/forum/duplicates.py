"""The likely duplicates of an archive as values, compared on demand: for notebooks and the command line."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from askalike.errors import BusyForumError
from askalike.forum.linkage import Evidence, Linkage
from askalike.progress import Progress
from askalike.records import batches
from askalike.store.pairs import Pair
from askalike.types import Draw, Group, GroupKind, Question

if TYPE_CHECKING:
    from askalike.forum.forum import Forum

SLICE_S: Final = 0.5
PAUSE_S: Final = 0.01
PATIENCE_S: Final = 60.0
"""So long another process that compares may get nowhere."""
_PAGE: Final = 500
_QUEUED: Final = 20
_LATEST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two questions that may be duplicates.

    Args:
        question: the later one.
        candidate: the earlier one, which may have its answers.
        score: the probability of being duplicates, in [0, 1], before what people judged meanwhile.
        likelihood: the same with what they judged.
        cosine: of their vectors, None where they have none.
        is_exact: they have the same text.
        draw: how the pair was chosen for a person to judge, where it was: ``Forum.judge`` takes it.
    """

    question: Question
    candidate: Question
    score: float
    likelihood: float
    cosine: float | None
    is_exact: bool
    draw: Draw | None = None


class PairRow(msgspec.Struct, frozen=True):
    """A pair as a row of a table; ``id`` is the later question, which may be a duplicate of ``original_id``."""

    score: float
    likelihood: float
    cosine: float | None
    exact: bool
    id: str
    original_id: str
    title: str
    original_title: str


class MemberRow(msgspec.Struct, frozen=True):
    """A question of a group, which has a number; ``canonical_id`` is the one to answer the others by.

    Args:
        weakest: the probability of the group's least likely pair; None where links, judgements or the same text join
            all.
    """

    group: int
    kind: GroupKind
    weakest: float | None
    id: str
    canonical_id: str
    title: str


def pair_rows(duplicates: Iterable[Duplicate]) -> Iterator[PairRow]:
    """Yield pairs as rows."""
    for pair in duplicates:
        new, old = pair.question, pair.candidate
        numbers = (pair.score, pair.likelihood, pair.cosine, pair.is_exact)
        yield PairRow(*numbers, new.id, old.id, new.title, old.title)


def member_rows(forum: Forum, groups: Iterable[Group]) -> Iterator[MemberRow]:
    """Yield the questions of groups as rows."""
    for number, group in enumerate(groups, start=1):
        weakest = None if group.weakest is None else group.weakest.probability
        questions = forum.store.questions_by_id(group.members)
        for member in group.members:
            title = questions[member].title if member in questions else ""
            yield MemberRow(number, group.kind, weakest, member, group.canonical, title)


def compare(forum: Forum, progress: Progress, *, is_exact: bool = False) -> None:
    """Compare all questions that wait, or read all texts that were not read.

    Raises:
        BusyForumError: another process has been at it, or indexing, for too long.
    """
    left = forum.pairs.waiting()
    progress.start("reading texts" if is_exact else "comparing questions", 0 if is_exact else left, "questions")
    looked_s = moved_s = time.monotonic()

    def report() -> bool:
        nonlocal left, looked_s, moved_s
        if time.monotonic() - looked_s >= SLICE_S:
            before, left, looked_s = left, forum.pairs.waiting(), time.monotonic()
            if left < before:
                progress.advance(before - left)
                moved_s = looked_s
        return False  # go on

    while not (forum.pairs.read_texts() if is_exact else _is_compared(forum, report)):
        report()
        if time.monotonic() - moved_s > PATIENCE_S:
            raise BusyForumError(
                f"another process is comparing or indexing {forum.path}",
                "wait until it has finished; what was compared is kept",
            )
    progress.advance(left)


def _is_compared(forum: Forum, report: Callable[[], bool]) -> bool:
    """Compare all that waits; return whether nothing is left, for which another process is waited for too."""
    if not forum.pairs.advance(math.inf, report) and not forum.pairs.waiting():
        return True
    time.sleep(PAUSE_S)
    return False


def open_duplicates(
    forum: Forum, minimum: float, since: datetime | None, progress: Progress, *, is_exact: bool, tag: str = ""
) -> Iterator[Duplicate]:
    """Compare what waits, and yield the pairs that are neither linked nor judged; see ``Forum.duplicates``."""
    forum.catch_up(progress=progress)
    compare(forum, progress, is_exact=is_exact)
    since = since.replace(tzinfo=UTC) if since is not None and since.tzinfo is None else since
    position = None
    while True:
        pairs, position = forum.pairs.page(1.0 if is_exact else minimum, _PAGE, position)
        for found in describe_pairs(forum, pairs):
            moments = (found.question.created, found.candidate.created)
            is_recent = since is None or any(one is not None and one >= since for one in moments)
            has_tag = not tag or tag in (*found.question.tags, *found.candidate.tags)
            if is_recent and has_tag and (found.is_exact or not is_exact):
                yield found
        if position is None:
            return


def linked_duplicates(forum: Forum, minimum: float, progress: Progress) -> Iterator[Duplicate]:
    """Compare what waits, and yield the pairs that are linked; see ``Forum.linked_duplicates``."""
    forum.catch_up(progress=progress)
    compare(forum, progress)
    linked = [pair for pair in forum.pairs.store.among(None, minimum) if not pair.is_open]
    linked.sort(key=lambda pair: (-pair.score, pair.first, pair.second))
    for batch in batches(linked, _PAGE):
        yield from describe_pairs(forum, batch)


def folded(pairs: Sequence[Duplicate]) -> list[list[Duplicate]]:
    """Return pairs in the order of their coming, those of one group together.

    In a group each may ask the same as every other, as reposts of a question do, or copies of its text.
    """
    numbers: dict[str, int] = {}
    ends = [[numbers.setdefault(question.id, len(numbers)) for question in (p.question, p.candidate)] for p in pairs]
    evidence = Evidence([Pair(min(pair), max(pair), p.score) for pair, p in zip(ends, pairs, strict=True)])
    copies: dict[int, list[int]] = {}
    for (copy, original), pair in zip(ends, pairs, strict=True):
        if pair.is_exact:
            copies.setdefault(original, [original]).append(copy)
    evidence.texts.extend(copies.values())
    nodes = {num: node.nums for node in Linkage(evidence, 0.0).nodes if len(node.nums) > 2 for num in node.nums}
    rows: dict[object, list[Duplicate]] = {}
    for (first, second), pair in zip(ends, pairs, strict=True):
        is_within = first in nodes and nodes[first] == nodes.get(second)
        rows.setdefault(nodes[first] if is_within else (first, second), []).append(pair)
    return list(rows.values())


def proposals(forum: Forum, minimum: float, tag: str = "") -> Iterator[Duplicate]:
    """Yield the pairs of the queue that people judge; see ``Forum.proposals``."""
    place = None
    while True:
        queued, place = forum.queue.page(minimum, _QUEUED, place)
        for pair in describe_pairs(forum, [one.pair for one in queued], [one.draw for one in queued]):
            if not tag or tag in (*pair.question.tags, *pair.candidate.tags):
                yield pair
        if place is None:
            return


def describe_pairs(forum: Forum, pairs: Sequence[Pair], draws: Sequence[Draw] = ()) -> Iterator[Duplicate]:
    """Yield pairs with their questions; one of which a question was deleted meanwhile is left out."""
    held = forum.store.questions_by_num(list({num for pair in pairs for num in (pair.first, pair.second)}))
    likelihoods = forum.thresholds.likelihoods([pair.score for pair in pairs])
    for pair, likelihood, draw in zip_longest(pairs, likelihoods, draws):
        if held.keys() >= {pair.first, pair.second}:
            first, second = held[pair.first], held[pair.second]
            earlier, later = sorted((first, second), key=lambda one: (one.created or _LATEST, one is second))
            is_exact = pair.score == 1.0 and forum.pairs.are_copies(pair)
            drawn = None if draw is None else structs.replace(draw, probability=likelihood)
            yield Duplicate(later, earlier, pair.score, likelihood, pair.cosine, is_exact, drawn)
