"""How the rows of language models and of siamese networks are answered; each thing is learned once and kept. ::

    out/learned/translations.npz      t(w|u), that of all rows that translate
    out/learned/phrases-3.npz         P(w|t) of phrases of up to three terms, from these translations
    out/learned/qatm-50-seed0.npz     fifty topics of questions and best answers, for the rows qatm and qatm-lmir
    out/learned/sqatm-50-seed0.npz    the same of all answers by votes

The terms that are known are those of what is learned from and of the collections that are searched; the numbers come
from what is learned from alone.

::

    out/scqa-seed0/log.csv           loss by epoch, and MRR and MAP of the smaller dev sets
    out/scqa-seed0/model/            the network of the epoch with the lowest loss on pairs that were held out
    out/scqa-seed0/model-dev/        that of the epoch, from the first on, with the highest mean MAP of those dev sets
    out/scqa-seed0/model-untrained/  the network before the first epoch
    out/scqa-sum-seed0/              the same of the loss that is summed over a batch

    T-SCQA = α · SCQA + (1 - α) · BM25 / max BM25 of the query's candidates

Source: Das et al. 2016 (ACL), sections 4 to 6. Reading: the paper does not say how the two scores are brought to one
scale; Lucene's scores have no upper bound. By the share of the best candidate's α means the same for short and for long
questions; the other reading standardises both scores. BM25 is plain, over title and body joined.

**Control.** The cosine of what they read, the counts of letter trigrams, without a network.

::

    v(t)      = tf(t) · idf(t)                      idf(t) = ln((1 + N) / (1 + df(t))) + 1, or 1
    cos(q, d) = Σ_t v_q(t) v_d(t) / (|v_q| |v_d|)
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import filelock
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from askalike.evaluation.forum.tasks import (
    WEIGHTS,
    RerankTask,
    VectorScorer,
    candidate_task,
    cosine_run,
    hybrid_run,
    judge,
    rerank,
)
from askalike.files import replace_whole
from askalike.papers.das2016.data import DasData
from askalike.papers.das2016.language import (
    ACCEPTED_VOTES,
    MAX_SIZE,
    MIN_COUNT,
    PAIR_TERMS,
    AnsweredQuestions,
    Evidence,
    Knowledge,
    LanguageSettings,
    collection_counts,
)
from askalike.papers.das2016.phrases import LEAST as LEAST_PHRASES
from askalike.papers.das2016.phrases import PhraseTable
from askalike.papers.das2016.rows import DasRow, Kept, grid
from askalike.papers.das2016.scqa import ScqaSettings, TrigramReader
from askalike.papers.das2016.terms import Ids, TermLists, TermReader, term_ids
from askalike.papers.das2016.topics import ALPHA, ETA, ITERATIONS, Topics
from askalike.papers.das2016.translation import ITERATIONS as EM_ITERATIONS
from askalike.papers.das2016.translation import LEAST as LEAST_TRANSLATION
from askalike.papers.harness import Answers, need_torch
from askalike.papers.lei2016.sets import JudgedSet
from askalike.papers.lei2016.svm import cosine
from askalike.progress import Progress, SilentProgress
from askalike.search import Reranker
from askalike.training.corpus import TrainingData
from askalike.types import Question, Run

if TYPE_CHECKING:  # it loads torch
    from askalike.papers.das2016.scqa_network import Epoch, SiameseModel

Arrays = Mapping[str, NDArray[Any]]


@dataclass
class Learner:
    """Learns what is asked for, or finds it in its folder.

    Args:
        data: pairs to learn from, and collections.
        notice: called with what begins.
    """

    data: DasData
    out: Path
    notice: Callable[[str], None] = field(default=lambda _: None)

    @cached_property
    def texts(self) -> AnsweredQuestions:
        """Everything that is learned from, read once."""
        self.notice("counting the words of questions and answers")
        pairs = self.data.pairs
        return AnsweredQuestions.read(pairs.questions, pairs.answers, self._searched())

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what decides everything that is learned."""
        constants = [MIN_COUNT, MAX_SIZE, PAIR_TERMS, ACCEPTED_VOTES, EM_ITERATIONS, LEAST_TRANSLATION, LEAST_PHRASES]
        constants += [ALPHA, ETA, ITERATIONS]
        known = [(question.id, question.title, question.body) for question in self._searched()]
        content = json.dumps([constants, self.data.pairs.digest(), known])
        return hashlib.sha256(content.encode()).hexdigest()

    def knowledge(self, settings: LanguageSettings) -> Knowledge:
        """Return what a language model of these settings has learned."""
        vocabulary, phrases, topics = self.texts.vocabulary, None, None
        if settings.longest:
            phrases = self.phrases(settings.longest)
        if settings.topics:
            topics = self.topics(settings.topics, settings.seed, is_voted=settings.is_voted)
        is_translated = settings.own < 1 and not settings.longest
        return Knowledge(vocabulary, self.translations() if is_translated else None, phrases, topics)

    def translations(self) -> csr_array:
        """Return t(w|u) of questions with their best answers, both ways."""
        return _matrix(self._learned_once("translations", lambda: _arrays(self.texts.translations())))

    def phrases(self, longest: int) -> PhraseTable:
        """Return P(w|t) of the same pairs."""

        def learn() -> Arrays:
            table = self.texts.phrases(self.translations(), longest)
            return {"codes": table.codes, **_arrays(table.matrix)}

        arrays = self._learned_once(f"phrases-{longest}", learn)
        return PhraseTable(arrays["codes"], _matrix(arrays), longest)

    def topics(self, count: int, seed: int, *, is_voted: bool) -> Topics:
        """Return topics of questions with their best answers (``qatm``), or with all by votes (``sqatm``)."""
        name = f"{'sqatm' if is_voted else 'qatm'}-{count}-seed{seed}"
        arrays = self._learned_once(name, lambda: {"words": self.texts.topics(count, seed, is_voted=is_voted).words})
        return Topics(arrays["words"])

    def _searched(self) -> list[Question]:
        return [question for one_set in self.data.sets for question in one_set.dev.statistics]

    def _learned_once(self, name: str, learn: Callable[[], Arrays]) -> Arrays:
        """Return what was learned before from the same, or learn and keep it."""
        file = self.out / "learned" / f"{name}.npz"
        file.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{file}.lock"):  # rows that run beside each other learn it once
            try:
                with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as stored:
                    if str(stored["digest"]) == self.digest:
                        return dict(stored)
            except (OSError, ValueError, KeyError, zipfile.BadZipFile):
                pass  # nothing is there, or it was cut short: it is learned anew
            self.notice(f"learning {name}")
            arrays, content = learn(), io.BytesIO()
            stored_arrays: dict[str, Any] = {"digest": self.digest, **arrays}
            np.savez(content, **stored_arrays)
            replace_whole(file, content.getvalue())
            return arrays


