"""The words of a model and their first vectors: trained by gensim, read from a file, drawn, or those of another model.

Source: Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError, optional_module
from askalike.files import replace_whole
from askalike.models.encoders.model import Model
from askalike.models.vocabulary import UNKNOWN, Vocabulary
from askalike.progress import Progress
from askalike.training.corpus import Texts, WordSource
from askalike.training.recipe import WordSettings
from askalike.training.vector_files import PretrainedVectors, read_vectors

LONGEST = 10_000
"""Words of the longest text that is given whole; gensim would drop what goes beyond."""


GENSIM: Final[Mapping[str, float]] = {
    "sg": 1,  # skip-gram: a word predicts each neighbour
    "window": 5,
    "negative": 5,
    "sample": 1e-4,  # a word whose share of the texts is above this is often left out
    "alpha": 0.025,
    "min_alpha": 0.0001,
}
"""What word2vec is run with, in gensim's words."""


def train_word2vec(
    texts: Texts,
    size: int,
    dimensions: int,
    epochs: int,
    *,
    seed: int,
    workers: int = 1,
    on_epoch: Callable[[int], object] = lambda _: None,
    **options: float,
) -> NDArray[np.float32]:
    """Return a vector for each id, (V, D) float32.

    Row 0, for unknown words, is zero, and so is that of a word which does not occur.

    One worker gives the same vectors for the same seed on the same machine. More are faster and write to the same
    numbers at once, so that no two runs are equal.

    Differs: words outside the vocabulary are taken out before windows are laid, as in the authors' program, and a
    text of more than ``LONGEST`` words is trained in pieces.

    Args:
        texts: read once an epoch; a window does not leave its text.
        size: ids of the vocabulary, V.
        dimensions: of a vector, D.
        epochs: passes over the texts.
        seed: 0 to 2³² − 1.
        workers: training threads, ≥ 1.
        on_epoch: called with the passes done, before the first and after each.
        options: gensim's, in place of those in ``GENSIM``.

    Raises:
        SettingError: seed or workers out of range, or no word to train on.
        MissingExtraError: gensim is not installed.
    """
    if not 0 <= seed < 2**32 or workers < 1:
        raise SettingError(f"seed {seed} and {workers} workers, but expected 0 ≤ seed < 2³² and workers ≥ 1")
    counts = texts.counts(size)
    known = int(counts[1:].sum())
    if not known:
        raise SettingError("texts without a known word", "give more text, or lower min_count")
    model = _gensim().Word2Vec(
        vector_size=dimensions,
        min_count=1,
        sorted_vocab=0,  # ids stay as the vocabulary has them
        workers=workers,
        seed=seed,
        **{**GENSIM, **options},
    )
    occurring = np.flatnonzero(counts[1:]) + 1
    sentences = _Sentences(texts)
    model.build_vocab_from_freq(
        dict(zip(occurring.tolist(), counts[occurring].tolist(), strict=True)), corpus_count=sentences.count
    )

    model.train(
        sentences,
        total_examples=sentences.count,
        total_words=known,
        epochs=epochs,
        callbacks=[_Callback(on_epoch)],
    )
    vectors = np.zeros((size, dimensions), np.float32)
    vectors[occurring] = model.wv.vectors
    return vectors


def _gensim() -> Any:
    """Return the module of gensim that trains."""
    missing = "training word vectors needs gensim, which is not installed"
    return optional_module("gensim.models.word2vec", missing, "train")


