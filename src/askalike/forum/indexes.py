"""How a forum is searched, and all its indexes: opened, kept in step by one process at a time, and searched by any."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import filelock
import numpy as np
from numpy.typing import NDArray

from askalike.data import GENERAL_CODE, GENERAL_LANGUAGE
from askalike.errors import (
    BusyForumError,
    DamagedModelError,
    DiskFullError,
    EngineError,
    ForumVersionError,
    SettingError,
    ShortageError,
)
from askalike.executors import Executor
from askalike.executors.processes import Processes
from askalike.files import Owned, UnlockableError, holding
from askalike.forum.calibrations import Encode, JudgedPair, PairProbabilities, Scorings
from askalike.forum.encoders import LanguageWords, NamedReranker, QueryEncoder
from askalike.index.catchup import catch_up, pending
from askalike.index.local import (
    LOCK_TIMEOUT_S,
    RENEWAL_TIMEOUT_S,
    LocalWords,
    QuestionStates,
    Words,
)
from askalike.index.milvus.choice import engine_of, name_engine, named_engine
from askalike.index.segments import OWNED as LEXICAL_FILES
from askalike.index.vector_set import OWNED as VECTOR_FILES
from askalike.index.vector_set import VectorSet, forget_sets, lock_of_makers
from askalike.index.vector_sets import Vectors, VectorsState
from askalike.index.word_indexer import INDEXED_KINDS
from askalike.index.words import FieldWeights, WordIndex
from askalike.models.text_encoder import READ_OF_PAIRS
from askalike.processes import one_blas_thread
from askalike.progress import Progress, SilentProgress
from askalike.search import Searcher, SearchSettings
from askalike.search.calibration import Update, moved_probabilities
from askalike.search.correction import Speller, no_speller
from askalike.search.engine import Engine
from askalike.search.reranker import checked_scores, in_unit
from askalike.search.scorer import Scoring, cosines_of, probability
from askalike.store import ForumLayout, Store, open_store
from askalike.text.analyzer import Analyzer
from askalike.text.languages import Detector
from askalike.text.settings import TextSettings
from askalike.types import Filters, Query, Question

MAX_TITLE = 1_000
"""So many characters of a plain text's first line are its title: all words of titles are compared."""
RECOUNTED = 1_000
"""Changes until the questions in each language are counted anew."""