def _arrays(matrix: csr_array) -> Arrays:
    return {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}


def _matrix(arrays: Arrays) -> csr_array:
    size = len(arrays["indptr"]) - 1
    return csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(size, size))


def language_answers(name: str, seed: int, learner: Learner) -> Answers:
    """Return the runs of all tasks, with the settings that each set's dev split chose.

    Args:
        name: of a grid.
    """
    answers = Answers()
    tasks = {task.name: _Task(task, one_set, learner) for one_set in learner.data.sets for task in one_set.tasks()}
    best: dict[str, tuple[float, LanguageSettings]] = {}
    for settings in grid(name, seed):
        for one_set in learner.data.sets:
            value = judge(one_set.dev, tasks[one_set.dev.name].run(settings)).means["map"]
            choice = {**asdict(settings), "dev_map": round(value, 6)}
            answers.tried.setdefault(one_set.name, []).append(choice)
            if one_set.name not in best or value > best[one_set.name][0]:
                best[one_set.name] = (value, settings)
    for one_set in learner.data.sets:
        settings = best[one_set.name][1]
        answers.settings[one_set.name] = asdict(settings)
        answers.runs |= {task.name: tasks[task.name].run(settings) for task in one_set.tasks()}
    return answers


class _Task:
    """A task as numbers; what does not depend on the smoothing and the weights of a model is worked out once."""

    def __init__(self, task: RerankTask, one_set: JudgedSet, learner: Learner) -> None:
        self._learner, reader, vocabulary = learner, TermReader(), learner.texts.vocabulary
        self._collection = collection_counts(vocabulary, one_set.dev.statistics)

        @cache
        def read(question: Question) -> Ids:
            return term_ids(vocabulary, reader.question(question))

        self._candidates = {
            query: (
                read(task.queries[query]),
                [document for document, _ in candidates],
                TermLists.of(read(task.documents[document]) for document, _ in candidates),
            )
            for query, candidates in task.given.items()
        }
        self._known: object = None
        self._evidence: dict[str, Evidence] = {}

    def run(self, settings: LanguageSettings) -> Run:
        """Return every query's candidates, in their given order, with their scores."""
        known = (settings.longest, settings.topics, settings.seed, settings.is_voted, settings.own < 1)
        if known != self._known:
            knowledge, self._known = self._learner.knowledge(settings), known
            self._evidence = {
                query: Evidence.of(terms, candidates, self._collection, knowledge)
                for query, (terms, _, candidates) in self._candidates.items()
            }
        return {
            query: list(zip(ids, self._evidence[query].log_likelihoods(settings).tolist(), strict=True))
            for query, (_, ids, _) in self._candidates.items()
        }


