"""Translation of words: what is learned by IBM's model 1, and the models of Jeon et al. and of Xue et al. over it.

**IBM's model 1.** Which term translates into which, learned from pairs of texts by expectation and maximisation.

::

    P(target|source) ∝ Π_{w ∈ target} (1/l) Σ_{u ∈ source} t(w|u)         l: terms of the source, one more with NULL

    E   c(w|u) = Σ over pairs, over w's and u's occurrences, of t(w|u) / Σ_{u' ∈ source} t(w|u')
    M   t(w|u) = c(w|u) / Σ_w c(w|u)

It begins with every t(w|u) alike, and each step makes the pairs likelier or leaves them as they are. NULL is a term
that every source has beside its own, so that a word need not come from any of them.

A pair of texts with L and M terms has L·M cells; of each, 4 bytes are kept, the number of its (w, u).

Source: Brown, Della Pietra, Della Pietra and Mercer 1993 (Computational Linguistics 19:2), section 4.2.

**Ranking.** A query's word may also come from another word of a candidate.

::

    P_mx(w|q,a) = α · P_ml(w|q) + β · Σ_{u ∈ q} t(w|u) · P_ml(u|q) + γ · P_ml(w|a),        α + β + γ = 1
    P(w|q,a)    = (1 - s) · P_mx(w|q,a) + s · P(w|C)

s is μ / (|q,a| + μ) under Dirichlet smoothing, the paper's of TransLM, |q,a| being the number of terms of question and
answer together; it is λ under Jelinek-Mercer, the paper's of the word translation model. That is γ = 0, and α = σ the
share of words that stay as they are; with σ = 0, as it is written, how well a word matches itself is what t(w|w) was
learned to be. It can be 1 in place of that, so that a word of the query that a text has counts as in the text's own
language model, and translations are added; the sums over w are above 1 then.

Source: Jeon, Croft and Lee 2005 (CIKM), the query's likelihood by word translation, after Berger and Lafferty 1999;
Xue, Jeon and Croft 2008 (SIGIR), TransLM, the model of question and answer. t(w|u) is IBM's model 1, trained on all
pairs (q, a) and (a, q) together, P_pool there.
Reading: the equations are from memory. A language is translated into itself here, and how likely a word stays itself
decides much: learned from questions and answers t(w|w) is small, since an answer repeats few words of its question. A
candidate without an answer is one whose terms are those of its question: α and β are brought to sum to 1 there, as γ is
beside a question without terms. That Jeon et al. have t(w|w) = 1 is from memory too, and could not be looked up: both
are offered, and both stand in the table of Das et al. 2016 (docs/papers/readings.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.language.likelihood import Collection, Parallel, QueryModel, Smoothing, TermLists, row_sums, shares
from askalike.settings import check_settings

if TYPE_CHECKING:  # of the extra train; no search needs it
    from scipy.sparse import csr_array


Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Translations:
    """t(w|u), the probability that the term u is translated into w; a row w holds every u that can be.

    Args:
        starts: where each row begins, and K.  # (V + 1,) int64
        sources: the u of each row, ascending.  # (K,) int32
        values: t(w|u) > 0.  # (K,) float32
    """

    starts: NDArray[np.int64]
    sources: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, words: NDArray[Any], sources: NDArray[Any], values: NDArray[Any], size: int) -> Translations:
        """Return entries in any order, each pair of w and u once.

        Args:
            words, sources, values: w, u, t(w|u).  # (K,)
            size: V, ids of the vocabulary with 0.

        >>> made = Translations.of(np.array([2, 1]), np.array([1, 1]), np.array([0.25, 0.75]), 3)
        >>> made.starts.tolist(), made.sources.tolist(), made.values.tolist()
        ([0, 0, 1, 2], [1, 1], [0.75, 0.25])
        """
        order = np.lexsort((sources, words))
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(words, minlength=size), out=starts[1:])
        return cls(starts, sources[order].astype(np.int32), values[order].astype(np.float32))

    @classmethod
    def none(cls, size: int = 1) -> Translations:
        """Return no translation of any of the V terms."""
        return cls(np.zeros(size + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    def __len__(self) -> int:
        """Return K, how many probabilities are held."""
        return len(self.values)

    def table(self, words: Ids, sources: Ids) -> Floats:
        """Return t(w|u) of each word for each source; 0 for terms that were never learned.  # (T, U)

        >>> made = Translations.of(np.array([2, 1]), np.array([1, 1]), np.array([0.25, 0.75]), 3)
        >>> made.table(np.array([1, 2, -5]), np.array([1, 2])).tolist()
        [[0.75, 0.0], [0.25, 0.0], [0.0, 0.0]]
        """
        found = np.zeros((len(words), len(sources)))
        known, row_of = np.maximum(sources, 0), np.zeros(len(self.starts) - 1)
        for place, word in enumerate(words.tolist()):
            row = self._row(word)
            row_of[self.sources[row]] = self.values[row]
            found[place] = row_of[known]
            row_of[self.sources[row]] = 0
        return found

    def of_themselves(self, words: Ids) -> Floats:
        """Return t(w|w) of each word.  # (T,)

        >>> made = Translations.of(np.array([2, 1]), np.array([1, 1]), np.array([0.25, 0.75]), 3)
        >>> made.of_themselves(np.array([1, 2])).tolist()
        [0.75, 0.0]
        """
        rows = ((word, self._row(word)) for word in words.tolist())
        return np.array([self.values[row][self.sources[row] == word].sum() for word, row in rows], np.float64)

    def sums(self, words: Ids, texts: TermLists) -> Floats:
        """Return ``Σ_{u ∈ D} tf(u, D) · t(w|u)`` of each word over each text.  # (T, N)

        >>> made = Translations.of(np.array([2, 1]), np.array([1, 1]), np.array([0.25, 0.75]), 3)
        >>> made.sums(np.array([2]), TermLists.of([[1, 1], [2], []])).tolist()
        [[0.5, 0.0, 0.0]]
        """
        rows = [(self.sources[row], self.values[row]) for row in map(self._row, words.tolist())]
        known = TermLists(np.maximum(texts.ids, 0), texts.starts)  # nothing comes from what was never learned
        return row_sums(rows, known, len(self.starts) - 1)

    def shares(self, words: Ids, texts: TermLists) -> Floats:
        """Return ``Σ_{u ∈ D} t(w|u) · P_ml(u|D)``, 0 for a text without terms.  # (T, N)"""
        return self.sums(words, texts) / np.maximum(texts.lengths(), 1)

    def matrix(self) -> csr_array:
        """Return the same as SciPy has it, for sums over rows and columns.  # (V, V)"""
        from scipy.sparse import csr_array

        size = len(self.starts) - 1
        return csr_array((self.values, self.sources, self.starts), shape=(size, size))

    def _row(self, word: int) -> slice:
        return slice(int(self.starts[word]), int(self.starts[word + 1])) if word > 0 else slice(0, 0)


