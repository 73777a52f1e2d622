"""``Forum``: create or open one, fill it, change it, ask it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from askalike.errors import BusyForumError, EncoderError, ForumExistsError, ForumNotFoundError
from askalike.files import Owned, remove_owned
from askalike.forum.check import CheckReport, check_forum, clear_damage
from askalike.forum.duplicates import Duplicate, open_duplicates
from askalike.forum.encoders import AnyEncoder, AnyReranker, take_encoder
from askalike.forum.exporting import export_forum, records_of
from askalike.forum.importing import ImportOptions, ImportReport, import_archive
from askalike.forum.indexes import Indexes, remove_indexes
from askalike.forum.pairs import Pairs
from askalike.forum.rerankers import take_ranker
from askalike.forum.settings import ForumSettings, stored_text_settings
from askalike.index.model_source import forget_encoder, wanted_model
from askalike.index.vector_set import OWNED as VECTOR_FILES
from askalike.index.vector_sets import VectorsState
from askalike.index.words.index import OWNED as LEXICAL_FILES
from askalike.models.encoders.model import Model
from askalike.progress import Progress, SilentProgress
from askalike.records import TABLES, Form, batches
from askalike.search import RANKERS, RERANKERS, Searcher, learned_as
from askalike.search.calibration import UNMOVED, moved_probabilities
from askalike.search.rankers import CROSS_ENCODER, INTERACTION
from askalike.store import (
    Counts,
    ForumLayout,
    Operation,
    Position,
    SourceCounts,
    Store,
    create_store,
    open_store,
)
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Feedback, Filters, Hit, Link, Markup, Query, Question, SearchResult, Verdict

if TYPE_CHECKING:
    from askalike.training.session import TrainingResult


MANY = 256
"""So many queries are answered together."""

MOST_NAMED = 20
"""So many questions and answers with an unreadable date are named."""

_OWNED = Owned(
    r"(archive|pairs|loading)\.sqlite(-wal|-shm|-journal)?|(index|pairs|loading)\.lock|rejects\.jsonl"
    r"|(encoder|reranker)\.json(\.\d+\.tmp)?",
    (("lexical", LEXICAL_FILES), ("vectors", VECTOR_FILES)),
)
"""What a forum's folder holds before anything was learned or keys were made."""


