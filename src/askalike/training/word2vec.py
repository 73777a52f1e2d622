"""Word vectors from a forum's own text: skip-gram or CBOW with negative sampling, by gensim.

The text is ids in one array: four bytes a word, whatever its length. While vectors are trained, the skip-gram loss is
measured on a small fixed sample of it: gensim adds its loss up in one float32, which stops growing on a corpus of
millions of words; a fixed sample is exact, costs nothing, and is comparable from epoch to epoch.

Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality".
"""

from __future__ import annotations

import importlib
import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.errors import MissingExtraError, SettingError
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.text.tokens import words

LONGEST = 10_000
"""Words of the longest piece that ``sentences`` gives; gensim would drop what goes beyond."""


class SentenceCorpus:
    """Sentences of word ids.

    Args:
        vocabulary: what the ids stand for.
        ids: (n,) int32, the sentences one after the other; 0 for words outside the vocabulary.
        ends: (s,) int64, where each sentence ends in ``ids``; rising, the last is n.

    Raises:
        SettingError: ids or ends that do not fit.

    >>> corpus = SentenceCorpus.from_texts(["My router is dead", "Router dead or alive"], min_count=2)
    >>> corpus.vocabulary.words, [list(map(int, ids)) for ids in corpus.sentences()], corpus.counts().tolist()
    (('dead', 'router'), [[0, 2, 0, 1], [2, 1, 0, 0]], [4, 2, 2])
    """

    def __init__(self, vocabulary: Vocabulary, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        self.vocabulary = vocabulary
        self.ids = np.asarray(ids, np.int32)
        self.ends = np.asarray(ends, np.int64)
        last = int(self.ends[-1]) if self.ends.size else 0
        if last != self.ids.size or (self.ends.size and (self.ends[0] < 0 or (np.diff(self.ends) < 0).any())):
            raise SettingError(
                f"sentences that end at {last} in {self.ids.size} ids", "give rising ends, the last is n"
            )
        if self.ids.size and not (self.ids.min() >= 0 and self.ids.max() < len(vocabulary)):
            raise SettingError(
                f"ids from {self.ids.min()} to {self.ids.max()}, but the vocabulary has 0 to {len(vocabulary) - 1}",
                "take ids from this vocabulary",
            )

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, min_count: int = 1, max_size: int | None = None) -> SentenceCorpus:
        """Return plain texts as a corpus, a text being a sentence; see ``from_words``."""
        return cls.from_words(map(words, texts), min_count=min_count, max_size=max_size)

    @classmethod
    def from_words(
        cls, sentences: Iterable[Iterable[str]], *, min_count: int = 1, max_size: int | None = None
    ) -> SentenceCorpus:
        """Return lists of words as a corpus; they are read once and not kept.

        Args:
            min_count: a word must occur this often to be in the vocabulary, ≥ 1.
            max_size: the vocabulary holds at most this many words, the most frequent; None for all.

        Raises:
            SettingError: min_count or max_size is out of range.
        """
        met: defaultdict[str, int] = defaultdict()
        met.default_factory = met.__len__
        numbers, ends = array("i"), array("q")
        for sentence in sentences:
            numbers.extend([met[word] for word in sentence])
            ends.append(len(numbers))
        ids = np.frombuffer(numbers, np.int32) if numbers else np.zeros(0, np.int32)
        counts = np.bincount(ids, minlength=len(met))
        vocabulary = Vocabulary.from_counts(
            dict(zip(met, counts.tolist(), strict=True)), min_count=min_count, max_size=max_size
        )
        renumber = np.array(vocabulary.ids(met), np.int32)
        return cls(vocabulary, renumber[ids] if len(met) else ids, np.array(ends, np.int64))

    @classmethod
    def of(cls, vocabulary: Vocabulary, sentences: Iterable[Sequence[str]]) -> SentenceCorpus:
        """Return lists of words as a corpus of a vocabulary that is there already."""
        numbers, ends = array("i"), array("q")
        for sentence in sentences:
            numbers.extend(vocabulary.ids(sentence))
            ends.append(len(numbers))
        return cls(vocabulary, np.array(numbers, np.int32), np.array(ends, np.int64))

    def __len__(self) -> int:
        """Return how many words the sentences have, those outside the vocabulary included."""
        return int(self.ids.size)

    def counts(self) -> NDArray[np.int64]:
        """Return how often each id occurs: (V,) int64."""
        return np.bincount(self.ids, minlength=len(self.vocabulary)).astype(np.int64)

    def known_count(self) -> int:
        """Return how many words of the sentences are in the vocabulary."""
        return int(np.count_nonzero(self.ids != UNKNOWN))

    def sentences(self) -> Iterator[NDArray[np.int32]]:
        """Yield the ids of each sentence in order; one of more than ``LONGEST`` words in pieces."""
        start = 0
        for end in self.ends.tolist():
            for first in range(start, end, LONGEST):
                yield self.ids[first : min(first + LONGEST, end)]
            start = end


