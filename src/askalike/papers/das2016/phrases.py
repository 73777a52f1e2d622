"""Translation of phrases: which phrases of a candidate can become the phrases of a query, learned from linked words.

**Learning.** Words are aligned in both directions, then consistent phrases counted.

::

    forward    for each w_j of the target, the u_i with the largest t(w_j|u_i) > 0
    backward   for each u_i of the source, the w_j with the largest t(u_i|w_j) > 0

    grow-diag-final   from the links of both directions, again and again: a neighbour of a link, also across a corner,
                      is added where one direction has it and one of its two words has no link yet; and then every link
                      of one direction, one of whose two words has no link yet

    (t, w) is consistent with the links of a pair     a link joins the two, and no link joins one of them with a word
                                                      outside of the other
    P(w|t) = N(t, w) / N(t),    N(t) = Σ_w N(t, w)

N(t, w) counts the places of the pairs at which the phrases t and w are consistent; a phrase is of 1 to L terms. All
places of all pairs are looked at in one pass over arrays: for each length l of a phrase of the source the least and the
largest place that its words are linked with, from those for l - 1, and the same of the target. It is linear in the
number of terms, and quadratic only in L.

**Ranking.** A query is made phrase by phrase from the phrases of a candidate.

::

    P(q|D)  = ⊕_{w_1 … w_K = q} Π_k P(w_k|D)                 over all ways to cut q into phrases of up to L terms
    α_0     = 1,    α_j = ⊕_l α_{j-l} · P(q_{j-l+1} … q_j|D),    P(q|D) = α_|q|

    P(w|D)  = (1 - s_D) · (1 - σ) · Σ_t P(w|t) · #(t, D) / |D|                                    of several terms
    P(w|D)  = (1 - s_D) · [σ · P_ml(w|D) + (1 - σ) · Σ_t P(w|t) · #(t, D) / |D|] + s_D · P(w|C)   of one

⊕ is the largest (``best``) or the sum (``sum``); #(t, D) is at how many places of D the phrase t starts.

Source: Zhou, Cai, Zhao and Liu 2011 (ACL), section 3: equations 7 and 8, where all ways to cut are equally likely and
the largest stands for the sum; section 3.2 and equation 17: pairs (q, a) and (a, q) together, words linked in both
directions, links joined by heuristics, consistent phrases counted. Brown et al. 1993, the most probable alignment under
model 1; Och and Ney 2003 (Computational Linguistics 29:1), and Koehn, Och and Marcu 2003 (NAACL), for the heuristic;
Och and Ney 2004 (Computational Linguistics 30:4), section 3.1, for consistency.
Reading: the recursion over α and the heuristic are from memory. A word whose t(w|u) are all 0, or too small to have
been kept, has no link; NULL links nothing else. Of equally probable words the first is linked. Growing goes in rounds;
in each, links are looked at in the order of their positions. The last step takes the forward links before the backward.
Words without links may stand at the edges of a phrase, as in the two papers of translation.
Differs: pairs of phrases that were seen fewer than ``LEAST`` times are left out after N(t) has been counted: one that
was seen once has P(w|t) = 1 with a t that was. The paper has no such limit in the parts that could be read. It aligns a
query with each candidate by words, and takes for each phrase of the query the one phrase of the candidate that the
links allow; here each phrase w comes from any phrase of the candidate, as in the word models. The paper finds that its
model cannot be mixed with a model of words inside the product, and adds up logarithms of several models with weights
tuned for its measure; here terms that are not translated and the collection come in as further ways to make a phrase of
one term, as Xue et al. 2008 do for words.
NLTK (release 3.10.4) was weighed. Its ``grow_diag_final_and`` gave the union of both directions for every one of 300
random pairs, since what it looks up is never in the dictionary that it asks; its extraction cuts a span of the target
that is too long in place of leaving it out, and takes 15 times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from askalike.papers.das2016.terms import Floats, Ids, Parallel, TermLists, joined

LEAST: Final = 2
_PAIRS_AT_ONCE: Final = 500
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)

Link = tuple[int, int]
"""Place in the source, place in the target."""

_NEIGHBOURS: Final = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))


def reaches(owners: Ids, length: int) -> NDArray[np.bool_]:
    """Return whether a phrase of that length that starts at a place ends in the same text.  # (M,)

    Args:
        owners: of which text the term at each place is, as ``TermLists.owners`` has it.  # (M,)

    >>> reaches(np.array([0, 0, 1]), 2).tolist()
    [True, False, False]
    """
    inside = np.zeros(len(owners), np.bool_)
    count = len(owners) - length + 1
    if count > 0:
        inside[:count] = owners[:count] == owners[length - 1 :]
    return inside


def phrase_codes(texts: TermLists, longest: int) -> NDArray[np.uint64]:
    """Return a number for the phrase of each length from 1 to L that starts at each place; 0 where none does.  # (L, M)

    A phrase's code is ``(…(t_1 · P + t_2) · P + …) + t_l`` modulo 2^64, P odd; two phrases of several terms share one
    by a chance of about 2^-64.

    >>> codes = phrase_codes(TermLists.of([[5, 7], [5, 7], [7]]), 2)
    >>> codes[0].tolist(), (codes[1] == codes[1, 0]).tolist(), (codes[1] == 0).tolist()
    ([5, 7, 5, 7, 7], [True, False, True, False, False], [False, True, False, True, True])
    """
    owners, ids = texts.owners(), texts.ids.astype(np.uint64)
    codes = np.zeros((longest, len(ids)), np.uint64)
    before = ids
    for length in range(1, longest + 1):
        if length > 1:
            before = before[: max(0, len(ids) - length + 1)] * _MULTIPLIER + ids[length - 1 :]
        codes[length - 1, : len(before)] = before
        codes[length - 1, ~reaches(owners, length)] = 0
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class PhraseTable:
    """P(w|t), the probability that the phrase t becomes the phrase w.

    Args:
        codes: those of the P phrases, ascending.  # (P,) uint64
        matrix: rows w, columns t.  # (P, P) float32
        longest: L, terms of the longest phrase.
    """

    codes: NDArray[np.uint64]
    matrix: csr_array
    longest: int

    def numbers(self, texts: TermLists) -> Ids:
        """Return the number of the phrase of each length that starts at each place, -1 where it is none of these.

        Returns:
            One row for each length from 1 to L.  # (L, M)
        """
        codes = phrase_codes(texts, self.longest)
        if not len(self.codes):
            return np.full(codes.shape, -1)
        places = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where((self.codes[places] == codes) & (codes > 0), places, -1)

    def probability(self, source: Sequence[int], target: Sequence[int]) -> float:
        """Return P(w|t) of two phrases, 0 where the table lacks them."""
        before, after = (self.numbers(TermLists.of([phrase]))[len(phrase) - 1, 0] for phrase in (source, target))
        return float(self.matrix[after, before]) if min(before, after) >= 0 else 0.0

    def shares(self, query: Ids, texts: TermLists) -> Floats:
        """Return ``Σ_t P(w|t) · #(t, D) / |D|`` of the phrase w of each length at each place of a query.  # (L, T, N)

        Args:
            query: its terms in order.  # (T,)
            texts: N texts D; 0 for one without terms.
        """
        rows, theirs = self.numbers(TermLists.of([query])), self.numbers(texts)
        shares = np.zeros((*rows.shape, len(texts)))
        lengths, places = np.nonzero(theirs >= 0)
        counts = csr_array(
            (np.ones(len(places)), (texts.owners()[places], theirs[lengths, places])),
            shape=(len(texts), len(self.codes)),
        )
        if (rows >= 0).any():
            shares[rows >= 0] = (self.matrix[rows[rows >= 0]] @ counts.T).toarray()
        return shares / np.maximum(texts.lengths(), 1)


Segmentation = Literal["best", "sum"]


def best_or_sum(probabilities: Sequence[Floats], segmentation: Segmentation) -> Floats:
    """Return log α_|q| over all ways to cut a query into phrases.  # (N,)

    Args:
        probabilities: log P of the phrases of 1, 2, … L terms, one array each: row j is that of the phrase that starts
            at term j; a length l of a query of T terms has T - l + 1 rows, or none.  # (T - l + 1, N)

    Example:
        Two terms with 0.5 and 0.4, together with 0.3: the best is 0.3 in one piece, the sum is 0.5 · 0.4 + 0.3.

        >>> logs = [np.log([[0.5], [0.4]]), np.log([[0.3]])]
        >>> [round(float(np.exp(best_or_sum(logs, name)[0])), 4) for name in ("best", "sum")]
        [0.3, 0.5]
    """
    join = np.maximum if segmentation == "best" else np.logaddexp
    ways = [np.zeros(probabilities[0].shape[1])]  # log α_0, log α_1, …
    for end in range(1, len(probabilities[0]) + 1):
        way = ways[end - 1] + probabilities[0][end - 1]
        for length in range(2, min(end, len(probabilities)) + 1):
            way = join(way, ways[end - length] + probabilities[length - 1][end - length])
        ways.append(way)
    return ways[-1]


@dataclass(frozen=True, slots=True, eq=False)
class WordLinks:
    """Which words of pairs of texts belong together; places count through all texts of a side.

    Args:
        from_place: place in the ids of the sources of each link.  # (K,)
        to_place: place in the ids of the targets of each link.  # (K,)
    """

    pairs: Parallel
    from_place: Ids
    to_place: Ids


def best_links(probabilities: Floats) -> list[Link]:
    """Return for each column the row of its largest number, in order of columns; none where all are 0.

    Args:
        probabilities: t(w_j|u_i) of one pair.  # (I, J)

    >>> best_links(np.array([[0.2, 0.9, 0.0], [0.3, 0.1, 0.0]]))
    [(1, 0), (0, 1)]
    """
    best, is_linked = probabilities.argmax(axis=0).tolist(), (probabilities.max(axis=0) > 0).tolist()
    return [(row, column) for column, row in enumerate(best) if is_linked[column]]


def grow_diag_final(forward: Sequence[Link], backward: Sequence[Link]) -> list[Link]:
    """Return the links of a pair, ordered by their places.

    Example:
        Both directions have (0, 0). Its neighbour (0, 1) is grown; (2, 3) touches nothing and comes in at the end.

        >>> grow_diag_final([(0, 0), (0, 1), (2, 3)], [(0, 0)])
        [(0, 0), (0, 1), (2, 3)]
    """
    either = {*forward, *backward}
    links = set(forward).intersection(backward)
    rows, columns = {row for row, _ in links}, {column for _, column in links}

    def added(candidates: Iterable[Link]) -> list[Link]:
        new = []
        for row, column in candidates:
            if row not in rows or column not in columns:
                rows.add(row)
                columns.add(column)
                new.append((row, column))
        return new

    fresh = sorted(links)
    while fresh:  # a link that was looked at has no more to give: words without links only get fewer
        around = ((row + down, column + right) for row, column in fresh for down, right in _NEIGHBOURS)
        fresh = sorted(added(link for link in around if link in either))
        links.update(fresh)
    links.update(added(forward))
    links.update(added(backward))
    return sorted(links)


def align(pairs: Parallel, translations: csr_array) -> WordLinks:
    """Return the links of pairs of texts.

    Args:
        translations: t(w|u), learned from the pairs in both directions.

    Example:
        >>> back_and_forth = csr_array(([1.0, 0.5, 1.0, 0.5], ([3, 4, 1, 2], [1, 2, 3, 4])), shape=(5, 5))
        >>> links = align(Parallel.of([([1], [3]), ([1, 2], [4, 3])]), back_and_forth)  # 1 - 3 and 2 - 4
        >>> list(zip(links.from_place.tolist(), links.to_place.tolist()))
        [(0, 0), (1, 2), (2, 1)]
    """
    links: list[Link] = []
    sources, targets = pairs.sources, pairs.targets
    for first in range(0, len(pairs), _PAIRS_AT_ONCE):
        rows = range(first, min(first + _PAIRS_AT_ONCE, len(pairs)))
        own = [np.repeat(sources[row], len(targets[row])) for row in rows]
        theirs = [np.tile(targets[row], len(sources[row])) for row in rows]
        ends = np.cumsum([len(cells) for cells in own])[:-1]
        ahead, behind = (
            np.split(np.asarray(translations[np.concatenate(words), np.concatenate(from_words)]).ravel(), ends)
            for words, from_words in ((theirs, own), (own, theirs))
        )
        for row, to_target, to_source in zip(rows, ahead, behind, strict=True):
            shape, down, right = (len(sources[row]), len(targets[row])), sources.starts[row], targets.starts[row]
            backward = [(source, target) for target, source in best_links(to_source.reshape(shape).T)]
            joined_links = grow_diag_final(best_links(to_target.reshape(shape)), backward)
            links.extend((int(down) + source, int(right) + target) for source, target in joined_links)
    places = np.array(links, np.int64).reshape(-1, 2)
    return WordLinks(pairs, places[:, 0], places[:, 1])


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Pairs of spans of texts; places count through all texts of a side.

    Args:
        source, source_length: first place in the sources, number of terms.  # (K,)
        target, target_length: first place in the targets, number of terms.  # (K,)
    """

    source: Ids
    source_length: Ids
    target: Ids
    target_length: Ids