@dataclass(frozen=True, slots=True)
class Info:
    """What ``askalike info`` shows.

    Args:
        behind: changes that the index has not seen; 0 when it is in step.
        vectors: which model answers, and what is still to be encoded.
        unreadable_dates: the first questions and answers with a date outside the years 1 to 9999, such as
            "question 'q7'"; they are read as if it were not known, and putting them again heals them.
    """

    path: str
    language: str
    counts: Counts
    indexed: int
    behind: int
    size_bytes: int
    vectors: VectorsState = field(default_factory=VectorsState)
    unreadable_dates: tuple[str, ...] = ()


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
    of their vectors. ``load`` and ``encode`` encode whatever waits; opening a forum and every other change encode up to
    2,000 questions and leave more to ``encode``: until then words alone find those, and ``info`` says how many.
    """

    def __init__(self, path: Path, store: Store, analyzer: Analyzer, settings: ForumSettings) -> None:
        self.path, self.analyzer, self.settings = path, analyzer, settings
        self._layout = ForumLayout(path)
        self._store = store
        self._indexes = Indexes(self._layout, store, analyzer, settings)
        self.pairs = Pairs(self._layout, store, self._indexes)

    # -- making and opening ------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        text: TextSettings | None = None,
        settings: ForumSettings | None = None,
        encoder: AnyEncoder | None = None,
    ) -> Forum:
        """Make a new, empty forum in a folder that does not exist yet or is empty.

        Args:
            text: language and other text settings, stored with the forum.
            settings: how it is searched.
            encoder: as ``use_encoder`` takes it; None leaves the forum to the package's general model.

        Raises:
            ForumExistsError: the folder holds something already.
            EncoderError: the encoder cannot be had; the forum is there, without it.
        """
        layout, text = ForumLayout(Path(path)), text or TextSettings()
        store = _new_store(layout, text)
        try:
            forum = cls(layout.folder, store, Analyzer(text), settings or ForumSettings())
            if encoder is not None:
                forum.use_encoder(encoder)
        except BaseException:
            store.close()
            raise
        return forum

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: ForumSettings | None = None,
        progress: Progress | None = None,
        encoder: AnyEncoder | None = None,
    ) -> Forum:
        """Open a forum; an index that is behind the archive catches up first, vectors where that is soon done.

        Where the forum's encoder cannot be had, words answer, and hits and ``info`` say why.

        Args:
            encoder: as ``use_encoder`` takes it; None takes what the forum names.

        Raises:
            EncoderError: an encoder is given here, and cannot be had.
            ForumNotFoundError: there is none.
            ForumVersionError, DamagedForumError: it cannot be used; the message says what to do.
        """
        layout = ForumLayout(Path(path))
        store = open_store(layout)
        try:
            text = stored_text_settings(store)
            forum = cls(layout.folder, store, Analyzer(text), settings or ForumSettings())
            if encoder is not None:
                forum.use_encoder(encoder)
            forum.catch_up(progress=progress, is_waiting=False)
        except BaseException:
            store.close()
            raise
        return forum

    def close(self) -> None:
        """Close the forum's files; everything is on disk already."""
        self.pairs.close()
        self._store.close()

    def discard_if_empty(self) -> bool:
        """Close the forum and delete its folder, unless it holds a question or another process writes to it.

        Return whether the folder is gone.
        """
        with self._store.held_if_empty() as is_empty:
            if is_empty:
                remove_owned(self.path, _OWNED)  # with the lock held: nobody can begin to fill it
        self._store.close()
        return not self.path.exists()

    def __enter__(self) -> Forum:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
    ) -> list[Hit]:
        """Return the ``k`` earlier questions that are most similar to a new one, best first: ``search`` in short.

        Args:
            title, …, ranker: see ``Query``.

        Raises:
            SettingError, ForumError, ModelError: as ``search``.
        """
        return list(self.search(Query(title, body, markup, k, filters or Filters(), ranker)).hits)

    def search(self, query: Query) -> SearchResult:
        """Return the earlier questions that are most similar to a new one, and how the query was read.

        All is of one state of the forum, whatever is written meanwhile.

        Raises:
            SettingError: k is out of range, or there is no such ranker.
            ForumError: the ranker was named, and the vectors or the model that it needs are not there.
            ModelError: the model cannot be read.
        """
        wanted = self._without_own(query) if query.own else query
        return self._indexes.ask(lambda searcher: searcher.search(wanted))

    def similar_many(self, queries: Iterable[Query | str], *, progress: Progress | None = None) -> list[SearchResult]:
        """Return what each of many queries finds, in their order; a text is a title, of which 10 hits are found.

        All is of one state of the forum, and takes less than a loop over ``search``.

        Raises:
            SettingError, ForumError, ModelError: as ``search``.
        """
        shown = progress or SilentProgress()
        asked = [Query(one) if isinstance(one, str) else one for one in queries]
        wanted = [self._without_own(one) if one.own else one for one in asked]
        shown.start("searching", len(wanted), "questions")

        def found(searcher: Searcher) -> list[SearchResult]:
            results: list[SearchResult] = []
            for batch in batches(wanted, MANY):
                results += searcher.search_many(batch)
                shown.advance(len(batch))
            return results

        return self._indexes.ask(found)

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy filters."""
        return self._indexes.ask(lambda searcher: searcher.engine.count(filters))

    def ranking(self, query: Query) -> list[tuple[str, float]]:
        """Return (question id, score) as ``search`` ranks them, without answers and what matched: for evaluation.

        Raises:
            SettingError, ForumError, ModelError: as ``search``.
        """
        wanted = self._without_own(query) if query.own else query
        found = self._indexes.ask(lambda searcher: searcher.ranking(wanted)).found
        return [(one.question.id, one.scored.score) for one in found]

    def _without_own(self, query: Query) -> Query:
        """Return a query that finds neither the question that asks nor what was judged different from it."""
        verdicts = self._store.judgements_on(query.own).items()
        excluded = {query.own, *(other for other, verdict in verdicts if verdict == "different")}
        filters = replace(query.filters, exclude_ids=query.filters.exclude_ids | excluded)
        return replace(query, filters=filters)

    # -- reading -----------------------------------------------------------------------------------------------

    def sources(self) -> tuple[str, ...]:
        """Return the names of the archives that were loaded, and "manual" where something was added by hand."""
        return self._store.sources()

    def question(self, identifier: str) -> Question:
        """Return one question.

        Raises:
            UnknownIdError: there is no such question.
        """
        return self._store.question(identifier)

    def questions(self) -> Iterator[Question]:
        """Yield every question in the order of its coming, without holding them all."""
        return (question for _, question in self._store.all_questions())

    def questions_by_number(self, nums: Sequence[int]) -> dict[int, Question]:
        """Return the questions with these numbers, as ``pairs`` gives them; those that have gone are left out."""
        return self._store.questions_by_num(nums)

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those ids that are there."""
        return self._store.nums_by_id(ids)

    def size(self) -> int:
        """Return how many questions the forum holds."""
        return self._store.count_questions()

    def answers(self, question_id: str) -> list[Answer]:
        """Return a question's answers, best first: accepted, then most voted, then oldest."""
        return self._store.answers_of([question_id]).get(question_id, [])

    def links(self) -> list[Link]:
        """Return all links between questions that the forum holds."""
        return self._store.links()

    def links_of(self, question_id: str) -> list[Link]:
        """Return the links from or to one question."""
        return self._store.links_of(question_id)

    def feedback(self) -> Iterator[Feedback]:
        """Yield every verdict that people gave on pairs, oldest first; the newest on a pair counts."""
        return self._store.all_feedback()

    def verdicts(self) -> list[Feedback]:
        """Return the verdict that counts for each pair that was judged."""
        return self._store.judgements()

    def answer_counts(self, ids: Sequence[str]) -> dict[str, int]:
        """Return how many answers each of these questions has; those without one are left out."""
        return self._store.answer_counts(ids)

    def newest(self, limit: int, after: Position | None = None) -> list[tuple[Position, Question]]:
        """Return questions, newest first by date, undated ones last; ``after`` takes a position to go on from."""
        return self._store.newest(limit, after)

    def rankers(self) -> dict[str, bool]:
        """Return each ranker's name, and whether this forum can be searched by it now."""
        has_vectors = bool(self.vectors.model)
        found = {name: has_vectors or not ranker.needs_vectors for name, ranker in RANKERS.items()}
        found[INTERACTION] = found[INTERACTION] and not self.vectors.is_of_texts
        found[CROSS_ENCODER] = self._indexes.has_reranker()
        learned = {name: ForumLayout(self.path).ranker(learned_as(name)) for name in RERANKERS}
        return found | {name: any(folder.glob("manifest.json")) for name, folder in learned.items()}

    def info(self) -> Info:
        """Return what the forum holds and whether its indexes are in step.

        Raises:
            ModelError, DamagedForumError: a model or a set of vectors cannot be read.
        """
        behind = self._indexes.behind()  # looks at the index anew
        counts = self._store.counts()
        unreadable = islice(self._store.unreadable_dates(), MOST_NAMED) if counts.unreadable_dates else ()
        return Info(
            path=str(self.path),
            language=self.analyzer.settings.language,
            counts=counts,
            indexed=self._indexes.lexical.entries,
            behind=behind,
            size_bytes=size_bytes(self.path),
            vectors=self._indexes.state(),
            unreadable_dates=tuple(unreadable),
        )

    def probe(self) -> None:
        """Look into the indexes as a search does, in a few milliseconds.

        Raises:
            ForumError, ModelError: searches would fail; the message says what to do.
        """
        self._indexes.probe()

    @property
    def behind(self) -> int:
        """Return how many questions and changes no search sees yet, since another process is still indexing them."""
        return self._indexes.behind()

    def likelihoods(self, scores: Sequence[float]) -> list[float]:
        """Return how likely pairs with these scores ask the same, by what people of this forum judged meanwhile."""
        update = self._indexes.ask(lambda searcher: UNMOVED if searcher.scoring is None else searcher.scoring.update)
        return moved_probabilities(update, scores)

    @property
    def vectors(self) -> VectorsState:
        """Return which model answers, and how much is still to be encoded."""
        return self._indexes.state()

    def source_counts(self) -> list[SourceCounts]:
        """Return how many questions, answers and links came from each archive, or were added by hand."""
        return self._store.source_counts()

    def export(
        self,
        folder: str | Path,
        *,
        form: Form = "jsonl",
        tables: Collection[str] = tuple(TABLES),
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Write questions, answers, links and judgements to a folder, which ``load`` reads back as the same forum.

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
        return export_forum(self._store, Path(folder), form, tables, text, progress or SilentProgress())

    def records(self, table: str) -> Iterator[Question | Answer | Link | Feedback]:
        """Yield the records of one of ``records.TABLES``, as ``export`` writes them."""
        return records_of(self._store, table)

    def duplicates(
        self,
        minimum: float = 0.5,
        *,
        since: datetime | None = None,
        is_exact: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[Duplicate]:
        """Compare all questions that were not compared yet, and yield the pairs that may be duplicates, best first.

        What was compared is kept, so that it can be interrupted and goes on where it was. Pairs that are linked or were
        judged are left out.

        Args:
            minimum: the least probability, before what people judged meanwhile.
            since: only pairs of which a question was asked at this moment or later.
            is_exact: only questions with the same text, for which nothing else need be compared.

        Raises:
            BusyForumError: another process has been indexing or comparing for too long.
        """
        return open_duplicates(self, minimum, since, progress or SilentProgress(), is_exact=is_exact)

    # -- changes -----------------------------------------------------------------------------------------------

    def remove_source(self, name: str) -> SourceCounts:
        """Delete all that came from an archive; what people judged or linked counts again when its questions return.

        Return how much was deleted.

        Raises:
            UnknownIdError: there is no such source.
        """
        counts = self._store.delete_source(name)
        self.catch_up()
        return counts

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
        report = import_archive(self._store, Path(archive), options or ImportOptions(), self._layout.rejects, shown)
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
        self._store.add_questions(_listed(questions), list(links))
        self.catch_up()

    def edit(self, questions: Question | Iterable[Question]) -> None:
        """Replace questions that the forum holds, by id.

        Raises:
            UnknownIdError: there is no such question; nothing is stored then.
        """
        self._store.edit_questions(_listed(questions))
        self.catch_up()

    def put(self, questions: Question | Iterable[Question]) -> None:
        """Add questions, or replace those whose id the forum holds."""
        self._store.put_questions(_listed(questions))
        self.catch_up()

    def store(self, questions: Question | Iterable[Question] = (), *, gone: Iterable[str] = ()) -> dict[str, Operation]:
        """Put and delete questions in one transaction, without indexing; ``catch_up`` makes them searchable.

        Return for each id that changed whether it was added or edited.

        Raises:
            UnknownIdError, InputError: as ``delete`` and ``put``; nothing is changed then.
        """
        return self._store.put_questions(_listed(questions), list(gone))

    def delete(self, ids: str | Iterable[str]) -> None:
        """Delete questions with their answers, links and judgements.

        A load that no longer holds a question deletes it alone: what people said of it counts again when it is back.

        Raises:
            UnknownIdError: there is no such question; nothing is deleted then.
        """
        self._store.put_questions((), [ids] if isinstance(ids, str) else list(ids))
        self.catch_up()

    def add_answers(self, answers: Iterable[Answer]) -> None:
        """Add new answers.

        Raises:
            UnknownIdError: an answer's question is not there; nothing is stored then.
            InputError: an id is taken, or a value cannot be stored; nothing is stored then.
        """
        self._store.add_answers(list(answers))

    def put_answers(self, answers: Iterable[Answer]) -> dict[str, Operation]:
        """Add answers, or replace those whose id the forum holds; return which of both for each that changed.

        Raises:
            UnknownIdError, InputError: as ``add_answers``.
        """
        return self._store.put_answers(list(answers))

    def delete_answers(self, ids: Iterable[str]) -> None:
        """Delete answers.

        Raises:
            UnknownIdError: one of them is not there; nothing is deleted then.
        """
        self._store.delete_answers(list(ids))

    def add_links(self, links: Iterable[Link]) -> int:
        """Mark questions as duplicates of, or related to, others; return how many marks were new.

        Raises:
            UnknownIdError: an end of a link is not there; nothing is stored then.
        """
        return self._store.put_links(list(links))

    def remove_links(self, links: Iterable[Link]) -> int:
        """Take marks away; return how many there were."""
        return self._store.delete_links(list(links))

    def judge(self, question_id: str, candidate_id: str, verdict: Verdict, by: str = "") -> Feedback:
        """Store a person's verdict on two questions: a label to train with; a pair that differs is proposed no more.

        Raises:
            UnknownIdError: one of them is not there.
            InputError: they are the same, or a value cannot be stored.
        """
        return self._store.add_feedback(Feedback(question_id, candidate_id, verdict, by))

    # -- keeping the indexes in step ---------------------------------------------------------------------------

    def catch_up(self, *, progress: Progress | None = None, is_waiting: bool = True) -> None:
        """Bring the indexes in step with the archive; encoding that takes long is left to ``encode``.

        Args:
            is_waiting: wait for another process that is at it, as a writer must who wants to see its own change; a
                reader need not, since the other process will finish.

        Raises:
            BusyForumError: another process has been at it for too long; what was written is stored, and will be found.
        """
        self._indexes.catch_up(progress or SilentProgress(), is_waiting=is_waiting)

    def use_model(self, folder: str | Path) -> None:
        """Take a copy of a model as the forum's own; the one before answers until ``encode`` is done, or ModelError."""
        Model.load(folder).save(self._layout.model)
        forget_encoder(self._layout)

    def use_encoder(self, encoder: AnyEncoder) -> None:
        """Let a text encoder make the forum's vectors; what answered before does until ``encode`` is done.

        Args:
            encoder: "minilm", or one as ``askalike encode --model`` names it, such as "sentence-transformers:PATH" or
                "openai:URL#NAME"; ``EncoderSettings`` where prompts or sizes are to be given too; or an object with
                ``name``, ``dimensions``, ``encode_query`` and ``encode_document``, which has to be given again when the
                forum is opened.

        Raises:
            SettingError: there is no such encoder.
            EncoderError: it cannot be had, or gives no vectors.
        """
        settings, found, is_named = take_encoder(encoder, self._layout)
        self._indexes.take(settings, found, is_named=is_named)

    def use_reranker(self, reranker: AnyReranker | None) -> None:
        """Let a scorer of pairs put the 20 best hits of searches that name no ranker in its order, from now on.

        Where it cannot be asked, the order before answers, and hits and ``SearchResult`` say why.

        Args:
            reranker: "cross-encoder:PATH", a folder of BERT's family with one label; "tei:URL" or "cohere:URL#NAME",
                an endpoint (Jina's too); ``RerankerSettings`` where a key's variable is to be given too; an object with
                ``score(query, texts)``, which has to be given again when the forum is opened; None for none.

        Raises:
            SettingError: there is no such reranker.
            EncoderError: it cannot be had, or gives no scores.
        """
        self._indexes.reranker.take(reranker)

    @property
    def encoder(self) -> str:
        """Return the name of what makes the vectors that answer, with its revision.

        Raises:
            NotLearnedError: the forum has no vectors.
        """
        return self._indexes.encoder_name

    def embed(
        self, texts: Sequence[str], *, is_query: bool = False, dimensions: int | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors of plain texts by what makes this forum's vectors, at length 1; an empty one has zeros.

        Args:
            is_query: they are what is searched for, which some encoders read in another way.
            dimensions: keep the first so many numbers, for models that were trained for it (Matryoshka).

        Returns:
            (N, D) float32, in their order.

        Raises:
            NotLearnedError: the forum has no vectors.
            SettingError: the vectors do not have so many dimensions.
            ModelError, EncoderError: its model cannot be read, or its encoder cannot be had.
        """
        return self._indexes.embed(list(texts), is_query=is_query, dimensions=dimensions)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how likely each plain text asks the same as a query, in [0, 1], by the forum's reranker or its scorer.

        Whatever the texts are, they need not be the forum's; of each, the first line is the title.

        Raises:
            ModelError, EncoderError: its model cannot be read, or what scores or encodes cannot be had.
        """
        return self._indexes.score(query, list(texts))

    def use_ranker(self, name: str, folder: str | Path) -> None:
        """Take a copy of what a ranker of ``rank.RERANKERS`` has learned, or ModelError; it answers from now on."""
        take_ranker(name, Path(folder), self._layout)

    def train(
        self,
        recipe: str | Path = "default",
        *,
        start: str = "",
        is_test_held_out: bool = False,
        seed: int = 0,
        device: str = "cpu",
        threads: int = 0,
        processes: int = 1,
        is_fresh: bool = False,
        is_kept: bool = False,
        progress: Progress | None = None,
    ) -> TrainingResult:
        """Train a model on the forum's questions, answers and duplicate links, and search with it if it is better.

        A training that was interrupted goes on where it was.

        Args:
            recipe: the name of one that ships, or a TOML file; that of a ranker makes what ``similar`` then takes as
                ``ranker``, and leaves the model as it is.
            start, …, is_kept: see ``training.session.TrainingOptions``.

        Returns:
            What was trained, the scores on the dev split before and after with interval and p, whether the model was
            taken, and where it lies.

        Raises:
            SettingError: there is no such recipe, or options do not fit it.
            MissingExtraError: torch is not installed, and the recipe trains a network.
            BusyForumError: another training of this forum runs.
            ModelError: the training failed, or a model cannot be read.
        """
        from askalike.training.session import TrainingOptions, TrainingSession  # here: it imports this module

        options = TrainingOptions(start, is_test_held_out, seed, device, threads, processes, is_fresh, is_kept)
        with TrainingSession(self, recipe, options) as session:
            return session.run(progress)

    def encode(self, *, progress: Progress | None = None) -> None:
        """Encode all questions that wait, and switch to a new model when its vectors are complete.

        It can be interrupted and goes on where it was. Others may search and write meanwhile.

        Raises:
            BusyForumError: another process is encoding.
            ModelError: there is no model, or it cannot be read.
        """
        self._indexes.encode(progress or SilentProgress())

    def _encode_if_possible(self, progress: Progress) -> None:
        """Encode what waits, where there is a model; that a text encoder cannot be had is noted.

        Raises:
            BusyForumError, ModelError: as ``encode``.
        """
        try:
            if self.settings.has_vectors and wanted_model(self._layout, self.analyzer.settings.language) is not None:
                self._indexes.encode(progress)
        except EncoderError as error:
            progress.notice(f"what waits to be encoded is found by words alone: {error}")

    @classmethod
    def check(cls, path: str | Path, *, progress: Progress | None = None) -> CheckReport:
        """Compare everything in a forum's folder with what was written, and its parts with each other; change nothing.

        Raises:
            ForumNotFoundError: there is no forum.
        """
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
        layout, settings, shown = ForumLayout(Path(path)), settings or ForumSettings(), progress or SilentProgress()
        found = check_forum(layout.folder, shown)
        if found.is_sound or not layout.archive.is_file():
            return found
        done = clear_damage(layout, found, settings)
        with cls.open(path, settings=settings, progress=shown) as forum:
            if "vectors" in done:
                forum._encode_if_possible(shown)
        return replace(check_forum(layout.folder, shown), repaired=done)

    @classmethod
    def reindex(
        cls, path: str | Path, *, settings: ForumSettings | None = None, progress: Progress | None = None
    ) -> Forum:
        """Build the indexes anew from the archive, whatever their state; where settings have no vectors, those stay.

        Raises:
            BusyForumError: another process is indexing or encoding.
            ModelError: the model cannot be read.
        """
        layout, settings = ForumLayout(Path(path)), settings or ForumSettings()
        open_store(layout).close()
        remove_indexes(layout, settings)
        forum = cls.open(path, settings=settings, progress=progress)
        forum._encode_if_possible(progress or SilentProgress())
        return forum


def _listed(questions: Question | Iterable[Question]) -> Sequence[Question]:
    return [questions] if isinstance(questions, Question) else list(questions)


def _new_store(layout: ForumLayout, text: TextSettings) -> Store:
    """Return the store of a new forum, with its text settings stored.

    Raises:
        ForumExistsError: the folder holds something already.
    """
    folder = layout.folder
    if layout.archive.exists():
        with contextlib.suppress(ForumNotFoundError):
            open_store(layout).close()
            raise ForumExistsError(f"there is a forum at {folder} already", "open it, or choose another folder")
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ForumExistsError(f"{folder} exists and is not empty", "choose another folder for the forum")
    return create_store(layout, {name: json.dumps(value) for name, value in text.to_json().items()})


def size_bytes(folder: Path) -> int:
    """Return how much the folder's files hold; files may come and go meanwhile."""
    size = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if file.is_file():
                size += file.stat().st_size
    return size