_LOOK = 20
"""Places of a large corpus that are looked at for each pair wanted."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Pairs of words that stand side by side, and words drawn at random.

    Args:
        words: (P,) ids.
        contexts: (P,) ids of their right neighbours.
        negatives: (P, K) ids, drawn by count to the power of 3/4.
    """

    words: NDArray[np.int32]
    contexts: NDArray[np.int32]
    negatives: NDArray[np.int32]


def draw_probe(corpus: SentenceCorpus, negatives: int, seed: int, size: int = 2000) -> Probe:
    """Return a sample of a corpus: neighbours that are both in the vocabulary; empty where there are none."""
    random = np.random.default_rng(seed)
    places = np.arange(max(len(corpus) - 1, 0))
    if places.size > _LOOK * size:
        places = np.unique(random.integers(places.size, size=_LOOK * size))
    is_inside = ~np.isin(places + 1, corpus.ends)
    places = places[is_inside & (corpus.ids[places] != UNKNOWN) & (corpus.ids[places + 1] != UNKNOWN)]
    places = random.permutation(places)[:size]
    weights = corpus.counts().astype(np.float64) ** 0.75
    weights[UNKNOWN] = 0.0
    drawn = (
        random.choice(len(weights), (places.size, negatives), p=weights / weights.sum())
        if places.size
        else np.zeros((0, negatives), np.int32)
    )
    return Probe(corpus.ids[places], corpus.ids[places + 1], drawn.astype(np.int32))


def negative_sampling_loss(probe: Probe, vectors: NDArray[np.float32], outputs: NDArray[np.float32]) -> float:
    """Return the mean of −log σ(u_c·v) − Σ_k log σ(−u_k·v), in nats, ≥ 0.

    Before training, all outputs being zero, it is (1 + K) log 2.

    Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases", equation 4.

    Args:
        probe: P pairs with K negatives each.
        vectors: (V, D) v of each id.
        outputs: (V, D) u of each id.

    >>> probe = Probe(np.array([1]), np.array([2]), np.array([[1, 2]]))
    >>> vectors, outputs = np.array([[0, 0], [1, 0], [0, 1]]), np.array([[0, 0], [-1, 0], [2, 3]])
    >>> round(negative_sampling_loss(probe, vectors, outputs), 4)  # log(1 + e^-2) + log(1 + e^-1) + log(1 + e^2)
    2.5671
    """
    states = vectors[probe.words].astype(np.float64)  # (P, D)
    right = np.einsum("pd,pd->p", states, outputs[probe.contexts])  # (P,)
    wrong = np.einsum("pd,pkd->pk", states, outputs[probe.negatives])  # (P, K)
    return float((np.logaddexp(0, -right) + np.logaddexp(0, wrong).sum(axis=1)).mean())


_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Word2VecSettings:
    """How word vectors are trained; which words have one is settled with the corpus.

    Args:
        size: D, dimensions of a vector.
        window: words to each side that a word is paired with, at most; the reach is drawn for every word.
        negative: K, words drawn at random against each true pair, by count to the power of 3/4.
        epochs: passes over the corpus.
        is_skip_gram: a word foretells each neighbour (skip-gram); else the neighbours foretell the word (CBOW).
        sample: a word whose share of the corpus is above this is often left out; 0 keeps all.
        learning_rate: at the start, ≤ 1; falls in a straight line to ``last_learning_rate``.

    Raises:
        SettingError: a value out of range.
    """

    size: int = 200
    window: int = 5
    negative: int = 5
    epochs: int = 5
    is_skip_gram: bool = True
    sample: float = 1e-4
    learning_rate: float = 0.025
    last_learning_rate: float = 0.0001

    def __post_init__(self) -> None:
        for name in ("size", "window", "negative", "epochs"):
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SettingError(f"word2vec setting {name} is {value!r}, but expected a whole number ≥ 1")
        if not (math.isfinite(self.sample) and 0 <= self.sample < 1):
            raise SettingError(f"word2vec setting sample is {self.sample}, but expected 0 ≤ sample < 1", "try 1e-4")
        if not 0 < self.last_learning_rate <= self.learning_rate <= 1:
            raise SettingError(
                f"word2vec learning rate falls from {self.learning_rate} to {self.last_learning_rate}, "
                "but expected both > 0 and ≤ 1, the last not above the first",
                "0.025 to 0.0001 is usual",
            )