def consistent_spans(links: WordLinks, longest: int) -> Spans:
    """Return every pair of phrases, of 1 to ``longest`` terms each, that is consistent with the links.

    Example:
        The words a b and x y with the links a-x and b-y: a-x, b-y and ab-xy.

        >>> places = np.array([0, 1])
        >>> spans = consistent_spans(WordLinks(Parallel.of([([1, 2], [3, 4])]), places, places), 2)
        >>> list(zip(spans.source.tolist(), spans.source_length.tolist(), spans.target.tolist()))
        [(0, 1, 0), (1, 1, 1), (0, 2, 0)]
    """
    source_owners, target_owners = links.pairs.sources.owners(), links.pairs.targets.owners()
    first, last = _linked(links.from_place, links.to_place, len(source_owners), longest)  # (L, M) each
    least, most = _linked(links.to_place, links.from_place, len(target_owners), longest)
    left, right = _free(least[0] > most[0], target_owners, longest)
    pieces: list[tuple[Ids, Ids, Ids, Ids]] = []
    for length in range(1, longest + 1):
        low, high = first[length - 1], last[length - 1]
        starts = np.flatnonzero(reaches(source_owners, length) & (low <= high) & (high - low < longest))
        low, high = low[starts], high[starts]
        width = high - low  # of the target's span, less one
        is_consistent = (least[width, low] >= starts) & (most[width, low] < starts + length)
        starts, low, high, width = (part[is_consistent] for part in (starts, low, high, width))
        for before in range(longest):
            for after in range(longest - before):
                fits = (left[low] >= before) & (right[high] >= after) & (width + before + after < longest)
                chosen = starts[fits]
                spread = width[fits] + 1 + before + after
                pieces.append((chosen, np.full(len(chosen), length), low[fits] - before, spread))
    source, source_length, target, target_length = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return Spans(source, source_length, target, target_length)


