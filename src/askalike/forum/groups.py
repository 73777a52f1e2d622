"""The groups of a forum's questions that ask the same, kept in step: what changes touches its neighbourhood alone.

A group's canonical question is the one to answer the others by, that of the greatest worth::

    worth(q) = 3 · [q has an accepted answer] + ln(1 + answers) + ln(1 + votes) + ln(1 + duplicates linked to q)

Votes below 0 count 0. What is linked as a duplicate of another of the group comes after all that are not; of equal
worth the oldest comes first.

Two announcements share words and meaning, and no answer. They are known by titles of different days, or by one author
who posts the like again when the first is long over (``AGAIN``).
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from askalike.executors import Numbered, Task
from askalike.forum.linkage import Ends, Evidence, Linkage, Node, with_link
from askalike.records import batches
from askalike.search.thresholds import check_minimum
from askalike.store import Store
from askalike.store.pairs import Pair, PairStore
from askalike.text.markup import readable
from askalike.types import (
    SHOWN_GROUPS,
    SHOWN_MEMBERS,
    Answer,
    Group,
    GroupKind,
    GroupList,
    Link,
    LinkKind,
    Question,
    WeakestPair,
)

LEAST: Final = 0.5
"""Pairs below are in no group."""

DEFAULT_MINIMUM: Final = 0.85
"""Of the 144 pairs of groups that this makes of travel.stackexchange.com 93 % were read as the same; of the 196 from .8
on 88 %; of 48 that a minimum of .6 adds 77 % (results/groups.json)."""

MOST_PARTIAL: Final = 5_000
"""Where more questions than these are near what has changed, all groups are made anew."""

FOLLOWED: Final = ("question", "link", "feedback")
"""What changes about a question so that its pairs and groups are made anew."""
BATCH: Final = 500
DESCRIBED: Final = 50
"""Groups whose questions are read together."""

ALIKE: Final = 0.6
"""Of two titles so large a share of words is the same that they differ in little else than names. In travel's groups
from .8, without its links, such pairs were read as the same in 1 of 5, the others in 22 of 23."""

AGAIN: Final = timedelta(days=14)
"""Who asks in vain asks again within days; who posts the like weeks later announces the next meeting or release. Of
the pairs of Slicer's groups that were read, .81 ask the same, and .87 without such (results/groups.json)."""

NOBODY: Final = frozenset({"", "[deleted]", "[removed]", "anonymous", "deleted", "deleted user", "guest", "unknown"})
"""Authors, in small letters, that stand for many people."""

_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_MONTHS: Final = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_WORD: Final = re.compile(r"\w+")
_DAY: Final = re.compile(
    rf"(?:19|20)\d\d[-./]\d\d?[-./]\d\d?|(?:{_MONTHS})\.? \d\d?(?!\d)"
    rf"|\d\d?(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})\b"
)


def differ_in_names(first: str, second: str) -> bool:
    """Return whether two titles ask alike of different things: most words are the same, each has a name of its own.

    A name begins with a capital within a title of which few words do. Titles of different days announce.

    >>> differ_in_names("Is there a depth limit for divers in Turkey?", "Is there a depth limit for divers in Egypt?")
    True
    >>> differ_in_names("2024.05.14 Weekly meeting, 11 AM", "2024.05.21 Weekly meeting")
    True
    >>> differ_in_names("Is China Airlines safe?", "China Airlines, safe?")
    False
    """
    days = [set(_DAY.findall(" ".join(title.casefold().split()))) for title in (first, second)]
    if all(days) and days[0].isdisjoint(days[1]):
        return True
    words = [set(_WORD.findall(title.casefold())) for title in (first, second)]
    if len(words[0] & words[1]) < ALIKE * max(map(len, words)):
        return False
    return all(_names(title) - others for title, others in ((first, words[1]), (second, words[0])))


def is_posted_again(first: Question, second: Question) -> bool:
    """Return whether one author posted both, the second when the first was long over.

    >>> may, june = datetime(2020, 5, 1), datetime(2020, 6, 1)
    >>> is_posted_again(Question("1", "a", author="eva", created=may), Question("2", "b", author="eva", created=june))
    True
    >>> is_posted_again(Question("1", "a", author="eva", created=may), Question("2", "b", author="jan", created=june))
    False
    """
    if first.author != second.author or first.author.casefold() in NOBODY:
        return False
    return bool(first.created and second.created) and abs(first.created - second.created) > AGAIN  # type: ignore[operator]


