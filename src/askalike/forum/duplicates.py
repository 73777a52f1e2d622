"""The likely duplicates of an archive as values: for notebooks and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from askalike.forum.linkage import Evidence, Linkage
from askalike.store import Store
from askalike.store.pairs import Pair
from askalike.types import Draw, Group, GroupKind, Question


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


def has_tag(tags: Iterable[str], tag: str) -> bool:
    """Return whether a tag is one of these, whatever its case; True of "", which asks for none.

    >>> has_tag(("net", "wifi"), "Wifi"), has_tag(("net", "wifi"), "wi"), has_tag((), "")
    (True, False, True)
    """
    return not tag or tag.casefold() in map(str.casefold, tags)


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


def member_rows(store: Store, groups: Iterable[Group]) -> Iterator[MemberRow]:
    """Yield the questions of groups as rows."""
    for number, group in enumerate(groups, start=1):
        weakest = None if group.weakest is None else group.weakest.probability
        questions = store.questions_by_id(group.members)
        for member in group.members:
            title = questions[member].title if member in questions else ""
            yield MemberRow(number, group.kind, weakest, member, group.canonical, title)


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