def count_phrases(links: WordLinks, longest: int, least: int = LEAST) -> PhraseTable:
    """Count the phrases of aligned pairs, each pair in both directions.

    Args:
        longest: L ≥ 1, terms of the longest phrase.
        least: how often a pair of phrases must have been seen, ≥ 1.

    Example:
        Of 1 linked with 2 three times and with 3 once: P(2|1) = 3/4, and seen once is left out; P(1|2) = 1.

        >>> pairs = Parallel.of([([1], [2]), ([1], [2]), ([1], [2]), ([1], [3])])
        >>> table = count_phrases(WordLinks(pairs, np.arange(4), np.arange(4)), 1)
        >>> [table.probability(*phrases) for phrases in (([1], [2]), ([1], [3]), ([2], [1]))]
        [0.75, 0.0, 1.0]
    """
    spans, pairs = consistent_spans(links, longest), links.pairs
    codes = phrase_codes(joined(pairs.sources, pairs.targets), longest)
    source = codes[spans.source_length - 1, spans.source]
    target = codes[spans.target_length - 1, spans.target + len(pairs.sources.ids)]
    known, numbers = np.unique(np.concatenate([source, target]), return_inverse=True)
    shape, (own, theirs) = (len(known), len(known)), np.split(numbers, 2)
    seen = coo_array((np.ones(len(numbers)), (np.append(theirs, own), np.append(own, theirs))), shape=shape).tocsr()
    totals: Floats = np.asarray(seen.sum(axis=0)).ravel()  # N(t)
    entries = seen.tocoo()
    is_kept = entries.data >= least
    rows, columns = entries.coords[0][is_kept], entries.coords[1][is_kept]
    kept, places = np.unique(np.concatenate([rows, columns]), return_inverse=True)
    values = (entries.data[is_kept] / totals[columns]).astype(np.float32)
    numbers_w, numbers_t = np.split(places, 2)
    matrix = coo_array((values, (numbers_w, numbers_t)), shape=(len(kept), len(kept))).tocsr()
    return PhraseTable(known[kept], matrix, longest)


def _linked(places: Ids, linked: Ids, count: int, longest: int) -> tuple[Ids, Ids]:
    """Return the least and the largest place that a phrase of each length at each place is linked with.  # (L, M)

    Where nothing is linked, the least is above the largest.
    """
    far = np.iinfo(np.int64).max // 2
    least, most = np.full((longest, count), far), np.full((longest, count), -1)
    np.minimum.at(least[0], places, linked)
    np.maximum.at(most[0], places, linked)
    for length in range(1, min(longest, count)):
        least[length, :-length] = np.minimum(least[length - 1, :-length], least[0, length:])
        most[length, :-length] = np.maximum(most[length - 1, :-length], most[0, length:])
    return least, most


def _free(is_free: NDArray[np.bool_], owners: Ids, longest: int) -> tuple[Ids, Ids]:
    """Return how many words without links stand right before and right after each place, at most L - 1.  # (M,)"""
    left, right = np.zeros(len(owners), np.int64), np.zeros(len(owners), np.int64)
    for away in range(1, min(longest, len(owners))):
        same = owners[:-away] == owners[away:]
        left[away:] += same & is_free[:-away] & (left[away:] == away - 1)
        right[:-away] += same & is_free[away:] & (right[:-away] == away - 1)
    return left, right
