"""Measures of how alike two texts are, each of one query with N candidates, by name and as one matrix of features.

All are in [0, 1] but the cosine of vectors, and 0 where one of the two texts is empty: an empty text has nothing in
common with any text, not even with another empty one. rapidfuzz is loaded when it is first needed; without it the edit
distances and the longest common subsequence raise ``MissingExtraError``.

Source: Broder 1997, "On the resemblance and containment of documents", section 1, for Jaccard (resemblance) and
containment; Lyon, Malcolm and Dickerson 2001 for word trigrams; Barrón-Cedeño et al. 2010 for character n-grams.
Levenshtein 1966; Jaro 1989; Winkler 1990; Monge and Elkan 1996, "The field matching problem", section 4. Gusfield
1997, "Algorithms on Strings, Trees and Sequences", sections 7.4 and 11.6, for subsequences and substrings; Blumer et
al. 1985, "The smallest automaton recognizing the subwords of a text". Wise 1993, "String similarity via greedy string
tiling and running Karp-Rabin matching"; its similarity is that of Prechelt, Malpohl and Philippsen 2002, "Finding
plagiarisms among a set of programs with JPlag", section 3.3. Mitchell and Lapata 2010, "Composition in distributional
models of semantics", section 3, for means of word vectors; Arora, Liang and Ma 2017 show that weighting by rarity
helps.

Bär, Zesch and Gurevych 2013, "DKPro Similarity: An Open Source Framework for Text Similarity", table 1, for the
family; Lei et al. 2016 use it as the features of a ranking SVM.
"""

from __future__ import annotations

import heapq
import importlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import add
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from askalike.errors import MissingExtraError, SettingError
from askalike.models.term_weighting import BM25, CollectionStatistics, TfIdf, inverse_document_frequency, saturation
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.text.tokens import words
from askalike.types import Question

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Distinct n-grams of one text and their weights.

    Args:
        codes: one number for each n-gram, ascending and distinct.  # (U,) uint64
        weights: how often it occurs, or what else it counts.  # (U,) float64
    """

    codes: NDArray[np.uint64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.codes)


def character_symbols(text: str) -> NDArray[np.uint64]:
    """Return the code points of a text.  # (T,)

    >>> character_symbols("ab").tolist()
    [97, 98]
    """
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)


def ngram_profile(symbols: NDArray[np.uint64], size: int) -> Profile:
    """Return the distinct n-grams of one size with how often each occurs.

    An n-gram's code is ``(…(s_1 · P + s_2) · P + …) + s_n`` modulo 2^64, P odd. Of single symbols it is exact; two
    longer n-grams share a code by a chance of about 2^-64.

    Args:
        symbols: numbers of words or characters in order.  # (T,)
        size: n ≥ 1; a text of fewer symbols has no n-gram.

    >>> sorted(ngram_profile(character_symbols("abab"), 2).weights.tolist())  # ba once, ab twice
    [1.0, 2.0]
    """
    count = len(symbols) - size + 1
    if count < 1:
        return Profile(np.empty(0, np.uint64), np.empty(0))
    codes = symbols[:count]
    for place in range(1, size):
        codes = codes * _MULTIPLIER + symbols[place : place + count]
    distinct, times = np.unique(codes, return_counts=True)
    return Profile(distinct, times.astype(np.float64))


def shared_counts(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return how many distinct n-grams the query shares with each candidate.  # (N,)"""
    owners, _, _ = _meet(query, candidates)
    return np.bincount(owners, minlength=len(candidates)).astype(np.float64)


