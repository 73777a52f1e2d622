"""What the rows of language models and of siamese networks learn, each thing once and kept, and their runs. ::

    out/learned/translations/         t(w|u), that of all rows that translate
    out/learned/phrases-3/            P(w|t) of phrases of up to three terms, from these translations
    out/learned/qatm-50-seed0/        fifty topics of questions and best answers, for the rows qatm and qatm-lmir
    out/learned/sqatm-50-seed0/       the same of all answers by votes

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
scale; the share of the best candidate's BM25 is that of the forum's own rankers.

**Control.** The cosine of what they read, the counts of letter trigrams, without a network.

::

    v(t)      = tf(t) · idf(t)                      idf(t) = ln((1 + N) / (1 + df(t))) + 1, or 1
    cos(q, d) = Σ_t v_q(t) v_d(t) / (|v_q| |v_d|)
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import filelock
import numpy as np
from numpy.typing import NDArray

from askalike.errors import ModelError
from askalike.evaluation.forum.tasks import (
    RerankTask,
    VectorScorer,
    best_weight,
    candidate_task,
    cosine_run,
    hybrid_run,
    judge,
    rerank,
)
from askalike.models.language.kinds import KINDS, Learned, Options, PhraseOptions, TopicOptions, TransLMOptions
from askalike.models.language.likelihood import Collection, Parallel, TermLists, term_ids
from askalike.models.language.model import LanguageModel, LanguageSettings, TermReader
from askalike.models.language.phrases import PhraseLearning, PhraseTable
from askalike.models.language.topics import TopicLearning, Topics, learn_voted_topics
from askalike.models.language.translation import Alignment, Translations, learn_translations
from askalike.models.siamese.model import SiameseModel, SiameseReader
from askalike.models.vocabulary import Vocabulary
from askalike.papers.das2016.data import DasData
from askalike.papers.das2016.rows import Kept, grid
from askalike.papers.harness import Answers, need_torch
from askalike.progress import Progress, SilentProgress
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.training.corpus import TrainingData
from askalike.training.language import votes_of
from askalike.training.recipe import SiameseRecipe
from askalike.types import Question, Run

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

ALIGNMENT: Final = Alignment()
MIN_COUNT: Final = 2
MAX_SIZE: Final = 200_000
PAIR_TERMS: Final = 60
ACCEPTED_VOTES: Final = 3


@dataclass(frozen=True, slots=True)
class Texts:
    """What is learned from, as numbers.

    Args:
        questions: Q texts.
        answers: A texts, those of a question beside each other, best first.
        answered: which question each answer is of.  # (A,)
        votes: of each answer, an accepted one with ``ACCEPTED_VOTES`` more.  # (A,)
    """

    vocabulary: Vocabulary
    questions: TermLists
    answers: TermLists
    answered: Ids
    votes: Ids


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
    def reader(self) -> TermReader:
        """How every row reads texts: title and body, lower case, stems, no stop words."""
        return TermReader("title and body", Analyzer(TextSettings()))

    @cached_property
    def texts(self) -> Texts:
        """Everything that is learned from, read once."""
        self.notice("reading what is learned from")
        pairs, reader = self.data.pairs, self.reader
        asked = [reader.question(question) for question in pairs.questions]
        replies = [reader.answer(answer) for answer in pairs.answers]
        counts: Counter[str] = Counter()
        for terms in (*asked, *replies):
            counts.update(terms)
        for question in self._collected():
            counts.update(reader.question(question))
        vocabulary = Vocabulary.from_counts(counts, min_count=MIN_COUNT, max_size=MAX_SIZE)
        rows = {question.id: row for row, question in enumerate(pairs.questions)}
        return Texts(
            vocabulary,
            TermLists.of(term_ids(vocabulary, terms) for terms in asked),
            TermLists.of(term_ids(vocabulary, terms) for terms in replies),
            np.array([rows[answer.question_id] for answer in pairs.answers], np.int64),
            np.array([votes_of(answer, ACCEPTED_VOTES) for answer in pairs.answers], np.int64),
        )

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of what decides everything that is learned."""
        settings = [asdict(ALIGNMENT), MIN_COUNT, MAX_SIZE, PAIR_TERMS, ACCEPTED_VOTES]
        known = [(question.id, question.title, question.body) for question in self._collected()]
        content = json.dumps([settings, self.data.pairs.digest(), known])
        return hashlib.sha256(content.encode()).hexdigest()

    def collection(self, questions: Sequence[Question]) -> Collection:
        """Return the counts of a collection that is searched: P(w|C)."""
        ids = (term_ids(self.texts.vocabulary, self.reader.question(question)) for question in questions)
        return Collection.count(TermLists.of(ids), len(self.texts.vocabulary))

    def translations(self) -> Translations:
        """Return t(w|u) of questions with their best answers, both ways."""
        return self._kept("translations", TransLMOptions(), self._translations).translations

    def phrases(self, learning: PhraseLearning) -> PhraseTable:
        """Return P(w|t) of the same pairs."""
        options = PhraseOptions(**asdict(learning))
        name = f"phrases-{learning.longest}"
        return self._kept(name, options, lambda: self._phrases(learning)).phrases

    def topics(self, kind: str, learning: TopicLearning) -> Learned:
        """Return topics of questions with their best answers (``qatm``), or with all by votes (``sqatm``)."""
        options = TopicOptions(**asdict(learning))
        name = f"{kind}-{learning.topics}-seed{learning.seed}"
        return self._kept(name, options, lambda: self._topics(kind, learning))

    def _collected(self) -> list[Question]:
        return [question for one in self.data.sets for question in one.dev.statistics]

    def _kept(self, name: str, options: Options, learn: Callable[[], Learned]) -> Learned:
        """Return what was learned before from the same, or learn and keep it."""
        folder = self.out / "learned" / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        kind = next(kind for kind, made in KINDS.items() if type(options) is made)
        settings = LanguageSettings(kind, options)
        with filelock.FileLock(folder.parent / f"{name}.lock"):  # rows that run beside each other learn it once
            try:
                kept = LanguageModel.load(folder)
                if kept.origin.training_data == self.digest and kept.settings == settings:
                    return kept.learned
            except ModelError:
                pass  # nothing is there, or it is of an earlier version: it is learned anew
            texts = self.texts
            self.notice(f"learning {name}")
            learned = learn()
            none = Collection.count(TermLists.of([]), len(texts.vocabulary))
            LanguageModel.build(settings, texts.vocabulary, none, learned, training_data=self.digest).save(folder)
            return learned

    def _pairs(self) -> Parallel:
        texts = self.texts
        is_best = np.diff(texts.answered, prepend=-1) != 0
        asked = np.split(texts.questions.ids, texts.questions.starts[1:-1])
        replies = np.split(texts.answers.ids, texts.answers.starts[1:-1])
        best = zip(texts.answered[is_best].tolist(), np.flatnonzero(is_best).tolist(), strict=True)
        return Parallel.of(((asked[question], replies[answer]) for question, answer in best), PAIR_TERMS)

    def _translations(self) -> Learned:
        size = len(self.texts.vocabulary)
        return Learned(learn_translations(self._pairs().both_ways(), size, ALIGNMENT), PhraseTable.none(size))

    def _phrases(self, learning: PhraseLearning) -> Learned:
        size = len(self.texts.vocabulary)
        return Learned(Translations.none(size), learning.learned(self._pairs(), self.translations(), size))

    def _topics(self, kind: str, learning: TopicLearning) -> Learned:
        texts, size = self.texts, len(self.texts.vocabulary)
        answers, answered, votes = texts.answers, texts.answered, texts.votes
        if kind == "qatm":
            is_best = np.diff(answered, prepend=-1) != 0
            replies = np.split(answers.ids, answers.starts[1:-1])
            answers = TermLists.of(replies[place] for place in np.flatnonzero(is_best).tolist())
            answered, votes = answered[is_best], votes[is_best]
        topics = learn_voted_topics(texts.questions, answers, answered, votes, size, learning)
        return Learned(Translations.none(size), PhraseTable.none(size), topics)


