"""Systems that answer every kind of task: words, an encoder, the hybrid of both, late interaction, language models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.encode.model import Model
from askalike.forum_evaluation.scorers import JoinedTerms, VectorScorer, make_scorer, over_all, rerank
from askalike.forum_evaluation.tasks import PairTask, RerankTask, RetrievalTask, judge
from askalike.language import TermLists
from askalike.language.model import LanguageModel
from askalike.rank.interaction import WeighedStates, interactions, meaning, rarities
from askalike.rank.settings import JoinSettings
from askalike.text.settings import TextSettings
from askalike.types import Answer, Question, Run

DEPTH: Final = 100
Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

WEIGHTS: Final = tuple(round(0.05 * step, 2) for step in range(21))
"""What is tried for w: 0 is BM25 alone, 1 the cosine alone."""


def blend(cosines: NDArray[np.floating], lexical: NDArray[np.floating], weight: float) -> NDArray[np.float64]:
    """Return ``w · cos + (1 - w) · bm25 / max bm25`` over one query's candidates.

    Where no candidate shares a term with the query, the second summand is 0.

    Args:
        cosines: (N,), in [-1, 1].
        lexical: (N,), ≥ 0.
        weight: w, in [0, 1].

    Example:
        0.5 · 0.8 + 0.5 · 10/10 and 0.5 · 0.9 + 0.5 · 5/10:

        >>> blend(np.array([0.8, 0.9]), np.array([10.0, 5.0]), 0.5).round(4).tolist()
        [0.9, 0.7]
    """
    highest = float(lexical.max(initial=0.0))
    scaled = lexical / highest if highest > 0 else np.zeros(len(lexical))
    return np.asarray(weight * cosines + (1 - weight) * scaled, dtype=np.float64)


def best_weight(value: Callable[[float], float]) -> tuple[float, Mapping[float, float]]:
    """Return the weight of the highest value, the smallest one of equals, and every value that was seen.

    Args:
        value: weight → what is to be high, in [0, 1].

    Example:
        >>> best_weight(lambda weight: 1 - abs(weight - 0.3))[0]
        0.3
    """
    seen = {weight: value(weight) for weight in WEIGHTS}
    return max(seen, key=lambda weight: (seen[weight], -weight)), seen


class System(Protocol):
    """Answers tasks."""

    def rerank(self, task: RerankTask) -> Run:
        """Return every query's candidates, in their given order, with the system's scores."""

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return every query's best ``DEPTH`` questions of the collection, without the query itself."""

    def pairs(self, task: PairTask) -> Floats:
        """Return one score a pair, higher is more alike.  # (N,)"""


class LexicalSearch:
    """The search by words that every task carries: the forum's own, or exact BM25 where there is no forum.

    Pairs have no search; their score is ``(bm25(a, b) + bm25(b, a)) / (bm25(a, a) + bm25(b, b))``, near 1 for the same
    words. Differs from a search's score, which is not comparable between queries.
    """

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their BM25 scores."""
        return task.lexical

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the lexical search's best."""
        return {query: found[:DEPTH] for query, found in task.lexical.items()}

    def pairs(self, task: PairTask) -> Floats:
        """Return the symmetric, scaled BM25 score of each pair."""
        scorer = make_scorer("bm25", task.statistics, TextSettings())
        return np.array([_alike(scorer, first, second) for first, second in task.pairs])


class Terms:
    """A term-based scorer of ``SCORERS`` over title and body joined."""

    def __init__(self, name: str) -> None:
        self.name = name

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with the model's scores; its statistics are the task's."""
        return rerank(task.given, make_scorer(self.name, task.statistics, TextSettings()), task.queries, task.documents)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the best of the collection, which the statistics are taken from too; no score 0."""
        scorer = make_scorer(self.name, task.collection, TextSettings())
        score = over_all(scorer.model, [scorer.terms(question) for question in task.collection])
        ids = [question.id for question in task.collection]
        return {
            query: [entry for entry in best_of_collection(ids, score(scorer.terms(question)), query) if entry[1] > 0]
            for query, question in task.queries.items()
        }

    def pairs(self, task: PairTask) -> Floats:
        """Return the model's score of each pair, the second as the candidate."""
        scorer = make_scorer(self.name, task.statistics, TextSettings())
        return np.array([float(scorer.scores(first, [second])[0]) for first, second in task.pairs])