_CELLS_AT_ONCE: Final = 1 << 21
"""How many cells are worked on at once; it bounds the memory."""

_TINIEST: Final = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Alignment:
    """How translations are learned.

    Args:
        iterations: of expectation and maximisation, ≥ 1.
        has_null: whether a word may come from NULL.
        least: a t(w|u) below it is not kept in the end, in [0, 1); those that are stay as they are, so that what is
            left of a term's translations may sum to less than 1.
    """

    iterations: int = 10
    has_null: bool = True
    least: float = 1e-3

    def __post_init__(self) -> None:
        check_settings(self)


def learn_translations(
    pairs: Parallel, size: int, settings: Alignment, on_progress: Callable[[int, float], None] = lambda *_: None
) -> Translations:
    """Return the translations that were learned from pairs; the same from the same.

    Args:
        size: V, ids of the vocabulary with 0.
        on_progress: called after each iteration with how many are done, and the log likelihood per target term before.
    """
    model = ModelOne(pairs, size, has_null=settings.has_null)
    terms = max(1, len(pairs.targets.ids))
    for done in range(1, settings.iterations + 1):
        on_progress(done, model.step() / terms)
    return model.translations(settings.least)


class ModelOne:
    """The state of a training: t(w|u) for every w and u that meet in a pair.

    Args:
        size: V, ids of the vocabulary with 0; NULL has the id V while it is learned.

    Example:
        "das Haus / the house", "das Buch / the book", "ein Buch / a book": das 1, Haus 2, Buch 3, ein 4; the 5, house
        6, book 7, a 8. After two steps "the" is 7/11 of "das", and "a" 4/7 of "ein".

        >>> pairs = Parallel.of([([1, 2], [5, 6]), ([1, 3], [5, 7]), ([4, 3], [8, 7])])
        >>> model = ModelOne(pairs, 9, has_null=False)
        >>> before, after = model.step(), model.step()
        >>> round(model.probability(5, 1), 4), round(model.probability(8, 4), 4), after > before
        (0.6364, 0.5714, True)
    """

    def __init__(self, pairs: Parallel, size: int, *, has_null: bool = False) -> None:
        self._size = size
        self._base = size + 1  # a pair of terms is the number u · base + w
        self._sources = _with_null(pairs, size) if has_null else pairs.sources.ids
        self._lengths = pairs.sources.lengths() + has_null  # (P,)
        self._targets = pairs.targets
        blocks = [self._numbered(first, last) for first, last in _blocks(self._lengths * pairs.targets.lengths())]
        self._pairs = _union([numbers for numbers, _, _ in blocks])  # (K,) ascending
        self._blocks = [
            _Block(np.searchsorted(self._pairs, numbers).astype(np.int32), places, sizes)
            for numbers, places, sizes in blocks
        ]
        self._source_of = (self._pairs // self._base).astype(np.int32)
        self.values: Floats = np.full(len(self._pairs), 1 / max(1, len(np.unique(pairs.targets.ids))))

    def step(self) -> float:
        """Make t(w|u) anew, and return the log likelihood of the pairs under what it was before."""
        counts, likelihood = np.zeros(len(self._pairs)), 0.0
        for block in self._blocks:
            found, share = block.expected(self.values[block.numbers])
            counts[block.numbers] += found
            likelihood += share
        totals = np.bincount(self._source_of, weights=counts, minlength=self._base)
        self.values = counts / np.maximum(totals, _TINIEST)[self._source_of]
        return likelihood

    def probability(self, word: int, source: int) -> float:
        """Return t(w|u); NULL is the source V."""
        number = source * self._base + word
        place = int(np.searchsorted(self._pairs, number))
        is_held = place < len(self._pairs) and int(self._pairs[place]) == number
        return float(self.values[place]) if is_held else 0.0

    def translations(self, least: float = 0.0) -> Translations:
        """Return every t(w|u) ≥ ``least`` and > 0, without those of NULL."""
        is_kept = (self.values >= max(least, _TINIEST)) & (self._source_of < self._size)
        words = self._pairs[is_kept] % self._base
        return Translations.of(words, self._source_of[is_kept], self.values[is_kept], self._size)

    def _numbered(self, first: int, last: int) -> tuple[Ids, NDArray[np.int32], NDArray[np.int32]]:
        """Return of some pairs their distinct (w, u), the place of each place's among them, and the sources' lengths.

        The places of one target word, one for each source word, are beside each other.
        """
        starts = np.cumsum(self._lengths) - self._lengths
        slots = np.arange(self._targets.starts[first], self._targets.starts[last])  # target words
        owners = np.repeat(np.arange(first, last), self._targets.lengths()[first:last])
        sizes = self._lengths[owners]
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1])) - np.repeat(ends - sizes, sizes)
        sources = self._sources[np.repeat(starts[owners], sizes) + within]
        numbers = sources * self._base + np.repeat(self._targets.ids[slots], sizes)
        distinct, places = np.unique(numbers, return_inverse=True)
        return distinct, places.astype(np.int32), sizes.astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Block:
    """Some pairs of texts.

    Args:
        numbers: which of all (w, u) it has.  # (K',) int32
        places: of each place its (w, u) among those.  # (E,) int32
        sizes: how many source words each target word has.  # (S,) int32
    """

    numbers: NDArray[np.int32]
    places: NDArray[np.int32]
    sizes: NDArray[np.int32]

    def expected(self, values: Floats) -> tuple[Floats, float]:
        """Return c(w|u) of these pairs, and their log likelihood.

        Args:
            values: t(w|u).  # (K',)
        """
        held = values[self.places]  # (E,)
        ends = np.cumsum(self.sizes, dtype=np.int64)
        sums = np.add.reduceat(held, ends - self.sizes)  # (S,)
        held /= np.repeat(sums, self.sizes)
        likelihood = float(np.log(sums / self.sizes).sum())
        counts = np.bincount(self.places, weights=held, minlength=len(self.numbers))
        return counts.astype(np.float64, copy=False), likelihood


