"""Word vectors from a forum's own text: skip-gram or CBOW with negative sampling, by gensim.

Enters: a ``SentenceCorpus``. Leaves: its vocabulary and a vector for each of its ids. May import: probe,
sentence_corpus, encode.vocabulary, errors.

Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality".
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.encode.vocabulary import Vocabulary
from askalike.errors import MissingExtraError, SettingError
from askalike.train.word_vectors.probe import Probe, draw_probe, negative_sampling_loss
from askalike.train.word_vectors.sentence_corpus import SentenceCorpus

__all__ = ["Epoch", "Word2VecSettings", "train_word2vec"]

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
        raise MissingExtraError("training word vectors needs gensim, which is not installed", "train") from error


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
