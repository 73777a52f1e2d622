"""What a store returns: changes, counts, reports of loads; and the names that its tables give to things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Operation = Literal["add", "edit", "delete"]
RecordKind = Literal["question", "details", "answer", "link", "feedback"]

COMPARED_KINDS: Final[tuple[RecordKind, ...]] = ("question",)
"""The kinds of changes that vectors and pairs follow: of what is compared of a question."""
STORED_KINDS: Final[tuple[RecordKind, ...]] = (*COMPARED_KINDS, "details")
"""The kinds of changes after which a question has other values: tags, address, score and closing are ``details``."""

IDENTITY: Final = "identity"
SITES: Final = "sites"
STORE_KEYS: Final = frozenset({IDENTITY, SITES})
"""The keys of the table of settings under which the store keeps what is no setting of the forum."""

MANUAL_SOURCE: Final = "manual"
"""The source of what was added by hand or by a program; a load never deletes it."""

Position = tuple[int | None, int]
"""Where a question is in the order of dates: its moment in microseconds, None without a date, and its number."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log.

    Args:
        seq: its place in the log; later entries have greater ones.
        operation: what was done to the record.
        num: the number of the question that it is about, gone or not.
        kind: "question" where what is compared of the question changed, otherwise what changed about it.
    """

    seq: int
    operation: Operation
    num: int
    kind: RecordKind = "question"


@dataclass(slots=True)
class LoadCounts:
    """What happened to one kind of record.

    Args:
        kept: not in the source any more, and kept all the same, because some of its records could not be read.
        rejected: refused by the store; what the reader refused is counted by the reader.
    """

    added: int = 0
    edited: int = 0
    deleted: int = 0
    unchanged: int = 0
    kept: int = 0
    rejected: int = 0


@dataclass(slots=True)
class LoadReport:
    """What a load did, by kind of record.

    Args:
        links_without_question: how many of the source's links lack a question at one of their ends.
        accepted_without_answer: how many of the source's questions name an accepted answer that is not in it.
    """

    questions: LoadCounts = field(default_factory=LoadCounts)
    answers: LoadCounts = field(default_factory=LoadCounts)
    links: LoadCounts = field(default_factory=LoadCounts)
    judgements: LoadCounts = field(default_factory=LoadCounts)
    log: LoadCounts = field(default_factory=LoadCounts)
    links_without_question: int = 0
    accepted_without_answer: int = 0


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """How much of a store came from one source."""

    name: str
    format: str
    questions: int
    answers: int
    links: int


@dataclass(frozen=True, slots=True)
class Counts:
    """How much a store holds.

    Args:
        answers: to questions that are there.
        duplicates: links of this kind between questions that are there; so ``related``.
        first_us: the oldest date of a question; ``last_us`` the newest.
        judgements: on pairs of questions that are there, those that no longer count too.
        answers_without_question: to questions that are not there. They have no effect until the question comes (back).
        links_without_question: that lack one end or both, which is the same.
        judgements_without_question: on pairs of which a question is not there.
    """

    questions: int
    answers: int
    duplicates: int
    related: int
    questions_with_answer: int
    first_us: int | None
    last_us: int | None
    judgements: int = 0
    answers_without_question: int = 0
    links_without_question: int = 0
    judgements_without_question: int = 0


@dataclass(frozen=True, slots=True)
class Contents:
    """What a check compares indexes with.

    Args:
        numbers: of all questions.
        last_change: of the change log.
        changes: (sequence number, number of the question) of each change of a question.
        settings: as they are stored.
        languages: number → language, of the questions whose language is known.
    """

    numbers: frozenset[int]
    last_change: int
    changes: tuple[tuple[int, int], ...]
    settings: dict[str, str]
    languages: Mapping[int, str] = field(default_factory=dict)
