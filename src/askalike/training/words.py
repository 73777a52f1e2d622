"""The words of a model and their first vectors: trained, read from a file, drawn, or taken from another model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.files import replace_whole
from askalike.models.encoders.model import Model
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.progress import Progress
from askalike.training.corpus import WordSource
from askalike.training.recipe import WordSettings
from askalike.training.vector_files import FoundVectors, read_vectors
from askalike.training.word2vec import Word2VecEpoch, Word2VecSettings, train_word2vec

_RARE: Final = 1000  # known words, the rarest, whose mean stands for unknown ones


def initial_embedding(
    vocabulary: Vocabulary, found: FoundVectors, *, is_unknown_zero: bool, seed: int
) -> tuple[NDArray[np.float32], list[str]]:
    """Return the first vector of each id, (V, D) float32, and the words without a found one.

    Found vectors are scaled to length 1 on average; row 0 is zero or the mean of the rarest found ones. A word without
    a found vector gets one drawn from N(0, s²) in each dimension, s² being the mean square of the found numbers; where
    none was found, s² = 1/D.

    Args:
        found: of any words; those outside the vocabulary are left out.

    >>> found = FoundVectors(("cat", "dog"), np.array([[3, 4], [0, 5]], np.float32))
    >>> initial_embedding(Vocabulary(["dog", "cat"]), found, is_unknown_zero=False, seed=0)[0].round(2).tolist()
    [[0.30000001192092896, 0.8999999761581421], [0.0, 1.0], [0.6000000238418579, 0.800000011920929]]
    """
    random = np.random.default_rng(seed)
    dimensions = found.vectors.shape[1]
    rows: Mapping[str, int] = {word: row for row, word in enumerate(found.words)}
    places = np.array([rows.get(word, -1) for word in vocabulary.words], np.int64)
    has_vector = places >= 0
    given = found.vectors[places[has_vector]].astype(np.float64)  # (n, D)
    given /= float(np.linalg.norm(given, axis=1).mean()) or 1.0 if len(given) else 1.0
    scale = float(np.sqrt(np.mean(given**2))) if len(given) else dimensions**-0.5
    embedding = np.zeros((len(vocabulary), dimensions))  # (V, D)
    known = embedding[1:]
    known[has_vector] = given
    known[~has_vector] = random.normal(0, scale, (int((~has_vector).sum()), dimensions))
    if len(given) and not is_unknown_zero:
        embedding[UNKNOWN] = given[-_RARE:].mean(axis=0)
    missing = [word for word, is_found in zip(vocabulary.words, has_vector, strict=True) if not is_found]
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
        if settings.unknown == "zero":
            words.embedding[UNKNOWN] = 0
        return words
    vocabulary = source.vocabulary(settings.min_count, settings.max_size)
    if len(vocabulary) < 2:
        raise SettingError(
            f"no word occurs {settings.min_count} times in the texts", "give more questions, or lower min_count"
        )
    kept = folder / "words.safetensors"
    identity = _identity(settings, source, vocabulary, seed)
    embedding = _kept(kept, identity)
    if embedding is None:
        embedding = _found(settings, source, vocabulary, seed, progress)
        replace_whole(kept, safetensors.numpy.save({_EMBEDDING: embedding}, {"identity": identity}))
    return InitialWords(vocabulary, embedding)


def _found(
    settings: WordSettings, source: WordSource, vocabulary: Vocabulary, seed: int, progress: Progress
) -> NDArray[np.float32]:
    """Return the first vectors: words have length 1 on average, whatever made the vectors."""
    if settings.vectors == "word2vec":
        found = FoundVectors.trained(vocabulary, _word2vec(settings, source, vocabulary, seed, progress))
    elif settings.vectors == "random":
        found = FoundVectors((), np.zeros((0, settings.size), np.float32), 0)
    else:
        found = read_vectors(Path(settings.vectors), settings.vectors_format, wanted=vocabulary)
    if found.vectors.shape[1] != settings.size:
        raise SettingError(
            f"{settings.vectors} holds vectors of {found.vectors.shape[1]} numbers, the recipe says {settings.size}",
            "write the file's size into the recipe",
        )
    first, missing = initial_embedding(vocabulary, found, is_unknown_zero=settings.unknown == "zero", seed=seed)
    if settings.vectors not in ("word2vec", "random"):
        progress.notice(f"{len(missing):,} of {len(vocabulary.words):,} words have no vector in the file")
    return first


def _word2vec(
    settings: WordSettings, source: WordSource, vocabulary: Vocabulary, seed: int, progress: Progress
) -> NDArray[np.float32]:
    def on_progress(epoch: Word2VecEpoch) -> None:
        if epoch.number:
            progress.advance(1)
        progress.notice(f"word2vec, epoch {epoch.number} of {epoch.of}: loss {epoch.loss:.4f}")

    progress.start("word vectors", settings.epochs, "epochs")
    texts, chosen = source.words.over(vocabulary), Word2VecSettings(size=settings.size, epochs=settings.epochs)
    return train_word2vec(texts, len(vocabulary), chosen, seed=seed, workers=settings.workers, on_progress=on_progress)


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
    chosen = [asdict(replace(settings, is_trained=False)), seed, file]
    found = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode())
    for part in (vocabulary.to_bytes(), texts.ids.tobytes(), texts.starts.tobytes()):
        found.update(part)
    return found.hexdigest()


def _kept(path: Path, identity: str) -> NDArray[np.float32] | None:
    if not path.exists():
        return None
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            if (file.metadata() or {}).get("identity") != identity:
                return None
            found: NDArray[np.float32] = file.get_tensor(_EMBEDDING)
    except (safetensors.SafetensorError, OSError) as error:
        raise DamagedModelError(f"{path} cannot be read: {error}", "delete it to make the word vectors anew") from error
    return found
