"""What the service does, without HTTP: searches a forum, changes it, tells about it."""

from __future__ import annotations

import base64
import contextlib
import math
import re
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Final, Literal

from msgspec import structs

from askalike.errors import AskalikeError, BusyForumError, SettingError, UnknownIdError
from askalike.forum import Forum
from askalike.schemas import (
    AssignmentsRequest,
    Counted,
    DecisionsRequest,
    Embedding,
    Embeddings,
    EmbeddingsRequest,
    EmbedRequest,
    FeedbackRequest,
    GivenBack,
    GivenBackRequest,
    HelpedCount,
    LoggedEntry,
    LogPage,
    LogQuery,
    NoteRequest,
    OutcomesRequest,
    PairsPage,
    PairsQuery,
    QuestionsPage,
    Rank,
    Ranks,
    RerankRequest,
    ShownLink,
    ShownQuestion,
    Side,
    Similar,
    SimilarHit,
    SimilarQuery,
    Taken,
    Undone,
    UndoRequest,
    Usage,
    Vectors,
    Written,
)
from askalike.search.interleaving import MOST_DRAFTED, propensities, session_coins, team_draft
from askalike.server.duplicates import DuplicatePages
from askalike.server.presentation import listed, safe_html, shown_answer, shown_hit, shown_likelihood
from askalike.store import check_question
from askalike.text.markup import plain_text
from askalike.types import Answer, Decided, Feedback, Hit, Link, LogEntry, Query, Question

OnStage = Callable[[str, float], None]
"""Called with the name of a stage and the seconds that it took."""

PROBE_CHARACTERS: Final = 200

_PLACE: Final = re.compile("(-?[0-9]{1,19})?_([0-9]{1,19})")
"""A cursor: microseconds or nothing, and a number."""

_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
SEARCHED_S: Final = 1.0
ENCODED_AT_ONCE: Final = 32
DECIMALS: Final = 8
"""Of numbers in a vector: as many as tell one float32 of a unit vector from the next."""
_NEAREST_TO_CERTAIN: Final = 1e-9
"""Log odds of probabilities nearer to 0 or 1 are those of this."""

_WORDS: Mapping[str, Literal["added", "edited"]] = {"add": "added", "edit": "edited"}


@dataclass(frozen=True, slots=True)
class Stored:
    """A question that the forum holds, of which the similar ones are wanted."""

    identifier: str
    wanted: SimilarQuery


