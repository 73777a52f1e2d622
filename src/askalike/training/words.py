"""The words of a model and their first vectors: trained, read from a file, drawn, or taken from another model.

Enters: word settings, training data as words. Leaves: ``Words``, also kept in the work folder.
May import: encode, durable, errors, word_vectors, its neighbours.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from askalike.durable import replace_whole
from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.model import Model
from askalike.models.encoders.vocabulary import UNKNOWN, Vocabulary
from askalike.progress import Progress
from askalike.training.corpus import WordSource
from askalike.training.recipe import WordSettings
from askalike.training.word_vectors.files import read_vectors
from askalike.training.word_vectors.found import FoundVectors
from askalike.training.word_vectors.initial import InitialSettings, UnknownRow, initial_embedding
from askalike.training.word_vectors.sentence_corpus import SentenceCorpus
from askalike.training.word_vectors.word2vec import Epoch, Word2VecSettings, train_word2vec

__all__ = ["Words", "make_words"]

_Context: TypeAlias = tuple[int, Progress]
_EMBEDDING: Final = "embedding"


@dataclass(frozen=True, slots=True)
class Words:
    """A vocabulary and a vector for each of its words.

    Args:
        embedding: (V, D_in) float32, row 0 for unknown words.
    """

    vocabulary: Vocabulary
    embedding: NDArray[np.float32]

    def digest(self) -> str:
        """Return the SHA-256 of words and vectors, in hexadecimal."""
        return hashlib.sha256(self.vocabulary.to_bytes() + self.embedding.tobytes()).hexdigest()


def make_words(settings: WordSettings, source: WordSource, start: Model | None, folder: Path, run: _Context) -> Words:
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
    return Words(vocabulary, embedding)


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
    unknown: UnknownRow = "zero" if settings.unknown == "zero" else "rare mean"
    first = initial_embedding(vocabulary, found, InitialSettings(unknown), seed=seed)
    if settings.vectors not in ("word2vec", "random"):
        progress.notice(f"{len(first.missing):,} of {len(vocabulary.words):,} words have no vector in the file")
    return first.embedding


def _word2vec(
    settings: WordSettings, source: WordSource, vocabulary: Vocabulary, seed: int, progress: Progress
) -> NDArray[np.float32]:
    texts = source.words.over(vocabulary)

    def told(epoch: Epoch) -> None:
        if epoch.number:
            progress.advance(1)
        progress.notice(f"word2vec, epoch {epoch.number} of {epoch.of}: loss {epoch.loss:.4f}")

    progress.start("word vectors", settings.epochs, "epochs")
    wanted = Word2VecSettings(size=settings.size, epochs=settings.epochs)
    corpus = SentenceCorpus(vocabulary, texts.ids, texts.starts[1:])
    return train_word2vec(corpus, wanted, seed=seed, workers=settings.workers, progress=told)[1]


def _extended(settings: WordSettings, source: WordSource, start: Model, seed: int) -> Words:
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
    return Words(vocabulary, np.concatenate([embedding, drawn.astype(np.float32)]))


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