NEW_FORUM_FILES: Final = Owned(
    r"(archive|pairs|loading|follow)\.sqlite(-wal|-shm|-journal)?|(index|pairs|loading|follow|writeback)\.lock"
    r"|rejects\.jsonl|(archive|encoder|engine|reranker)\.json(\.\d+\.tmp)?",
    (("lexical", LEXICAL_FILES), ("vectors", VECTOR_FILES)),
)
"""What a forum's folder holds before anything was learned or keys were made."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ForumSettings:
    """How a forum is searched; the text settings are stored with it, the rest may change from search to search.

    Args:
        fields: how much a match in the title or the text counts.
        search: rankers and what they are tuned by.
        has_vectors: False searches and keeps words alone: no model is read, and vectors that are there fall behind
            until the forum is opened with them again.
    """

    fields: FieldWeights = field(default_factory=FieldWeights)
    search: SearchSettings = field(default_factory=SearchSettings)
    has_vectors: bool = True


def stored_text_settings(store: Store) -> TextSettings:
    """Return the text settings that were stored when the forum was made.

    Raises:
        ForumVersionError: they are not understood.
    """
    try:
        return TextSettings.from_json({name: json.loads(value) for name, value in store.settings().items()})
    except (SettingError, ValueError) as error:
        raise ForumVersionError(
            f"the settings stored in {store.name} are not understood: {error}", "use the version that wrote it"
        ) from error


class Indexes:
    """The word index and the vectors.

    Args:
        settings: of the forum; ``has_vectors`` decides whether vectors are looked at at all.

    Raises:
        BusyForumError: there is no word index yet, and another process has been making one for too long.
    """

    def __init__(
        self,
        layout: ForumLayout,
        store: Store,
        analyzer: Analyzer,
        settings: ForumSettings,
        executor: Executor | None = None,
    ) -> None:
        self.executor: Executor = executor or Processes()
        self._layout = layout
        self._store = store
        self._analyzer = analyzer
        self.settings = settings
        self._guard = threading.RLock()
        self._lock = filelock.FileLock(layout.lock, thread_local=False)
        self.open()
        text = analyzer.settings
        self._detector: tuple[int, Detector | None] = (-1, None)
        self._begun = self._finished = 0
        self.reranker = NamedReranker(layout)
        self._scorings = Scorings(store, analyzer)
        self._states = QuestionStates(store)
        languages = {code: code == GENERAL_CODE for code in text.languages} or {"": text.language == GENERAL_LANGUAGE}
        self._spellers = {
            code: LanguageWords(store, code, has_vocabulary=is_known).known for code, is_known in languages.items()
        }

    def open(self) -> None:
        """Open the word index and the vectors where they are now: on this machine, or in an engine.

        Raises:
            EngineError: the user has not agreed to the engine that the forum's folder names.
        """
        layout, store, text = self._layout, self._store, self._analyzer.settings
        self._engine = engine_of(layout, store)
        self.words: Words
        sets = None
        if self._engine is None:
            self.words = LocalWords(layout, store, self._analyzer, self.executor, self._locked)
        else:
            from askalike.index.milvus.engine import EngineWords  # here, since few forums have an engine
            from askalike.index.milvus.vectors import MilvusSets

            self.words = EngineWords(self._engine, store, self._analyzer, self.executor, self._locked)
            sets = MilvusSets(self._engine, store.lock)
        self.vectors = Vectors(layout, store, text, sets, self.executor) if self.settings.has_vectors else None

    def use_engine(self, address: str) -> None:
        """Let an engine find the questions, for this machine and others with the same store; fill it if it is empty.

        Args:
            address: such as "milvus://host:19530"; "milvus:PATH.db" for Milvus Lite, which one process at a time uses;
                or "local" for indexes in the forum's folder. The server's key is taken from ASKALIKE_ENGINE_TOKEN.

        Raises:
            SettingError: it is no address, or holds a password.
            EngineError: it does not answer and is not the forum's already; nothing is changed then.
            MissingExtraError: pymilvus is not installed.
        """
        name_engine(self._layout, self._store, address)
        self.open()
        self.catch_up(SilentProgress(), is_waiting=True)

    def close(self) -> None:
        """Close the connection to the engine, where there is one."""
        if self._engine is not None:
            self._engine.close()

    def searcher(self) -> Searcher:
        """Return a searcher over the indexes as they are on disk now; vectors and model belong together.

        While the forum is encoded for the first time, it has the vectors of the newest questions.
        """
        answering = None if self.vectors is None else self.vectors.answering_or_first()
        engine, settings, notice = self._search_engine(answering), self.settings.search, self.words.notice
        encoder: QueryEncoder | None = None
        speller_of: Callable[[str], Speller | None] = no_speller
        if answering is not None:
            encoder, speller_of = QueryEncoder(answering, self._analyzer), self._spellers.get
            settings = replace(settings, join=settings.join.for_encoder(answering.name))
            if not notice and not answering.index.cursor.is_complete:
                encoded, size = answering.index.entries, self._store.count_questions()
                notice = f"encoding is not finished: {encoded:,} of {size:,} questions; the others are found by words"
        return Searcher(
            engine,
            self._scorings.scoring(answering, engine),
            encoder,
            settings,
            self.reranker.get,
            language_of=self._language_of if self._analyzer.settings.languages else None,
            speller_of=speller_of,
            notice=notice,
        )

    def pair_probabilities(
        self, encode: Encode | None = None, encode_queries: Encode | None = None
    ) -> PairProbabilities:
        """Return what scores pairs of questions as the default search would if another encoder answered.

        Args:
            encode, encode_queries: as ``PairProbabilities`` takes them.

        Raises:
            EncoderError: it cannot be had.
        """
        scoring, engine = Scoring(self._analyzer), self.searcher().engine
        return PairProbabilities(scoring, engine, self._store.nums_by_id, encode, encode_queries)

    def judged(self) -> list[JudgedPair]:
        """Return the pairs that people have judged, with their logits by the indexes as they are on disk now."""
        return self._scorings.judged(*self._answering_and_engine())

    def logits(self, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], float]:
        """Return the logits of pairs before the forum's judgements; see ``Scorings.logits``."""
        return self._scorings.logits(pairs, *self._answering_and_engine())

    def update(self) -> Update:
        """Return what the forum's judgements change in logits."""
        return self.with_searcher(lambda searcher: searcher.scoring.update)

    def likelihoods(self, scores: Sequence[float]) -> list[float]:
        """Return how likely pairs with these scores ask the same, by what people of this forum judged meanwhile."""
        return moved_probabilities(self.update(), scores)

    def count(self, filters: Filters) -> int:
        """Return how many questions satisfy filters."""
        return self.with_searcher(lambda searcher: searcher.engine.count(filters))

    def ranking(self, query: Query) -> list[tuple[str, float]]:
        """Return (question id, score) as ``search`` ranks them, each question for itself: for evaluation.

        Duplicates are not replaced by their originals, nor are answers and what matched looked up.

        Raises:
            SettingError, ForumError, ModelError: as ``Searcher.rank``.
        """
        query = replace(query, is_canonical=False)
        [table] = self.with_searcher(lambda searcher: searcher.rank([query]))
        return [(question.id, score) for question, score in zip(table.questions, table.scores.tolist(), strict=True)]

    def language_tagger(self) -> Callable[[Question], Question]:
        """Return what gives a question its language, where nobody has said it; in a forum of one it takes it away.

        Raises:
            MissingExtraError: of what is returned: the forum has several languages, and py3langid is not installed.
        """
        detector = self.detector()
        return without_detected_language if detector is None else detector.tag

    def detector(self) -> Detector | None:
        """Return what tells the forum's languages apart, knowing how many questions are in each; None for one."""
        languages = self._analyzer.settings.languages
        return Detector(languages, self._store.language_counts()) if languages else None

    def _language_of(self, query: Query) -> str:
        """Return the language of a query, by counts that are at most some changes old."""
        now = self._store.last_change() // RECOUNTED
        if self._detector[0] != now:
            self._detector = (now, self.detector())
        detector = self._detector[1]
        return "" if detector is None else detector.language_of(query.title, query.body, query.markup)

    def answering(self) -> VectorSet | None:
        """Return the set of vectors that answers, None where words alone do."""
        return None if self.vectors is None else self.vectors.answering()

    def _answering_and_engine(self) -> tuple[VectorSet | None, Engine]:
        """Return the set of vectors that answers, and what a search asks."""
        answering = self.answering()
        return answering, self._search_engine(answering)

    def _search_engine(self, vectors: VectorSet | None) -> Engine:
        """Return what a search asks for candidates and records, over one state of words and vectors."""
        index = None if vectors is None else vectors.index.snapshot()
        return self.words.engine(index, self.settings.fields, self._states)

    def score(self, query: str, texts: list[str]) -> list[float]:
        """Return how likely each plain text asks the same as a query; see ``Forum.score``.

        Raises:
            ModelError, EncoderError: the model cannot be read, or the encoder cannot be had.
        """
        reranker = self.reranker.get()
        if reranker is not None:
            first, *others = _as_questions([query, *texts])
            return in_unit(checked_scores(reranker, first, others))
        searcher = self.searcher()
        logits = searcher.scoring.update.moved(self._text_logits(searcher, query, texts))
        return list(map(float, probability(logits)))

    def text_logits(self, query: str, texts: list[str]) -> list[float]:
        """Return the logits of plain texts beside a query, before the forum's judgements.

        Raises:
            ModelError, EncoderError: as ``score``.
        """
        return list(map(float, self._text_logits(self.searcher(), query, texts)))

    def _text_logits(self, searcher: Searcher, query: str, texts: list[str]) -> NDArray[np.float64]:
        first, *others = _as_questions([query, *texts])
        wanted = Query(first.title, first.body)
        detector = self.detector()
        if detector is not None:
            wanted = replace(wanted, language=self._language_of(wanted))
            others = [detector.tag(question) for question in others]
        cosines, answering = None, self.answering()
        if answering is not None and self._analyzer.settings.is_encoded(wanted.language, answering.languages):
            prepared = self._analyzer.of(wanted.language).prepare(wanted.title, wanted.body, wanted.markup)
            if prepared.title or prepared.body:
                [vector] = answering.encode_queries([Question("", query)])
                cosines = cosines_of(answering.encode([Question("", text) for text in texts]), vector)
        return searcher.scoring.logits_beside(searcher.engine, wanted, others, cosines)

    def with_searcher(self, work: Callable[[Searcher], _Result]) -> _Result:
        """Return what is worked out with a searcher, on one thread; with another where the first one's model cannot be
        read.

        A model is read when it is first needed, and may have gone by then: with its set, for another that answers now.

        Raises:
            DamagedModelError: the model of the set that answers now cannot be read either.
            EngineError: the engine is away.
        """
        with one_blas_thread():
            try:
                return work(self.searcher())
            except DamagedModelError:
                return work(self.searcher())

    def catch_up(self, progress: Progress, *, is_waiting: bool) -> bool:
        """Bring the indexes in step with the archive; encoding that takes long is left to ``encode``.

        Of threads that call it at once, one does it for all whose changes were stored before it began. Return whether
        searches see all that was stored then: not while an engine is away, or another process is at it.

        Args:
            is_waiting: wait for another process that is at it.

        Raises:
            BusyForumError: another process has been at it for longer than the time-out.
        """
        before, busy = self._begun, None
        if is_waiting:
            hint = "your change is stored and becomes searchable when that process has finished"
            busy = BusyForumError(f"another process is indexing {self._layout.folder}", hint)
        try:
            with self._locked(LOCK_TIMEOUT_S if is_waiting else 0, busy):
                if self._finished > before:  # another thread began after this one had stored its changes
                    return True
                self._begun += 1
                self.words.ensure_begun()
                catch_up(self._store, self.words.indexer(), progress)
                if self.vectors is not None:
                    self.vectors.follow(progress)
                self._finished = self._begun
                return True
        except (EngineError, filelock.Timeout):  # what is stored is found when the engine is back; searches say so
            return False
        except (UnlockableError, DiskFullError, ShortageError):
            if is_waiting:  # who only searches need not be able to write
                raise
        return False

    def encode(self, progress: Progress) -> None:
        """Encode all that waits; nothing without vectors.

        Raises:
            BusyForumError: another process encodes, or has been indexing for too long.
            ModelError: there is no model, or it cannot be read.
        """
        if self.vectors is not None:
            self.vectors.encode(progress, self._locked_for_encoder)

    def can_encode(self) -> bool:
        """Return whether there is a model or an encoder to encode anything with.

        Raises:
            ModelError, EncoderError: one cannot be read.
        """
        return self.vectors is not None and self.vectors.can_encode

    def state(self) -> VectorsState:
        """Return how far the vectors have come."""
        return VectorsState() if self.vectors is None else self.vectors.state()

    def last_encoded_change(self) -> int:
        """Return the last change that the vectors which answer have seen; the log's last where words alone answer."""
        answering, last = self.answering(), self._store.last_change()
        return last if answering is None else min(last, answering.index.cursor.applied)

    def behind(self) -> int:
        """Return how many changes the word index has not seen."""
        self.words.index.refresh()
        return pending(self.words.index.cursor, self._store, INDEXED_KINDS)

    @property
    def is_up(self) -> bool:
        """Return whether the engine answers; of an engine of this machine, always."""
        return self._engine is None or self._engine.is_up

    @property
    def engine_address(self) -> str:
        """Return the address of the engine; "" where this machine finds its questions itself."""
        return "" if self._engine is None else self._engine.address

    @contextmanager
    def _locked(self, timeout_s: float, busy: BusyForumError | None) -> Iterator[None]:
        """Hold the lock of who writes the indexes that answer, in this process and over all; see ``files.holding``."""
        with self._guard, holding(self._lock, timeout_s, busy):
            yield

    def _locked_for_encoder(self) -> AbstractContextManager[None]:
        hint = "encode again; vectors encoded so far are kept"
        busy = BusyForumError(f"another process is indexing {self._layout.folder}", hint)
        return self._locked(RENEWAL_TIMEOUT_S, busy)


