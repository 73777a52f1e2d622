"""What the service does, without HTTP: searches a forum, changes it, tells about it."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from msgspec import structs

from askalike.errors import AskalikeError, BusyForumError, SettingError, UnknownIdError
from askalike.forum import Forum
from askalike.schemas import (
    DecisionRequest,
    FeedbackRequest,
    HelpedCount,
    LoggedEntry,
    LogPage,
    LogQuery,
    Opened,
    PairsPage,
    PairsQuery,
    QuestionsPage,
    ShownLink,
    ShownQuestion,
    Similar,
    SimilarQuery,
    UndoRequest,
    Written,
)
from askalike.server.duplicates import DuplicatePages
from askalike.server.metrics import Metrics
from askalike.server.presentation import listed, safe_html, shown_answer, shown_hit
from askalike.store import check_question
from askalike.text.markup import plain_text
from askalike.types import Answer, Feedback, Link, LogEntry, Query, Question

PROBE_CHARACTERS: Final = 200

_PLACE: Final = re.compile("(-?[0-9]{1,19})?_([0-9]{1,19})")
"""A cursor: microseconds or nothing, and a number."""

SEARCHED_S: Final = 1.0
_WORDS: Mapping[str, Literal["added", "edited"]] = {"add": "added", "edit": "edited"}


@dataclass(frozen=True, slots=True)
class Stored:
    """A question that the forum holds, of which the similar ones are wanted."""

    identifier: str
    wanted: SimilarQuery


class Engine:
    """One forum as the service offers it. Safe from any thread.

    Args:
        metrics: where stages of searches, and suggestions, are counted.
    """

    def __init__(self, forum: Forum, metrics: Metrics | None = None) -> None:
        self.forum = forum
        self.duplicates = DuplicatePages(forum)
        self._metrics = metrics or Metrics()
        self._searched_s = -math.inf

    # -- searching ---------------------------------------------------------------------------------------------

    @property
    def is_searched(self) -> bool:
        """Return whether somebody has searched a moment ago, and so is likely to again: a draft is read as it grows."""
        return time.perf_counter() - self._searched_s < SEARCHED_S

    def similar(self, query: Query | Stored) -> Similar:
        """Return what an asker is shown; a query of a stored question finds later questions too.

        Raises:
            SettingError: there is nothing to search for, k is out of range, or there is no such ranker.
            InputError: ``before`` is no moment.
            UnknownIdError: there is no such question.
            ForumError, ModelError: the forum has not what the ranker needs.
        """
        return self.similar_many([query])[0]

    def similar_many(self, asked: Sequence[Query | Stored]) -> list[Similar]:
        """Return what several askers are shown, each of whom is told how long it took for all of them.

        Raises:
            UnknownIdError: there is no such question.
            SettingError, InputError, ForumError, ModelError: one of them cannot be answered, as ``similar``.
        """
        queries = [
            query if isinstance(query, Query) else query.wanted.query(self.forum.question(query.identifier))
            for query in asked
        ]
        if any(not query.title.strip() and not query.body.strip() for query in queries):
            raise SettingError("the question is empty", "give a title or a body")
        began = time.perf_counter()
        results = self.forum.similar_many(queries) if len(queries) > 1 else [self.forum.search(queries[0])]
        searched = time.perf_counter()
        shown = [tuple(shown_hit(hit, self.forum.analyzer) for hit in result.hits) for result in results]
        ended = self._searched_s = time.perf_counter()
        showing, took_ms = (ended - searched) / len(asked), round(1000 * (ended - began), 2)
        for result in results:
            for name, seconds in result.seconds.items():
                self._metrics.stage(name, seconds + (showing if name == "answer" else 0.0))
        self._metrics.suggestions(
            "shown", sum(len(hits) for query, hits in zip(asked, shown, strict=True) if isinstance(query, Query))
        )
        return [
            Similar(result.ranker, took_ms, result.corrections, hits, result.notice)
            for result, hits in zip(results, shown, strict=True)
        ]

    def warm_up(self) -> None:
        """Search once, so that the first who asks need not wait for the model to be read; what fails, fails then."""
        with contextlib.suppress(AskalikeError):
            self.forum.similar("how to", k=1)

    def probe(self) -> None:
        """Search for a question that the forum holds, and read it.

        Raises:
            AskalikeError: the forum cannot be searched, or its archive not be read.
        """
        for question in islice(self.forum.questions(), 1):
            self.forum.similar(question.title[:PROBE_CHARACTERS].strip() or "?", k=1)

    # -- questions ---------------------------------------------------------------------------------------------

    def question(self, identifier: str) -> ShownQuestion:
        """Return a question with its answers and links.

        Raises:
            UnknownIdError: there is no such question.
        """
        found = self.forum.question(identifier)
        return ShownQuestion(
            question=found,
            html=safe_html(found.body, found.markup),
            text=plain_text(found.body, found.markup),
            answers=tuple(map(shown_answer, self.forum.answers(identifier))),
            links=tuple(self._link(identifier, link) for link in self.forum.store.links_of(identifier)),
        )

    def questions(self, limit: int, cursor: str | None = None) -> QuestionsPage:
        """Return a page of the questions, newest first by date, undated ones last.

        Args:
            cursor: the ``next`` of the page before.

        Raises:
            SettingError: the cursor is none.
        """
        found = self.forum.store.newest(limit, _place(cursor) if cursor else None)
        counts = self.forum.store.answer_counts([question.id for _, question in found])
        return QuestionsPage(
            tuple(listed(question, counts.get(question.id, 0)) for _, question in found),
            _cursor(*found[-1][0]) if len(found) == limit else None,
            len(self.forum),
        )

    def _link(self, identifier: str, link: Link) -> ShownLink:
        is_from = link.source_id == identifier
        other = link.target_id if is_from else link.source_id
        return ShownLink(other, self.forum.question(other).title, link.kind, "to" if is_from else "from")

    # -- changes -----------------------------------------------------------------------------------------------

    def put(self, question: Question) -> Written:
        """Add or replace a question; it is on disk when this returns.

        Raises:
            InputError: a value cannot be stored.
            BusyForumError: another process has been writing for too long; nothing is stored.
        """
        done = self.forum.put_unindexed([question])
        return Written(question.id, _WORDS.get(done.get(question.id, "none"), "unchanged"), indexed=self.catch_up())

    def store(self, questions: Iterable[Question]) -> list[Written]:
        """Add or replace questions, each on disk when this returns; ``catch_up`` lets them be found.

        Raises:
            InputError, BusyForumError: as ``put``; none is stored.
        """
        listed = list(questions)
        done = self.forum.put_unindexed(listed)
        return [Written(one.id, _WORDS.get(done.get(one.id, "none"), "unchanged"), indexed=False) for one in listed]

    def check(self, question: Question) -> None:
        """Raise InputError unless ``store`` can store the question."""
        check_question(question)

    def delete(self, identifier: str) -> Written:
        """Delete a question with its answers and links.

        Raises:
            UnknownIdError: there is no such question.
            BusyForumError: another process has been writing for too long; nothing is deleted.
        """
        self.forum.put_unindexed(gone=[identifier])
        return Written(identifier, "deleted", indexed=self.catch_up())

    def put_answer(self, answer: Answer) -> Written:
        """Add or replace an answer; it is on disk, and shown, when this returns.

        Raises:
            UnknownIdError: its question is not there.
            InputError, BusyForumError: as ``put``.
        """
        done = self.forum.store.put_answers([answer])
        return Written(answer.id, _WORDS.get(done.get(answer.id, "none"), "unchanged"), indexed=True)

    def delete_answer(self, identifier: str) -> Written:
        """Delete an answer.

        Raises:
            UnknownIdError: there is no such answer.
            BusyForumError: as ``delete``.
        """
        self.forum.store.delete_answers([identifier])
        return Written(identifier, "deleted", indexed=True)

    def mark(self, identifier: str, original: str) -> Written:
        """Mark a question a duplicate of another.

        Raises:
            UnknownIdError: one of them is not there.
            InputError: they are the same, or the original is a duplicate itself.
            BusyForumError: as ``put``.
        """
        added = self.forum.store.mark(identifier, original)
        return Written(identifier, "added" if added else "unchanged", indexed=True)

    def unmark(self, identifier: str, original: str) -> Written:
        """Take the mark of a duplicate away.

        Raises:
            UnknownIdError: there is no such mark.
            InputError, BusyForumError: as ``mark``.
        """
        if not self.forum.remove_links([Link(identifier, original)]):
            found = f"question {identifier!r} is not marked a duplicate of {original!r}"
            raise UnknownIdError(found, "its links tell what it is marked with")
        return Written(identifier, "deleted", indexed=True)

    def judge(self, given: FeedbackRequest) -> Feedback:
        """Store a person's judgement on a pair; it is on disk when this returns.

        Raises:
            UnknownIdError: one of the questions is not there.
            InputError: they are the same question.
            BusyForumError: another process has been writing for too long; nothing is stored.
        """
        return self.forum.judge(given.question, given.candidate, given.verdict, given.by, given.draw)

    def pairs(self, query: PairsQuery, name: str = "") -> PairsPage:
        """Return a page of the pairs that may be duplicates.

        Args:
            name: of the request's key.

        Raises:
            SettingError: the cursor is none.
        """
        return structs.replace(self.duplicates.pairs(query, self.forum.thresholds.least_score(query.minimum)), you=name)

    # -- moderation --------------------------------------------------------------------------------------------

    def decide(self, request: DecisionRequest, name: str) -> LogEntry:
        """Store a decision; it is on disk when this returns.

        Args:
            name: of the request's key; "" takes the name that is sent.

        Raises:
            UnknownIdError, InputError, BusyForumError: as ``Store.decide``; nothing is stored.
        """
        decision = Feedback(request.question, request.candidate, request.verdict, name or request.by, draw=request.draw)
        return self.forum.store.decide(decision, has_link=request.link)

    def undo(self, request: UndoRequest, name: str) -> LogEntry:
        """Undo a decision.

        Raises:
            UnknownIdError, InputError, BusyForumError: as ``Store.undo``.
        """
        return self.forum.store.undo(request.number, name or request.by)

    def log(self, query: LogQuery, name: str) -> LogPage:
        """Return a page of the log.

        Raises:
            SettingError: one question was named without the other.
        """
        if (query.question is None) != (query.candidate is None):
            raise SettingError("half a pair was named", "name question and candidate, or neither")
        pair = (query.question, query.candidate) if query.question and query.candidate else None
        found = self.forum.store.log(query.limit, query.before, pair=pair)
        held = self.forum.store.questions_by_id(
            [identifier for entry in found for identifier in (entry.question_id, entry.candidate_id)]
        )
        titles = {identifier: question.title for identifier, question in held.items()}
        entries = tuple(
            LoggedEntry(
                **structs.asdict(one),
                question_title=titles.get(one.question_id, ""),
                candidate_title=titles.get(one.candidate_id, ""),
            )
            for one in found
        )
        return LogPage(entries, found[-1].number if len(found) == query.limit else None, name)

    def helped(self, identifier: str) -> HelpedCount:
        """Count that a question answered somebody's who was about to ask.

        Raises:
            UnknownIdError: there is no such question.
        """
        helped = HelpedCount(identifier, self.forum.store.add_helped(identifier))
        self._metrics.suggestions("helped")
        return helped

    def opened(self, identifier: str) -> Opened:
        """Count that a suggestion was opened.

        Raises:
            UnknownIdError: there is no such question.
        """
        self.forum.question(identifier)
        self._metrics.suggestions("opened")
        return Opened(identifier)

    def labels(self, *, is_named: bool) -> Iterator[Feedback]:
        """Yield all judgements, oldest first; who judged is left out unless ``is_named``."""
        found = self.forum.store.all_feedback()
        return found if is_named else (structs.replace(one, by="") for one in found)

    def catch_up(self) -> bool:
        """Let all that is stored be found; return whether it is: another process may be at it for longer."""
        with contextlib.suppress(BusyForumError):
            self.forum.catch_up()
            return True
        return False


def _cursor(moment: int | None, num: int) -> str:
    return f"{'' if moment is None else moment}_{num}"


def _place(cursor: str) -> tuple[int | None, int]:
    found = _PLACE.fullmatch(cursor)
    place = (int(found[1]) if found[1] else None, int(found[2])) if found else (None, 2**63)
    if not all(abs(one) < 2**63 for one in place if one is not None):
        raise SettingError("the cursor is none that a page has given", "take the next of the page before")
    return place