def _names(title: str) -> set[str]:
    pieces = _WORD.findall(title)
    names = {piece.casefold() for piece in pieces[1:] if piece[0].isupper()}
    return names if 2 * len(names) <= len(pieces) else set()


def worth(answers: Sequence[Answer], votes: int | None, duplicates: int) -> float:
    """Return how well a question stands for others that ask the same.

    >>> round(worth([Answer("a", "q", "Yes.", is_accepted=True)], 6, 1), 3)  # 3 + ln 2 + ln 7 + ln 2
    6.332
    """
    accepted = any(answer.is_accepted for answer in answers)
    return 3.0 * accepted + sum(math.log1p(count) for count in (len(answers), max(0, votes or 0), duplicates))


class EvidenceReader:
    """Reads what is known of some questions, or of all."""

    def __init__(self, records: Store, pairs: PairStore) -> None:
        self._records = records
        self._pairs = pairs

    def near(self, nums: Iterable[int], groups: Callable[[int], Collection[int]] = lambda _: ()) -> set[int] | None:
        """Return all questions that pairs, texts, links and judgements join with these; None for too many.

        Args:
            groups: a question → those that it was in a group with.
        """
        seen: set[int] = set()
        frontier = set(nums)
        while frontier:
            seen |= frontier
            if len(seen) > MOST_PARTIAL:
                return None
            neighbours = {num for pair in self._pairs.pairs_of(frontier, LEAST) for num in (pair.first, pair.second)}
            neighbours.update(chain.from_iterable(self._pairs.texts(frontier)))
            neighbours.update(chain.from_iterable(map(groups, frontier)))
            ids = list(self._records.ids_by_num(sorted(frontier)).values())
            names = set(self._linked(ids))
            for identifier in ids:
                verdicts = self._records.judgements_on(identifier).items()
                names.update(other for other, verdict in verdicts if verdict == "duplicate")
            neighbours.update(self._records.nums_by_id(names).values())
            frontier = neighbours - seen
        return seen

    def evidence(self, nums: Collection[int] | None, minimum: float) -> Evidence:
        """Return what is known of these questions, as far as they are there; None for all."""
        if nums is None:
            known_nums = frozenset(self._records.numbers())
            links = set(self._records.links())
        else:
            ids = self._records.ids_by_num(sorted(nums))
            known_nums = frozenset(ids)
            links = {link for identifier in ids.values() for link in self._records.links_of(identifier)}
        linked = self._ends(links, "duplicate")
        related = self._ends(links, "related") - linked
        pairs = self._pairs.pairs_of(None if nums is None else known_nums, minimum)
        pairs += self._pairs.pairs_of({num for ends in linked for num in ends}) if minimum else []
        judged = list(reversed(self._records.judgements()))
        known = self._records.nums_by_id(
            {name for judgement in judged for name in (judgement.question_id, judgement.candidate_id)}
        )
        verdicts = [
            (known[judgement.question_id], known[judgement.candidate_id], judgement.verdict) for judgement in judged
        ]

        def among(ends: Iterable[Ends]) -> list[Ends]:
            return [pair for pair in ends if known_nums.issuperset(pair)]

        scores: dict[Ends, float] = {}
        for pair in pairs:
            ends = (pair.first, pair.second)
            if known_nums.issuperset(ends):
                scores[ends] = with_link(pair.score) if ends in linked else pair.score
        likely = [ends for ends, score in scores.items() if score >= LEAST and ends not in linked]
        unlike = related.union(self._unlike(likely))
        return Evidence(
            [
                Pair(*ends, 0.0 if ends in unlike else score)
                for ends, score in scores.items()
                if score >= minimum or ends in unlike
            ],
            among((a, b) for a, b, said in verdicts if said == "duplicate"),
            among((a, b) for a, b, said in verdicts if said == "different"),
            [[num for num in text if num in known_nums] for text in self._pairs.texts(nums)],
            among(sorted(linked)),
        )

    def _unlike(self, pairs: Sequence[Ends]) -> Iterator[Ends]:
        """Yield the pairs that ask of different things, or announce."""
        for start in range(0, len(pairs), BATCH):
            part = pairs[start : start + BATCH]
            questions = self._records.questions_by_num(sorted({num for ends in part for num in ends}))
            for ends in part:
                first, second = map(questions.get, ends)
                if first and second and (differ_in_names(first.title, second.title) or is_posted_again(first, second)):
                    yield ends

    def _linked(self, ids: Sequence[str]) -> Iterator[str]:
        """Yield the ids of what is linked with these as a duplicate."""
        for link in chain.from_iterable(map(self._records.links_of, ids)):
            if link.kind == "duplicate":
                yield from (link.source_id, link.target_id)

    def _ends(self, links: Collection[Link], kind: LinkKind) -> set[Ends]:
        """Return the numbers of what people linked, the lesser first."""
        chosen = [link for link in links if link.kind == kind]
        nums = self._records.nums_by_id({end for link in chosen for end in (link.source_id, link.target_id)})
        ends = [(link.source_id, link.target_id) for link in chosen if {link.source_id, link.target_id} <= nums.keys()]
        return {(min(pair), max(pair)) for pair in ((nums[source], nums[other]) for source, other in ends)}


