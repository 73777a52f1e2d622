"""The paper's SVM: measures of how alike two texts are, as the features of a linear ranking SVM.

**Measures.** Of a query's title, body, or both joined, with the same field of a candidate. All are in [0, 1] but BM25,
which is ≥ 0; an empty text has nothing in common with any text, not even with another empty one.

Source: Bär, Zesch and Gurevych 2013, "DKPro Similarity: An Open Source Framework for Text Similarity", table 1, for the
family, which Lei et al. 2016 use. Broder 1997 for Jaccard (resemblance) and containment, Lyon et al. 2001 and
Barrón-Cedeño et al. 2010 for n-grams of words and of characters; Levenshtein 1966, Jaro 1989, Winkler 1990, Monge and
Elkan 1996; Wise 1993 and Prechelt, Malpohl and Philippsen 2002, section 3.3, for greedy string tiling.
Differs: measures of word vectors, which DKPro has too, are left out; bodies are cut after ``MOST_WORDS`` words, as the
encoders cut them, for all but TF-IDF and BM25.

**SVM.** It learns from labelled candidates which direction in the space of these features is "more similar".

Source: Joachims 2002, "Optimizing search engines using clickthrough data", section 4, optimisation problem 1; Lei et
al. 2016, section 5, baseline SVM.
Differs: Lei et al. train SVM-Light with its default C on train and dev together; here C is chosen by the caller. The
hinge is squared, so that the solver is exact and draws no random numbers. Every query weighs the same, as in the
author's later SVM-rank; with every pair weighing the same, the few queries of many positives decide, and it came out
below BM25 on the dev split of the travel duplicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from operator import add
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askalike.errors import SettingError, optional_module
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf, ngrams
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.text.tokens import words
from askalike.types import Question

Floats = NDArray[np.float64]


def jaccard(a: Collection[Hashable], b: Collection[Hashable]) -> float:
    """Return ``|A ∩ B| / |A ∪ B|`` of sets of n-grams.

    >>> jaccard(set("abc"), set("bcd"))
    0.5
    """
    shared = len(set(a) & set(b))
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def containment(a: Collection[Hashable], b: Collection[Hashable]) -> float:
    """Return ``|A ∩ B| / min(|A|, |B|)`` of sets of n-grams: 1 when one text holds all of the other.

    Differs: Broder divides by the first of the two; by the smaller one, it does not matter which one is the query.

    >>> containment(set("ab"), set("abcd"))
    1.0
    """
    shared = len(set(a) & set(b))
    return shared / min(len(a), len(b)) if shared else 0.0


def cosine(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return ``Σ_g a(g) b(g) / (‖a‖ ‖b‖)`` of weights ≥ 0 of n-grams.

    >>> cosine(Counter("aab"), Counter("abb"))  # (2 · 1 + 1 · 2) / (√5 √5)
    0.8
    """
    product = sum(weight * b.get(gram, 0) for gram, weight in a.items())
    squares = sum(weight * weight for weight in a.values()) * sum(weight * weight for weight in b.values())
    return min(product / float(squares) ** 0.5, 1.0) if product else 0.0


def length_ratio(a: int, b: int) -> float:
    """Return ``min(|A|, |B|) / max(|A|, |B|)`` of lengths, 0 when one is 0.

    >>> length_ratio(4, 8), length_ratio(4, 0)
    (0.5, 0.0)
    """
    return min(a, b) / max(a, b) if a and b else 0.0