def language_answers(name: str, seed: int, learner: Learner) -> Answers:
    """Return the runs of all tasks, with the settings that each set's dev split chose.

    Args:
        name: of a grid.
    """
    found = Answers()
    whole = _Learned(learner)
    prepared = {task.name: _Task.of(task, learner) for one in learner.data.sets for task in one.tasks()}
    collections = {one.name: learner.collection(one.dev.statistics) for one in learner.data.sets}
    best: dict[str, tuple[float, Options]] = {}
    for options in grid(name, seed):
        learned = whole.of(options)
        for one in learner.data.sets:
            run = prepared[one.dev.name].run(options, collections[one.name], learned)
            value = judge(one.dev, run).means["map"]
            found.tried.setdefault(one.name, []).append({**asdict(options), "dev_map": round(value, 6)})
            if one.name not in best or value > best[one.name][0]:
                best[one.name] = (value, options)
    for one in learner.data.sets:
        options = best[one.name][1]
        found.settings[one.name] = asdict(options)
        for task in one.tasks():
            found.runs[task.name] = prepared[task.name].run(options, collections[one.name], whole.of(options))
    return found


class _Learned:
    """What was learned, by what of the options it hangs on; the last is held."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._held: dict[tuple[object, ...], Learned] = {}

    def of(self, options: Options) -> Learned:
        key = (options.phrase_learning, options.topic_learning)
        if key not in self._held:
            self._held[key] = self._made(options)
        return self._held[key]

    def _made(self, options: Options) -> Learned:
        learner, size = self._learner, len(self._learner.texts.vocabulary)
        if options.phrase_learning:
            found = learner.phrases(options.phrase_learning)
            return Learned(phrases=_KnownPhrases(found.book, found.starts, found.sources, found.values))
        translations = self._translations() if options.is_aligned else Learned.none(size).translations
        if options.topic_learning:
            kind = "qatm" if options.most_answers == 1 else "sqatm"
            return Learned(translations, topics=learner.topics(kind, options.topic_learning).topics)
        return Learned(translations)

    @cache  # noqa: B019 - lives as long as one row
    def _translations(self) -> _KnownTranslations:
        found = self._learner.translations()
        return _KnownTranslations(found.starts, found.sources, found.values)


@dataclass(frozen=True, eq=False)
class _KnownTranslations(Translations):
    """Translations that find their sums over the same texts once: no choice of the grid changes them."""

    known: dict[int, Floats] = field(default_factory=dict)

    def shares(self, words: Ids, texts: TermLists) -> Floats:
        if id(texts) not in self.known:  # texts are the candidates of one query, and held as long as this
            self.known[id(texts)] = super().shares(words, texts)
        return self.known[id(texts)]


@dataclass(frozen=True, eq=False)
class _KnownPhrases(PhraseTable):
    """The same of phrases."""

    known: dict[int, Floats] = field(default_factory=dict)

    def shares(self, query: Ids, texts: TermLists) -> Floats:
        if id(texts) not in self.known:
            self.known[id(texts)] = super().shares(query, texts)
        return self.known[id(texts)]


@dataclass(frozen=True)
class _Task:
    """A task as numbers; the topics of candidates are found once for each model of topics."""

    queries: dict[str, Ids]
    candidates: dict[str, tuple[list[str], TermLists]]
    mixtures: dict[tuple[int, str], Floats]

    @classmethod
    def of(cls, task: RerankTask, learner: Learner) -> _Task:
        known: dict[str, Ids] = {}

        def read(question: Question) -> Ids:
            return term_ids(learner.texts.vocabulary, learner.reader.question(question))

        for identifier, question in task.documents.items():
            known[identifier] = read(question)
        candidates = {
            query: ([document for document, _ in found], TermLists.of([known[document] for document, _ in found]))
            for query, found in task.given.items()
        }
        return cls({query: read(task.queries[query]) for query in task.given}, candidates, {})

    def run(self, options: Options, collection: Collection, learned: Learned) -> Run:
        """Return every query's candidates, in their given order, with their scores."""
        scorer = options.model(collection, learned)
        topics = learned.topics if options.topic_learning else None
        made: Run = {}
        for query, (ids, lists) in self.candidates.items():
            mixtures = None if topics is None else self._mixtures(topics, query, lists)
            scores = scorer.mean_ratios(self.queries[query], lists, None, mixtures)
            made[query] = list(zip(ids, scores.tolist(), strict=True))
        return made

    def _mixtures(self, topics: Topics, query: str, lists: TermLists) -> Floats:
        key = (id(topics), query)  # what was learned is held while it is in use
        if key not in self.mixtures:
            self.mixtures[key] = topics.mixtures(lists)
        return self.mixtures[key]