@dataclass(frozen=True, slots=True)
class Epoch:
    """What can be told after a pass over the corpus.

    Args:
        number: passes done; 0 before the first.
        of: passes in all.
        word_count: known words that were read up to now.
        loss: mean skip-gram loss on a fixed sample of the corpus, in nats (see ``probe``); NaN where no two known
            words stand side by side. CBOW trains another loss, so that there it only shows a direction.
    """

    number: int
    of: int
    word_count: int
    loss: float


def train_word2vec(
    corpus: SentenceCorpus,
    settings: Word2VecSettings,
    *,
    seed: int,
    workers: int = 1,
    progress: Callable[[Epoch], None] | None = None,
) -> tuple[Vocabulary, NDArray[np.float32]]:
    """Return the corpus's vocabulary and its vectors, (V, D) float32.

    Row 0, for unknown words, is zero, and so is that of a word which the corpus does not have.

    One worker gives the same vectors for the same seed on the same machine. More are faster and write to the same
    numbers at once, so that no two runs are equal.

    Differs: words outside the vocabulary are taken out before windows are laid, as in the authors' program, and a
    sentence of more than ``sentence_corpus.LONGEST`` words is trained in pieces.

    Args:
        corpus: read once an epoch.
        seed: 0 to 2³² − 1.
        workers: training threads, ≥ 1.
        progress: told before the first pass and after each.

    Raises:
        SettingError: seed or workers out of range, or no word to train on.
        MissingExtraError: gensim is not installed.
    """
    if not 0 <= seed <= _LARGEST_SEED or workers < 1:
        raise SettingError(f"seed {seed} and {workers} workers, but expected 0 ≤ seed < 2³² and workers ≥ 1")
    known = corpus.known_count()
    if not known:
        raise SettingError("a corpus without a known word", "give more text, or lower min_count")
    model = _gensim().Word2Vec(
        vector_size=settings.size,
        window=settings.window,
        negative=settings.negative,
        sg=int(settings.is_skip_gram),
        sample=settings.sample,
        alpha=settings.learning_rate,
        min_alpha=settings.last_learning_rate,
        min_count=1,
        sorted_vocab=0,  # ids stay as the vocabulary has them
        workers=workers,
        seed=seed,
    )
    counts = corpus.counts()
    occurring = np.flatnonzero(counts[1:]) + 1
    sentences = _Sentences(corpus)
    model.build_vocab_from_freq(
        dict(zip(occurring.tolist(), counts[occurring].tolist(), strict=True)), corpus_count=sentences.count
    )
    rows = _Rows(occurring, (len(corpus.vocabulary), settings.size))
    watch = _Watch(progress, draw_probe(corpus, settings.negative, seed), settings.epochs, known, rows)
    model.train(sentences, total_examples=sentences.count, total_words=known, epochs=settings.epochs, callbacks=[watch])
    return corpus.vocabulary, rows.spread(model.wv.vectors)


def _gensim() -> Any:
    """Return the module of gensim that trains."""
    try:
        return importlib.import_module("gensim.models.word2vec")
    except ImportError as error:
        raise MissingExtraError(
            "training word vectors needs gensim, which is not installed", 'pip install "askalike[train]"'
        ) from error


@dataclass(frozen=True, slots=True)
class _Rows:
    """Which id each of gensim's rows belongs to.

    Args:
        ids: (W,) of the words that occur.
        shape: (V, D) of all.
    """

    ids: NDArray[np.int64]
    shape: tuple[int, int]

    def spread(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (V, D) from (W, D), zeros elsewhere."""
        found = np.zeros(self.shape, np.float32)
        found[self.ids] = rows
        return found


class _Sentences:
    """The corpus as gensim reads it: lists of ids; the one for unknown words is not in its table, so it is skipped."""

    def __init__(self, corpus: SentenceCorpus) -> None:
        self._corpus = corpus
        self.count = sum(1 for _ in corpus.sentences())

    def __iter__(self) -> Iterator[list[int]]:
        return (ids.tolist() for ids in self._corpus.sentences())


class _Watch:
    """What gensim calls during training."""

    def __init__(
        self, tell: Callable[[Epoch], None] | None, probe: Probe, epochs: int, known: int, rows: _Rows
    ) -> None:
        self._tell, self._probe, self._epochs, self._known, self._rows = tell, probe, epochs, known, rows
        self._done = 0

    def _report(self, model: Any) -> None:
        if self._tell is None:
            return
        loss = math.nan
        if self._probe.words.size:
            spread = self._rows.spread
            loss = negative_sampling_loss(self._probe, spread(model.wv.vectors), spread(model.syn1neg))
        self._tell(Epoch(self._done, self._epochs, self._done * self._known, loss))

    def on_train_begin(self, model: Any) -> None:
        self._report(model)

    def on_epoch_begin(self, model: Any) -> None:
        pass

    def on_epoch_end(self, model: Any) -> None:
        self._done += 1
        self._report(model)

    def on_train_end(self, model: Any) -> None:
        pass
