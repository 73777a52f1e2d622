"""What the rest of askalike asks of whatever stores a forum: records, a log of their changes, judgements, loads.

One SQLite file is one store; a database server gives no more than this. Every question has a number of its own, which
is never given to another; indexes know questions by it and follow the log of changes with a cursor. Calls take batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from askalike.progress import Progress, SilentProgress
from askalike.types import (
    Answer,
    Feedback,
    Link,
    LogEntry,
    Question,
    Record,
    Reject,
    Source,
    Thread,
    Verdict,
    Write,
    WriteState,
)

Operation = Literal["add", "edit", "delete"]
RecordKind = Literal["question", "answer", "link", "feedback"]

QUESTIONS: Final[tuple[RecordKind, ...]] = ("question",)
"""The kinds of changes that an index follows."""

IDENTITY: Final = "identity"
MARGIN: Final = "margin"
FIGURES: Final = frozenset({IDENTITY, MARGIN})
"""The rows of a store's settings that are none of the forum's."""

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
        kind: "question" where the question itself changed, otherwise what changed about it.
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
        resumed: how many questions and answers a load that was stopped had written, after which this one went on.
    """

    questions: LoadCounts = field(default_factory=LoadCounts)
    answers: LoadCounts = field(default_factory=LoadCounts)
    links: LoadCounts = field(default_factory=LoadCounts)
    judgements: LoadCounts = field(default_factory=LoadCounts)
    log: LoadCounts = field(default_factory=LoadCounts)
    links_without_question: int = 0
    resumed: int = 0


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
        unreadable_dates: how many dates lie outside the years 1 to 9999; they are read as unknown.
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
    unreadable_dates: int = 0


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a forum's questions stand out from one another; see ``search.margin``.

    Args:
        questions: how many there were when it was measured.
        value: None where they were too few, or hardly one met the words of others.
    """

    questions: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Contents:
    """What a check compares indexes with.

    Args:
        numbers: of all questions.
        last_change: of the change log.
        changes: (sequence number, number of the question) of each change of a question.
        settings: as they are stored.
        languages: number → language, of the questions whose language is known.
        loaded: how many questions and answers a first load has written that is not finished.
        left: how many a later one has written that is not finished, or one has replaced.
    """

    numbers: frozenset[int]
    last_change: int
    changes: tuple[tuple[int, int], ...]
    settings: dict[str, str]
    languages: Mapping[int, str] = field(default_factory=dict)
    loaded: int = 0
    left: int = 0


class ChangeLog(Protocol):
    """What an index follows: questions by their numbers, and what has changed since its cursor."""

    def last_change(self) -> int:
        """Return the sequence number of the newest change, 0 when there is none."""

    def changes(self, after: int, limit: int, kinds: Collection[RecordKind] = QUESTIONS) -> list[Change]:
        """Return the changes of these kinds with seq > ``after``, oldest first, at most ``limit``.

        A change of a link or a judgement is there while its first question is.
        """

    def count_changes(self, after: int) -> int:
        """Return how many changes of questions an index at ``after`` has not seen."""

    def count_questions(self, after: int = 0) -> int:
        """Return how many questions have a number > ``after``."""

    def all_questions(self, after: int = 0) -> Iterator[tuple[int, Question]]:
        """Yield (number, question) for numbers > ``after``, ascending, without holding them all."""

    def questions_by_num(self, nums: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these numbers; numbers that are gone are left out."""


