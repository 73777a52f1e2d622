"""The rankers that a forum has learned: read when they are first asked for, and again when they were trained anew."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, ModelError, SettingError
from askalike.files import REFUSED, remove_owned
from askalike.index.states import LruCache, ModelStates
from askalike.models.encoders.model import Model
from askalike.models.folder import OWNED, ModelLayout
from askalike.models.language.kinds import KINDS
from askalike.models.language.likelihood import TermLists, term_ids
from askalike.models.language.model import LanguageModel
from askalike.models.siamese.config import SIAMESE_KINDS
from askalike.models.siamese.model import SiameseModel
from askalike.processes import one_blas_thread
from askalike.search import Query, Reranker, learned_as
from askalike.search.networks import RamnReranker, SiameseReranker
from askalike.search.pool import Pooled, Scored
from askalike.search.settings import SearchSettings
from askalike.store import ForumLayout
from askalike.types import Answer, Explanation, Question, WordMatch

CACHE_BYTES: Final = 64 * 1024**2
"""Of terms that are kept, those asked for last: some 100,000 questions of 80 terms."""

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
_WithAnswer = tuple[Question, Answer | None]


class Candidates(NamedTuple):
    """What a language model reads of candidates.

    Args:
        questions: their terms.
        answers: those of the best answer of each, where the model reads answers.
        mixtures: θ, where the model has topics.  # (N, K)
    """

    questions: TermLists
    answers: TermLists | None
    mixtures: Floats | None


Answers = Callable[[Sequence[str]], Mapping[str, Sequence[Answer]]]
"""Questions' ids → their answers, best first, of those that have any."""


class ModelTerms:
    """Terms as ids; any number of threads may ask.

    Args:
        model: knows how texts become terms.
        answers: a question's answers, best first. They are asked for anew each time, since they may have changed where
            the question has not.
        size_bytes: of terms that are kept, and again of topics.
    """

    def __init__(self, model: LanguageModel, answers: Answers, size_bytes: int = CACHE_BYTES) -> None:
        self._model = model
        self._answers = answers
        self._kept: LruCache[Question, Ids] = LruCache(
            lambda questions: [model.question_ids(one) for one in questions], lambda ids: ids.nbytes, size_bytes
        )
        self._topics: LruCache[_WithAnswer, Floats] = LruCache(self._mixtures, lambda row: row.nbytes, size_bytes)

    def of_query(self, query: Query) -> Ids:
        """Return the terms of a query, read as a question of the forum is."""
        return self._model.question_ids(as_question(query))

    def of_candidates(self, found: Sequence[tuple[int, Question]]) -> Candidates:
        """Return what a query's likelihood is made of by questions, given with their keys; edited ones are read anew.

        Args:
            found: at least one.
        """
        texts, options = TermLists.of(self._kept.of_questions(found)), self._model.settings.options
        best: list[Answer | None] = [None] * len(found)
        if options.reads_answers:
            held = self._answers([question.id for _, question in found])
            best = [next(iter(held.get(question.id, ())), None) for _, question in found]
        answers = self._of_answers(best) if options.reads_answers else None
        if options.topic_learning is None:
            return Candidates(texts, answers, None)
        items = [(key, (question, answer)) for (key, question), answer in zip(found, best, strict=True)]
        return Candidates(texts, answers, np.stack(self._topics.of_questions(items)))

    def _of_answers(self, answers: Sequence[Answer | None]) -> TermLists:
        return TermLists.of(() if answer is None else self._model.answer_ids(answer) for answer in answers)

    def _mixtures(self, items: list[_WithAnswer]) -> list[Floats]:
        questions = TermLists.of(self._model.question_ids(question) for question, _ in items)
        found = self._model.learned.topics.mixtures(questions, self._of_answers([answer for _, answer in items]))
        return [row.copy() for row in found]  # so that none keeps the others alive


def as_question(query: Query) -> Question:
    """Return a query as a question that has no id."""
    return Question("", query.title, query.body, query.markup)


