"""What the service does for each operation, without HTTP: searches a forum, changes it, shows it."""

from __future__ import annotations

import contextlib
import importlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import structs

from askalike.errors import AskalikeError, BusyForumError, DiskFullError, SettingError, ShortageError, UnknownIdError
from askalike.forum import Forum
from askalike.forum.duplicates import has_tag
from askalike.forum.queue import QueuePlace
from askalike.schemas import (
    Compared,
    DecisionRequest,
    GroupsPage,
    HelpedCount,
    ListedQuestion,
    LoggedEntry,
    LogPage,
    LogQuery,
    Opened,
    Outcome,
    PairsPage,
    PairsQuery,
    QuestionsPage,
    ShownGroup,
    ShownLink,
    ShownPair,
    ShownQuestion,
    ShownWeakest,
    SimilarRequest,
    UndoRequest,
    Written,
)
from askalike.server.metrics import Metrics
from askalike.server.presentation import hit_fields, listed, safe_html, shown_answer, shown_likelihood
from askalike.store.pairs import PairPosition
from askalike.text.markup import plain_text
from askalike.types import Answer, Draw, Feedback, Group, Link, LogEntry, Query, Question

MAX_GROUP_QUESTIONS: Final = 20
MAX_SCANNED_PAGES: Final = 50
"""Pages that are scanned for a pair with a tag; after them an empty page with a cursor is returned."""

_Position = TypeVar("_Position", bound=tuple[float | None, ...])
_Number = Annotated[int, msgspec.Meta(ge=1 - 2**63, le=2**63 - 1)]

PROBE_CHARACTERS: Final = 200
TYPING_S: Final = 1.0
"""So long after a search the next one is likely, since people go on typing."""

LATE_MODULES: Final = ("scipy.sparse", "numpy.ma")
"""What libraries import at the first need: there may be no file handle left by then."""

_OUTCOMES: Final[Mapping[str, Literal["added", "edited"]]] = {"add": "added", "edit": "edited"}


