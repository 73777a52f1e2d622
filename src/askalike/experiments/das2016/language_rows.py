"""The rows of language models: what was learned, tuned on dev, and the runs of all tasks.

Enters: a row, data, a ``Learner``. Leaves: runs and settings. May import: language, types, its own folder and its
neighbours in experiments.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from askalike.experiments.das2016.answer import Answered
from askalike.experiments.das2016.grids import grid
from askalike.experiments.das2016.learning import Learner
from askalike.experiments.tasks import RerankTask, judge
from askalike.models.language.kinds import Learned, Options
from askalike.models.query_likelihood.terms import Collection, TermLists, term_ids
from askalike.models.topics.topics import Topics
from askalike.models.translation.ibm1 import Translations
from askalike.models.translation.phrases import PhraseTable
from askalike.types import Question, Run

__all__ = ["language_answers"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def language_answers(kind: str, seed: int, learner: Learner) -> Answered:
    """Return the runs of all tasks, with the settings that each set's dev part chose."""
    found = Answered()
    whole = _Learned(learner)
    prepared = {task.name: _Task.of(task, learner) for one in learner.data.sets for task in one.tasks()}
    collections = {one.name: learner.collection(one.dev.statistics) for one in learner.data.sets}
    best: dict[str, tuple[float, Options]] = {}
    for options in grid(kind, seed):
        learned = whole.of(kind, options)
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
            found.runs[task.name] = prepared[task.name].run(options, collections[one.name], whole.of(kind, options))
    return found


class _Learned:
    """What was learned, by what of the options it hangs on; the last is held."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._held: dict[tuple[object, ...], Learned] = {}

    def of(self, kind: str, options: Options) -> Learned:
        key = (kind, options.phrase_learning, options.topic_learning)
        if key not in self._held:
            self._held[key] = self._made(kind, options)
        return self._held[key]

    def _made(self, kind: str, options: Options) -> Learned:
        learner, size = self._learner, len(self._learner.texts.vocabulary)
        if options.phrase_learning:
            found = learner.phrases(options.phrase_learning)
            return Learned(phrases=_KnownPhrases(found.book, found.starts, found.sources, found.values))
        translations = self._translations() if options.is_aligned else Learned.none(size).translations
        if options.topic_learning:
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
