"""The phrase-based translation model: a query is made phrase by phrase from the phrases of a candidate.

::

    P(q|D)  = ⊕_{w_1 … w_K = q} Π_k P(w_k|D)                 over all ways to cut q into phrases of up to L terms
    α_0     = 1,    α_j = ⊕_l α_{j-l} · P(q_{j-l+1} … q_j|D),    P(q|D) = α_|q|

    P(w|D)  = (1 - s_D) · (1 - σ) · Σ_t P(w|t) · #(t, D) / |D|                                    of several terms
    P(w|D)  = (1 - s_D) · [σ · P_ml(w|D) + (1 - σ) · Σ_t P(w|t) · #(t, D) / |D|] + s_D · P(w|C)   of one

⊕ is the largest (``best``) or the sum (``sum``); #(t, D) is at how many places of D the phrase t starts. Without a
table, with σ = 1 or with phrases of one term only, it is a word model: with σ = 1 query likelihood.

Enters: counts, a ``PhraseTable``, terms of candidates. Leaves: scores. May import: errors, its neighbours in language.

Source: Zhou, Cai, Zhao and Liu 2011 (ACL), section 3: equations 7 and 8, where all ways to cut are equally likely and
the largest stands for the sum; the recursion over α, after Och's monotone search, is told from memory.
Differs: the paper aligns a query with each candidate by words, and takes for each phrase of the query the one phrase of
the candidate that the links allow. Here each phrase w comes from any phrase of the candidate, as in the word models,
which needs no alignment of a thousand candidates while somebody waits. The paper finds that its model cannot be mixed
with a model of words inside the product, and adds up logarithms of several models (translation of phrases in both
directions, lexical weights, order and number of linked words, language model, translation of words) with weights tuned
for its measure; here terms that are not translated and the collection come in as further ways to make a phrase of one
term, as Xue et al. 2008 do for words, so that nothing has to be tuned to begin with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.collection import Collection
from askalike.models.query_likelihood.lists import TermLists, shares
from askalike.models.query_likelihood.smoothing import Smoothing
from askalike.models.translation.phrase_table import PhraseTable

__all__ = ["PhraseModel", "Segmentation", "best_or_sum"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Segmentation = Literal["best", "sum"]


def best_or_sum(probabilities: list[Floats], segmentation: Segmentation) -> Floats:
    """Return log α_|q| over all ways to cut a query into phrases.  # (N,)

    Args:
        probabilities: log P of the phrases of 1, 2, … L terms, one array each: row j is that of the phrase that starts
            at term j; a length l of a query of T terms has T - l + 1 rows, or none.  # (T - l + 1, N)

    Example:
        Two terms with 0.5 and 0.4, together with 0.3: the best is 0.3 in one piece, the sum is 0.5 · 0.4 + 0.3.

        >>> made = [np.log([[0.5], [0.4]]), np.log([[0.3]])]
        >>> [round(float(np.exp(best_or_sum(made, name)[0])), 4) for name in ("best", "sum")]
        [0.3, 0.5]
    """
    joined = np.maximum if segmentation == "best" else np.logaddexp
    ways = [np.zeros(probabilities[0].shape[1])]  # log α_0, log α_1, …
    for end in range(1, len(probabilities[0]) + 1):
        found = ways[end - 1] + probabilities[0][end - 1]
        for length in range(2, min(end, len(probabilities)) + 1):
            found = joined(found, ways[end - length] + probabilities[length - 1][end - length])
        ways.append(found)
    return ways[-1]


@dataclass(frozen=True, slots=True)
class PhraseModel:
    """A ``QueryScorer`` by the phrases of candidates.

    Args:
        collection: gives P(w|C).
        table: P(w|t).
        smoothing: s_D.
        kept: σ in [0, 1], the share of words that stay as they are.
        segmentation: ``best`` or ``sum``.

    Raises:
        SettingError: a value that is not listed or out of range.

    Example:
        The query 1 2, a candidate of the one word 3, and P(1 2|3) = 0.5; neither 1 nor 2 comes from 3 alone, and a
        collection of 10 words has each of them once. λ = 0.2 and σ = 0.5: together 0.8 · 0.5 · 0.5 = 0.2, one by one
        0.2 · 0.1 each.

        >>> from askalike.models.translation.phrase_book import PhraseBook
        >>> book = PhraseBook(np.array([1, 3, 1 * 4 + 2]), 4, 2)  # 1, 3 and 1 2
        >>> table = PhraseTable(book, np.array([0, 0, 0, 1]), np.array([1]), np.array([0.5]))
        >>> counted, smoothing = Collection(np.array([0, 1, 1, 8])), Smoothing("jelinek-mercer", 0.2)
        >>> for name in ("best", "sum"):
        ...     model = PhraseModel(counted, table, smoothing, 0.5, name)
        ...     np.exp(model.log_likelihoods(np.array([1, 2]), TermLists.of([[3]]))).round(4).tolist()
        [0.2]
        [0.2004]
    """

    collection: Collection
    table: PhraseTable
    smoothing: Smoothing = field(default_factory=lambda: Smoothing("jelinek-mercer", 0.2))
    kept: float = 0.5
    segmentation: Segmentation = "best"

    def __post_init__(self) -> None:
        if self.segmentation not in get_args(Segmentation):
            choices = ", ".join(get_args(Segmentation))
            raise SettingError(f"segmentation is {self.segmentation!r}, but expected one of: {choices}")
        if not (isfinite(self.kept) and 0 <= self.kept <= 1):
            raise SettingError(f"kept is {self.kept}, but expected 0 ≤ kept ≤ 1", "set kept")

    def log_likelihoods(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return log P(q|D) of each candidate; 0 for a query without terms. Nothing else is read.  # (N,)

        Args:
            query: its terms in order.  # (T,)
        """
        if not len(query):
            return np.zeros(len(candidates))
        shares_of = self.table.shares(query, candidates)  # (L, T, N)
        made = (1 - self.kept) * (1 - self.smoothing.shares(candidates.lengths()))  # (N,)
        with np.errstate(divide="ignore"):  # a phrase that nothing makes has P = 0
            longer = [
                np.log(made * shares_of[length - 1, : len(query) - length + 1])
                for length in range(2, min(self.table.book.longest, len(query)) + 1)
            ]
        words, places = np.unique(query, return_inverse=True)
        own = self.kept * shares(words, candidates)[places] + (1 - self.kept) * shares_of[0]
        background = self.collection.probabilities(words)[places]
        single = self.smoothing.mixed(own, background, candidates.lengths())
        return best_or_sum([np.log(single), *longer], self.segmentation)

    def mean_ratios(
        self, query: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return ``(P(q|D) / P(q|C))^(1/|q|)``, as ``likelihood.mean_ratios`` has it; 1 without terms.  # (N,)"""
        background = np.log(self.collection.probabilities(query)).sum()
        found = self.log_likelihoods(query, candidates) - background
        return np.asarray(np.exp(found / max(1, len(query))))