class TrigramCosine:
    """A ``PairScorer``: the cosine of two questions' trigrams, title and body joined as the networks read them.

    Args:
        collection: questions that document frequencies are counted in; None for counts without idf.

    Example:
        ``aa`` is #aa, aa#; ``ab`` is #ab, ab#; so ``aa ab`` and ``aa`` share two of four: 2 / (√4 · √2).

        >>> one, other = Question("q", "aa ab"), Question("d", "aa")
        >>> TrigramCosine().scores(one, [other]).round(4).tolist()
        [0.7071]
        >>> TrigramCosine([other]).scores(one, [other]).round(4).tolist()  # idf 1 and ln 2 + 1: √2 / √(2 + 2 · 1.6931²)
        [0.5085]
    """

    def __init__(self, collection: Iterable[Question] | None = None) -> None:
        self._reader: Final = SiameseReader(TextSettings(), "joined")
        self._known: dict[Question, Mapping[str, float]] = {}
        counted: Counter[str] = Counter()
        documents = 0
        for question in collection or ():
            counted.update(set(self._reader.question(question)))
            documents += 1
        self._counted = None if collection is None else counted
        self._documents = documents

    def scores(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return one cosine for each candidate, in [0, 1].  # (N,)"""
        own = self._vector(query)
        found = (self._vector(candidate) for candidate in candidates)
        return np.array([sum(value * one.get(name, 0.0) for name, value in own.items()) for one in found])

    def _vector(self, question: Question) -> Mapping[str, float]:
        if question not in self._known:
            counts = Counter(self._reader.question(question))
            values = {name: times * self._idf(name) for name, times in counts.items()}
            norm = math.sqrt(sum(value * value for value in values.values())) or 1.0
            self._known[question] = {name: value / norm for name, value in values.items()}
        return self._known[question]

    def _idf(self, trigram: str) -> float:
        if self._counted is None:
            return 1.0
        return math.log((1 + self._documents) / (1 + self._counted[trigram])) + 1


def trigram_answers(data: DasData, *, has_idf: bool) -> Answers:
    """Return the runs of all tasks.

    Args:
        has_idf: weigh trigrams by the document frequencies of each set's collection.
    """
    found = Answers()
    for one in data.sets:
        scorer = TrigramCosine(one.dev.statistics if has_idf else None)
        found.runs |= {task.name: rerank(task.given, scorer, task.queries, task.documents) for task in one.tasks()}
    return found


_MOST_QUERIES: Final = 200
"""Larger dev sets are not scored after every epoch, but for the smallest."""

_FOLDERS: Final[dict[Kept, str]] = {"loss": "model", "dev": "model-dev", "untrained": "model-untrained"}


@dataclass(frozen=True, slots=True)
class SiameseTrainer:
    """Trains one network with one seed, or finds the one that is finished.

    Args:
        data: pairs to learn from, and dev sets, which are only measured.
        done: (network, seed) that this process has trained, or found to be trained.
    """

    recipe: SiameseRecipe
    data: DasData
    out: Path
    device: str = "cpu"
    threads: int = 0
    progress: Progress = field(default_factory=SilentProgress)
    done: set[tuple[str, int]] = field(default_factory=set, compare=False)

    def folder(self, learner: str, seed: int) -> Path:
        """Return where a network and its log are kept."""
        return self.out / f"{learner}-seed{seed}"

    def recipe_of(self, learner: str) -> SiameseRecipe:
        """Return the recipe of a network: the kinds differ in what their sides share and how losses are reduced."""
        kind, _, reduction = learner.partition("-")
        pairs = replace(self.recipe.pairs, reduction="sum") if reduction == "sum" else self.recipe.pairs
        return replace(self.recipe, is_shared=kind == "scqa", pairs=pairs)

    def described(self, learner: str) -> str:
        """Return what decides a network besides data and seed, as text."""
        return self.recipe_of(learner).to_json()

    def model(self, learner: str, seed: int, kept: Kept = "loss") -> SiameseModel:
        """Return the network of an epoch, trained where it is not there; a training that was stopped goes on."""
        need_torch(self.threads)
        from askalike.training.encoder import TrainingRun
        from askalike.training.loop import read_log
        from askalike.training.siamese import Epoch, fit_siamese

        pairs, folder = self.data.pairs, self.folder(learner, seed)
        smallest = min(len(one.dev.queries) for one in self.data.sets)
        most = max(_MOST_QUERIES, smallest)
        dev = {one.dev.name: candidate_task(one.dev) for one in self.data.sets if len(one.dev.queries) <= most}
        learned = TrainingData(pairs.questions, answers=pairs.best(), dev=dev)
        run = TrainingRun(folder, seed, self.device, progress=self.progress)
        log = folder / "log.csv"

        def keep(epoch: Epoch) -> None:
            if not epoch.number:
                epoch.model().save(folder / _FOLDERS["untrained"])
            elif is_highest([entry.value for entry in read_log(log) if entry.measure == "map"][1:]):
                epoch.model().save(folder / _FOLDERS["dev"])

        if (learner, seed) not in self.done:
            fit_siamese(self.recipe_of(learner), learned, run, keep).save(folder / _FOLDERS["loss"])
            self.done.add((learner, seed))
        return SiameseModel.load(folder / _FOLDERS[kept])


def is_highest(values: Sequence[float]) -> bool:
    """Return whether the last value is above all before it.

    >>> is_highest([0.5]), is_highest([0.5, 0.6]), is_highest([0.5, 0.5])
    (True, True, False)
    """
    return all(value < values[-1] for value in values[:-1])


def siamese_answers(model: SiameseModel, data: DasData, *, has_words: bool) -> Answers:
    """Return the runs of all tasks; with words, those of the α that each set's dev split chose.

    Args:
        has_words: mix BM25 in: T-SCQA and T-DSQA.
    """
    found, scorer = Answers(), VectorScorer(model)
    for one in data.sets:
        near = {task.name: cosine_run(task, scorer) for task in one.tasks()}
        if not has_words:
            found.runs |= near
            continue

        def value(alpha: float, one: Any = one, near: Any = near) -> float:
            return judge(one.dev, hybrid_run(one.dev, near[one.dev.name], alpha)).means["map"]

        alpha, seen = best_weight(value)
        found.settings[one.name] = {"alpha": alpha}
        found.tried[one.name] = [{"alpha": weight, "dev_map": round(gained, 6)} for weight, gained in seen.items()]
        found.runs |= {task.name: hybrid_run(task, near[task.name], alpha) for task in one.tasks()}
    return found