class TrigramCosine:
    """The cosine of two questions' trigrams, title and body joined as the networks read them.

    Args:
        collection: questions that document frequencies are counted in; None for counts without idf.

    Example:
        ``aa`` is #aa, aa#; ``ab`` is #ab, ab#; so ``aa ab`` and ``aa`` share two of four: 2 / (√4 · √2).

        >>> query, candidate = Question("q", "aa ab"), Question("d", "aa")
        >>> TrigramCosine().score(query, [candidate]).round(4).tolist()
        [0.7071]
        >>> by_idf = TrigramCosine([candidate])  # idf 1 and ln 2 + 1: √2 / √(2 + 2 · 1.6931²)
        >>> by_idf.score(query, [candidate]).round(4).tolist()
        [0.5085]
    """

    def __init__(self, collection: Iterable[Question] | None = None) -> None:
        self._reader: Final = TrigramReader()
        self._weights: Final = cache(self._weigh)
        texts = [set(self._reader.question(question)) for question in collection or ()]
        self._counts = None if collection is None else Counter(trigram for text in texts for trigram in text)
        self._documents = len(texts)

    def score(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return one cosine for each candidate, in [0, 1].  # (N,)"""
        return np.array([cosine(self._weights(query), self._weights(candidate)) for candidate in candidates])

    def _weigh(self, question: Question) -> Mapping[str, float]:
        counts = Counter(self._reader.question(question))
        return {trigram: times * self._idf(trigram) for trigram, times in counts.items()}

    def _idf(self, trigram: str) -> float:
        if self._counts is None:
            return 1.0
        return math.log((1 + self._documents) / (1 + self._counts[trigram])) + 1


def scorer_answers(data: DasData, make: Callable[[Sequence[Question]], Reranker]) -> Answers:
    """Return the runs of all tasks by what is made from each set's collection."""
    answers = Answers()
    for judged_set in data.sets:
        scorer = make(judged_set.dev.statistics)
        answers.runs |= {
            task.name: rerank(task.given, scorer, task.queries, task.documents) for task in judged_set.tasks()
        }
    return answers


_MOST_QUERIES: Final = 200
"""Larger dev sets are not scored after every epoch, but for the smallest."""

_FOLDERS: Final[dict[Kept, str]] = {"loss": "model", "dev": "model-dev", "untrained": "model-untrained"}


@dataclass(frozen=True, slots=True)
class SiameseTrainer:
    """Trains one network with one seed, or finds the one that is finished.

    Args:
        settings: of SCQA.
        data: pairs to learn from, and dev sets, which are only measured.
        done: (network, seed) that this process has trained, or found to be trained.
    """

    settings: ScqaSettings
    data: DasData
    out: Path
    device: str = "cpu"
    threads: int = 0
    progress: Progress = field(default_factory=SilentProgress)
    done: set[tuple[str, int]] = field(default_factory=set, compare=False)

    def settings_of(self, learner: str) -> ScqaSettings:
        """Return the settings of a network: the kinds differ in what their sides share and how losses are reduced."""
        kind, _, reduction = learner.partition("-")
        own = replace(self.settings, reduction="sum") if reduction == "sum" else self.settings
        return replace(own, is_shared=kind == "scqa")

    def model(self, learner: str, seed: int, kept: Kept = "loss") -> SiameseModel:
        """Return the network of an epoch, trained where it is not there; a training that was stopped goes on."""
        need_torch(self.threads)
        from askalike.papers.das2016.scqa_network import SiameseModel, fit_siamese
        from askalike.training.encoder import TrainingRun
        from askalike.training.loop import read_log

        pairs, folder = self.data.pairs, self.out / f"{learner}-seed{seed}"
        smallest = min(len(one_set.dev.queries) for one_set in self.data.sets)
        most = max(_MOST_QUERIES, smallest)
        dev = {
            one_set.dev.name: candidate_task(one_set.dev)
            for one_set in self.data.sets
            if len(one_set.dev.queries) <= most
        }
        learned = TrainingData(pairs.questions, answers=pairs.best(), dev=dev)
        run = TrainingRun(folder, seed, self.device, progress=self.progress)
        log = folder / "log.csv"

        def keep(epoch: Epoch) -> None:
            if not epoch.number:
                epoch.model().save(folder / _FOLDERS["untrained"])
            elif is_highest([entry.value for entry in read_log(log) if entry.measure == "map"][1:]):
                epoch.model().save(folder / _FOLDERS["dev"])

        if (learner, seed) not in self.done:
            fit_siamese(self.settings_of(learner), learned, run, keep).save(folder / _FOLDERS["loss"])
            self.done.add((learner, seed))
        return SiameseModel.load(folder / _FOLDERS[kept])


def is_highest(values: Sequence[float]) -> bool:
    """Return whether the last value is above all before it.

    >>> is_highest([0.5]), is_highest([0.5, 0.6]), is_highest([0.5, 0.5])
    (True, True, False)
    """
    return all(value < values[-1] for value in values[:-1])


def siamese_answers(model: SiameseModel, data: DasData, row: DasRow, lexical: Mapping[str, Run]) -> Answers:
    """Return the runs of all tasks; with words, those of the row's α, or of the one that each set's dev split chose.

    Args:
        lexical: task → BM25, needed of rows with words alone.
    """
    answers, scorer = Answers(), VectorScorer(model)
    near = {task.name: cosine_run(task, scorer) for task in data.tasks()}
    if not row.has_words:
        answers.runs = near
        return answers

    def blended(task: RerankTask, alpha: float) -> Run:
        return hybrid_run(near[task.name], lexical[task.name], alpha, row.scaling)

    for one_set in data.sets:
        alpha = row.alpha
        if alpha is None:
            maps = {weight: judge(one_set.dev, blended(one_set.dev, weight)).means["map"] for weight in WEIGHTS}
            alpha = max(maps, key=lambda weight: maps[weight])
            tried: list[dict[str, object]] = [{"alpha": key, "dev_map": round(value, 6)} for key, value in maps.items()]
            answers.tried[one_set.name] = tried
        answers.settings[one_set.name] = {"alpha": alpha}
        answers.runs |= {task.name: blended(task, alpha) for task in one_set.tasks()}
    return answers
