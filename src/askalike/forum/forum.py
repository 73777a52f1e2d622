"""``Forum``: create or open one, fill it, change it, ask it."""

from __future__ import annotations

import contextlib
import json
import tempfile
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from askalike.data import GENERAL_CODE
from askalike.errors import (
    BusyForumError,
    EncoderError,
    EngineError,
    ForumExistsError,
    ForumNotFoundError,
    InputError,
    SettingError,
)
from askalike.executors import Executor
from askalike.files import remove_owned
from askalike.forum.duplicates import MemberRow, PairRow, member_rows, pair_rows
from askalike.forum.encoders import AnyEncoder
from askalike.forum.exchange import (
    FrameLibrary,
    ImportOptions,
    ImportReport,
    archive_of,
    check_tables,
    export_forum,
    frame_of,
    import_archive,
    records_of,
)
from askalike.forum.groups import Groups
from askalike.forum.indexes import (
    NEW_FORUM_FILES,
    ForumSettings,
    Indexes,
    remove_indexes,
    stored_text_settings,
    without_detected_language,
)
from askalike.forum.models import Models
from askalike.forum.pairs import Pairs
from askalike.forum.queue import Queue
from askalike.forum.thresholds import Thresholds
from askalike.index.milvus.choice import name_engine
from askalike.index.vector_sets import VectorsState
from askalike.progress import Progress, SilentProgress
from askalike.readers.frame import ReadOptions
from askalike.readers.values import Unreadable, check_has_text
from askalike.records import TABLES, Form, batches
from askalike.search import Searcher
from askalike.search.rankers import PROBABILITY
from askalike.search.thresholds import parse_minimum
from askalike.store import (
    Counts,
    ForumLayout,
    Operation,
    Store,
    attach_store,
    create_store,
    open_store,
)
from askalike.text.analyzer import Analyzer
from askalike.text.languages import Detector
from askalike.text.settings import TextSettings
from askalike.types import (
    Answer,
    Draw,
    Feedback,
    Filters,
    Hits,
    Link,
    Markup,
    Query,
    Question,
    SearchResult,
    Verdict,
)

if TYPE_CHECKING:
    from askalike.forum.check import CheckReport
    from askalike.training.session import TrainingResult


_Value = TypeVar("_Value")

MAX_BATCH: Final = 256
"""Queries that are answered together, and questions whose languages are told together."""

FRAMES: Final[Mapping[str, type]] = {**TABLES, "pairs": PairRow, "groups": MemberRow}
"""What ``to_dataframe`` returns: name of the table → its rows."""


@dataclass(frozen=True, slots=True)
class Info:
    """What ``askalike info`` shows.

    Args:
        behind: changes that the index has not seen; 0 when it is in step.
        vectors: which model answers, and what is still to be encoded.
        engine: the address of what finds the questions; "" where this machine does.
        languages: code of each language that questions are known to be in → how many.
    """

    path: str
    language: str
    counts: Counts
    indexed: int
    behind: int
    size_bytes: int
    vectors: VectorsState = field(default_factory=VectorsState)
    engine: str = ""
    languages: Mapping[str, int] = field(default_factory=dict)