def without_detected_language(question: Question) -> Question:
    """Return a question without a language that another forum has detected."""
    is_detected = question.is_language_detected is True
    return replace(question, language="", is_language_detected=False) if is_detected else question


def _as_questions(texts: Sequence[str]) -> list[Question]:
    return [_as_question(text.strip()[:READ_OF_PAIRS]) for text in texts]


def _as_question(text: str) -> Question:
    """Return a plain text as a question: its first line is the title, as far as a title may reach."""
    title, _, body = text.partition("\n")
    return Question("", title[:MAX_TITLE], "\n".join(filter(None, (title[MAX_TITLE:], body))))


def remove_indexes(layout: ForumLayout, settings: ForumSettings) -> None:
    """Delete the indexes, whatever state they are in; they are built anew from the archive.

    Args:
        settings: of the forum; the vectors stay unless ``has_vectors``, since nothing would make them anew.

    Raises:
        BusyForumError: another process is indexing, or encoding what is to be deleted; nothing is deleted then.
    """
    with ExitStack() as locks:
        if settings.has_vectors:
            hint = 'wait until it has finished, or keep its vectors with "askalike reindex FORUM --no-encode"'
            busy = BusyForumError(f"another process is encoding {layout.folder}", hint)
            locks.enter_context(holding(lock_of_makers(layout.vectors), LOCK_TIMEOUT_S, busy))
        busy = BusyForumError(f"another process is indexing {layout.folder}", "wait until it has finished")
        locks.enter_context(holding(filelock.FileLock(layout.lock, thread_local=False), LOCK_TIMEOUT_S, busy))
        if named_engine(layout):
            with closing(open_store(layout)) as store:
                engine = engine_of(layout, store)
            assert engine is not None
            for kind in ("words", *(("vectors",) if settings.has_vectors else ())):
                engine.forget(kind)
        WordIndex.remove(layout.lexical)
        if settings.has_vectors:
            forget_sets(layout.vectors)