class Vectors:
    """An encoder: cosines of its vectors."""

    def __init__(self, scorer: VectorScorer) -> None:
        self.scorer = scorer

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their cosines."""
        self.scorer.vectors([*task.queries.values(), *task.documents.values()])
        return rerank(task.given, self.scorer, task.queries, task.documents)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the questions of the highest cosines."""
        ids = [question.id for question in task.collection]
        return {query: best_of_collection(ids, cosines, query) for query, cosines in self.over_collection(task).items()}

    def pairs(self, task: PairTask) -> Floats:
        """Return the cosine of each pair."""
        first = self.scorer.vectors(pair[0] for pair in task.pairs)
        second = self.scorer.vectors(pair[1] for pair in task.pairs)
        return np.asarray(np.einsum("nd,nd->n", first, second), dtype=np.float64)

    def over_collection(self, task: RetrievalTask) -> dict[str, Floats]:
        """Return each query's cosines with the whole collection, in its order."""
        documents = self.scorer.vectors(task.collection)  # (N, D)
        queries = self.scorer.vectors(task.queries.values())  # (Q, D)
        return dict(zip(task.queries, (queries @ documents.T).astype(np.float64), strict=True))


class Hybrid:
    """BM25 and an encoder, blended by one weight; in retrieval the candidates are the whole collection.

    A question that the lexical search did not bring, deep as it was, has the BM25 score 0.
    """

    def __init__(self, scorer: VectorScorer, weight: float) -> None:
        self.vectors = Vectors(scorer)
        self.weight = weight

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with blended scores."""
        return hybrid_run(task, self.vectors.rerank(task), self.weight)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the questions of the highest blended scores."""
        return _blended_collection(task, self.vectors.over_collection(task), self.weight)

    def pairs(self, task: PairTask) -> Floats:
        """Return ``w · cos + (1 - w) · scaled BM25``; a pair has no candidates to scale by."""
        return self.weight * self.vectors.pairs(task) + (1 - self.weight) * LexicalSearch().pairs(task)


def hybrid_run(task: RerankTask, cosines: Run, weight: float) -> Run:
    """Return candidates blended of the task's BM25 scores and of cosines in the same order."""
    run: Run = {}
    for query, found in task.lexical.items():
        ids = [document for document, _ in found]
        lexical = np.array([score for _, score in found])
        near = np.array([score for _, score in cosines[query]])
        run[query] = list(zip(ids, blend(near, lexical, weight).tolist(), strict=True))
    return run


def tune_weight(task: RerankTask | RetrievalTask, scorer: VectorScorer) -> tuple[float, Mapping[float, float]]:
    """Return the hybrid's weight that is best by the task's main measure, and the measure at each weight."""
    if isinstance(task, RerankTask):
        near = Vectors(scorer).rerank(task)
        return best_weight(lambda weight: judge(task, hybrid_run(task, near, weight)).means[task.main])
    cosines = Vectors(scorer).over_collection(task)
    return best_weight(lambda weight: judge(task, _blended_collection(task, cosines, weight)).means[task.main])


def _blended_collection(task: RetrievalTask, cosines: Mapping[str, Floats], weight: float) -> Run:
    ids = [question.id for question in task.collection]
    places = {identifier: place for place, identifier in enumerate(ids)}
    run: Run = {}
    for query, near in cosines.items():
        lexical = np.zeros(len(ids))
        for document, score in task.lexical[query]:
            lexical[places[document]] = score
        run[query] = best_of_collection(ids, blend(near, lexical, weight), query)
    return run


def best_of_collection(ids: Sequence[str], scores: Floats, query: str) -> list[tuple[str, float]]:
    """Return the best of a collection but the query itself; equal scores in the collection's order."""
    least = -np.partition(-scores, DEPTH)[DEPTH] if len(scores) > DEPTH else -np.inf
    places = np.flatnonzero(scores >= least)
    order = places[np.argsort(-scores[places], kind="stable")]
    found = [(ids[place], float(scores[place])) for place in order[: DEPTH + 1] if ids[place] != query]
    return found[:DEPTH]


def _alike(scorer: JoinedTerms, first: Question, second: Question) -> float:
    same = scorer.scores(first, [first])[0] + scorer.scores(second, [second])[0]
    return float((scorer.scores(first, [second])[0] + scorer.scores(second, [first])[0]) / same) if same else 0.0