class Handlers:
    """The operations on one forum. Safe from any thread; what a change acknowledges is on disk.

    Args:
        metrics: where stages of searches, and suggestions, are counted.

    Raises:
        UnknownIdError: of every method that takes an id: there is no such question, answer, link or entry.
        InputError, SettingError: a value does not fit, or cannot be stored; nothing is changed.
        BusyForumError: another process has been writing for too long; nothing is changed.
        ForumError, ModelError: of searches: the forum has not what the ranker needs.
    """

    def __init__(self, forum: Forum, metrics: Metrics | None = None) -> None:
        self.forum = forum
        self._metrics = metrics or Metrics()
        self._searched_s = -math.inf

    # -- searching ---------------------------------------------------------------------------------------------

    @property
    def is_searched(self) -> bool:
        """Return whether there was a search within ``TYPING_S``."""
        return time.perf_counter() - self._searched_s < TYPING_S

    def similar(self, request: SimilarRequest) -> dict[str, Any]:
        """Return ``Similar`` as it is sent: of each hit the wanted fields."""
        return self.similar_many([request])[0]

    def similar_many(self, requests: Sequence[SimilarRequest]) -> list[dict[str, Any]]:
        """Return ``similar`` of several requests, each with the time that all of them took."""
        began = time.perf_counter()
        results = self.forum.similar_many([self._query_of(request) for request in requests])
        searched = time.perf_counter()
        wanted = [request.hit_parts for request in requests]
        hits = [
            [hit_fields(hit, parts, self.forum.analyzer) for hit in result.hits]
            for result, parts in zip(results, wanted, strict=True)
        ]
        ended = self._searched_s = time.perf_counter()
        showing, took_ms = (ended - searched) / len(requests), round(1000 * (ended - began), 2)
        for request, result in zip(requests, results, strict=True):
            for name, seconds in result.seconds.items():
                self._metrics.count_stage(name, seconds + (showing if name == "answer" else 0.0))
            if request.has_text:
                self._metrics.count_suggestions("shown", len(result.likely_hits))
        return [
            {
                "ranker": result.ranker,
                "took_ms": took_ms,
                "corrections": result.corrections,
                "hits": shown,
                "notice": result.notice,
                "least": result.least,
                "is_new": result.is_new,
            }
            for result, shown in zip(results, hits, strict=True)
        ]

    def _query_of(self, request: SimilarRequest) -> Query:
        """Return the search of a request; of one without a text, that for what is similar to a stored question."""
        query = request.query
        if request.has_text:
            return query
        if not query.own:
            raise SettingError("the question is empty", "give a title, a body, or the id of a stored question")
        stored = Query.stored(self.forum.question(query.own))
        language = query.language or stored.language
        return replace(query, title=stored.title, body=stored.body, markup=stored.markup, language=language)

    def warm_up(self) -> None:
        """Load what searches and writes need, so that no user waits for it; errors of a search are left to theirs."""
        for name in LATE_MODULES:
            importlib.import_module(name)
        with contextlib.suppress(AskalikeError):
            self.forum.similar("how to", k=1)

    def probe(self) -> None:
        """Search for a question that the forum holds, and read it."""
        for question in islice(self.forum.questions(), 1):
            self.forum.similar(question.title[:PROBE_CHARACTERS].strip() or "?", k=1)

    def opened(self, identifier: str) -> Opened:
        """Count that a suggestion was opened."""
        self.forum.question(identifier)
        self._metrics.count_suggestions("opened")
        return Opened(identifier)

    def helped(self, identifier: str) -> HelpedCount:
        """Count that a question saved somebody from asking."""
        helped = HelpedCount(identifier, self.forum.store.add_helped(identifier))
        self._metrics.count_suggestions("helped")
        return helped

    # -- questions ---------------------------------------------------------------------------------------------

    def question(self, identifier: str) -> ShownQuestion:
        """Return a question with its answers and links."""
        question = self.forum.question(identifier)
        return ShownQuestion(
            question=question,
            html=safe_html(question.body, question.markup),
            text=plain_text(question.body, question.markup),
            answers=tuple(map(shown_answer, self.forum.answers(identifier))),
            links=tuple(self._link(identifier, link) for link in self.forum.store.links_of(identifier)),
        )

    def questions(self, limit: int, cursor: str | None = None) -> QuestionsPage:
        """Return a page of the questions, newest first by date, undated ones last.

        Args:
            cursor: the ``next`` of the page before.
        """
        newest = self.forum.store.page_by_date(
            limit, read_cursor(cursor, tuple[_Number | None, _Number]) if cursor else None
        )
        return QuestionsPage(
            tuple(self._listed(question for _, question in newest).values()),
            make_cursor(*newest[-1][0]) if len(newest) == limit else None,
            len(self.forum),
        )

    def _link(self, identifier: str, link: Link) -> ShownLink:
        is_from = link.source_id == identifier
        other = link.target_id if is_from else link.source_id
        return ShownLink(other, self.forum.question(other).title, link.kind, "to" if is_from else "from")

    # -- changes -----------------------------------------------------------------------------------------------

    def put(self, question: Question) -> Written:
        """Add or replace a question."""
        done = self.forum.put_unindexed([question])
        return Written(question.id, _outcome(done, question.id), indexed=self.catch_up())

    def delete(self, identifier: str) -> Written:
        """Delete a question with its answers and links."""
        self.forum.put_unindexed(gone=[identifier])
        return Written(identifier, "deleted", indexed=self.catch_up())

    def put_answer(self, answer: Answer) -> Written:
        """Add or replace an answer, which is shown at once."""
        return Written(answer.id, _outcome(self.forum.store.put_answers([answer]), answer.id), indexed=True)

    def delete_answer(self, identifier: str) -> Written:
        """Delete an answer."""
        self.forum.store.delete_answers([identifier])
        return Written(identifier, "deleted", indexed=True)

    def mark(self, identifier: str, original: str) -> Written:
        """Link a question as a duplicate of another, which must not be one itself."""
        is_new = self.forum.store.mark(identifier, original)
        return Written(identifier, "added" if is_new else "unchanged", indexed=True)

    def unmark(self, identifier: str, original: str) -> Written:
        """Remove a duplicate link."""
        if not self.forum.store.delete_links([Link(identifier, original)]):
            message = f"question {identifier!r} is not marked a duplicate of {original!r}"
            raise UnknownIdError(message, "its links tell what it is marked with")
        return Written(identifier, "deleted", indexed=True)

    def catch_up(self) -> bool:
        """Index what is stored; return whether the index holds all of it.

        It does not while an engine is away, another process holds the index for longer, or file handles are few.

        Raises:
            DiskFullError: the index has no room; what was written is stored.
        """
        try:
            return self.forum.catch_up()
        except (BusyForumError, ShortageError):
            return False
        except DiskFullError as error:
            raise DiskFullError(f"stored, not yet indexed: {error.message}", error.hint) from error

    # -- duplicates --------------------------------------------------------------------------------------------

    def pairs(self, query: PairsQuery, key_name: str = "") -> PairsPage:
        """Return a page of pairs, best first; it may be shorter than ``limit``, or empty, and others follow.

        Args:
            key_name: what the request's key is called.
        """
        cursor, tag, minimum = query.cursor, query.tag or "", self.forum.thresholds.least_score(query.minimum)
        for _ in range(MAX_SCANNED_PAGES if tag else 1):
            page = self._pairs(cursor, query.limit, minimum, query.sample)
            shown = tuple(pair for pair in page.pairs if has_tag((*pair.question.tags, *pair.candidate.tags), tag))
            if shown or page.next is None:
                break
            cursor = page.next
        return structs.replace(page, pairs=shown, you=key_name)

    def _pairs(self, cursor: str | None, limit: int, minimum: float, has_sample: bool) -> PairsPage:
        if has_sample:
            after = None
            if cursor:
                position = read_cursor(cursor, tuple[float, _Number, _Number, _Number, float])
                after = QueuePlace(PairPosition(*position[:3]), *position[3:])
            proposals, at = self.forum.queue.page(minimum, limit, after)
            pairs, draws = [proposal.pair for proposal in proposals], [proposal.draw for proposal in proposals]
            last = (at.likely if at else None) or PairPosition(2.0, 0, 0)
            ended = make_cursor(last.score, last.first, last.second, at.shown, at.drawn) if at else None
        else:
            before = PairPosition(*read_cursor(cursor, tuple[float, _Number, _Number])) if cursor else None
            pairs, place = self.forum.pairs.page(minimum, limit, before)
            draws, ended = [Draw()] * len(pairs), make_cursor(place.score, place.first, place.second) if place else None
        described = list(self.forum.pairs.describe(pairs, draws))
        by_id = self._listed([question for pair in described for question in (pair.question, pair.candidate)])
        shown = tuple(
            ShownPair(
                by_id[pair.question.id],
                by_id[pair.candidate.id],
                pair.score,
                pair.cosine,
                shown_likelihood(pair.likelihood),
                pair.draw or Draw(),
            )
            for pair in described
        )
        return PairsPage(shown, ended, self.comparison_progress())

    def groups(self, cursor: str | None, limit: int, minimum: float) -> GroupsPage:
        """Return a page of groups, largest first."""
        nodes = self.forum.groups.nodes(minimum, is_waiting=False)
        if cursor:
            size, first = read_cursor(cursor, tuple[_Number, _Number])
            nodes = [node for node in nodes if (-len(node.nums), node.nums[0]) > (-size, first)]
        page = nodes[:limit]
        shown = tuple(map(self._group, self.forum.groups.describe(page)))
        last = None
        if len(nodes) > limit:
            last = make_cursor(len(page[-1].nums), page[-1].nums[0])
        return GroupsPage(shown, last, self.comparison_progress())

    def comparison_progress(self) -> Compared:
        """Return how many questions have been compared with the others."""
        size = len(self.forum)
        return Compared(max(0, size - self.forum.pairs.waiting()), size)

    def _group(self, group: Group) -> ShownGroup:
        weakest = group.weakest
        ends = () if weakest is None else (weakest.first, weakest.second)
        wanted = list(dict.fromkeys([*group.members[:MAX_GROUP_QUESTIONS], *ends]))
        by_id = self._listed(self.forum.store.questions_by_id(wanted).values())
        first_ids = wanted[: min(MAX_GROUP_QUESTIONS, len(group.members))]
        shown = tuple(by_id[identifier] for identifier in first_ids if identifier in by_id)
        pair = None
        if weakest is not None and by_id.keys() >= set(ends):
            first, second = by_id[weakest.first], by_id[weakest.second]
            pair = ShownWeakest(first, second, shown_likelihood(weakest.probability))
        return ShownGroup(shown[0], len(group.members), group.kind, pair, shown)

    def _listed(self, questions: Iterable[Question]) -> dict[str, ListedQuestion]:
        """Return questions as lists show them, by their ids."""
        by_id = {question.id: question for question in questions}
        counts = self.forum.store.answer_counts(list(by_id))
        return {identifier: listed(question, counts.get(identifier, 0)) for identifier, question in by_id.items()}

    # -- moderation --------------------------------------------------------------------------------------------

    def decide(self, request: DecisionRequest, key_name: str) -> LogEntry:
        """Store a decision by whom the request's key is named after; without such a name, by whom the request names."""
        decision = Feedback(
            request.question, request.candidate, request.verdict, key_name or request.by, draw=request.draw
        )
        return self.forum.store.decide(decision, has_link=request.link)

    def undo(self, request: UndoRequest, key_name: str) -> LogEntry:
        """Undo a decision; ``key_name`` as ``decide`` takes it."""
        return self.forum.store.undo(request.number, key_name or request.by)

    def log(self, query: LogQuery, key_name: str) -> LogPage:
        """Return a page of the log."""
        if (query.question is None) != (query.candidate is None):
            raise SettingError("half a pair was named", "name question and candidate, or neither")
        pair = (query.question, query.candidate) if query.question and query.candidate else None
        log = self.forum.store.log(query.limit, query.before, pair=pair)
        ids = [identifier for entry in log for identifier in (entry.question_id, entry.candidate_id)]
        titles = {identifier: question.title for identifier, question in self.forum.store.questions_by_id(ids).items()}
        entries = tuple(
            LoggedEntry(
                **structs.asdict(entry),
                question_title=titles.get(entry.question_id, ""),
                candidate_title=titles.get(entry.candidate_id, ""),
            )
            for entry in log
        )
        return LogPage(entries, log[-1].number if len(log) == query.limit else None, key_name)


def _outcome(done: Mapping[str, str], identifier: str) -> Outcome:
    return _OUTCOMES.get(done.get(identifier, ""), "unchanged")


def make_cursor(*numbers: float | None) -> str:
    """Return a cursor from the position of a page's last row.

    >>> make_cursor(None, 7, 0.5)
    'null,7,0.5'
    """
    return msgspec.json.encode(numbers)[1:-1].decode()


def read_cursor(cursor: str, kind: type[_Position]) -> _Position:
    """Return the position that a cursor holds.

    Raises:
        SettingError: no page has given it.
    """
    try:
        return msgspec.json.decode(f"[{cursor}]", type=kind)
    except msgspec.DecodeError as error:
        raise SettingError("this is no cursor of a page", "take the next of the page before") from error