def product_sums(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``Σ_g w_q(g) · w_c(g)`` over the n-grams that the query shares with each candidate.  # (N,)"""
    owners, places, hits = _meet(query, candidates)
    if not len(owners):
        return np.zeros(len(candidates))
    weights = np.concatenate([candidate.weights for candidate in candidates])[hits]
    products = query.weights[places] * weights
    return np.bincount(owners, weights=products, minlength=len(candidates)).astype(np.float64)


def _meet(query: Profile, candidates: Sequence[Profile]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return for every shared n-gram: the candidate's number, its place in the query, its place in all candidates."""
    nothing = np.empty(0, np.intp)
    if not len(query) or not candidates:
        return nothing, nothing, nothing
    codes = np.concatenate([candidate.codes for candidate in candidates])
    places = np.searchsorted(query.codes, codes)
    places[places == len(query)] = 0
    hits = np.flatnonzero(query.codes[places] == codes)
    owners = np.repeat(np.arange(len(candidates)), [len(candidate) for candidate in candidates])
    return owners[hits], places[hits], hits


def jaccard(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``|A ∩ B| / |A ∪ B|`` over distinct n-grams.  # (N,)

    >>> a, b = (ngram_profile(character_symbols(text), 1) for text in ("abc", "bcd"))
    >>> jaccard(a, [b]).tolist()
    [0.5]
    """
    shared = shared_counts(query, candidates)
    return _divided(shared, len(query) + _sizes(candidates) - shared)


def containment(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``|A ∩ B| / min(|A|, |B|)`` over distinct n-grams: 1 when one text holds all of the other.  # (N,)

    Differs: Broder divides by the first of the two; by the smaller one, it does not matter which one is asked about.

    >>> a, b = (ngram_profile(character_symbols(text), 1) for text in ("ab", "abcd"))
    >>> containment(a, [b]).tolist()
    [1.0]
    """
    return _divided(shared_counts(query, candidates), np.minimum(len(query), _sizes(candidates)))


def cosine(query: Profile, candidates: Sequence[Profile]) -> NDArray[np.float64]:
    """Return ``Σ_g w_q(g) w_c(g) / (‖w_q‖ ‖w_c‖)``, weights ≥ 0.  # (N,)

    >>> a, b = (ngram_profile(character_symbols(text), 1) for text in ("aab", "abb"))
    >>> cosine(a, [b]).round(6).tolist()  # (2 · 1 + 1 · 2) / (√5 √5)
    [0.8]
    """
    norms = np.array([np.linalg.norm(candidate.weights) for candidate in candidates], dtype=np.float64)
    found = _divided(product_sums(query, candidates), np.linalg.norm(query.weights) * norms)
    return np.minimum(found, 1.0)  # rounding may go over by one unit in the last place


def length_ratio(query: int, candidates: Sequence[int]) -> NDArray[np.float64]:
    """Return ``min(|A|, |B|) / max(|A|, |B|)`` of lengths in words, 0 when one is empty.  # (N,)

    >>> length_ratio(4, [8, 4, 0]).tolist()
    [0.5, 1.0, 0.0]
    """
    lengths = np.array(candidates, dtype=np.float64)
    return _divided(np.minimum(query, lengths), np.maximum(query, lengths))


def _sizes(candidates: Sequence[Profile]) -> NDArray[np.float64]:
    return np.array([len(candidate) for candidate in candidates], dtype=np.float64)


def _divided(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quotients, 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _by_distance(
    distance: str, query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return one minus a distance of ``rapidfuzz.distance`` over the most that it can be.  # (N,)"""
    if not query or not candidates:
        return np.zeros(len(candidates))
    found: NDArray[np.float64] = _compare(distance, [query], candidates)[0]
    found[[not candidate for candidate in candidates]] = 0.0
    return found


def _compare(
    distance: str, these: Sequence[Sequence[Hashable]], those: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return the similarity of each of ``these`` with each of ``those``.  # (len(these), len(those))"""
    try:
        process, distances = (importlib.import_module(f"rapidfuzz.{name}") for name in ("process", "distance"))
    except ImportError as error:
        raise MissingExtraError("distances between strings need rapidfuzz, which is not installed", "train") from error
    scorer = getattr(distances, distance).normalized_similarity
    return np.asarray(process.cdist(these, those, scorer=scorer, dtype=np.float64), dtype=np.float64)


def levenshtein(query: str, candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return ``1 - d(a, b) / max(|a|, |b|)``, d the fewest insertions, deletions and replacements.  # (N,)

    >>> levenshtein("kitten", ["sitting"]).round(4).tolist()  # 1 - 3/7
    [0.5714]
    """
    return _by_distance("Levenshtein", query, candidates)


def jaro(query: str, candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return ``(m/|a| + m/|b| + (m - t)/m) / 3``, m characters common within a window, t transpositions.  # (N,)

    >>> jaro("martha", ["marhta"]).round(4).tolist()  # m = 6, t = 1: (1 + 1 + 5/6) / 3
    [0.9444]
    """
    return _by_distance("Jaro", query, candidates)


def jaro_winkler(query: str, candidates: Sequence[str]) -> NDArray[np.float64]:
    """Return ``J + 0.1 · l · (1 - J)`` where Jaro's J > 0.7, else J; l characters of common prefix, at most 4.  # (N,)

    >>> jaro_winkler("martha", ["marhta"]).round(4).tolist()  # 0.9444 + 0.3 · 0.0556
    [0.9611]
    """
    return _by_distance("JaroWinkler", query, candidates)


def monge_elkan(query: Sequence[str], candidates: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return ``(ME(A, B) + ME(B, A)) / 2``, ``ME(A, B) = 1/|A| Σ_{a ∈ A} max_{b ∈ B} JaroWinkler(a, b)``.  # (N,)

    Differs: the mean of both directions, so that the order of the two texts does not matter. The time is that of
    ``|A| · |B|`` comparisons of words: for titles.

    >>> monge_elkan(["ab"], [["ab", "xy"]]).tolist()  # (1 + (1 + 0)/2) / 2
    [0.75]
    """
    found = np.zeros(len(candidates))
    lengths = [len(candidate) for candidate in candidates]
    if not query or not sum(lengths):
        return found
    everything = [word for candidate in candidates for word in candidate]
    alike = _compare("JaroWinkler", query, everything)  # (|A|, Σ|B|)
    end = 0
    for place, length in enumerate(lengths):
        start, end = end, end + length
        if length:
            own = alike[:, start:end]
            found[place] = (own.max(axis=1).mean() + own.max(axis=0).mean()) / 2
    return found


def longest_common_subsequence(
    query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return ``LCS(a, b) / max(|a|, |b|)``, what is common in order, gaps allowed.  # (N,)

    >>> longest_common_subsequence("abcd", ["axcd"]).tolist()  # a, c, d
    [0.75]
    """
    return _by_distance("LCSseq", query, candidates)


def longest_common_substring(
    query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]]
) -> NDArray[np.float64]:
    """Return ``longest common run / max(|a|, |b|)``, no gaps.  # (N,)

    >>> longest_common_substring("abcd", ["axcd"]).tolist()  # cd
    [0.5]
    """
    if not query:
        return np.zeros(len(candidates))
    automaton = SubstringAutomaton(query)
    longest = [automaton.longest_run(candidate) / max(len(query), len(candidate)) for candidate in candidates]
    return np.array(longest, dtype=np.float64)


class SubstringAutomaton:
    """The smallest automaton that accepts every run of a sequence; built and read in time linear in the lengths.

    State 0 is the empty run. ``_length[s]`` is the longest run that ends in state s, ``_link[s]`` the state of its
    longest suffix that occurs elsewhere too.

    >>> SubstringAutomaton("banana").longest_run("bandana")
    3
    """

    def __init__(self, sequence: Sequence[Hashable]) -> None:
        self._next: list[dict[Hashable, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        last = 0
        for symbol in sequence:
            last = self._extend(last, symbol)

    def longest_run(self, sequence: Sequence[Hashable]) -> int:
        """Return the length of the longest run of ``sequence`` that the automaton's sequence has too."""
        after, link, lengths = self._next, self._link, self._length
        state = length = best = 0
        for symbol in sequence:
            reached = after[state].get(symbol)
            while reached is None and state:
                state = link[state]
                length = lengths[state]
                reached = after[state].get(symbol)
            if reached is not None:
                state = reached
                length += 1
                if length > best:
                    best = length
        return best

    def _extend(self, last: int, symbol: Hashable) -> int:
        """Add a symbol after state ``last``, which is all that was read; return the state of all that is read now."""
        after, link = self._next, self._link
        new = self._state({}, self._length[last] + 1, 0)
        state = last
        while state >= 0 and symbol not in after[state]:
            after[state][symbol] = new
            state = link[state]
        if state >= 0:
            reached = after[state][symbol]
            if self._length[reached] > self._length[state] + 1:
                reached = self._divide(state, symbol, reached)
            link[new] = reached
        return new

    def _divide(self, state: int, symbol: Hashable, reached: int) -> int:
        """Take the shorter runs out of a state that also stands for longer ones; return their own state."""
        after, link = self._next, self._link
        shorter = self._state(dict(after[reached]), self._length[state] + 1, link[reached])
        while state >= 0 and after[state].get(symbol) == reached:
            after[state][symbol] = shorter
            state = link[state]
        link[reached] = shorter
        return shorter

    def _state(self, after: dict[Hashable, int], length: int, link: int) -> int:
        self._next.append(after)
        self._length.append(length)
        self._link.append(link)
        return len(self._next) - 1


MINIMUM_MATCH = 3
"""The shortest run that is a tile, in words."""

Tile = tuple[int, int, int]
"""(length, first place in a, first place in b)"""

_Grams = dict[tuple[Hashable, ...], list[int]]


def greedy_string_tiling(
    query: Sequence[Hashable], candidates: Sequence[Sequence[Hashable]], minimum_match: int = MINIMUM_MATCH
) -> NDArray[np.float64]:
    """Return ``2 · covered / (|a| + |b|)``, covered = the sum of the tiles' lengths.  # (N,)

    Two texts that are equal but shorter than ``minimum_match`` have no tile, so 0. Which of several runs of the same
    length is taken decides what is left, so that the other way round may give another similarity.

    >>> greedy_string_tiling("abcxdef", ["defabc"]).round(4).tolist()  # def and abc: 2 · 6 / 13
    [0.9231]
    >>> [greedy_string_tiling(*pair).round(4).tolist() for pair in (("abbaabb", ["bbababb"]), ("bbababb", ["abbaabb"]))]
    [[0.4286], [0.8571]]

    Raises:
        SettingError: ``minimum_match`` is below 1.
    """
    grams = _positions(query, minimum_match)
    found = np.zeros(len(candidates))
    for place, candidate in enumerate(candidates):
        covered = sum(length for length, _, _ in _tile(query, candidate, grams, minimum_match))
        if covered:
            found[place] = 2.0 * covered / (len(query) + len(candidate))
    return found


def tiles(a: Sequence[Hashable], b: Sequence[Hashable], minimum_match: int = MINIMUM_MATCH) -> list[Tile]:
    """Return the tiles, longest first; of equal ones the first in ``a``, then the first in ``b``.

    Again and again the longest run of uncovered words that both texts have is covered in both.

    >>> tiles("abcxdef", "defabc")
    [(3, 0, 3), (3, 4, 0)]

    Raises:
        SettingError: ``minimum_match`` is below 1.
    """
    return list(_tile(a, b, _positions(a, minimum_match), minimum_match))


def _positions(sequence: Sequence[Hashable], size: int) -> _Grams:
    if size < 1:
        raise SettingError(f"the shortest tile is {size}", "expected at least 1")
    found: _Grams = {}
    for start in range(len(sequence) - size + 1):
        found.setdefault(tuple(sequence[start : start + size]), []).append(start)
    return found


def _tile(a: Sequence[Hashable], b: Sequence[Hashable], grams: _Grams, shortest: int) -> Iterator[Tile]:
    """Yield tiles greedily: a run is cut where others have covered it since, and what is left of it waits again."""
    waiting = [(-length, i, j) for length, i, j in _runs(a, b, grams, shortest)]
    heapq.heapify(waiting)
    covered_a, covered_b = bytearray(len(a)), bytearray(len(b))
    while waiting:
        negative, i, j = heapq.heappop(waiting)
        length = -negative
        if any(covered_a[i : i + length]) or any(covered_b[j : j + length]):
            for left, offset in _uncovered(covered_a[i : i + length], covered_b[j : j + length]):
                if left >= shortest:
                    heapq.heappush(waiting, (-left, i + offset, j + offset))
            continue
        covered_a[i : i + length] = covered_b[j : j + length] = b"\1" * length
        yield length, i, j


def _runs(a: Sequence[Hashable], b: Sequence[Hashable], grams: _Grams, shortest: int) -> Iterator[Tile]:
    """Yield every run of at least ``shortest`` that can be made no longer."""
    ends: dict[int, int] = {}  # diagonal j - i → where in b its last run ended
    for j in range(len(b) - shortest + 1):
        for i in grams.get(tuple(b[j : j + shortest]), ()):
            if ends.get(j - i, -1) > j:
                continue
            length = shortest
            while i + length < len(a) and j + length < len(b) and a[i + length] == b[j + length]:
                length += 1
            ends[j - i] = j + length
            yield length, i, j


def _uncovered(covered_a: bytearray, covered_b: bytearray) -> Iterator[tuple[int, int]]:
    """Yield (length, offset) of the stretches that neither text has covered."""
    start = 0
    for place, (in_a, in_b) in enumerate(zip(covered_a, covered_b, strict=True)):
        if in_a or in_b:
            if place > start:
                yield place - start, start
            start = place + 1
    if len(covered_a) > start:
        yield len(covered_a) - start, start


class WordVectors(Protocol):
    """word → vector; a dict is one, and so are gensim's."""

    def __contains__(self, word: object, /) -> bool: ...

    def __getitem__(self, word: str, /) -> NDArray[np.float32]:
        """Return the word's vector.  # (D,)"""


def known_vectors(words: Sequence[str], vectors: WordVectors) -> tuple[list[str], NDArray[np.float32]]:
    """Return the words that have a vector, in order and with repetitions, and their vectors.  # (K,), (K, D)

    >>> known, rows = known_vectors(["b", "zebra"], {"b": np.array([0, 1], np.float32)})
    >>> known, rows.tolist()
    (['b'], [[0.0, 1.0]])
    """
    known = [word for word in words if word in vectors]
    return known, np.array([vectors[word] for word in known], dtype=np.float32)


def mean_vector(rows: NDArray[np.float32], weights: Sequence[float] | None = None) -> NDArray[np.float32]:
    """Return ``Σ_w α(w) x_w / Σ_w α(w)``, α = 1 or the given weights ≥ 0.  # (K, D) → (D,)

    Of no words, or where all weigh nothing, it has no numbers at all: (0,).

    >>> mean_vector(np.array([[1, 0], [0, 1], [0, 1]], np.float32), [2.0, 3.0, 3.0]).tolist()
    [0.25, 0.75]
    """
    shares = np.ones(len(rows), np.float32) if weights is None else np.array(weights, dtype=np.float32)
    if not shares.any():
        return np.empty(0, np.float32)
    return np.asarray(shares @ rows / shares.sum(), dtype=np.float32)


def vector_cosine(query: NDArray[np.float32], candidates: Sequence[NDArray[np.float32]]) -> NDArray[np.float64]:
    """Return the cosines in [-1, 1] of one vector with N others, 0 where one is all zeros or has no numbers.  # (N,)

    >>> one, two = np.array([1, 0], np.float32), np.array([1, 1], np.float32)
    >>> vector_cosine(one, [two, np.empty(0, np.float32)]).round(4).tolist()
    [0.7071, 0.0]
    """
    found = np.zeros(len(candidates))
    places = [place for place, candidate in enumerate(candidates) if len(candidate)]
    if not len(query) or not places:
        return found
    matrix = np.stack([candidates[place] for place in places]).astype(np.float64)  # (N', D)
    norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query.astype(np.float64))
    dots = matrix @ query.astype(np.float64)
    found[places] = np.clip(np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0), -1.0, 1.0)
    return found


FIELDS = ("title", "body", "joined")

MOST_WORDS = 100
"""Bodies are cut after this many words, as the encoders cut them, for all but TF-IDF and BM25."""


class FieldTerms(NamedTuple):
    """The words of one field: as written, in one case, then stems with stop words and without; and all stems of both.

    The first three are of the beginning, ``most_words`` long.
    """

    words: list[str]
    stems: list[str]
    content: list[str]
    whole_stems: list[str]
    whole_content: list[str]


WORD_SIZES = (1, 2, 3)
CHARACTER_SIZES = (2, 3, 4)
TFIDF_FIELDS = {"tfidf_1": FIELDS, "tfidf_2": ("joined",), "tfidf_2_all": ("joined",)}
"""``tfidf_N``: of stems up to N-grams without stop words; ``_all``: with them. Name → what it is applied to."""

_REMEMBERED = 1024  # prepared questions, of about 100 kB each


@dataclass(frozen=True, slots=True, eq=False)
class PreparedText:
    """One field of a question.

    Args:
        words: as written, in one case.
        string: the words with one space between them.
        numbers: a number for each stem, the same for the same stem of every text of one collection.
        profiles: name → n-grams and their weights: ``stems_N``, ``content_N``, ``characters_N``, the names of
            ``TFIDF_FIELDS`` where it lists the field, ``bm25_query``, ``bm25_document``.
        vectors: ``mean`` and ``mean_idf``, means of the words' vectors; empty where there are no word vectors.
    """

    words: Sequence[str]
    string: str
    numbers: Sequence[int]
    profiles: Mapping[str, Profile]
    vectors: Mapping[str, NDArray[np.float32]]


Score = Callable[[PreparedText, Sequence[PreparedText]], NDArray[np.float64]]
"""(query's text, the N candidates' texts) → N similarities, higher is more similar.  # (N,)"""


@dataclass(frozen=True, slots=True)
class Feature:
    """A similarity of two texts.

    Args:
        score: the similarities of one text with N others.
        fields: what of a question it is applied to; the same of both.
        needs_vectors: whether it is left out where there are no word vectors.
    """

    score: Score
    fields: tuple[str, ...] = FIELDS
    needs_vectors: bool = False


def _of_profiles(measure: Callable[[Profile, Sequence[Profile]], NDArray[np.float64]], name: str) -> Score:
    return lambda query, candidates: measure(query.profiles[name], [text.profiles[name] for text in candidates])


def _of_strings(measure: Callable[[str, Sequence[str]], NDArray[np.float64]]) -> Score:
    return lambda query, candidates: measure(query.string, [text.string for text in candidates])


def _of_stems(measure: Callable[[Sequence[int], Sequence[Sequence[int]]], NDArray[np.float64]]) -> Score:
    return lambda query, candidates: measure(query.numbers, [text.numbers for text in candidates])


def _of_vectors(name: str) -> Score:
    return lambda query, candidates: vector_cosine(query.vectors[name], [text.vectors[name] for text in candidates])


def _bm25(query: PreparedText, candidates: Sequence[PreparedText]) -> NDArray[np.float64]:
    return product_sums(query.profiles["bm25_query"], [text.profiles["bm25_document"] for text in candidates])


def _monge_elkan(query: PreparedText, candidates: Sequence[PreparedText]) -> NDArray[np.float64]:
    return monge_elkan(query.words, [text.words for text in candidates])


def _length_ratio(query: PreparedText, candidates: Sequence[PreparedText]) -> NDArray[np.float64]:
    return length_ratio(len(query.words), [len(text.words) for text in candidates])


_APART = ("title", "body")  # what depends on order is not asked of title and body joined

FEATURES: dict[str, Feature] = {
    **{
        f"{name}_{kind}_{size}": Feature(_of_profiles(measure, f"{kind}_{size}"))
        for kind in ("stems", "content")
        for size in WORD_SIZES
        for name, measure in (("jaccard", jaccard), ("containment", containment))
    },
    **{
        f"{name}_characters_{size}": Feature(_of_profiles(measure, f"characters_{size}"))
        for size in CHARACTER_SIZES
        for name, measure in (("jaccard", jaccard), ("cosine", cosine))
    },
    "subsequence_characters": Feature(_of_strings(longest_common_subsequence), _APART),
    "subsequence_stems": Feature(_of_stems(longest_common_subsequence), _APART),
    "substring_characters": Feature(_of_strings(longest_common_substring), _APART),
    "substring_stems": Feature(_of_stems(longest_common_substring), _APART),
    "tiling_stems": Feature(_of_stems(greedy_string_tiling), _APART),
    "levenshtein": Feature(_of_strings(levenshtein), _APART),
    "jaro": Feature(_of_strings(jaro), _APART),
    "jaro_winkler": Feature(_of_strings(jaro_winkler), _APART),
    "monge_elkan": Feature(_monge_elkan, ("title",)),
    **{name: Feature(_of_profiles(cosine, name), fields) for name, fields in TFIDF_FIELDS.items()},
    "bm25": Feature(_bm25),
    "embedding": Feature(_of_vectors("mean"), needs_vectors=True),
    "embedding_idf": Feature(_of_vectors("mean_idf"), needs_vectors=True),
    "length_ratio": Feature(_length_ratio, _APART),
}
"""name → measure. ``stems``: with stop words; ``content``: without. All are in [0, 1] but cosines of vectors, in
[-1, 1], and BM25, ≥ 0 and without a bound."""


class SimilarityFeatures:
    """Turns a query and its candidates into a matrix of similarities; the latest 1,024 questions are remembered.

    Args:
        collection: whose statistics say how rare a term is; questions outside it can be compared too.
        word_vectors: word → vector, or None: then the embedding measures are left out.
        most_words: bodies are cut after this many words, but not for TF-IDF and BM25.

    Raises:
        SettingError: the collection is empty, or ``most_words`` is below 1.
    """

    def __init__(
        self,
        collection: Iterable[Question],
        settings: TextSettings,
        word_vectors: WordVectors | None = None,
        most_words: int = MOST_WORDS,
    ) -> None:
        if most_words < 1:
            raise SettingError(f"bodies are cut after {most_words} words", "expected at least 1")
        self._settings, self._most_words, self._word_vectors = settings, most_words, word_vectors
        self._all = Analyzer(replace(settings, stop_words=False))
        self._content = Analyzer(replace(settings, stop_words=True))
        self._numbers: dict[str, int] = {}
        self._columns = [
            (field, name)
            for name, measure in FEATURES.items()
            if word_vectors is not None or not measure.needs_vectors
            for field in measure.fields
        ]
        questions = [self._fields(question) for question in collection]
        joined = [fields["joined"] for fields in questions]
        content = [terms.whole_content for terms in joined]
        self._bm25 = {
            field: BM25(CollectionStatistics.count([fields[field].whole_content for fields in questions]))
            for field in FIELDS
        }
        self._tfidf = {
            "tfidf_1": TfIdf(content),
            "tfidf_2": TfIdf(content, longest=2),
            "tfidf_2_all": TfIdf([terms.whole_stems for terms in joined], longest=2),
        }
        self._words = CollectionStatistics.count([terms.words for terms in joined])
        self._prepare = lru_cache(maxsize=_REMEMBERED)(self._prepared)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the F columns, ``FIELD.MEASURE``."""
        return tuple(f"{field}.{name}" for field, name in self._columns)

    def matrix(self, query: Question, candidates: Sequence[Question]) -> NDArray[np.float64]:
        """Return the similarities of the query with each candidate, columns as in ``names``.  # (N, F)

        Raises:
            MissingExtraError: rapidfuzz is not installed.
        """
        asked = self._prepare(query)
        given = [self._prepare(candidate) for candidate in candidates]
        texts = {field: [prepared[field] for prepared in given] for field in FIELDS}
        matrix = np.empty((len(candidates), len(self._columns)))
        for column, (field, name) in enumerate(self._columns):
            matrix[:, column] = FEATURES[name].score(asked[field], texts[field])
        return matrix

    def _prepared(self, question: Question) -> dict[str, PreparedText]:
        """Return field → all that a measure needs and that takes only this one question."""
        fields = self._fields(question)
        return {field: self._text(field, fields[field]) for field in FIELDS}

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

    def _text(self, field: str, terms: FieldTerms) -> PreparedText:
        string = " ".join(terms.words)
        numbers = self._number(terms.stems)
        symbols = {
            "stems": (np.array(numbers, dtype=np.uint64), WORD_SIZES),
            "content": (np.array(self._number(terms.content), dtype=np.uint64), WORD_SIZES),
            "characters": (character_symbols(string), CHARACTER_SIZES),
        }
        profiles = {
            f"{name}_{size}": ngram_profile(values, size) for name, (values, sizes) in symbols.items() for size in sizes
        }
        for name in TFIDF_FIELDS:
            if field in TFIDF_FIELDS[name]:
                asked = terms.whole_stems if name.endswith("_all") else terms.whole_content
                profiles[name] = _tfidf_profile(self._tfidf[name], asked)
        profiles |= self._bm25_profiles(self._bm25[field], terms.whole_content)
        return PreparedText(terms.words, string, numbers, profiles, self._vectors(terms.words))

    def _bm25_profiles(self, model: BM25, terms: Sequence[str]) -> dict[str, Profile]:
        """Return the two sides of BM25: the sum of the products over shared terms is its score."""
        times = Counter(terms)
        codes = np.array(self._number(times), dtype=np.uint64)
        order = np.argsort(codes)
        asked = [count * model.idf(term) for term, count in times.items()]
        average = model.statistics.average_length
        given = [saturation(count, len(terms), average, model.k1, model.b) for count in times.values()]
        return {
            "bm25_query": Profile(codes[order], np.array(asked, dtype=np.float64)[order]),
            "bm25_document": Profile(codes[order], np.array(given, dtype=np.float64)[order]),
        }

    def _vectors(self, words: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        if self._word_vectors is None:
            return {}
        known, rows = known_vectors(words, self._word_vectors)
        return {
            "mean": mean_vector(rows),
            "mean_idf": mean_vector(rows, [self._rarity(word) for word in known]),
        }

    def _rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word as it is written, > 0."""
        return inverse_document_frequency(self._words.documents, self._words.document_frequency.get(word, 0))

    def _number(self, terms: Iterable[str]) -> list[int]:
        known = self._numbers
        return [known.setdefault(term, len(known)) for term in terms]


def _tfidf_profile(model: TfIdf, terms: Sequence[str]) -> Profile:
    row = model.vectors([terms])
    order = np.argsort(row.columns)
    return Profile(row.columns[order].astype(np.uint64), row.values[order])
