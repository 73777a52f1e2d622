"""The few plain values that travel between the stages of a question's journey, and their one shape as JSON.

``msgspec`` writes and reads dataclasses and structs alike; a struct is used where a field has another name in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from numbers import Integral
from typing import Any, Final, Literal

import msgspec

from askalike.errors import SettingError
from askalike.settings import Finite, check_fields

Markup = Literal["html", "markdown", "plain"]
"""How a body is written. ``html`` is parsed, in ``markdown`` code blocks are recognised, ``plain`` is taken as is."""

LinkKind = Literal["duplicate", "related"]
"""``duplicate``: the source asks the same as the target, its original. ``related``: merely linked."""

Verdict = Literal["duplicate", "different", "withdrawn"]
"""Whether two questions ask the same; ``withdrawn`` takes back what was said before."""

DrawnBy = Literal["queue", "sample", "search", "import", "label"]
"""``queue``: the likeliest pair that was open; ``sample``: drawn at random from a stratum of probability; ``search``: a
hit that somebody chose to judge; ``import``: judged elsewhere; ``label``: of a set of labels that stands for pairs
like them."""


_LANGUAGE: Final = re.compile(r"[a-z]{2,3}")
_SUBTAG: Final = re.compile("[-_.@]")
_SAME_LANGUAGE: Final = {"nb": "no", "iw": "he", "in": "id", "fil": "tl", "cmn": "zh"}
"""Other codes of a language → its own."""


def language_code(written: str) -> str:
    """Return the ISO 639 code of a language that is written as a code, BCP 47 tag or locale; "" of "".

    >>> language_code("de-AT"), language_code("pt_BR.UTF-8"), language_code(" EN ")
    ('de', 'pt', 'en')

    Raises:
        SettingError: it is none.
    """
    code = _SUBTAG.split(written.strip().lower())[0]
    if code and not _LANGUAGE.fullmatch(code):
        raise SettingError(
            f"the language is {written[:80]!r}", "expected an ISO 639 code such as de, or a tag as pt-BR"
        )
    return _SAME_LANGUAGE.get(code, code)


def parse_moment(name: str, text: str | None) -> datetime | None:
    """Return the moment that a field or an option holds; one without a time zone is UTC.

    Raises:
        SettingError: it holds none.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SettingError(
            f"{name} is not a date or time: {text[:80]!r}", "expected one such as 2024-05-01 or 2024-05-01T12:30:00Z"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a forum. Title and body are kept apart to the end.

    Args:
        id: the forum's own identifier, unique in the forum, not empty.
        title: one line; may be empty when the source has none.
        body: in the markup named; may be empty.
        markup: how the body is written.
        tags: labels, in the source's order.
        created: when it was asked, with a time zone (UTC where the source names none), or None when unknown.
        closed: when it was closed, or None.
        score: votes, or None when the source has none.
        url: where it can be read, by the pattern of the forum's site where it has no address of its own; or "".
        author: a display name or id, or "".
        language: ISO 639 code of what it is written in, or "" where nobody knows.
        is_language_detected: a forum of several languages has found it out, and does so again when the text changes;
            False where the source or a person said it.
    """

    id: str
    title: str
    body: str = ""
    markup: Markup = "plain"
    tags: tuple[str, ...] = ()
    created: datetime | None = None
    closed: datetime | None = None
    score: int | None = None
    url: str = ""
    author: str = ""
    language: str = ""
    is_language_detected: bool = False


class Answer(msgspec.Struct, frozen=True, rename={"is_accepted": "accepted"}):
    """One answer to a question of the same forum.

    Args:
        id: unique among the forum's answers.
        question_id: the question that it answers.
        is_accepted: marked as the solution by the asker or a moderator.
    """

    id: str
    question_id: str
    body: str
    markup: Markup = "plain"
    created: datetime | None = None
    score: int | None = None
    author: str = ""
    is_accepted: bool = False

    @property
    def standing(self) -> tuple[bool, int]:
        """What the answers to a question are ordered by, the best is the greatest: accepted, then most voted.

        >>> disliked, new, liked = (Answer("a", "q", "Buy another.", score=score) for score in (-1, None, 2))
        >>> disliked.standing < new.standing < liked.standing < Answer("b", "q", "Yes.", is_accepted=True).standing
        True
        """
        return self.is_accepted, self.score or 0


@dataclass(frozen=True, slots=True)
class Link:
    """A directed mark between two questions: ``source_id`` is a duplicate of, or related to, ``target_id``."""

    source_id: str
    target_id: str
    kind: LinkKind = "duplicate"


class Draw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a pair came before the person who judged it.

    Args:
        probability: that was shown, in [0, 1]; None where it is not known.
    """

    by: DrawnBy = "queue"
    probability: float | None = None


class Feedback(msgspec.Struct, frozen=True, rename={"question_id": "question", "candidate_id": "candidate"}):
    """A person's verdict on a pair of questions; of several on one pair, the newest counts.

    Args:
        question_id: the question that asks.
        candidate_id: the one that was proposed to it; the original, where they are duplicates.
        by: who judged, or "".
        at: when it was stored, None before.
        draw: how the pair was chosen; the top of the queue where nobody said.
    """

    question_id: str
    candidate_id: str
    verdict: Verdict
    by: str = ""
    at: datetime | None = None
    draw: Draw = Draw()


LogKind = Literal["duplicate", "different", "undone"]
"""What moderators do with a pair: decide on it, or undo a decision."""


class LogEntry(msgspec.Struct, frozen=True, rename={"question_id": "question", "candidate_id": "candidate"}):
    """What somebody did with a pair of questions; nothing is taken out of the log: another entry undoes a decision.

    Args:
        number: of the entry; later ones have greater numbers.
        question_id, candidate_id: the duplicate and its original, where they are duplicates.
        by: who did it, or "".
        undoes: the number of the decision that this entry takes back, or 0.
        made_link: the decision linked the duplicate to its original, which nobody else has done since.
        undone: the decision was taken back.
    """

    number: int
    question_id: str
    candidate_id: str
    kind: LogKind
    by: str = ""
    at: datetime | None = None
    undoes: int = 0
    made_link: bool = False
    undone: bool = False


WriteState = Literal["waiting", "done", "failed", "cancelled"]


class Write(msgspec.Struct, frozen=True, rename={"question_id": "question", "candidate_id": "candidate"}):
    """What is to be written to the forum that a decision is about, or was.

    Args:
        target: the forum's address.
        action: "link", "close", or "tag " and the tag.
        state: "failed" where it was refused; "cancelled" where the decision was undone before.
        why: it failed, or what was found there; of one that waits, why the last try was in vain.
        at: when its state was set.
    """

    number: int
    target: str
    question_id: str
    candidate_id: str
    action: str
    state: WriteState = "waiting"
    tries: int = 0
    why: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A question with all its answers, and all links from it, as another forum has them now.

    Raises:
        SettingError: a value is of another type.
        ValueError: an answer or a link is another question's.
    """

    question: Question
    answers: tuple[Answer, ...] = ()
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, "thread ")
        owners = {*(part.question_id for part in self.answers), *(part.source_id for part in self.links)}
        if not owners <= {self.question.id}:
            raise ValueError(f"answers or links of {sorted(owners)} in the thread of {self.question.id}")


Record = Question | Answer | Link | Feedback | LogEntry
"""What a reader yields, in any order that its file has."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that could not be read: never skipped in silence.

    Args:
        file: the file's name, relative to what was given.
        line: line of the record (1 is the first), or 0 when the format has no lines.
        record_id: the record's id where it could be read, else "".
        reason: what was wrong, in words.
    """

    file: str
    line: int
    record_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where records come from: named so that reading it again can tell what has gone."""

    name: str
    format: str


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy.

    Args:
        tags: every one of these tags.
        before: asked strictly before this moment, in UTC where it names no time zone; questions without a date do not
            satisfy it, nor ``after``.
        exclude_ids: never these questions.
        exclude_tags: none of these tags.
        after: asked at this moment or later.
        is_answered: whether it has an answer; None where that does not matter.
        is_closed: whether it was closed.
        languages: in one of these languages, by their codes; questions of unknown language do not satisfy it.
    """

    tags: tuple[str, ...] = ()
    before: datetime | None = None
    exclude_ids: frozenset[str] = frozenset()
    exclude_tags: tuple[str, ...] = ()
    after: datetime | None = None
    is_answered: bool | None = None
    is_closed: bool | None = None
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise SettingError for a text where several are expected: each of its letters would count."""
        for name in ("tags", "exclude_ids", "exclude_tags", "languages"):
            if isinstance(getattr(self, name), str):
                raise SettingError(f"{name} is the text {getattr(self, name)!r}", "give several, such as a tuple")
        check_fields(self, "filter ")
        for name in ("before", "after"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                object.__setattr__(self, name, moment.replace(tzinfo=UTC))
        if self.languages:
            object.__setattr__(self, "languages", tuple(sorted(set(map(language_code, self.languages)) - {""})))

    @property
    def has_tags_or_dates(self) -> bool:
        """Return whether they ask for what an index of words knows of a question."""
        return bool(self.tags or self.exclude_tags or self.before or self.after)

    @property
    def has_states(self) -> bool:
        """Return whether it matters if a question is answered or closed, or in which language it is."""
        return self.is_answered is not None or self.is_closed is not None or bool(self.languages)

    def admits(self, question: Question, *, is_answered: bool | None = None) -> bool:
        """Return whether a question, whose date has a time zone, satisfies them.

        Args:
            is_answered: whether it has an answer; None does not ask for that.
        """
        created, tags = question.created, {tag.casefold() for tag in question.tags}
        return not (
            question.id in self.exclude_ids
            or not tags.issuperset(map(str.casefold, self.tags))
            or not tags.isdisjoint(map(str.casefold, self.exclude_tags))
            or (self.before is not None and (created is None or created >= self.before))
            or (self.after is not None and (created is None or created < self.after))
            or (self.languages and question.language not in self.languages)
            or (self.is_closed is not None and self.is_closed != (question.closed is not None))
            or (None not in (self.is_answered, is_answered) and self.is_answered != is_answered)
        )


LikelihoodWord = Literal[
    "almost certainly the same", "probably the same", "perhaps the same", "maybe related", "unknown"
]


def likelihood_word(value: float | None) -> LikelihoodWord:
    """Return a likelihood in the words of the command line, the page and the service; None is "unknown".

    >>> [likelihood_word(value) for value in (0.93, 0.7, 0.05, None)]
    ['almost certainly the same', 'probably the same', 'maybe related', 'unknown']
    """
    if value is None:
        return "unknown"
    if value >= 0.6:
        return "almost certainly the same" if value >= 0.9 else "probably the same"
    return "perhaps the same" if value >= 0.3 else "maybe related"


Order = Literal["probability", "help"]
"""What hits are ordered by."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question that somebody asks, and what is wanted of the search.

    Args:
        title: its title.
        body: its body; more words find more, and cost little.
        markup: how the body is written.
        k: how many hits, from 1 to 1,000.
        filters: what a hit must satisfy.
        ranker: a name from ``search.RANKER_NAMES``, such as "probability" or "words"; None takes the settings' one,
            which is probability.
        own: the question's own id, where the forum holds it: neither it nor what was judged different is found.
        is_canonical: a question that is linked as a duplicate gives way to its original.
        order: "probability", or "help": the same hits for who asks, those with a good answer before others that are
            about as likely (``search.rankers``).
        language: code of the language that it is in; "" where a forum of several is to find out.
        minimum: the least score of a hit, by default its probability, which counts where a reranker has given it
            another score, too; or a promise such as "precision:0.9", or "default": see ``Thresholds`` of a forum.
    """

    title: str
    body: str = ""
    markup: Markup = "plain"
    k: int = 10
    filters: Filters = field(default_factory=Filters)
    ranker: str | None = None
    own: str = ""
    is_canonical: bool = True
    minimum: Finite | str = 0.0
    order: Order = "probability"
    language: str = ""

    def __post_init__(self) -> None:
        """Raise SettingError for a language that is none, and for values of other types."""
        check_fields(self, "query ")
        k: Any = self.k
        if not isinstance(k, int) and isinstance(k, Integral):
            object.__setattr__(self, "k", int(k))  # of NumPy
        if self.language:
            object.__setattr__(self, "language", language_code(self.language))

    @classmethod
    def stored(cls, question: Question, k: int = 10) -> Query:
        """Return the search for what is similar to a question that the forum holds."""
        title = question.title if question.title.strip() or question.body.strip() else "?"
        return cls(title, question.body, question.markup, k, own=question.id, language=question.language)


@dataclass(frozen=True, slots=True)
class Correction:
    """A word of a query that nobody knows, and the one that was searched for instead."""

    written: str
    meant: str


@dataclass(frozen=True, slots=True)
class Match:
    """A word of the query that occurs in a hit.

    Args:
        word: as the hit's text writes it.
        field: where it occurs: "title" or "body"; or "answer", where the question itself lacks it.
        weight: its share of the lexical score, ≥ 0.
    """

    word: str
    field: Literal["title", "body", "answer"]
    weight: float


class Hit(msgspec.Struct, frozen=True, rename={"answer": "best_answer", "answer_count": "answers"}):
    """One similar question.

    Args:
        rank: 1 is the best.
        score: higher is better; what the ranking is sorted by.
        components: the scores that it was made of, by name: ``bm25``, ``cosine``, and ``bm25_share`` where words and
            vectors were joined, BM25 as a share of the best candidate's; ``same``, the probability that both ask the
            same; where a reranker ordered the best, its score as ``reranker`` and the probability before as ``first``.
        matched: words of the query found in the question, or in ``via``, strongest first.
        missing: informative words of the query that the same question lacks, most informative first.
        likelihood: the probability that an answer to it answers the question, in (0, 1); None where the ranker gives
            scores alone.
        answer: its best answer (accepted first, then most voted, then oldest), or None.
        duplicate_of: ids of the originals that it is marked a duplicate of.
        via: the likeliest duplicate that was found, where the question is its original: the score is that of all
            duplicates that were found together, and the component ``alone`` that of this one.
        notice: why it was found by words alone, though the forum has vectors, and what mends it; or how much is
            indexed so far; or "".
    """

    rank: int
    score: float
    question: Question
    components: Mapping[str, float] = msgspec.field(default_factory=dict)
    matched: tuple[Match, ...] = ()
    missing: tuple[str, ...] = ()
    likelihood: float | None = None
    answer: Answer | None = None
    answer_count: int = 0
    duplicate_of: tuple[str, ...] = ()
    via: Question | None = None
    notice: str = ""

    @property
    def url(self) -> str:
        """Where the question can be read: its own address, or by the pattern of the forum's site; or ""."""
        return self.question.url

    def _repr_html_(self) -> str:
        """Return the hit as a notebook shows it."""
        return hits_html([self])


class Hits(list[Hit]):
    """Hits, best first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return hits_html(self)


def hits_html(hits: Sequence[Hit]) -> str:
    """Return hits as a table of HTML, in which every text of the forum is escaped.

    >>> "<b>" in hits_html([Hit(1, 0.5, Question("a", "<b>"))]), hits_html([])
    (False, '<p>No similar questions found.</p>')
    """
    if not hits:
        return "<p>No similar questions found.</p>"
    rows = []
    for hit in hits:
        question = hit.question
        likely = "" if hit.likelihood is None else f"{hit.likelihood:.0%}"
        when = question.created.date().isoformat() if question.created else ""
        linked = _linked_html(question)
        rows.append(
            [str(hit.rank), f"{hit.score:.3g}", likely, linked, escape(question.id), when, str(hit.answer_count)]
        )
    return _table_html(("", "score", "likely", "question", "id", "asked", "answers"), rows)


def _linked_html(question: Question) -> str:
    """Return a question's title, which leads to its address where that is one of the web: others may run something."""
    title = escape(question.title or "(no title)")
    if not question.url.lower().startswith(("http://", "https://")):
        return title
    return f'<a href="{escape(question.url)}" rel="noopener noreferrer">{title}</a>'


def _table_html(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heading = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in rows)
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"


GroupKind = Literal["same question", "same text", "linked"]
"""``same text``: all have one text but for markup, case and white space; ``linked``: people linked some of
it as duplicates, or joined it by judgements alone."""


@dataclass(frozen=True, slots=True)
class WeakestPair:
    """Two questions by their ids, and how likely they ask the same."""

    first: str
    second: str
    probability: float


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that ask the same, each the same as every other.

    Args:
        members: their ids; the canonical one first, then those with better answers.
        canonical: the one to answer the others by.
        weakest: the least likely pair, links counted; None where judgements or the same text join all.
    """

    members: tuple[str, ...]
    canonical: str
    weakest: WeakestPair | None = None
    kind: GroupKind = "same question"


SHOWN_GROUPS = 20
SHOWN_MEMBERS = 5


class GroupList(list[Group]):
    """Groups, largest first; a notebook shows the first of them as a table.

    Args:
        questions: of the groups that are shown, by id.
    """

    def __init__(self, groups: Iterable[Group] = (), questions: Mapping[str, Question] | None = None) -> None:
        super().__init__(groups)
        self._questions = questions or {}

    def _repr_html_(self) -> str:
        """Return the first groups with their first questions; every text of the forum is escaped.

        >>> group = Group(("a", "b"), "a", WeakestPair("a", "b", 0.9))
        >>> "&lt;b&gt;" in GroupList([group], {"a": Question("a", "<b>")})._repr_html_()
        True
        """
        if not self:
            return "<p>No questions ask the same.</p>"
        rows = []
        for group in self[:SHOWN_GROUPS]:
            titles = [
                _linked_html(self._questions.get(member, Question(member, member)))
                for member in group.members[:SHOWN_MEMBERS]
            ]
            if len(group.members) > SHOWN_MEMBERS:
                titles.append(f"and {len(group.members) - SHOWN_MEMBERS:,} more")
            least = "" if group.weakest is None else f"{group.weakest.probability:.0%}"
            rows.append([str(len(group.members)), group.kind, least, "<br>".join(titles)])
        more = f"<p>and {len(self) - SHOWN_GROUPS:,} more groups</p>" if len(self) > SHOWN_GROUPS else ""
        return _table_html(("questions", "kind", "least likely pair", "the question to answer by first"), rows) + more


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Pairs that people judged and whose probability lies from ``least`` to below ``below``.

    Args:
        same: how many of the ``judged`` they called the same.
        mean: of the probabilities.
        low: of the 95 % interval of the share of the same; ``high`` its upper end.
    """

    least: float
    below: float
    judged: int
    same: int
    mean: float
    low: float
    high: float


Stage = Literal["lexical", "vector", "rank", "answer"]
"""Candidates by words; encoding and candidates by meaning; joining and re-ranking; records and answers."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, all of one state of the forum.

    Args:
        hits: best first.
        corrections: misspelt words of the query, and what was searched for instead.
        ranker: the name of the one that answered.
        has_vectors: it looked at vectors too, and not at words alone.
        seconds: how long each stage took.
        notice: why words alone answered, though the forum has vectors, and what mends it; or how much is indexed
            so far; or "".
        least: the forum's threshold: of 20 titles of other subjects, 19 have no hit that is as likely; or the
            likelihood of a less likely hit that has every informative word of the title. None where the ranker gives
            scores alone.
        is_read: the encoder reads the question's language.
    """

    hits: tuple[Hit, ...] = ()
    corrections: tuple[Correction, ...] = ()
    ranker: str = ""
    has_vectors: bool = False
    seconds: Mapping[Stage, float] = field(default_factory=dict)
    notice: str = ""
    least: float | None = None
    is_read: bool = True

    @property
    def likely_hits(self) -> tuple[Hit, ...]:
        """The hits that reach the forum's threshold; all of them where the ranker gives scores alone."""
        least = self.least
        return tuple(hit for hit in self.hits if least is None or hit.likelihood is None or hit.likelihood >= least)

    @property
    def is_new(self) -> bool:
        """Whether nothing like the question was asked before, as far as the encoder reads its language.

        >>> hits = tuple(Hit(1, 0.5, Question("a", "t"), likelihood=value) for value in (0.02, 0.03))
        >>> [SearchResult(hits, least=least).is_new for least in (0.025, 0.09, None)]
        [False, True, False]
        >>> SearchResult(hits, least=0.09, is_read=False).is_new
        False
        """
        return self.is_read and not self.likely_hits

    def _repr_html_(self) -> str:
        """Return the hits as a notebook shows them."""
        return hits_html(self.hits)


Qrels = dict[str, dict[str, int]]
"""query id → {document id: grade}; a grade > 0 is relevant, 0 is judged and not relevant."""

Run = dict[str, list[tuple[str, float]]]
"""query id → [(document id, score), …] in the order of the file or engine; a higher score is better."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged re-ranking set: what a researcher scores systems on.

    Args:
        name: for example "semeval2016-test".
        queries: query id → question.
        documents: document id → question (the candidates, and more where the set has them).
        candidates: query id → candidates' ids with the search engine's scores, best first, file order.
        qrels: query id → {document id: grade}.
    """

    name: str
    queries: dict[str, Question]
    documents: dict[str, Question]
    candidates: Run
    qrels: Qrels