class Store(ChangeLog, Protocol):
    """A forum's questions, answers, links and judgements.

    Reading is safe from any thread; writes go one at a time, over all processes. A write is on disk when the method
    returns, and happens whole or not at all. A value that could not be read back is refused with InputError. What is
    said of a question that a load has taken away is kept, and has no effect until the question is back.

    Every method raises BusyForumError where another process writes for too long, DamagedForumError where the store is
    damaged, and ForumError where it cannot be read or written for another reason.
    """

    @property
    def name(self) -> str:
        """Return what messages call the store."""

    def close(self) -> None:
        """Close the store, which must not be used after."""

    def settings(self) -> dict[str, str]:
        """Return the forum's settings as they were stored."""

    def put_settings(self, settings: Mapping[str, str]) -> None:
        """Store settings of the forum beside those that it has, or in their place."""

    def identity(self) -> str:
        """Return a name that no other store has, drawn when it is first asked for: what an engine knows a forum by."""

    def margin(self) -> Margin | None:
        """Return how far the forum's questions stand out from one another, None where that was not measured."""

    def put_margin(self, margin: Margin) -> None:
        """Store it in place of the one before."""

    def alone(self, name: str) -> AbstractContextManager[None]:
        """Keep every other machine from doing what has this name.

        Raises:
            BusyForumError: another one has been at it for too long.
        """

    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources that records came from, in the order of their first use."""

    def source_counts(self) -> list[SourceCounts]:
        """Return how much came from each source, in the order of ``sources``."""

    def delete_source(self, name: str) -> SourceCounts:
        """Delete all records of a source, as a load does that no longer holds them; return how many there were.

        Raises:
            UnknownIdError: there is no such source.
            BusyForumError: an archive is being loaded.
        """

    # -- records -----------------------------------------------------------------------------------------------

    def question(self, identifier: str) -> Question:
        """Return one question; raise UnknownIdError where it is not there."""

    def questions_by_id(self, ids: Sequence[str]) -> dict[str, Question]:
        """Return the questions with these ids; ids that are not there are left out."""

    def ids_by_num(self, nums: Iterable[int]) -> dict[int, str]:
        """Return the ids of the questions with these numbers; numbers that are gone are left out."""

    def nums_by_id(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those ids that are there."""

    def language_counts(self) -> dict[str, int]:
        """Return the languages of the questions whose language is known → how many, the most frequent first."""

    def numbers(
        self, *, is_answered: bool | None = None, is_closed: bool | None = None, languages: Sequence[str] = ()
    ) -> list[int]:
        """Return the numbers of all questions, or of those that are (not) answered or closed, or in one of these
        languages, ascending."""

    def newest(self, limit: int, after: Position | None = None) -> list[tuple[Position, Question]]:
        """Return questions, newest first by date; those without a date are last, the last stored first.

        Args:
            after: only those behind this position, whether or not its question is still there.
        """

    def answers_of(self, ids: Sequence[str]) -> dict[str, list[Answer]]:
        """Return the answers of each of these questions, best first; questions without answers are left out.

        Accepted answers come first, then those with most votes, then the oldest, then by id.
        """

    def answer_counts(self, ids: Sequence[str]) -> dict[str, int]:
        """Return how many answers each of these questions has; questions without answers are left out."""

    def links(self) -> list[Link]:
        """Return all links whose two ends are there, ordered by source, target and kind."""

    def links_of(self, identifier: str) -> list[Link]:
        """Return the links from or to one question, as ``links`` does."""

    def originals_of(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return what these questions, and all that they lead to, are duplicates of: ids, ascending.

        Questions that are no duplicates are left out, and so are originals that are not there.
        """

    def counts(self) -> Counts:
        """Return how much the store holds."""

    def unreadable_dates(self) -> Iterator[str]:
        """Yield what has a date outside the years 1 to 9999, such as "question 'q7'"; an older version stored it.

        It is read as if its date were not known; putting the record again, or loading it, heals it.
        """

    def check(self) -> None:
        """Read everything and check its structure; raise DamagedForumError with the first words of what was found."""

    # -- changes -----------------------------------------------------------------------------------------------

    def add_questions(self, questions: Sequence[Question], links: Sequence[Link] = ()) -> None:
        """Add new questions, and links of them.

        Raises:
            InputError: an id is taken already.
            UnknownIdError: an end of a link is not there.
        """

    def edit_questions(self, questions: Sequence[Question]) -> None:
        """Replace questions that are there; raise UnknownIdError where one is not."""

    def put_detected(self, languages: Mapping[str, str], changed: Collection[str]) -> None:
        """Store which language each of these questions was found to be in; what a source or a person said stays.

        Args:
            changed: the ids of those that are logged as edited, so that indexes read them anew.
        """

    def put_questions(self, questions: Sequence[Question], gone: Sequence[str] = ()) -> dict[str, Operation]:
        """Add new questions, edit those whose id is known, and delete others with all that is said of them.

        Returns:
            for each id that changed, whether it was added or edited; unchanged ones are left out.

        Raises:
            UnknownIdError: one that is to be deleted is not there.
        """

    def add_answers(self, answers: Sequence[Answer]) -> None:
        """Add new answers; raise UnknownIdError where a question is not there, InputError where an id is taken."""

    def put_answers(self, answers: Sequence[Answer]) -> dict[str, Operation]:
        """Add new answers and edit those whose id is known; return as ``put_questions``, raise as ``add_answers``."""

    def delete_answers(self, ids: Sequence[str]) -> None:
        """Delete answers; raise UnknownIdError where one is not there."""

    def put_links(self, links: Sequence[Link]) -> int:
        """Store links; return how many were new. Raise UnknownIdError where an end is not there."""

    def mark(self, duplicate: str, original: str) -> bool:
        """Link a duplicate; return whether that is new. Raise InputError for a circle, or an original that is none."""

    def delete_links(self, links: Sequence[Link]) -> int:
        """Delete links; return how many there were."""

    def load(
        self,
        records: Iterable[Record],
        source: Source,
        reject: Callable[[Reject], None],
        *,
        unread: Callable[[], int] = lambda: 0,
        is_mass_delete_allowed: bool = False,
        progress: Progress = SilentProgress(),  # noqa: B008 - it holds nothing
    ) -> LoadReport:
        """Make the store hold what ``records`` holds for ``source``, in one step; others write while records are read.

        Loading a source again adds what is new, updates what was edited and deletes what has gone. Records of other
        sources stay as they are: a load that would change one is refused whole. A record that cannot be stored (an id
        seen before in the same load, an answer without its question, a value that does not fit) is handed to ``reject``
        and counted. Links may point to questions that are not there. What has gone from the source is deleted only if
        every record could be read and stored: one that could not may be among those that seem to have gone.

        Args:
            records: in any order; held one at a time. Judgements are added, whatever their questions, unless the
                same one is there; none is deleted.
            source: what these records belong to; the same name at the next load.
            reject: called with each record that cannot be stored.
            unread: asked after the last record: how many records of the source could not be read.
            is_mass_delete_allowed: go on when more than half of the source's questions would be deleted.
            progress: told of what is written after reading, where that is done in several steps.

        Raises:
            InputError: the stream has no question (nor links alone, between the questions of others), would delete
                more than half of the source's questions, or holds ids that another source has with other content; or
                the source is ``MANUAL_SOURCE``.
            BusyForumError: another load is under way.
        """

    def replace_threads(
        self, threads: Sequence[Thread], gone: Sequence[str], source: Source, *, is_trial: bool = False
    ) -> LoadReport:
        """Make the store hold these threads of ``source`` as they are given, and none of those that are gone.

        What other sources or people said of a question stays: their answers and links, and judgements, which have no
        effect while it is gone, and count again when it is back. Links may point to questions that are not there.

        Args:
            gone: ids of questions; those that are not there are passed over.
            is_trial: take all of it back, and only return what would have been done.

        Raises:
            InputError: a question or an answer with this id came from elsewhere, a value cannot be stored, or the
                source is ``MANUAL_SOURCE``.
        """

    def ids_of(self, source: str) -> list[str]:
        """Return the ids of the questions that came from a source."""

    def is_loading(self) -> bool:
        """Return whether another process, or another part of this one, loads an archive into this forum."""

    def held_if_empty(self) -> AbstractContextManager[bool]:
        """Keep everybody from writing for as long as nothing is stored here.

        Gives False, at once, where there is a question, a load is under way, or another process writes.
        """

    # -- judgements --------------------------------------------------------------------------------------------

    def add_feedback(self, given: Feedback) -> Feedback:
        """Store a person's judgement on two questions; return it with its moment.

        Raises:
            UnknownIdError: one of the questions is not there.
            InputError: they are the same question.
        """

    def all_feedback(self) -> Iterator[Feedback]:
        """Yield every judgement on questions that are there, as they were stored, without holding them all."""

    def judgements(self) -> list[Feedback]:
        """Return the newest judgement on each pair, whichever way round it was given, oldest first; none withdrawn.

        The newest is that of the latest moment; of one moment, that which was stored last.
        """

    def judgements_on(self, identifier: str) -> dict[str, Verdict]:
        """Return each question that was judged beside this one, either way round, with the verdict that counts."""

    def judgement_version(self) -> tuple[int, int]:
        """Return a value that changes when a judgement comes, and when one stops or begins to count."""

    # -- moderation --------------------------------------------------------------------------------------------

    def decide(self, decision: Feedback, *, has_link: bool = True) -> LogEntry:
        """Store a person's decision on a pair, which is a judgement too, and return its entry in the log.

        Args:
            has_link: a duplicate is linked to its original, which searches then show in its place.

        Raises:
            UnknownIdError: a question is not there.
            InputError: the pair was decided before, or the link would close a circle or lead to a duplicate; the
                message has the chain.
        """

    def undo(self, number: int, by: str = "") -> LogEntry:
        """Undo a decision, and return the entry that says so.

        The judgement before it counts again, unless the pair was judged since. The link that it made goes, unless a
        person, a load or a forum that is followed has made it too. What was written to another forum stays there; what
        waits to be is cancelled.

        Raises:
            UnknownIdError: the log has no such entry.
            InputError: it is no decision, or was undone already.
        """

    def log(self, limit: int, before: int = 0, *, pair: tuple[str, str] | None = None) -> list[LogEntry]:
        """Return entries of the log, newest first.

        Args:
            before: only those with smaller numbers; 0 for all.
            pair: only those on this pair, either way round.
        """

    def decided_duplicates(self, source: str) -> list[LogEntry]:
        """Return the decisions that stand, by which a question is a duplicate of another of the same source."""

    def put_writes(self, wanted: Sequence[Write]) -> int:
        """Let things wait to be written that were not asked for before, or were cancelled; return how many."""

    def outbox(self, target: str = "") -> list[Write]:
        """Return what was asked to be written, to one forum or to all, oldest first."""

    def set_write(self, number: int, state: WriteState, why: str = "", *, is_try: bool = True) -> bool:
        """Note what became of a write; return False where it was cancelled meanwhile, which stays so unless done."""

    # -- questions that helped ---------------------------------------------------------------------------------

    def add_helped(self, identifier: str) -> int:
        """Count that a question answered somebody who was about to ask; return how often it did.

        Raises:
            UnknownIdError: there is no such question.
        """

    def helped(self) -> tuple[int, int]:
        """Return how often questions helped, and how many did."""