class _Sentences:
    """Texts as gensim reads them: lists of ids; the one for unknown words is not in its table, so it is skipped."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.count = sum(1 for _ in self)

    def __iter__(self) -> Iterator[list[int]]:
        for row in range(len(self._texts)):
            ids = self._texts[row]
            yield from (ids[first : first + LONGEST].tolist() for first in range(0, len(ids), LONGEST))


class _Callback:
    """What gensim calls during training."""

    def __init__(self, report: Callable[[int], object]) -> None:
        self._report, self._done = report, 0

    def on_train_begin(self, model: Any) -> None:
        self._report(0)

    def on_epoch_begin(self, model: Any) -> None:
        pass

    def on_epoch_end(self, model: Any) -> None:
        self._done += 1
        self._report(self._done)

    def on_train_end(self, model: Any) -> None:
        pass


_RARE: Final = 1000  # known words, the rarest, whose mean stands for unknown ones


def initial_embedding(
    vocabulary: Vocabulary, known: PretrainedVectors, *, is_unknown_zero: bool, seed: int
) -> tuple[NDArray[np.float32], list[str]]:
    """Return the first vector of each id, (V, D) float32, and the words without a known one.

    Known vectors are scaled to length 1 on average; row 0 is zero or the mean of the rarest known ones. A word without
    a known vector gets one drawn from N(0, s²) in each dimension, s² being the mean square of the known numbers; where
    none is known, s² = 1/D.

    Args:
        known: vectors of any words; those outside the vocabulary are left out.

    >>> known = PretrainedVectors(("cat", "dog"), np.array([[3, 4], [0, 5]], np.float32))
    >>> initial_embedding(Vocabulary(["dog", "cat"]), known, is_unknown_zero=False, seed=0)[0].round(2).tolist()
    [[0.30000001192092896, 0.8999999761581421], [0.0, 1.0], [0.6000000238418579, 0.800000011920929]]
    """
    random = np.random.default_rng(seed)
    dimensions = known.vectors.shape[1]
    rows: Mapping[str, int] = {word: row for row, word in enumerate(known.words)}
    places = np.array([rows.get(word, -1) for word in vocabulary.words], np.int64)
    has_vector = places >= 0
    pretrained = known.vectors[places[has_vector]].astype(np.float64)  # (n, D)
    pretrained /= float(np.linalg.norm(pretrained, axis=1).mean()) or 1.0 if len(pretrained) else 1.0
    scale = float(np.sqrt(np.mean(pretrained**2))) if len(pretrained) else dimensions**-0.5
    embedding = np.zeros((len(vocabulary), dimensions))  # (V, D)
    of_words = embedding[1:]
    of_words[has_vector] = pretrained
    of_words[~has_vector] = random.normal(0, scale, (int((~has_vector).sum()), dimensions))
    if len(pretrained) and not is_unknown_zero:
        embedding[UNKNOWN] = pretrained[-_RARE:].mean(axis=0)
    missing = [word for word, is_known in zip(vocabulary.words, has_vector, strict=True) if not is_known]
    return embedding.astype(np.float32), missing


_Context: TypeAlias = tuple[int, Progress]
_EMBEDDING: Final = "embedding"


@dataclass(frozen=True, slots=True)
class InitialWords:
    """A vocabulary and a vector for each of its words.

    Args:
        embedding: (V, D_in) float32, row 0 for unknown words.
    """

    vocabulary: Vocabulary
    embedding: NDArray[np.float32]

    def digest(self) -> str:
        """Return the SHA-256 of words and vectors, in hexadecimal."""
        return hashlib.sha256(self.vocabulary.to_bytes() + self.embedding.tobytes()).hexdigest()


def make_words(
    settings: WordSettings, source: WordSource, start: Model | None, folder: Path, run: _Context
) -> InitialWords:
    """Return the words to begin with; what took long is kept in ``folder`` and read again the next time.

    A model to go on from keeps its words; words that the data adds, as long as ``settings.max_size`` leaves room, are
    drawn with the mean and spread of the others.

    Raises:
        SettingError: no word is frequent enough, or vectors of another size than the recipe's.
        InputError: the file of vectors cannot be read.
        DamagedModelError: what is kept in ``folder`` cannot be read.
        MissingExtraError: gensim is wanted and not installed.
    """
    seed, progress = run
    if start is not None:
        words = _extended(settings, source, start, seed)
        if settings.unknown != "vector":
            words.embedding[UNKNOWN] = 0
        return words
    vocabulary = source.vocabulary(settings.min_count, settings.max_size)
    if len(vocabulary) < 2:
        raise SettingError(
            f"no word occurs {settings.min_count} times in the texts", "give more questions, or lower min_count"
        )
    kept = folder / "words.safetensors"
    identity = _identity(settings, source, vocabulary, seed)
    embedding = _read_embedding(kept, identity)
    if embedding is None:
        embedding = _trained_or_read(settings, source, vocabulary, seed, progress)
        replace_whole(kept, safetensors.numpy.save({_EMBEDDING: embedding}, {"identity": identity}))
    if settings.weighted == "by idf":
        embedding = embedding * idf(source.words.over(vocabulary), len(vocabulary))[:, None]
    return InitialWords(vocabulary, embedding)


def idf(texts: Texts, size: int) -> NDArray[np.float32]:
    """Return ln((1 + N) / (1 + n)) + 1 of each id below ``size``, n of the N texts holding it.  # (size,)

    Source: the official program of Lei et al. 2016 (taolei87/rcnn, code/qa/myio.py), which takes it from scikit-learn;
    titles and bodies are texts of their own.

    >>> texts = Texts(np.array([1, 2, 1, 1], np.int32), np.array([0, 2, 4, 4]))  # N = 3, n = 0, 2, 1
    >>> [round(float(weight), 4) for weight in idf(texts, 3)]
    [2.3863, 1.2877, 1.6931]
    """
    rows = np.repeat(np.arange(len(texts)), texts.lengths())
    seen = np.unique(rows * np.int64(size) + texts.ids) % size
    holding = np.bincount(seen, minlength=size)
    return (np.log((1 + len(texts)) / (1 + holding)) + 1).astype(np.float32)


def _trained_or_read(
    settings: WordSettings, source: WordSource, vocabulary: Vocabulary, seed: int, progress: Progress
) -> NDArray[np.float32]:
    """Return the first vectors: words have length 1 on average, whatever made the vectors."""
    if settings.vectors == "word2vec":
        word_vectors = PretrainedVectors.trained(vocabulary, _word2vec(settings, source, vocabulary, seed, progress))
    elif settings.vectors == "random":
        word_vectors = PretrainedVectors((), np.zeros((0, settings.size), np.float32))
    else:
        word_vectors = read_vectors(Path(settings.vectors), wanted=vocabulary)
    if word_vectors.vectors.shape[1] != settings.size:
        raise SettingError(
            f"{settings.vectors} holds vectors of {word_vectors.vectors.shape[1]} numbers,"
            f" the recipe says {settings.size}",
            "write the file's size into the recipe",
        )
    first, missing = initial_embedding(
        vocabulary, word_vectors, is_unknown_zero=settings.unknown != "vector", seed=seed
    )
    if settings.vectors not in ("word2vec", "random"):
        progress.notice(f"{len(missing):,} of {len(vocabulary.words):,} words have no vector in the file")
    return first


def _word2vec(
    settings: WordSettings, source: WordSource, vocabulary: Vocabulary, seed: int, progress: Progress
) -> NDArray[np.float32]:
    def on_epoch(done: int) -> None:
        if done:
            progress.advance(1)
            progress.notice(f"word2vec, epoch {done} of {settings.epochs}")

    progress.start("word vectors", settings.epochs, "epochs")
    return train_word2vec(
        source.words.over(vocabulary),
        len(vocabulary),
        settings.size,
        settings.epochs,
        seed=seed,
        workers=settings.workers,
        on_epoch=on_epoch,
    )


def _extended(settings: WordSettings, source: WordSource, start: Model, seed: int) -> InitialWords:
    known = start.vocabulary
    embedding = start.embedding()
    if embedding.shape[1] != settings.size:
        raise SettingError(
            f"the model to go on from has word vectors of {embedding.shape[1]} numbers, the recipe {settings.size}",
            "write the same size into the recipe",
        )
    counts = {word: count for word, count in source.words.counts().items() if word not in known}
    room = max(0, settings.max_size - len(known.words))
    new = Vocabulary.from_counts(counts, min_count=settings.min_count, max_size=room).words
    vocabulary = Vocabulary([*known.words, *new])
    spread = embedding[1:].std(axis=0)
    drawn = np.random.default_rng(seed).normal(0, 1, (len(new), settings.size)) * spread + embedding[1:].mean(axis=0)
    return InitialWords(vocabulary, np.concatenate([embedding, drawn.astype(np.float32)]))


def _identity(settings: WordSettings, source: WordSource, vocabulary: Vocabulary, seed: int) -> str:
    """Return a name of everything that the vectors depend on, so that they serve other recipes with the same words."""
    texts = source.words.over(vocabulary)
    path = Path(settings.vectors)
    file = [path.stat().st_size, path.stat().st_mtime_ns] if path.is_file() else []
    chosen = [asdict(replace(settings, is_trained=False, weighted="equally")), seed, file]
    digest = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode())
    for part in (vocabulary.to_bytes(), texts.ids.tobytes(), texts.starts.tobytes()):
        digest.update(part)
    return digest.hexdigest()


def _read_embedding(path: Path, identity: str) -> NDArray[np.float32] | None:
    if not path.exists():
        return None
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            if (file.metadata() or {}).get("identity") != identity:
                return None
            embedding: NDArray[np.float32] = file.get_tensor(_EMBEDDING)
    except (safetensors.SafetensorError, OSError) as error:
        raise DamagedModelError(f"{path} cannot be read: {error}", "delete it to make the word vectors anew") from error
    return embedding