class LikelihoodReranker:
    """A ``rank.Reranker``; components of a hit are ``bm25`` and ``likelihood``, which is the score.

    Args:
        model: what was learned.
        answers: a question's answers, best first; asked for where the model reads them.
    """

    def __init__(self, model: LanguageModel, answers: Answers) -> None:
        self._model = model
        self._terms = ModelTerms(model, answers)

    def scores(self, query: Query, found: Sequence[tuple[Pooled, Question]]) -> list[Scored]:
        """Return how much likelier each candidate makes a word of the query than the forum as a whole does, > 0.

        A query without terms has none: nothing is like it.
        """
        asked = self._terms.of_query(query)
        if not len(asked):
            return [Scored(one.key, 0.0, one.components) for one, _ in found]
        candidates = self._terms.of_candidates([(one.key, question) for one, question in found])
        ratios = self._model.scorer.mean_ratios(asked, *candidates)
        return [
            Scored(one.key, ratio, {**one.components, "likelihood": ratio})
            for (one, _), ratio in zip(found, ratios.tolist(), strict=True)
        ]

    def explain(self, query: Query, questions: Sequence[Question]) -> list[Explanation]:
        """Return ``word_matches`` of each question."""
        return [Explanation(matches=self.word_matches(query, one)) for one in questions]

    def word_matches(self, query: Query, question: Question) -> tuple[WordMatch, ...]:
        """Return for each word of the query the words of the question that stand for it best, and how well.

        A word that the question has stands for itself, with 1; where the model knows nothing for a word, nothing does.
        How important a word is tells its rarity, ``log P(w|C)`` beside that of the query's rarest.
        """
        reader, vocabulary = self._model.reader, self._model.vocabulary
        words, theirs = reader.question(as_question(query)), reader.question(question)
        if not (words and theirs):
            return ()
        asked = term_ids(vocabulary, words)
        found, held = self._model.word_alignments(asked, term_ids(vocabulary, theirs)), set(theirs)
        pieces = zip(found.starts.tolist(), found.ends.tolist(), found.values.tolist(), strict=True)
        return tuple(
            WordMatch(word, word, 1.0, weight, is_missing=False)
            if word in held
            else WordMatch(word, " ".join(theirs[start:end]) if value else "", value, weight, is_missing=True)
            for word, (start, end, value), weight in zip(words, pieces, self._importance(asked).tolist(), strict=True)
        )

    def _importance(self, asked: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 1 for the query's rarest word, and less for others.  # (T,)"""
        costs = np.log(self._model.collection.probabilities(asked))
        return np.asarray(costs / min(float(costs.min()), -1e-12))


"""Of vectors that are kept, those asked for last: some 90,000 of 128 dimensions."""

Vector = NDArray[np.float32]


class ModelVectors:
    """``search.networks``'s source of vectors; any number of threads may ask.

    Args:
        size_bytes: vectors that are kept.
    """

    def __init__(self, model: SiameseModel, size_bytes: int = CACHE_BYTES) -> None:
        self._model = model
        self._kept: LruCache[Question, Vector] = LruCache(self._vectors, lambda vector: vector.nbytes, size_bytes)

    @property
    def kept_bytes(self) -> int:
        """Return the size of the vectors that are kept."""
        return self._kept.kept_bytes

    def of_query(self, query: Query) -> Vector:
        """Return the vector of a query, read as a question of the forum is.  # (D,)"""
        return self._vectors([as_question(query)])[0]

    def of_questions(self, questions: Sequence[tuple[int, Question]]) -> list[Vector]:
        """Return the vectors of questions, given with their keys; an edited one is read anew."""
        return self._kept.of_questions(questions)

    def without_words(self, query: Query) -> tuple[list[str], Vector]:
        """Return the first distinct words of a query as they are read, its vector without each.  # W words, (W, D)"""
        with one_blas_thread():
            return self._model.without_words(as_question(query))

    def _vectors(self, questions: list[Question]) -> list[Vector]:
        with one_blas_thread():
            return [row.copy() for row in self._model.encode(questions)]  # so that none keeps the others alive


class _Saved(Protocol):
    """What a ranker has learned."""

    def save(self, path: Path | str) -> None:
        """Write its folder."""


def _language_model(kind: str, folder: Path) -> LanguageModel:
    model = LanguageModel.load(folder)
    if model.settings.kind != kind:
        raise DamagedModelError(
            f"{folder} holds the language model {model.settings.kind!r}, but expected {kind!r}",
            f'train it with "askalike train FORUM --recipe {kind}"',
        )
    return model


def _siamese_model(kind: str, folder: Path) -> SiameseModel:
    model = SiameseModel.load(folder)
    if model.settings.network.is_shared != SIAMESE_KINDS[kind]:
        shared = "nothing" if SIAMESE_KINDS[kind] else "their parameters"
        raise DamagedModelError(
            f"{folder} holds a siamese model whose sides share {shared}, but expected one of {kind!r}",
            f'train it with "askalike train FORUM --recipe {kind}"',
        )
    return model


def _likelihood(kind: str, folder: Path, settings: SearchSettings, answers: Answers) -> Mapping[str, Reranker]:
    return {kind: LikelihoodReranker(_language_model(kind, folder), answers)}


def _ramn(folder: Path, settings: SearchSettings, answers: Answers) -> Mapping[str, Reranker]:
    return {"ramn": RamnReranker(ModelStates(Model.load(folder)), settings.ramn)}


def _siamese(kind: str, folder: Path, settings: SearchSettings, answers: Answers) -> Mapping[str, Reranker]:
    source = ModelVectors(_siamese_model(kind, folder))
    return {kind: SiameseReranker(source), f"t-{kind}": SiameseReranker(source, settings.textual)}


MAKERS: Final[Mapping[str, Callable[[Path, SearchSettings, Answers], Mapping[str, Reranker]]]] = {
    "ramn": _ramn,
    **{kind: partial(_likelihood, kind) for kind in KINDS},
    **{kind: partial(_siamese, kind) for kind in SIAMESE_KINDS},
}
"""Name of a folder → what makes of it the rankers that use it; together those of ``rank.RERANKERS``."""

_LOADERS: Final[Mapping[str, Callable[[Path], _Saved]]] = {
    "ramn": Model.load,
    **{kind: partial(_language_model, kind) for kind in KINDS},
    **{kind: partial(_siamese_model, kind) for kind in SIAMESE_KINDS},
}


def load_learned(name: str, folder: Path) -> _Saved:
    """Return what a ranker of ``MAKERS`` has learned; every file of the folder is checked.

    Raises:
        ModelError: it cannot be read, or is another ranker's.
    """
    return _LOADERS[name](folder)


def take_ranker(name: str, folder: Path, layout: ForumLayout) -> None:
    """Put a copy of what a ranker has learned where the forum finds it.

    Raises:
        SettingError: there is no ranker of this name that learns.
        ModelError: it cannot be read, or is another ranker's; what was there stays.
    """
    if name not in _LOADERS:
        raise SettingError(f"there is no ranker {name!r} that learns", f"expected one of {', '.join(_LOADERS)}")
    model, place = _LOADERS[name](folder), layout.ranker(name)
    if place.is_dir() and not ModelLayout(place).manifest.exists():
        remove_owned(place, OWNED)  # what is left of one that was damaged
    elif place.is_file():
        place.unlink()
    model.save(place)


class Rerankers:
    """A forum's learned rankers by name.

    Args:
        answers: of the forum's questions.
    """

    def __init__(self, layout: ForumLayout, settings: SearchSettings, answers: Answers) -> None:
        self._layout = layout
        self._settings = settings
        self._answers = answers
        self._guard = threading.Lock()
        self._read: dict[str, tuple[bytes, Mapping[str, Reranker]]] = {}

    def get(self, name: str) -> Reranker | None:
        """Return a ranker as it is on disk now, None where the forum has not learned it.

        Raises:
            ModelError: its model cannot be read.
        """
        learned = learned_as(name)
        folder = self._layout.ranker(learned)
        state = _state(ModelLayout(folder))
        if state is None:
            if folder.exists() and (folder.is_file() or any(folder.iterdir())):
                with self._telling_how_to_mend(learned):
                    raise DamagedModelError(f"{folder} holds no manifest.json")
            return None
        with self._guard:
            held = self._read.get(learned)
            if held is None or held[0] != state:
                with self._telling_how_to_mend(learned):
                    held = self._read[learned] = (state, MAKERS[learned](folder, self._settings, self._answers))
            return held[1][name]

    @contextlib.contextmanager
    def _telling_how_to_mend(self, name: str) -> Iterator[None]:
        try:
            yield
        except DamagedModelError as error:
            forum = self._layout.folder
            hint = f'train it again with "askalike train {forum} --recipe {name}"'
            raise DamagedModelError(error.message, hint) from error


def _state(layout: ModelLayout) -> bytes | None:
    """Return the manifest of a folder, None where there is none; one that is just being replaced stands beside it.

    Raises:
        ModelError: it cannot be read.
    """
    for place in (layout, ModelLayout(layout.replaced), layout):  # it may have come while the one before was looked for
        try:
            return place.manifest.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            kind = ModelError if error.errno in REFUSED else DamagedModelError
            raise kind(
                f"{place.manifest} cannot be read: {error.strerror}", "check its rights, or train it again"
            ) from error
    return None