def _with_null(pairs: Parallel, null: int) -> Ids:
    """Return the sources' terms with NULL before each text."""
    sources = pairs.sources
    found = np.insert(sources.ids, sources.starts[:-1], null)
    return np.asarray(found, np.int64)


def _blocks(places: Ids) -> Iterator[tuple[int, int]]:
    """Yield ranges of pairs of about ``_CELLS_AT_ONCE`` places each."""
    if not len(places):
        return
    cuts = np.flatnonzero(np.diff(np.cumsum(places) // _CELLS_AT_ONCE)) + 1
    yield from zip([0, *cuts.tolist()], [*cuts.tolist(), len(places)], strict=True)


def _union(parts: list[Ids]) -> Ids:
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


WORD_SMOOTHING: Final = Smoothing("jelinek-mercer", 0.2)
"""Of the word translation model, where nothing else is said."""


SelfTranslation = Literal["learned", "certain"]
"""What t(w|w) is: as it was learned, or 1."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """The weights of the three parts, which are brought to sum to 1.

    Args:
        words: α ≥ 0, of the question's own words.
        translations: β ≥ 0, of what they translate into.
        answer: γ ≥ 0, of the answer's words; 0 reads no answers.

    Raises:
        SettingError: a weight below 0, or no weight for the question.
    """

    words: float = 0.6
    translations: float = 0.4
    answer: float = 0.0

    def __post_init__(self) -> None:
        weights = (self.words, self.translations, self.answer)
        if not (all(map(isfinite, weights)) and min(weights) >= 0 and self.words + self.translations > 0):
            raise SettingError(
                f"the weights are words {self.words}, translations {self.translations} and answer {self.answer}",
                "expected finite numbers ≥ 0, and one of the first two above 0",
            )


@dataclass(frozen=True, slots=True)
class TransLM(QueryModel):
    """The words of questions, what they translate into, and the words of their answers.

    Example:
        The word 1; a question of the words 1, 2 and an answer of the words 1, 3, 3, 3; t(1|2) = 0.5; a collection of 10
        words, 1 of them 1; α = 0.5, β = 0.3, γ = 0.2, μ = 6 so that the collection has a half:
        P(1|q,a) = 0.5 · (0.5 · 1/2 + 0.3 · 0.5 · 1/2 + 0.2 · 1/4) + 0.5 · 0.1 = 0.2375. Without the answer, with
        |q| = 2 and the weights 5/8 and 3/8, it is 1/4 · (5/8 · 1/2 + 3/8 · 1/4) + 3/4 · 0.1 = 0.1766.

        >>> learned = Translations.of(np.array([1]), np.array([2]), np.array([0.5]), 4)
        >>> counted, weights = Collection(np.array([0, 1, 4, 5])), Mixture(0.5, 0.3, 0.2)
        >>> model = TransLM(counted, learned, Smoothing("dirichlet", 6.0), weights)
        >>> asked = TermLists.of([[1, 2], [1, 2]])
        >>> model.word_probabilities(np.array([1]), asked, TermLists.of([[1, 3, 3, 3], []])).round(4).tolist()
        [[0.2375, 0.1766]]
    """

    collection: Collection
    translations: Translations
    smoothing: Smoothing = field(default_factory=Smoothing)
    mixture: Mixture = field(default_factory=Mixture)
    self_translation: SelfTranslation = "learned"

    def word_probabilities(
        self, words: Ids, candidates: TermLists, answers: TermLists | None = None, mixtures: Floats | None = None
    ) -> Floats:
        """Return P(w|q,a).  # (T, N)"""
        weights, lengths = self.mixture, candidates.lengths()
        own = weights.translations * self.translations.shares(words, candidates)
        if self.self_translation == "certain":
            missing = 1 - self.translations.of_themselves(words)
            own += weights.translations * missing[:, None] * shares(words, candidates)
        if weights.words:
            own += weights.words * shares(words, candidates)
        known = weights.words + weights.translations
        if answers is not None and weights.answer:
            own += weights.answer * shares(words, answers)
            there = known * (lengths > 0) + weights.answer * (answers.lengths() > 0)
            own /= np.where(there > 0, there, 1)
            lengths = lengths + answers.lengths()
        elif known != 1:
            own /= known
        return self.smoothing.mixed(own, self.background(words), lengths)

    def background(self, words: Ids) -> Floats:
        """Return P(w|C).  # (T,)"""
        return self.collection.probabilities(words)


def word_translation(
    collection: Collection,
    translations: Translations,
    smoothing: Smoothing = WORD_SMOOTHING,
    kept: float = 0.0,
    self_translation: SelfTranslation = "learned",
) -> TransLM:
    """Return the word translation model; it reads no answers.

    Args:
        kept: σ in [0, 1), the share of words that stay as they are.
        self_translation: ``learned`` or ``certain``: what t(w|w) is.

    Example:
        The word 1 and a text of the words 2, 3; t(1|2) = 0.5; a collection of 10 words, 1 of them 1; λ = 0.2:
        P(1|D) = 0.8 · (0.5 · 1/2) + 0.2 · 0.1 = 0.22.

        >>> learned = Translations.of(np.array([1]), np.array([2]), np.array([0.5]), 4)
        >>> model = word_translation(Collection(np.array([0, 1, 4, 5])), learned)
        >>> model.word_probabilities(np.array([1]), TermLists.of([[2, 3]])).round(3).tolist()
        [[0.22]]

        With t(2|2) = 1, which was not learned, P(2|D) = 0.8 · (1 · 1/2) + 0.2 · 0.4 = 0.48 in place of 0.08.

        >>> certain = word_translation(Collection(np.array([0, 1, 4, 5])), learned, self_translation="certain")
        >>> certain.word_probabilities(np.array([1, 2]), TermLists.of([[2, 3]])).round(3).tolist()
        [[0.22], [0.48]]
    """
    return TransLM(collection, translations, smoothing, Mixture(kept, 1 - kept), self_translation)