class Interaction:
    """The forum's ranker of that name over tasks.

    Args:
        model: whose vectors the scorer has.
        settings: weights and depth; in re-ranking every candidate is compared.
    """

    def __init__(self, model: Model, scorer: VectorScorer, settings: JoinSettings) -> None:
        self._model = model
        self._scorer = scorer
        self._settings = settings
        self._hybrid = Hybrid(scorer, settings.weight)

    def rerank(self, task: RerankTask) -> Run:
        """Return the candidates with their scores."""
        run: Run = {}
        for query, found in task.lexical.items():
            ids = [document for document, _ in found]
            lexical = np.array([score for _, score in found])
            scores = self._blended(task.queries[query], [task.documents[one] for one in ids], lexical, lexical.max())
            run[query] = list(zip(ids, scores.tolist(), strict=True))
        return run

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the hybrid's best questions, the first of them in the order of their comparison word by word."""
        documents = {one.id: one for one in task.collection}
        run: Run = {}
        for query, found in self._hybrid.retrieve(task).items():
            lexical = dict(task.lexical[query])
            ids = [document for document, _ in found[: self._settings.interaction_depth]]
            values = np.array([lexical.get(one, 0.0) for one in ids])
            most = max(lexical.values(), default=0.0)
            scores = self._blended(task.queries[query], [documents[one] for one in ids], values, most)
            order = np.argsort(-scores, kind="stable")
            last = float(scores.min(initial=0.0))
            others = [(one, last - place) for place, (one, _) in enumerate(found[len(ids) :], start=1)]
            run[query] = [(ids[place], float(scores[place])) for place in order] + others
        return run

    def pairs(self, task: PairTask) -> Floats:
        """Return ``w · meaning + (1 - w) · scaled BM25``; a pair has no candidates to scale by."""
        near = [self._meaning(first, [second])[0] for first, second in task.pairs]
        weight = self._settings.interaction_weight
        return weight * np.array(near) + (1 - weight) * LexicalSearch().pairs(task)

    def _blended(self, query: Question, candidates: Sequence[Question], lexical: Floats, most: float) -> Floats:
        """Return the weighted sum of meaning and of BM25 as a share of ``most``.  # (N,)"""
        near = self._meaning(query, candidates)
        weight = self._settings.interaction_weight
        return weight * near + (1 - weight) * (lexical / most if most > 0 else np.zeros(len(lexical)))

    def _meaning(self, query: Question, candidates: Sequence[Question]) -> Floats:
        """Return (cos + 2 · m) / 3 of each candidate.  # (N,)"""
        asked, *read = self._states([query, *candidates])
        return meaning(self._scorer.scores(query, candidates), interactions(asked, read))

    def _states(self, questions: Sequence[Question]) -> list[WeighedStates]:
        size = len(self._model.vocabulary)
        return [WeighedStates(one.words, one.states, rarities(one.ids, size)) for one in self._model.states(questions)]


class Likelihoods:
    """A ``System`` and a ``PairScorer``; its score is how much likelier a candidate makes a word of the query.

    Args:
        model: what was learned.
        answers: a candidate's answers, best first; asked for where the model reads them. Without it there are none.
    """

    def __init__(self, model: LanguageModel, answers: Callable[[str], Sequence[Answer]] = lambda _: ()) -> None:
        self.model = model
        self._answers = answers
        self._ids: dict[Question, Ids] = {}

    def scores(self, query: Question, candidates: Sequence[Question]) -> Floats:
        """Return one score for each candidate, > 0.  # (N,)"""
        return self.model.scorer.mean_ratios(self._read(query), *self._lists(candidates))

    def rerank(self, task: RerankTask) -> Run:
        """Return every query's candidates, in their given order, with their scores."""
        return rerank(task.given, self, task.queries, task.documents)

    def retrieve(self, task: RetrievalTask) -> Run:
        """Return the questions of the collection that make each query likeliest."""
        ids, lists = [question.id for question in task.collection], self._lists(task.collection)
        return {
            query: best_of_collection(ids, self.model.scorer.mean_ratios(self._read(question), *lists), query)
            for query, question in task.queries.items()
        }

    def pairs(self, task: PairTask) -> Floats:
        """Return the score of each pair, the second as the candidate.  # (N,)"""
        return np.array([float(self.scores(first, [second])[0]) for first, second in task.pairs])

    def _lists(self, candidates: Sequence[Question]) -> tuple[TermLists, TermLists | None, Floats | None]:
        own, answers = TermLists.of(map(self._read, candidates)), None
        if self.model.settings.options.reads_answers:
            best = (self._answers(question.id)[:1] for question in candidates)
            answers = TermLists.of(self.model.answer_ids(found[0]) if found else () for found in best)
        return own, answers, self.model.mixtures(own, answers)

    def _read(self, question: Question) -> Ids:
        known = self._ids.get(question)
        if known is None:
            known = self._ids[question] = self.model.question_ids(question)
        return known


def likelihood_score(
    task: RerankTask, model: LanguageModel, answers: Callable[[str], Sequence[Answer]] = lambda _: ()
) -> float:
    """Return the MRR of a task's candidates in the order that a language model gives them."""
    return judge(task, Likelihoods(model, answers).rerank(task)).means["mrr"]