class Groups:
    """The groups of a forum, by what was compared so far; any thread may ask.

    Args:
        likelihoods: the probabilities of pairs with these scores, by what the forum's people judged meanwhile.
        least: of a number or a promise (``Thresholds``).
    """

    def __init__(
        self,
        records: Store,
        pairs: PairStore,
        likelihoods: Callable[[Sequence[float]], Sequence[float]],
        least: Callable[[float | str], float],
    ) -> None:
        self._records = records
        self._pairs = pairs
        self._likelihoods = likelihoods
        self._least = least
        self._reader = EvidenceReader(records, pairs)
        self._guard = threading.Lock()
        self._begun: str | None = None
        self._version = self._seen = 0
        self._nodes: dict[int, Node] = {}
        self._of: dict[int, Node] = {}

    def find(self, minimum: float | str = DEFAULT_MINIMUM) -> GroupList:
        """Return groups of questions that ask the same, largest first, as far as was compared.

        In a group, each question is as likely as ``minimum`` the same as every other, unless people's judgements or the
        same text join both; what was judged different is in no group together. ``Pairs.compare`` compares what waits.

        Args:
            minimum: from 0.5 to 1; or a promise, "precision:0.9".

        Raises:
            SettingError: it is out of range.
        """
        groups = list(self.describe(self.nodes(self._least(minimum))))
        shown = [identifier for group in groups[:SHOWN_GROUPS] for identifier in group.members[:SHOWN_MEMBERS]]
        return GroupList(groups, self._records.questions_by_id(shown))

    def nodes(self, minimum: float = DEFAULT_MINIMUM, *, is_waiting: bool = True) -> list[Node]:
        """Return the groups of ``find`` by the numbers of their questions, without reading these.

        Args:
            minimum: from ``LEAST`` to 1.
            is_waiting: for another thread that brings them in step; else they are as they were.

        Raises:
            SettingError: the minimum is out of range.
        """
        check_minimum(minimum, LEAST)
        if self._guard.acquire(blocking=is_waiting or self._begun is None):
            try:
                self._follow()
            finally:
                self._guard.release()
        least = self._least_score(minimum)
        groups = [group for node in list(self._nodes.values()) for group in node.cut(least)]
        return sorted(groups, key=lambda group: (-len(group.nums), group.nums))

    def describe(self, nodes: Sequence[Node]) -> Iterator[Group]:
        """Yield groups by the ids of their questions; what was deleted meanwhile is left out."""
        for batch in batches(nodes, DESCRIBED):
            yield from self._describe(batch)

    def _describe(self, nodes: Sequence[Node]) -> Iterator[Group]:
        questions = self._records.questions_by_num([num for node in nodes for num in node.nums])
        ids = [question.id for question in questions.values()]
        answers = self._records.answers_of(ids)
        links = {link for identifier in ids for link in self._records.links_of(identifier) if link.kind == "duplicate"}
        duplicates = Counter(link.target_id for link in links)
        heights = self._likelihoods([node.height for node in nodes])
        copies = list(map(set, self._pairs.texts([node.nums[0] for node in nodes])))
        for node, height in zip(nodes, heights, strict=True):
            members = {questions[num].id: questions[num] for num in node.nums if num in questions}
            linked = {link.source_id for link in links if {link.source_id, link.target_id} <= members.keys()}

            def place(question: Question, linked: set[str] = linked) -> tuple[bool, float, datetime, str]:
                value = worth(answers.get(question.id, ()), question.score, duplicates[question.id])
                return (question.id in linked, -value, question.created or _LATEST, question.id)

            ordered = tuple(question.id for question in sorted(members.values(), key=place))
            weakest = None
            if node.weakest is not None and questions.keys() >= set(node.weakest):
                weakest = WeakestPair(questions[node.weakest[0]].id, questions[node.weakest[1]].id, height)
            is_copied = any(texts.issuperset(node.nums) for texts in copies)
            kind: GroupKind = (
                "same text" if is_copied else "linked" if linked or node.weakest is None else "same question"
            )
            if len(ordered) > 1:
                yield Group(ordered, ordered[0], weakest, kind)

    def _least_score(self, minimum: float) -> float:
        """Return the score from which on pairs are at least so likely, by the forum's judgements."""
        grid = np.linspace(0, 1, 10_001)
        return float(grid[np.searchsorted(self._likelihoods(grid.tolist()), minimum - 1e-9).clip(max=10_000)])

    def _follow(self) -> None:
        begun, version = self._pairs.state("begun"), int(self._pairs.state("version") or 0)
        last = self._records.last_change()
        changed: set[int] | None = None
        if begun == self._begun and version >= self._version and last >= self._seen:
            changes = self._records.changes(self._seen, MOST_PARTIAL, FOLLOWED)
            touched = self._pairs.touched(self._version) if version > self._version else []
            changed = {*touched, *(change.num for change in changes)}
            if not changed:
                self._version, self._seen = version, last
                return
            if len(changes) == MOST_PARTIAL or len(changed) > MOST_PARTIAL:
                changed = None
        near = None if changed is None else self._reader.near(changed, self._members)
        groups = Linkage(self._reader.evidence(near, LEAST), LEAST).nodes
        if near is None:
            nodes, of = {}, {}
        else:
            of = {num: node for num, node in self._of.items() if num not in near}
            nodes = {num: node for num, node in self._nodes.items() if num not in near}
        nodes.update((node.nums[0], node) for node in groups)
        of.update((num, node) for node in groups for num in node.nums)
        self._nodes, self._of = nodes, of
        self._begun, self._version, self._seen = begun, version, last

    def _members(self, num: int) -> tuple[int, ...]:
        node = self._of.get(num)
        return () if node is None else node.nums