def string_similarity(distance: str, a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """Return one minus a distance of ``rapidfuzz.distance`` over the most that it can be.

    ``Levenshtein`` is ``1 - d(a, b) / max(|a|, |b|)``, d the fewest insertions, deletions and replacements; ``Jaro`` is
    ``(m/|a| + m/|b| + (m - t)/m) / 3``, m characters common within a window, t transpositions; ``JaroWinkler`` is
    ``J + 0.1 · l · (1 - J)`` where Jaro's J > 0.7, else J, l characters of common prefix, at most 4; ``LCSseq`` is the
    longest common subsequence, gaps allowed, over ``max(|a|, |b|)``.

    Raises:
        MissingExtraError: rapidfuzz is not installed.

    >>> pairs = {"Levenshtein": ("kitten", "sitting"), "Jaro": ("martha", "marhta"), "LCSseq": ("abcd", "axcd")}
    >>> [round(string_similarity(name, *pair), 4) for name, pair in pairs.items()]  # 1 - 3/7, (1 + 1 + 5/6) / 3, 3/4
    [0.5714, 0.9444, 0.75]
    >>> round(string_similarity("JaroWinkler", "martha", "marhta"), 4)  # 0.9444 + 0.3 · 0.0556
    0.9611
    """
    scorer = getattr(_rapidfuzz("distance"), distance).normalized_similarity
    return float(scorer(a, b)) if a and b else 0.0


def monge_elkan(a: Sequence[str], b: Sequence[str]) -> float:
    """Return ``(ME(A, B) + ME(B, A)) / 2``, ``ME(A, B) = 1/|A| Σ_{a ∈ A} max_{b ∈ B} JaroWinkler(a, b)``.

    Differs: the mean of both directions, so that the order of the two texts does not matter. The time is that of
    ``|A| · |B|`` comparisons of words: for titles.

    >>> monge_elkan(["ab"], ["ab", "xy"])  # (1 + (1 + 0)/2) / 2
    0.75
    """
    if not (a and b):
        return 0.0
    scorer = _rapidfuzz("distance").JaroWinkler.normalized_similarity
    alike: Floats = _rapidfuzz("process").cdist(a, b, scorer=scorer, dtype=np.float64)  # (|A|, |B|)
    return float(alike.max(axis=1).mean() + alike.max(axis=0).mean()) / 2


def longest_common_run(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """Return ``longest common run / max(|a|, |b|)``, no gaps.

    >>> longest_common_run("abcd", "axcd")  # cd
    0.5
    """
    return SequenceMatcher(None, a, b, autojunk=False).find_longest_match().size / max(len(a), len(b), 1)


MINIMUM_MATCH: Final = 3
"""The shortest run that is a tile, in words."""


def tiles(
    a: Sequence[Hashable], b: Sequence[Hashable], minimum_match: int = MINIMUM_MATCH
) -> Iterator[tuple[int, int, int]]:
    """Yield tiles as (length, first place in a, first place in b), longest first; of equal ones the first in ``a``.

    Again and again the longest run of uncovered words that both texts have is covered in both.

    >>> list(tiles("abcxdef", "defabc"))
    [(3, 0, 3), (3, 4, 0)]
    """
    free_a, free_b = list(a), list(b)
    while (run := SequenceMatcher(None, free_a, free_b, autojunk=False).find_longest_match()).size >= minimum_match:
        yield run.size, run.a, run.b
        free_a[run.a : run.a + run.size] = [object() for _ in range(run.size)]  # equal to nothing
        free_b[run.b : run.b + run.size] = [object() for _ in range(run.size)]


def greedy_string_tiling(a: Sequence[Hashable], b: Sequence[Hashable], minimum_match: int = MINIMUM_MATCH) -> float:
    """Return ``2 · covered / (|a| + |b|)``, covered = the sum of the tiles' lengths.

    Two texts that are equal but shorter than ``minimum_match`` have no tile, so 0. Which of several runs of the same
    length is taken decides what is left, so that the other way round may give another similarity.

    >>> round(greedy_string_tiling("abcxdef", "defabc"), 4)  # def and abc: 2 · 6 / 13
    0.9231
    """
    return 2 * sum(length for length, _, _ in tiles(a, b, minimum_match)) / max(len(a) + len(b), 1)


def _rapidfuzz(module: str) -> Any:
    missing = "distances between strings need rapidfuzz, which is not installed"
    return optional_module(f"rapidfuzz.{module}", missing, "train")


FIELDS: Final = ("title", "body", "joined")
APART: Final = ("title", "body")
"""Fields of the measures that depend on order, which joining title and body would change."""
MOST_WORDS: Final = 100
WORD_SIZES: Final = (1, 2, 3)
CHARACTER_SIZES: Final = (2, 3, 4)
_REMEMBERED: Final = 1024  # prepared questions, of about 100 kB each


class FieldTerms(NamedTuple):
    """The words of one field: as written, in one case, then stems with stop words and without; and all stems of both.

    The first three are of the beginning, ``most_words`` long.
    """

    words: list[str]
    stems: list[str]
    content: list[str]
    whole_stems: list[str]
    whole_content: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedText:
    """One field of a question.

    Args:
        string: the words with one space between them.
        grams: ``stems_N``, ``content_N``, ``characters_N`` → n-grams of size N with how often each occurs.
    """

    terms: FieldTerms
    string: str
    grams: Mapping[str, Counter[str]]


def _prepared(terms: FieldTerms) -> PreparedText:
    string = " ".join(terms.words)
    grams = {
        f"{kind}_{size}": Counter(gram for gram in ngrams(getattr(terms, kind), size) if gram.count(" ") == size - 1)
        for kind in ("stems", "content")
        for size in WORD_SIZES
    }
    for size in CHARACTER_SIZES:
        grams[f"characters_{size}"] = Counter(string[at : at + size] for at in range(len(string) - size + 1))
    return PreparedText(terms, string, grams)


Measure = Callable[[PreparedText, PreparedText], float]


def _of_grams(measure: Callable[[Counter[str], Counter[str]], float], name: str) -> Measure:
    return lambda query, candidate: measure(query.grams[name], candidate.grams[name])


def _of_distance(name: str) -> Measure:
    return lambda query, candidate: string_similarity(name, query.string, candidate.string)


PAIR_MEASURES: Final[Mapping[str, tuple[Measure, tuple[str, ...]]]] = {
    **{
        f"{measure.__name__}_{kind}_{size}": (_of_grams(measure, f"{kind}_{size}"), FIELDS)
        for kind in ("stems", "content")
        for size in WORD_SIZES
        for measure in (jaccard, containment)
    },
    **{
        f"{measure.__name__}_characters_{size}": (_of_grams(measure, f"characters_{size}"), FIELDS)
        for size in CHARACTER_SIZES
        for measure in (jaccard, cosine)
    },
    "subsequence_characters": (_of_distance("LCSseq"), APART),
    "subsequence_stems": (
        lambda first, second: string_similarity("LCSseq", first.terms.stems, second.terms.stems),
        APART,
    ),
    "substring_characters": (lambda first, second: longest_common_run(first.string, second.string), APART),
    "substring_stems": (lambda first, second: longest_common_run(first.terms.stems, second.terms.stems), APART),
    "tiling_stems": (lambda first, second: greedy_string_tiling(first.terms.stems, second.terms.stems), APART),
    "levenshtein": (_of_distance("Levenshtein"), APART),
    "jaro": (_of_distance("Jaro"), APART),
    "jaro_winkler": (_of_distance("JaroWinkler"), APART),
    "monge_elkan": (lambda first, second: monge_elkan(first.terms.words, second.terms.words), ("title",)),
    "length_ratio": (lambda first, second: length_ratio(len(first.terms.words), len(second.terms.words)), APART),
}
"""Name → a measure of two texts alone, and the fields that it is applied to. ``stems`` are with stop words,
``content`` without."""


class SimilarityFeatures:
    """Turns a query and its candidates into a matrix of similarities; the latest 1,024 questions are remembered.

    Args:
        collection: whose statistics say how rare a term is; questions outside it can be compared too.
        most_words: bodies are cut after this many words, but not for TF-IDF and BM25.

    Raises:
        SettingError: the collection is empty, or ``most_words`` is below 1.
    """

    def __init__(self, collection: Iterable[Question], settings: TextSettings, most_words: int = MOST_WORDS) -> None:
        if most_words < 1:
            raise SettingError(f"bodies are cut after {most_words} words", "expected at least 1")
        self._settings, self._most_words = settings, most_words
        self._all = Analyzer(replace(settings, stop_words=False))
        self._content = Analyzer(replace(settings, stop_words=True))
        questions = [self._fields(question) for question in collection]
        content = [fields["joined"].whole_content for fields in questions]
        stems = [fields["joined"].whole_stems for fields in questions]
        tfidf = TfIdf(content)
        self._weighted: list[tuple[str, str, str, BM25 | TfIdf]] = [
            *(("tfidf_1", field, "whole_content", tfidf) for field in FIELDS),
            ("tfidf_2", "joined", "whole_content", TfIdf(content, longest=2)),
            ("tfidf_2_all", "joined", "whole_stems", TfIdf(stems, longest=2)),
        ]
        for field in FIELDS:
            counted = CollectionStatistics.count([fields[field].whole_content for fields in questions])
            self._weighted.append(("bm25", field, "whole_content", BM25(counted)))
        self._prepare = lru_cache(maxsize=_REMEMBERED)(self._prepared)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the F columns, ``FIELD.MEASURE``: of two texts alone, then those with a collection's weights."""
        alone = [f"{field}.{name}" for name, (_, fields) in PAIR_MEASURES.items() for field in fields]
        return (*alone, *(f"{field}.{name}" for name, field, _, _ in self._weighted))

    def matrix(self, query: Question, candidates: Sequence[Question]) -> Floats:
        """Return the similarities of the query with each candidate, columns as in ``names``.  # (N, F)

        Raises:
            MissingExtraError: rapidfuzz is not installed.
        """
        own, theirs = self._prepare(query), [self._prepare(candidate) for candidate in candidates]
        columns: list[Any] = [
            [measure(own[field], text[field]) for text in theirs]
            for measure, fields in PAIR_MEASURES.values()
            for field in fields
        ]
        for _, field, kind, model in self._weighted:
            documents = [getattr(text[field].terms, kind) for text in theirs]
            columns.append(model.scores(getattr(own[field].terms, kind), documents))
        return np.array(columns, np.float64).reshape(len(columns), len(candidates)).T

    def _prepared(self, question: Question) -> dict[str, PreparedText]:
        return {field: _prepared(terms) for field, terms in self._fields(question).items()}

    def _fields(self, question: Question) -> dict[str, FieldTerms]:
        title = self._terms(question.title)
        body = self._terms(readable(question.body, question.markup, with_code=self._settings.with_code))
        return {"title": title, "body": body, "joined": FieldTerms(*map(add, title, body))}

    def _terms(self, text: str) -> FieldTerms:
        pieces = text.split()
        whole, beginning = " ".join(pieces), " ".join(pieces[: self._most_words])
        return FieldTerms(
            words=words(beginning),
            stems=self._all.terms(beginning),
            content=self._content.terms(beginning),
            whole_stems=self._all.terms(whole),
            whole_content=self._content.terms(whole),
        )


COSTS: Final = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""The grid that C is chosen from."""


@dataclass(frozen=True, slots=True)
class LabelledCandidates:
    """One query, its candidates, and a label for each: the higher, the more similar."""

    query: Question
    candidates: Sequence[Question]
    labels: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class RankingGroup:
    """The candidates of one query.

    Args:
        features: one row a candidate.  # (N, F)
        labels: a higher label is to be ranked higher; labels of different groups are not compared.  # (N,)
    """

    features: Floats
    labels: NDArray[np.int64]

    @classmethod
    def of(cls, features: ArrayLike, labels: ArrayLike) -> RankingGroup:
        """Return a group of whatever NumPy can make arrays of."""
        return cls(np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.int64))

    def differences(self) -> Floats:
        """Return ``x_i - x_j`` for every pair with ``label_i > label_j``, ordered by (i, j).  # (P, F)

        >>> RankingGroup.of([[1.0], [4.0], [9.0]], [0, 1, 0]).differences().ravel().tolist()  # 4 - 1, 4 - 9
        [3.0, -5.0]
        """
        better, worse = np.nonzero(self.labels[:, None] > self.labels[None, :])
        return np.asarray(self.features[better] - self.features[worse])


@dataclass(frozen=True, slots=True, eq=False)
class RankingSvm:
    """A direction in feature space: ``score(x) = w · (x - mean) / scale``.

    Args:
        mean: of each feature over the rows that it was learned from.  # (F,)
        scale: standard deviation of each feature over those rows, 1 where it never varies.  # (F,)
        weights: w.  # (F,)
        cost: C.
    """

    mean: Floats
    scale: Floats
    weights: Floats
    cost: float

    @classmethod
    def fit(cls, groups: Sequence[RankingGroup], cost: float) -> RankingSvm:
        """Return the w that minimises ``½ ‖w‖² + C Σ_q 1/P_q Σ max(0, 1 - w · (z_i - z_j))²``.

        The inner sum runs over the P_q pairs of query q with label_i > label_j; z is x after standardisation.

        Args:
            groups: one a query; those with one label only teach nothing but the scale.
            cost: C > 0; a large one fits the training pairs closely.

        Raises:
            SettingError: no pair differs in label.
            MissingExtraError: scikit-learn is not installed.
        """
        rows = np.concatenate([group.features for group in groups])  # (ΣN, F)
        mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        scale = np.where(deviation > 1e-12 * (1.0 + np.abs(mean)), deviation, 1.0)
        by_query = [group.differences() / scale for group in groups]
        pairs = np.concatenate(by_query)  # (P, F)
        if not len(pairs):
            raise SettingError("no group has candidates with different labels", "give groups with both kinds")
        shares = np.concatenate([np.full(len(own), 1.0 / max(len(own), 1)) for own in by_query])  # (P,)
        # the solver wants two classes: each pair is given both ways round, at half the cost
        solver = _linear_svc()(C=cost / 2, dual=False, fit_intercept=False, tol=1e-6, max_iter=10_000)
        solver.fit(np.vstack([pairs, -pairs]), np.repeat([1, -1], len(pairs)), np.tile(shares, 2))
        return cls(mean, scale, np.asarray(solver.coef_[0], dtype=np.float64), cost)

    def scores(self, features: Floats) -> Floats:
        """Return one score for each row, higher is better.  # (N, F) → (N,)"""
        return np.asarray((features - self.mean) / self.scale @ self.weights, dtype=np.float64)


def choose_cost(
    groups: Sequence[RankingGroup], judge: Callable[[RankingSvm], float], costs: Sequence[float] = COSTS
) -> RankingSvm:
    """Return the best of the models fitted with each cost.

    Args:
        judge: a fitted model → how good it is on development data, higher is better; of equals the smaller cost wins.
    """
    return max((RankingSvm.fit(groups, cost) for cost in sorted(costs)), key=judge)


def _linear_svc() -> Any:
    missing = "training a ranking SVM needs scikit-learn, which is not installed"
    return optional_module("sklearn.svm", missing, "train").LinearSVC


def ranking_groups(features: SimilarityFeatures, examples: Iterable[LabelledCandidates]) -> list[RankingGroup]:
    """Return the examples as groups of features and labels."""
    return [RankingGroup.of(features.matrix(example.query, example.candidates), example.labels) for example in examples]


@dataclass(frozen=True, slots=True, eq=False)
class SimilaritySvm:
    """Scores pairs of questions by a learned mixture of similarity measures."""

    features: SimilarityFeatures
    model: RankingSvm

    def score(self, query: Question, candidates: Sequence[Question]) -> Floats:
        """Return one score for each of the N candidates, higher is better.  # (N,)"""
        return self.model.scores(self.features.matrix(query, candidates))
