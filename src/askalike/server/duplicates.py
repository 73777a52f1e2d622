"""Pages of the pairs and groups of a forum's questions that may ask the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import structs

from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.forum.queue import QueuePlace
from askalike.schemas import (
    Compared,
    GroupsPage,
    ListedQuestion,
    PairsPage,
    PairsQuery,
    ShownGroup,
    ShownPair,
    ShownWeakest,
)
from askalike.server.presentation import listed, shown_likelihood
from askalike.store.pairs import Pair, PairPosition
from askalike.types import Draw, Group, Question

MOST_SHOWN: Final = 20
MOST_LOOKED: Final = 50
"""So many pages are looked through for one with a pair of a tag; then an empty one is answered, which leads on."""

_WHOLE: Final = re.compile("-?[0-9]{1,19}")
_LATEST: Final = datetime.max.replace(tzinfo=UTC)


class DuplicatePages:
    """The pairs of a forum as pages; any thread may ask."""

    def __init__(self, forum: Forum) -> None:
        self._forum = forum

    def pairs(self, query: PairsQuery, minimum: float) -> PairsPage:
        """Return a page of pairs, best first; it may be shorter than ``limit``, or empty, and others follow.

        Args:
            minimum: the least score.

        Raises:
            SettingError: the cursor is none.
        """
        cursor, tag = query.cursor, query.tag
        for _ in range(MOST_LOOKED if tag else 1):
            page = self._pairs(cursor, query.limit, minimum, query.sample)
            shown = tuple(pair for pair in page.pairs if tag is None or _has_tag((pair.question, pair.candidate), tag))
            if shown or page.next is None:
                break
            cursor = page.next
        return structs.replace(page, pairs=shown)

    def _pairs(self, cursor: str | None, limit: int, minimum: float, has_sample: bool) -> PairsPage:
        if has_sample:
            proposals, at = self._forum.queue.page(minimum, limit, _queue_place(cursor) if cursor else None)
            pairs, draws = [proposal.pair for proposal in proposals], [proposal.draw for proposal in proposals]
            last = (at.likely if at else None) or PairPosition(2.0, 0, 0)
            ended = make_cursor(last.score, last.first, last.second, at.shown, at.drawn) if at else None
        else:
            pairs, place = self._forum.pairs.page(minimum, limit, _place(cursor) if cursor else None)
            draws, ended = [Draw()] * len(pairs), make_cursor(place.score, place.first, place.second) if place else None
        nums = [num for pair in pairs for num in (pair.first, pair.second)]
        questions, briefs = self._briefs(nums)
        likely = self._forum.thresholds.likelihoods([pair.score for pair in pairs])
        shown = tuple(
            _shown_pair(pair, questions, briefs, structs.replace(draw, probability=likelihood))
            for pair, draw, likelihood in zip(pairs, draws, likely, strict=True)
            if questions.keys() >= {pair.first, pair.second}
        )
        return PairsPage(shown, ended, self.progress())

    def groups(self, cursor: str | None, limit: int, minimum: float) -> GroupsPage:
        """Return a page of groups, largest first, announcements last.

        Raises:
            SettingError: the cursor is none, or the minimum is out of range.
        """
        nodes = self._forum.group_nodes(minimum, is_waiting=False)
        if cursor:
            is_recurring, size, first = map(int, read_cursor(cursor, 3))
            place = (bool(is_recurring), -size, first)
            nodes = [node for node in nodes if (node.is_recurring, -len(node.nums), node.nums[0]) > place]
        page = nodes[:limit]
        shown = tuple(map(self._group, self._forum.describe_groups(page)))
        last = None
        if len(nodes) > limit:
            last = make_cursor(int(page[-1].is_recurring), len(page[-1].nums), page[-1].nums[0])
        return GroupsPage(shown, last, self.progress())

    def progress(self) -> Compared:
        """Return how many questions have been compared."""
        size = len(self._forum)
        return Compared(max(0, size - self._forum.pairs.waiting()), size)

    def _group(self, group: Group) -> ShownGroup:
        weakest = group.weakest
        ends = () if weakest is None else (weakest.first, weakest.second)
        wanted = list(dict.fromkeys([*group.members[:MOST_SHOWN], *ends]))
        nums = self._forum.store.nums_by_id(wanted)
        _, briefs = self._briefs(list(nums.values()))
        by_id = {brief.id: brief for brief in briefs.values()}
        first_ids = wanted[: min(MOST_SHOWN, len(group.members))]
        shown = tuple(by_id[identifier] for identifier in first_ids if identifier in by_id)
        pair = None
        if weakest is not None and by_id.keys() >= set(ends):
            first, second = by_id[weakest.first], by_id[weakest.second]
            pair = ShownWeakest(first, second, shown_likelihood(weakest.probability))
        return ShownGroup(shown[0], len(group.members), group.kind, pair, shown)

    def _briefs(self, nums: Sequence[int]) -> tuple[dict[int, Question], dict[int, ListedQuestion]]:
        questions = self._forum.store.questions_by_num(list(dict.fromkeys(nums)))
        counts = self._forum.store.answer_counts([question.id for question in questions.values()])
        return questions, {num: listed(question, counts.get(question.id, 0)) for num, question in questions.items()}


def _shown_pair(
    pair: Pair, questions: Mapping[int, Question], briefs: Mapping[int, ListedQuestion], draw: Draw
) -> ShownPair:
    earlier, later = sorted((pair.first, pair.second), key=lambda num: (questions[num].created or _LATEST, num))
    likelihood = shown_likelihood(draw.probability)
    return ShownPair(briefs[later], briefs[earlier], pair.score, pair.cosine, likelihood, draw)


def _has_tag(questions: Iterable[ListedQuestion], tag: str) -> bool:
    return any(tag in question.tags for question in questions)


def make_cursor(*numbers: float | None) -> str:
    """Return where a page ended, as the next one is asked for.

    >>> make_cursor(None, 7, 0.5)
    '_7_0.5'
    """
    return "_".join("" if number is None else repr(number) for number in numbers)


def read_cursor(cursor: str, count: int, optional: int = 0) -> list[Any]:
    """Return the numbers of a cursor; of the first ``optional`` ones, None where one was None.

    Raises:
        SettingError: no page has given it.
    """
    try:
        parts = cursor.split("_")
        numbers = [
            None if not part and place < optional else int(part) if _WHOLE.fullmatch(part) else float(part)
            for place, part in enumerate(parts)
        ]
        if len(numbers) != count or not all(number is None or abs(number) < 2**63 for number in numbers):
            raise ValueError(cursor)
    except ValueError as error:
        raise SettingError("this is no cursor of a page", "take the next of the page before") from error
    return numbers


def _place(cursor: str) -> PairPosition:
    score, first, second = read_cursor(cursor, 3)
    return PairPosition(score, int(first), int(second))


def _queue_place(cursor: str) -> QueuePlace:
    score, first, second, shown, drawn = read_cursor(cursor, 5)
    return QueuePlace(PairPosition(score, int(first), int(second)), int(shown), drawn)