class Engine:
    """One forum as the service offers it. Safe from any thread.

    Args:
        on_stage: called with how long each stage of a search took.
        counts_outcomes, rival: as ``ServeSettings`` has them.
    """

    def __init__(
        self,
        forum: Forum,
        on_stage: OnStage = lambda _stage, _seconds: None,
        counts_outcomes: bool = False,
        rival: str = "",
    ) -> None:
        self.forum = forum
        self._counts_outcomes, self._rival = counts_outcomes, rival
        self.duplicates = DuplicatePages(forum)
        self._on_stage = on_stage
        self._searched_s = -math.inf

    # -- searching ---------------------------------------------------------------------------------------------

    @property
    def is_searched(self) -> bool:
        """Return whether somebody has searched a moment ago, and so is likely to again: a draft is read as it grows."""
        return time.perf_counter() - self._searched_s < SEARCHED_S

    def similar(self, query: Query | Stored, session: str = "") -> Similar:
        """Return what an asker is shown.

        Args:
            query: one of a stored question finds later questions too.
            session: of a visit that is counted: where two rankers are compared, it is shown what both found.

        Raises:
            SettingError: there is nothing to search for, k is out of range, or there is no such ranker.
            InputError: ``before`` is no moment.
            UnknownIdError: there is no such question.
            ForumError, ModelError: the forum has not what the ranker needs.
        """
        return self.similar_many([(query, session)])[0]

    def similar_many(self, given: Sequence[tuple[Query | Stored, str]]) -> list[Similar]:
        """Return what several askers are shown, each of whom is told how long it took for all of them.

        Args:
            given: what is asked for, with the sessions, as ``similar`` takes them.

        Raises:
            UnknownIdError: there is no such question.
            SettingError, InputError, ForumError, ModelError: one of them cannot be answered, as ``similar``.
        """
        queries = [
            one if isinstance(one, Query) else one.wanted.query(self.forum.question(one.identifier)) for one, _ in given
        ]
        if any(not query.title.strip() and not query.body.strip() for query in queries):
            raise SettingError("the question is empty", "give a title or a body")
        began = time.perf_counter()
        found = self.forum.similar_many(queries) if len(queries) > 1 else [self.forum.search(queries[0])]
        searched = time.perf_counter()
        shown = [
            self._shown(query, session, one.hits)
            for query, (_, session), one in zip(queries, given, found, strict=True)
        ]
        ended = self._searched_s = time.perf_counter()
        showing, took_ms = (ended - searched) / len(given), round(1000 * (ended - began), 2)
        for one in found:
            for name, spent in one.seconds.items():
                self._on_stage(name, spent + (showing if name == "answer" else 0.0))
        return [
            Similar(one.ranker, took_ms, one.corrections, hits, one.notice)
            for one, hits in zip(found, shown, strict=True)
        ]

    def _shown(self, query: Query, session: str, found: Iterable[Hit]) -> tuple[SimilarHit, ...]:
        hits = tuple(shown_hit(hit, self.forum.analyzer) for hit in found)
        if session and self._rival and query.ranker is None and 0 < len(hits) <= MOST_DRAFTED:
            return self._drafted(query, session, hits)
        return hits

    def _drafted(self, query: Query, session: str, hits: tuple[SimilarHit, ...]) -> tuple[SimilarHit, ...]:
        """Return as many hits, drafted from the default's and the rival's; none says how likely: all look alike."""
        asked = replace(query, ranker=self._rival, minimum=0.0, k=len(hits))
        other = tuple(shown_hit(hit, self.forum.analyzer) for hit in self.forum.search(asked).hits)
        held = {hit.question.id: hit for hit in (*other, *hits)}
        rankings = ([one.question.id for one in hits], [one.question.id for one in other])
        shares = propensities(*rankings, len(hits))
        unsaid = shown_likelihood(None)
        return tuple(
            structs.replace(held[one], rank=rank, likelihood=unsaid, team=team, propensity=shares[one])
            for rank, (one, team) in enumerate(team_draft(*rankings, len(hits), session_coins(session)), 1)
        )

    # -- endpoints in the dialects of others -------------------------------------------------------------------

    def embeddings(self, given: EmbeddingsRequest, until_s: float) -> Embeddings:
        """Return the vectors of texts as OpenAI's endpoint does.

        Raises:
            UnknownIdError: a model with a revision is named that does not answer.
            SettingError: a text is blank, or there are not so many dimensions.
            NotLearnedError, ModelError, EncoderError: as ``Forum.embed``.
        """
        texts = _texts(given.input)
        model = self.forum.encoder
        if "@" in given.model and given.model != model:
            raise UnknownIdError(f"there is no model {given.model!r}", f"this forum is encoded by {model!r}")
        vectors = self._vectors(texts, given.input_type, given.dimensions, until_s)
        rows: list[list[float] | str] = list(vectors)
        if given.encoding_format == "base64":
            rows = [base64.b64encode(struct.pack(f"<{len(one)}f", *one)).decode() for one in vectors]
        read = sum(sum(1 for _ in _TOKEN.finditer(text)) for text in texts)
        data = tuple(Embedding(place, row) for place, row in enumerate(rows))
        return Embeddings(data, model, Usage(read, read))

    def embed(self, given: EmbedRequest, until_s: float) -> Vectors:
        """Return the vectors of texts as text-embeddings-inference does.

        Raises:
            SettingError: they are to be of another length than 1, or as ``embeddings``.
            NotLearnedError, ModelError, EncoderError: as ``Forum.embed``.
        """
        if not given.normalize:
            raise SettingError("normalize is false, and vectors have length 1 here", "leave it out")
        return self._vectors(_texts(given.inputs), given.prompt_name, given.dimensions, until_s)

    def _vectors(self, texts: list[str], side: Side, dimensions: int | None, until_s: float) -> Vectors:
        """Return vectors, encoding no further once nobody waits for them."""
        rows: Vectors = []
        for begin in range(0, len(texts), ENCODED_AT_ONCE):
            if time.monotonic() > until_s:
                raise BusyForumError("there was no time to encode all texts", "send fewer at once")
            part = texts[begin : begin + ENCODED_AT_ONCE]
            found = self.forum.embed(part, is_query=side == "query", dimensions=dimensions)
            rows += found.astype(float).round(DECIMALS).tolist()
        return rows

    def rerank(self, given: RerankRequest) -> Ranks:
        """Return texts by how likely each asks the same as a query, the likeliest first.

        Raises:
            SettingError: a text is blank.
            ModelError, EncoderError: as ``Forum.score``.
        """
        texts = _texts(given.texts)
        scores = self.forum.score(_texts(given.query)[0], texts)
        if given.raw_scores:
            scores = [_log_odds(one) for one in scores]
        order = sorted(range(len(texts)), key=lambda place: (-scores[place], place))
        return tuple(Rank(place, scores[place], texts[place] if given.return_text else None) for place in order)

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
            links=tuple(self._link(identifier, link) for link in self.forum.links_of(identifier)),
        )

    def questions(self, limit: int, cursor: str | None = None) -> QuestionsPage:
        """Return a page of the questions, newest first by date, undated ones last.

        Args:
            cursor: the ``next`` of the page before.

        Raises:
            SettingError: the cursor is none.
        """
        found = self.forum.newest(limit, _place(cursor) if cursor else None)
        counts = self.forum.answer_counts([question.id for _, question in found])
        return QuestionsPage(
            tuple(listed(question, counts.get(question.id, 0)) for _, question in found),
            _cursor(*found[-1][0]) if len(found) == limit else None,
            self.forum.size(),
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
        done = self.forum.store([question])
        return Written(question.id, _WORDS.get(done.get(question.id, "none"), "unchanged"), indexed=self.catch_up())

    def store(self, questions: Iterable[Question]) -> list[Written]:
        """Add or replace questions, each on disk when this returns; ``catch_up`` lets them be found.

        Raises:
            InputError, BusyForumError: as ``put``; none is stored.
        """
        listed = list(questions)
        done = self.forum.store(listed)
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
        self.forum.store(gone=[identifier])
        return Written(identifier, "deleted", indexed=self.catch_up())

    def put_answer(self, answer: Answer) -> Written:
        """Add or replace an answer; it is on disk, and shown, when this returns.

        Raises:
            UnknownIdError: its question is not there.
            InputError, BusyForumError: as ``put``.
        """
        done = self.forum.put_answers([answer])
        return Written(answer.id, _WORDS.get(done.get(answer.id, "none"), "unchanged"), indexed=True)

    def delete_answer(self, identifier: str) -> Written:
        """Delete an answer.

        Raises:
            UnknownIdError: there is no such answer.
            BusyForumError: as ``delete``.
        """
        self.forum.delete_answers([identifier])
        return Written(identifier, "deleted", indexed=True)

    def mark(self, identifier: str, original: str) -> Written:
        """Mark a question a duplicate of another.

        Raises:
            UnknownIdError: one of them is not there.
            InputError: they are the same, or the original is a duplicate itself.
            BusyForumError: as ``put``.
        """
        added = self.forum.mark(identifier, original)
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

    def pairs(self, query: PairsQuery, name: str = "", *, is_named: bool = False) -> PairsPage:
        """Return a page of the pairs that may be duplicates.

        Args:
            name: of the request's key: what others have taken is left out.
            is_named: with who has taken them, and what was noted on them.

        Raises:
            SettingError: the cursor is none.
        """
        least = self.forum.least_score(query.minimum)
        by = name or (query.by if is_named else None)  # who may only read learns nothing of who has taken what
        found = self.duplicates.pairs(structs.replace(query, by=by), least, is_named=is_named)
        return structs.replace(found, you=name)

    # -- moderation --------------------------------------------------------------------------------------------

    def decide(self, given: DecisionsRequest, name: str) -> Decided:
        """Store decisions, all of them or none; they are on disk when this returns.

        Args:
            name: of the request's key; "" takes the name that is given.

        Raises:
            InputError, BusyForumError: as ``Moderation.decide``; nothing is stored.
        """
        by = name or given.by
        decisions = [Feedback(one.question, one.candidate, one.verdict, by, draw=one.draw) for one in given.decisions]
        return self.forum.moderation.decide(decisions, has_links=given.link, is_preview=given.preview)

    def undo(self, given: UndoRequest, name: str) -> Undone:
        """Undo decisions, all of them or none.

        Raises:
            UnknownIdError, InputError, SettingError, BusyForumError: as ``Moderation.undo``.
        """
        found = self.forum.moderation.undo(given.numbers, bulk=given.bulk, by=name or given.by)
        return Undone(tuple(found))

    def note(self, given: NoteRequest, name: str) -> LogEntry:
        """Store a note on a pair.

        Raises:
            UnknownIdError, InputError, BusyForumError: as ``Moderation.note``.
        """
        return self.forum.moderation.note(given.question, given.candidate, given.text, name or given.by)

    def log(self, query: LogQuery, name: str) -> LogPage:
        """Return a page of the log.

        Raises:
            SettingError: one question was named without the other.
        """
        if (query.question is None) != (query.candidate is None):
            raise SettingError("half a pair was named", "name question and candidate, or neither")
        pair = (query.question, query.candidate) if query.question and query.candidate else None
        found = self.forum.moderation.log(query.limit, query.before, pair=pair, bulk=query.bulk)
        held = self.forum.questions_by_id([one for entry in found for one in (entry.question_id, entry.candidate_id)])
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

    def taken(self) -> Taken:
        """Return who has which pairs."""
        return Taken(tuple(self.forum.moderation.assignments()))

    def take(self, given: AssignmentsRequest, name: str) -> Taken:
        """Let somebody have pairs, all of them or none.

        Raises:
            UnknownIdError, InputError, BusyForumError: as ``Moderation.take``.
        """
        lasting = None if given.minutes is None else timedelta(minutes=given.minutes)
        pairs = [(one.question, one.candidate) for one in given.pairs]
        return Taken(tuple(self.forum.moderation.take(pairs, name or given.by, lasting)))

    def give_back(self, given: GivenBackRequest, name: str) -> GivenBack:
        """Free pairs.

        Raises:
            InputError, BusyForumError: as ``Moderation.give_back``.
        """
        by = None if given.anyones else name or given.by
        return GivenBack(self.forum.moderation.give_back([(one.question, one.candidate) for one in given.pairs], by))

    def helped(self, identifier: str) -> HelpedCount:
        """Count that a question answered somebody's who was about to ask.

        Raises:
            UnknownIdError: there is no such question.
        """
        return HelpedCount(identifier, self.forum.add_helped(identifier))

    def count_outcomes(self, given: OutcomesRequest) -> Counted:
        """Count what became of suggestions in one visit.

        Raises:
            SettingError: this service counts nothing.
            BusyForumError: as ``put``.
        """
        if not self._counts_outcomes:
            raise SettingError("this service counts no outcomes", 'start it with "askalike serve FORUM --outcomes"')
        return Counted(self.forum.add_outcomes(given.session, given.outcomes))

    def labels(self, *, is_named: bool) -> Iterator[Feedback]:
        """Yield all judgements, oldest first; who judged is left out unless ``is_named``."""
        found = self.forum.feedback()
        return found if is_named else (structs.replace(one, by="") for one in found)

    def catch_up(self) -> bool:
        """Let all that is stored be found; return whether it is: another process may be at it for longer."""
        with contextlib.suppress(BusyForumError):
            self.forum.catch_up()
            return True
        return False


def _texts(given: str | tuple[str, ...]) -> list[str]:
    texts = [given] if isinstance(given, str) else list(given)
    blank = next((place for place, text in enumerate(texts) if not text.strip()), None)
    if blank is not None:
        raise SettingError(f"text {blank + 1} of {len(texts)} is blank", "leave it out")
    return texts


def _log_odds(probability: float) -> float:
    held = min(max(probability, _NEAREST_TO_CERTAIN), 1 - _NEAREST_TO_CERTAIN)
    return math.log(held / (1 - held))


def _cursor(moment: int | None, num: int) -> str:
    return f"{'' if moment is None else moment}_{num}"


def _place(cursor: str) -> tuple[int | None, int]:
    found = _PLACE.fullmatch(cursor)
    place = (int(found[1]) if found[1] else None, int(found[2])) if found else (None, 2**63)
    if not all(abs(one) < 2**63 for one in place if one is not None):
        raise SettingError("the cursor is none that a page has given", "take the next of the page before")
    return place