TextHashes = dict[int, bytes | None]
"""Number of a question → what its text is known by, None for one without words."""

HASHED: Final = "title and body, no markup, case folded, 3"
"""How a text's hash is made; another way makes every hash anew."""


def text_hash(question: Question) -> bytes | None:
    """Return what the questions that say the same have in common, None for one without words.

    >>> first, other = Question("a", "Hello  World"), Question("b", "hello", "<p>world</p>", markup="html")
    >>> text_hash(first) == text_hash(other)
    True
    """
    text = f"{question.title} {readable(question.body, question.markup, with_code=True)}"
    shown = " ".join(text.casefold().split())
    return hashlib.blake2b(shown.encode(), digest_size=16).digest() if shown else None


def text_hashes(questions: Numbered) -> TextHashes:
    """Return the hash of each question's text."""
    return {num: text_hash(question) for num, question in questions}


def preparing(_order: str) -> Callable[[Numbered], bytes]:
    """Return what makes packed hashes, as ``executors.Task`` asks for it."""
    return lambda questions: msgspec.msgpack.encode(text_hashes(questions))


HASHING: Final = Task(text_hashes, __name__, "", msgspec.msgpack.Decoder(TextHashes).decode, worth_it=50_000)
"""One process reads 10,000 texts in the second in which others start."""