class Forum:
    """A forum on disk that finds its earlier questions that ask the same.

    ::

        forum = Forum.create("my.forum")
        forum.load("dump/")                          # or forum.add(Question(...))
        for hit in forum.similar("Wifi drops every evening"):
            print(hit.score, hit.question.title)

    Every change is on disk when its method returns, and is seen by the next search. Searching is safe from any thread;
    several processes may open the same forum: one of them keeps the indexes in step, all of them see the result.

    Questions are found by their words and, where there is a model (the forum's own, or the package's), by the nearness
    of their vectors. ``load`` and ``encode`` encode whatever waits; opening a forum and every other change encode a
    few (256 by the bundled encoder, none by an endpoint) and leave more to ``encode``: until then words alone find
    those, and ``info`` says how many.
    """

    def __new__(cls, *arguments: object) -> Self:
        """Refuse ``Forum("path")``, which cannot tell a forum that is to be made from one that is to be there."""
        if len(arguments) == 1:
            raise TypeError("write Forum.open(path) for a forum that is there, or Forum.create(path) for a new one")
        return super().__new__(cls)

    def __init__(
        self,
        path: Path,
        store: Store,
        analyzer: Analyzer,
        settings: ForumSettings,
        executor: Executor | None = None,
    ) -> None:
        self.path, self.analyzer, self.settings = path, analyzer, settings
        self._layout = ForumLayout(path)
        self._is_closed = False
        self.store = store
        self.indexes = Indexes(self._layout, store, analyzer, settings, executor)
        # thresholds rest on pairs, so they are looked up when a promise is asked for
        self.pairs = Pairs(self._layout, store, self.indexes, lambda promise: self.thresholds.least_score(promise))
        self.queue = Queue(self.pairs)
        self.thresholds = Thresholds(store, self.indexes, self.queue)
        self.groups = Groups(store, self.pairs.store, self.indexes.likelihoods, self.thresholds.least_probability)
        self.models = Models(self._layout, store, self.indexes)

    # -- making and opening ------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        text: TextSettings | None = None,
        settings: ForumSettings | None = None,
        encoder: AnyEncoder | None = None,
        executor: Executor | None = None,
    ) -> Forum:
        """Make a new, empty forum in a folder that does not exist yet or is empty.

        Args:
            text: language, or languages, and other text settings, stored with the forum.
            settings: how it is searched.
            encoder: as ``use_encoder`` takes it; None leaves the forum to the package's.
            executor: who indexes, encodes and compares many questions; by default processes of this machine.

        Raises:
            ForumExistsError: the folder holds something already.
            EncoderError: the encoder cannot be had; no forum is left behind.
        """
        layout, text = ForumLayout(Path(path)), text or TextSettings()
        store = _new_store(layout, text)
        try:
            forum = cls(layout.folder, store, Analyzer(text), settings or ForumSettings(), executor)
        except BaseException:
            store.close()
            raise
        if encoder is not None:
            with discarding_if_empty(forum):
                forum.models.use_encoder(encoder)
        return forum

    @classmethod
    def attach(
        cls,
        path: str | Path,
        database: str,
        *,
        text: TextSettings | None = None,
        settings: ForumSettings | None = None,
        engine: str = "",
        progress: Progress | None = None,
    ) -> Forum:
        """Make or join a forum whose records are in a PostgreSQL database; this machine keeps its indexes in a folder.

        Several machines may do so with one database; each sees what the others have written.

        Args:
            database: such as "postgresql://host/travel"; secrets are taken from PGPASSWORD or ~/.pgpass.
            text: of a forum that is made; one that is there must have the same. None takes what is there.
            engine: what finds the questions, as ``use_engine`` takes it, in place of indexes in the folder.

        Raises:
            SettingError, EngineError: it is no address, or holds a password or a forum with another ``text``; or as
                ``use_engine``.
            ForumExistsError: the folder holds something else already.
            ForumError: the database cannot be used.
            MissingExtraError: psycopg is not installed.
        """
        layout = ForumLayout(Path(path))
        if not layout.attached.is_file():
            _refuse_taken(layout, layout.keys.name)  # the same keys may have been put into each machine's folder
        stored = _stored(text or TextSettings())
        with contextlib.closing(attach_store(layout, database, stored, stored if text else None)) as store:
            if engine:
                name_engine(layout, store, engine)
        return cls.open(path, settings=settings, progress=progress)

    @classmethod
    def from_dataframe(
        cls,
        path: str | Path,
        frame: Any,
        *,
        columns: Mapping[str, str] | None = None,
        markup: Markup | None = None,
        source: str = "dataframe",
        text: TextSettings | None = None,
        settings: ForumSettings | None = None,
        encoder: AnyEncoder | None = None,
        progress: Progress | None = None,
    ) -> Forum:
        """Make a forum of the rows of a data frame: of pandas, polars, pyarrow or another that speaks Arrow.

        Args:
            columns: our field → the frame's column, such as ``{"title": "subject"}``; what is not named is guessed from
                the columns' names, as from a CSV file's.
            markup: how bodies are written; None finds out.
            source: what the rows are known as, for when they are loaded again.
            text, settings, encoder: as ``create`` takes them.

        Rows that are left out, such as those whose id came before, are told by a warning, and named in the forum's
        ``rejects.jsonl``.

        Raises:
            SettingError: it is no data frame.
            InputError: its rows are no questions; no forum is left behind.
            ForumExistsError: the folder holds something already.
            EncoderError: as ``create``.
            MissingExtraError: pyarrow is not installed.
        """
        read = ReadOptions(mapping=columns or {}, markup=markup)
        with tempfile.TemporaryDirectory(prefix="askalike-") as folder:
            archive = archive_of(frame, Path(folder))
            forum = cls.create(path, text=text, settings=settings, encoder=encoder)
            with discarding_if_empty(forum):
                report = forum.load(archive, options=ImportOptions("table", source, read=read), progress=progress)
        if report.rejected:
            first = report.first_rejects[0]
            left_out = f"{report.rejected:,} rows were left out, the first with id {first.record_id!r}: {first.reason}"
            warnings.warn(left_out, stacklevel=2)
        return forum

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: ForumSettings | None = None,
        progress: Progress | None = None,
        encoder: AnyEncoder | None = None,
        executor: Executor | None = None,
    ) -> Forum:
        """Open a forum; an index that is behind the archive catches up first, vectors where that is soon done.

        Where the forum's encoder cannot be had, words answer, and hits and ``info`` say why.

        Args:
            encoder: as ``use_encoder`` takes it; None takes what the forum names.
            executor: as ``create`` takes it.

        Raises:
            EncoderError: an encoder is given here, and cannot be had.
            ForumNotFoundError: there is none.
            ForumVersionError, DamagedForumError: it cannot be used; the message says what to do.
        """
        layout = ForumLayout(Path(path))
        store = open_store(layout)
        try:
            text = stored_text_settings(store)
            forum = cls(layout.folder, store, Analyzer(text), settings or ForumSettings(), executor)
            if encoder is not None:
                forum.models.use_encoder(encoder)
            forum.catch_up(progress=progress, is_waiting=False)
        except BaseException:
            store.close()
            raise
        return forum

    def close(self) -> None:
        """Close the forum's files; everything is on disk already."""
        self._is_closed = True
        self.indexes.close()
        self.pairs.close()
        self.store.close()

    def __enter__(self) -> Forum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """Return how many questions the forum holds."""
        return self.store.count_questions()

    def __bool__(self) -> bool:
        """Return True: an empty forum is one too."""
        return True

    def __repr__(self) -> str:
        if self._is_closed:
            return f"<Forum {str(self.path)!r}, closed>"
        model = self.indexes.state().model or "words alone"
        return f"<Forum {str(self.path)!r}: {len(self):,} questions, {self.analyzer.settings.language}, {model}>"

    # -- searching ---------------------------------------------------------------------------------------------

    def similar(
        self,
        title: str,
        body: str = "",
        k: int = 10,
        *,
        markup: Markup = "plain",
        filters: Filters | None = None,
        ranker: str | None = None,
    ) -> Hits:
        """Return the ``k`` earlier questions that are most similar to a new one, best first: ``search`` in short.

        A question that is linked as a duplicate gives way to its original. Without a word, nothing is found.

        Args:
            title, …, ranker: see ``Query``.

        Raises:
            SettingError, ForumError, ModelError: as ``search``.
        """
        return Hits(self.search(Query(title, body, markup, k, filters or Filters(), ranker)).hits)

    def search(self, query: Query | str) -> SearchResult:
        """Return the earlier questions that are most similar to a new one, and how the query was read.

        All is of one state of the forum, whatever is written meanwhile. A text is a title, of which 10 hits are found.

        Raises:
            SettingError: k is out of range, the title is no text, or there is no such ranker.
            ForumError: the ranker was named, and the vectors or the model that it needs are not there.
            ModelError: the model cannot be read.
        """
        return self.similar_many([query])[0]

    def similar_many(self, queries: Iterable[Query | str], *, progress: Progress | None = None) -> list[SearchResult]:
        """Return what each of many queries finds, in their order; a text is a title, of which 10 hits are found.

        All is of one state of the forum, and takes less than a loop over ``search``.

        Raises:
            SettingError, ForumError, ModelError: as ``search``.
        """
        shown = progress or SilentProgress()
        untyped: Any = queries  # notebooks check no types
        if isinstance(untyped, str) or not isinstance(untyped, Iterable):
            what = "text" if isinstance(untyped, str) else type(untyped).__name__
            raise SettingError(f"many searches were asked for with one {what}", "give a list of titles, or call search")
        wanted = [self._resolve_query(query) for query in queries]
        shown.start("searching", len(wanted), "questions")

        def search_batches(searcher: Searcher) -> list[SearchResult]:
            results: list[SearchResult] = []
            for batch in batches(wanted, MAX_BATCH):
                results += searcher.search(batch)
                shown.advance(len(batch))
            return results

        return self.indexes.with_searcher(search_batches)

    def _resolve_query(self, query: Query | str) -> Query:
        """Return a query with a number as its minimum, that finds neither the question that asks nor what was judged
        different from it; a text is its title."""
        untyped: Any = Query(query) if isinstance(query, str) else query  # notebooks check no types
        if isinstance(untyped, Question):
            raise SettingError("a search for a Question", "expected a text, or Query(question.title, question.body)")
        if not all(isinstance(getattr(untyped, name, None), str) for name in ("title", "body")):
            text = repr(getattr(untyped, "title", untyped))
            raise SettingError(f"a search for {text:.200}", "expected texts as title and body")
        query = cast("Query", untyped)
        if isinstance(query.minimum, str):
            ranker = query.ranker or self.settings.search.ranker
            least = self.thresholds.least_probability(query.minimum)
            if ranker != PROBABILITY and parse_minimum(query.minimum) != least:
                if query.ranker is not None:
                    raise SettingError(
                        f"the minimum {query.minimum!r}, and the ranker {ranker!r}, which says no probability",
                        f"give a number, or take the ranker {PROBABILITY!r}",
                    )
                least = 0.0
            query = replace(query, minimum=least)
        if not query.own:
            return query
        verdicts = self.store.judgements_on(query.own).items()
        excluded = {query.own, *(other for other, verdict in verdicts if verdict == "different")}
        filters = replace(query.filters, exclude_ids=query.filters.exclude_ids | excluded)
        return replace(query, filters=filters)

    # -- reading -----------------------------------------------------------------------------------------------

    def question(self, identifier: str | int) -> Question:
        """Return one question; a whole number is taken for an id of its digits.

        Raises:
            UnknownIdError: there is no such question.
        """
        return self.store.question(_id(identifier))

    def questions(self) -> Iterator[Question]:
        """Yield every question in the order of its coming, without holding them all."""
        return (question for _, question in self.store.all_questions())

    def answers(self, question_id: str | int) -> list[Answer]:
        """Return a question's answers, best first: accepted, then most voted, then oldest."""
        return next(iter(self.store.answers_of([_id(question_id)]).values()), [])

    def info(self) -> Info:
        """Return what the forum holds and whether its indexes are in step.

        Raises:
            ModelError, DamagedForumError: a model or a set of vectors cannot be read.
        """
        behind = self.indexes.behind()  # looks at the index anew
        counts = self.store.counts()
        return Info(
            path=str(self.path),
            language=self.analyzer.settings.language,
            counts=counts,
            indexed=self.indexes.words.index.entries,
            behind=behind,
            size_bytes=size_bytes(self.path),
            vectors=self.indexes.state(),
            engine=self.indexes.engine_address,
            languages=self.store.language_counts(),
        )

    def export(
        self,
        folder: str | Path,
        *,
        form: Form = "jsonl",
        tables: Collection[str] = tuple(TABLES),
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Write questions, answers, links, judgements and the moderators' log to a folder, which ``load`` reads back.

        What belongs to this forum alone stays: what waits to be written to a site that is followed, and how often
        questions helped.

        Args:
            form: "jsonl", "csv" or "parquet".
            tables: which of ``records.TABLES`` to write.

        Returns:
            how many records each table has.

        Raises:
            SettingError: the folder holds something else, or there is no such form or table.
            MissingExtraError: Parquet without pyarrow.
        """
        text = self.analyzer.settings.to_json()
        return export_forum(self.store, Path(folder), form, tables, text, progress or SilentProgress())

    def to_dataframe(self, table: str = "questions", library: FrameLibrary = "pandas") -> Any:
        """Return one of ``records.TABLES`` as a data frame of pandas, polars or pyarrow; or "pairs", a row for each
        likely pair of ``pairs.duplicates``, or "groups", a row for each member of ``groups.find``.

        Raises:
            SettingError: there is no such table or library.
            MissingExtraError: the library, or pyarrow, is not installed.
        """
        check_tables([table], FRAMES)
        records: Iterable[Any]
        if table == "pairs":
            records = pair_rows(self.pairs.duplicates())
        elif table == "groups":
            self.pairs.compare()
            records = member_rows(self.store, self.groups.find())
        else:
            records = records_of(self.store, table)
        return frame_of(records, FRAMES[table], library)

    # -- changes -----------------------------------------------------------------------------------------------

    def load(
        self, archive: str | Path, *, options: ImportOptions | None = None, progress: Progress | None = None
    ) -> ImportReport:
        """Read a forum's archive (a dump, an export, a table): adds what is new, updates, deletes what has gone.

        Then all that waits is encoded, where there is a model; another process that is encoding takes it over. Where a
        text encoder cannot be had, that is noted, and what it did not encode waits.

        Raises:
            InputError: it cannot be read; nothing was changed then.
            ModelError: the model cannot be read; the archive was, and words find its questions.
        """
        shown = progress or SilentProgress()
        tag = self.indexes.language_tagger()
        report = import_archive(self.store, Path(archive), options or ImportOptions(), self._layout.rejects, shown, tag)
        self.catch_up(progress=shown)
        with contextlib.suppress(BusyForumError):
            self._encode_if_possible(shown)
        return report

    def add(self, questions: Question | Iterable[Question], *, links: Iterable[Link] = ()) -> None:
        """Add new questions, and what links them to others, in one transaction.

        Raises:
            InputError: an id is taken, or a value cannot be stored; nothing is stored then.
            UnknownIdError: an end of a link is not there; nothing is stored then.
        """
        self.store.add_questions(self._prepare(questions), _several(links, Link))
        self.catch_up()

    def edit(self, questions: Question | Iterable[Question]) -> None:
        """Replace questions that the forum holds, by id.

        Raises:
            UnknownIdError: there is no such question; nothing is stored then.
        """
        self.store.edit_questions(self._prepare(questions))
        self.catch_up()

    def put(self, questions: Question | Iterable[Question]) -> None:
        """Add questions, or replace those whose id the forum holds."""
        self.store.put_questions(self._prepare(questions))
        self.catch_up()

    def put_unindexed(
        self, questions: Question | Iterable[Question] = (), *, gone: Iterable[str] = ()
    ) -> dict[str, Operation]:
        """Put and delete questions in one transaction, without indexing; ``catch_up`` makes them searchable.

        Return for each id that changed whether it was added or edited.

        Raises:
            UnknownIdError, InputError: as ``delete`` and ``put``; nothing is changed then.
        """
        return self.store.put_questions(self._prepare(questions), _several(gone, str))

    def delete(self, ids: str | int | Iterable[str | int]) -> None:
        """Delete questions with their answers, links and judgements.

        A load that no longer holds a question deletes it alone: what people said of it counts again when it is back.

        Raises:
            UnknownIdError: there is no such question; nothing is deleted then.
        """
        listed: Any = [ids] if isinstance(ids, str) or not isinstance(ids, Iterable) else ids
        self.store.put_questions((), [_id(identifier) for identifier in listed])
        self.catch_up()

    def judge(
        self,
        question_id: str | int,
        candidate_id: str | int,
        verdict: Verdict,
        by: str = "",
        draw: Draw | None = None,
    ) -> Feedback:
        """Store a person's verdict on two questions: a label to train with; a pair that differs is proposed no more.

        Args:
            draw: how the pair was chosen, as ``queue`` gave it; None for one that was likely.

        Raises:
            UnknownIdError: one of them is not there.
            InputError: they are the same, or a value cannot be stored.
        """
        return self.store.add_judgement(Feedback(_id(question_id), _id(candidate_id), verdict, by, draw=draw or Draw()))

    def _prepare(self, questions: Question | Iterable[Question]) -> list[Question]:
        """Return questions with texts as ids, and with the languages that are detected where nobody has said them.

        Raises:
            SettingError: one is no question.
            InputError: one has no text: a search could neither find nor show it.
        """
        prepared, tag = [], self.indexes.language_tagger()
        for question in _several([questions] if isinstance(questions, Question) else questions, Question):
            try:
                check_has_text(str(question.title).strip(), str(question.body), question.markup)
            except Unreadable as error:
                raise InputError(f"question {question.id!r:.600}: {error}", "give it a title or a body") from error
            prepared.append(tag(question if isinstance(question.id, str) else replace(question, id=_id(question.id))))
        return prepared

    # -- keeping the indexes in step ---------------------------------------------------------------------------

    def catch_up(self, *, progress: Progress | None = None, is_waiting: bool = True) -> bool:
        """Bring the indexes in step with the archive; encoding that takes long is left to ``encode``.

        Return whether searches see all that is stored: not while an engine is away, or another process is at it.

        Args:
            is_waiting: wait for another process that is at it, as a writer must who wants to see its own change; a
                reader need not, since the other process will finish.

        Raises:
            BusyForumError: another process has been at it for too long; what was written is stored, and will be found.
        """
        return self.indexes.catch_up(progress or SilentProgress(), is_waiting=is_waiting)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how likely each plain text asks the same as a query, in [0, 1], by the forum's reranker or its scorer.

        Whatever the texts are, they need not be the forum's; of each, the first line is the title.

        Raises:
            ModelError, EncoderError: its model cannot be read, or what scores or encodes cannot be had.
        """
        first, *others = _several([query, *_several(texts, str)], str)
        return self.indexes.score(first, others)

    def train(
        self,
        recipe: str | Path = "default",
        *,
        is_test_held_out: bool = False,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 0,
        is_fresh: bool = False,
        is_kept: bool = False,
        progress: Progress | None = None,
    ) -> TrainingResult:
        """Train a model on the forum's questions, answers and duplicate links, and search with it if it is better.

        A training that was interrupted goes on where it was.

        Args:
            recipe: the name of one that ships, or a TOML file.
            is_test_held_out, …, is_kept: see ``training.session.TrainingOptions``.

        Returns:
            What was trained, the scores on the dev split before and after with interval and p, whether the model was
            taken, and where it lies.

        Raises:
            SettingError: there is no such recipe.
            MissingExtraError: torch is not installed.
            BusyForumError: another training of this forum runs.
            ModelError: the training failed, or a model cannot be read.
        """
        from askalike.training.session import TrainingOptions, TrainingSession  # here: it imports this module

        options = TrainingOptions(is_test_held_out, seed, device, threads, is_fresh, is_kept)
        with TrainingSession(self, recipe, options) as session:
            return session.run(progress)

    def encode(self, *, progress: Progress | None = None) -> None:
        """Encode all questions that wait, and switch to a new model when its vectors are complete.

        It can be interrupted and goes on where it was. Others may search and write meanwhile.

        Raises:
            BusyForumError: another process is encoding.
            ModelError: there is no model, or it cannot be read.
        """
        self.indexes.encode(progress or SilentProgress())

    def _encode_if_possible(self, progress: Progress) -> None:
        """Encode what waits, where there is a model; that a text encoder cannot be had is noted.

        Raises:
            BusyForumError, ModelError: as ``encode``.
        """
        try:
            if self.indexes.can_encode():
                self.indexes.encode(progress)
        except EncoderError as error:
            progress.notice(f"what waits to be encoded is found by words alone: {error}")
        except EngineError as error:
            progress.notice(f"what was stored is found when the engine is back: {error}")

    @classmethod
    def check(cls, path: str | Path, *, progress: Progress | None = None) -> CheckReport:
        """Compare everything in a forum's folder with what was written, and its parts with each other; change nothing.

        Raises:
            ForumNotFoundError: there is no forum.
        """
        from askalike.forum.check import check_forum

        return check_forum(Path(path), progress or SilentProgress())

    @classmethod
    def repair(
        cls, path: str | Path, *, settings: ForumSettings | None = None, progress: Progress | None = None
    ) -> CheckReport:
        """Check a forum, make anew from its archive what is damaged, and return what a check finds then.

        The archive is never changed, nor what was learned: a ranker has to be trained again.

        Raises:
            ForumNotFoundError: there is no forum.
            BusyForumError: another process is writing.
            ForumError, ModelError: it cannot be made anew.
        """
        from askalike.forum.check import check_forum, clear_damage

        layout, settings, shown = ForumLayout(Path(path)), settings or ForumSettings(), progress or SilentProgress()
        report = check_forum(layout.folder, shown)
        if report.is_sound or not layout.is_forum():
            return report
        done = clear_damage(layout, report, settings)
        with cls.open(path, settings=settings, progress=shown) as forum:
            if "vectors" in done:
                forum._encode_if_possible(shown)
        return replace(check_forum(layout.folder, shown), repaired=done)

    @classmethod
    def change_languages(
        cls,
        path: str | Path,
        languages: Sequence[str],
        *,
        settings: ForumSettings | None = None,
        progress: Progress | None = None,
    ) -> Forum:
        """Let a forum be in several languages from now on, or in one, and open it: each question is read by its own.

        What language each question is in is found out, where neither its source nor a person said it; the index of
        words is built anew, and vectors follow. Whoever serves the forum has to open it again. It can be called again
        where it was interrupted.

        Args:
            languages: ISO 639 codes such as "de", the main language first.

        Raises:
            SettingError: one cannot be detected, or none is given.
            MissingExtraError: py3langid is not installed.
        """
        layout, shown = ForumLayout(Path(path)), progress or SilentProgress()
        if not languages:
            raise SettingError("no language is given", "name one or more, such as en, de")
        with contextlib.closing(open_store(layout)) as store:
            before = stored_text_settings(store)
            text = replace(before, languages=tuple(languages))
            tell = Detector(text.languages).tag if text.languages else without_detected_language
            shown.start("telling languages apart", store.count_questions(), "questions")
            for batch in batches(store.all_questions(), MAX_BATCH):
                tagged = [(question, tell(question).language) for _, question in batch]
                changed = {
                    question.id
                    for question, language in tagged
                    if _is_read_anew(question.language, language, before, text)
                }
                store.put_detected({question.id: language for question, language in tagged}, changed)
                shown.advance(len(batch))
            store.put_settings(_stored(text) | ({} if text.languages else {"languages": "[]"}))
        return cls.open(path, settings=settings, progress=progress)

    @classmethod
    def reindex(
        cls,
        path: str | Path,
        *,
        settings: ForumSettings | None = None,
        engine: str = "",
        progress: Progress | None = None,
    ) -> Forum:
        """Build the indexes anew from the archive, whatever their state; where settings have no vectors, those stay.

        Whoever has the forum open goes on with the words that it has until the new ones are complete; who opens it
        meanwhile finds what was indexed so far, and is told so.

        Args:
            engine: what finds the questions from now on, as ``use_engine`` takes it; "" changes nothing.

        Raises:
            SettingError, EngineError: as ``use_engine``.
            BusyForumError: another process is indexing or encoding.
            ModelError: the model cannot be read.
        """
        layout, settings = ForumLayout(Path(path)), settings or ForumSettings()
        with contextlib.closing(open_store(layout)) as store:
            if engine:
                name_engine(layout, store, engine)
            remove_indexes(layout, settings)
        forum = cls.open(path, settings=settings, progress=progress)
        forum._encode_if_possible(progress or SilentProgress())
        return forum


def discard_if_empty(forum: Forum) -> bool:
    """Close a forum and delete its folder, unless it holds a question or another process writes to it.

    Return whether the folder is gone.
    """
    with forum.store.lock_if_empty() as is_empty:
        if is_empty:
            remove_owned(forum.path, NEW_FORUM_FILES)  # with the lock held: nobody can begin to fill it
    forum.store.close()
    return not forum.path.exists()


@contextlib.contextmanager
def discarding_if_empty(forum: Forum) -> Iterator[None]:
    """After an error, close a new forum, and delete its folder as ``discard_if_empty`` does."""
    try:
        yield
    except BaseException:
        discard_if_empty(forum)
        forum.close()
        raise


def _several(values: Iterable[_Value], kind: type[_Value]) -> list[_Value]:
    """Return values as a list, after a look at their types: notebooks check none, and a text is many letters.

    Raises:
        SettingError: they are not several, or one is of another type.
    """
    expected = f"expected several, each {'a text' if kind is str else kind.__name__}"
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SettingError(f"{values!r:.100} was given", expected)
    listed = list(values)
    for value in listed:
        if not isinstance(value, kind):
            raise SettingError(f"{value!r:.100} was given", expected)
    return listed


def _is_read_anew(before: str, now: str, settings: TextSettings, text: TextSettings) -> bool:
    """Return whether an index has to read a question anew when the forum's languages change: words are all, then."""
    english = (GENERAL_CODE,)
    return (before != now and settings == text) or settings.is_encoded(before, english) != text.is_encoded(now, english)


def _id(identifier: str | int) -> str:
    """Return an id as text: tables often number their questions; what is neither is refused by the store."""
    untyped: Any = identifier
    is_number = type(untyped) is not bool and isinstance(untyped, Integral)  # NumPy's are no int
    return str(untyped) if is_number else cast("str", untyped)


def _new_store(layout: ForumLayout, text: TextSettings) -> Store:
    """Return the store of a new forum, with its text settings stored.

    Raises:
        ForumExistsError: the folder holds something already.
    """
    if layout.is_forum():
        with contextlib.suppress(ForumNotFoundError):
            open_store(layout).close()
            raise ForumExistsError(f"there is a forum at {layout.folder} already", "open it, or choose another folder")
    else:
        _refuse_taken(layout)
    return create_store(layout, _stored(text))


def _refuse_taken(layout: ForumLayout, *expected: str) -> None:
    """Raise ForumExistsError where a forum's folder holds something but for files that are expected."""
    folder = layout.folder
    if folder.exists() and (not folder.is_dir() or any(path.name not in expected for path in folder.iterdir())):
        raise ForumExistsError(f"{folder} exists and is not empty", "choose another folder for the forum")


def _stored(text: TextSettings) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in text.to_json().items()}


def size_bytes(folder: Path) -> int:
    """Return how much the folder's files hold; files may come and go meanwhile."""
    size = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if file.is_file():
                size += file.stat().st_size
    return size
