"""A trained model: questions in, vectors out; torch runs it.

::

    v(text)      the encoder's pooled vector of its first ``word_limit`` words; zero for a text without words
    v(question)  (v(title) + v(body)) / 2, brought to length 1; v(title) alone when the body has no words;
                 v(title and body as one text), brought to length 1, where the model reads them joined

Source: Lei et al. 2016 (NAACL), section 4.1: title and body averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, MissingExtraError, SettingError
from askalike.models.encoders.settings import EncoderConfig, ModelSettings
from askalike.models.folder import Contents, Manifest, naming, read_folder, write_folder
from askalike.models.vocabulary import UNKNOWN, QuestionReader, Vocabulary
from askalike.types import Question

if TYPE_CHECKING:
    from askalike.models.encoders.networks.encoder import EncoderRuntime


def check_size(size: int) -> None:
    """Refuse a batch size that is none.

    Raises:
        SettingError: it is not at least 1.
    """
    if size < 1:
        raise SettingError(f"batch_size {size}, but expected at least 1", "256 is usual")


def of_like_length(texts: Sequence[Sequence[int]], size: int) -> Iterator[NDArray[np.intp]]:
    """Yield the places of the texts that have words, ``size`` at a time, the longest first.

    >>> [places.tolist() for places in of_like_length([[7], [], [5, 7, 5], [9, 9]], 2)]
    [[2, 3], [0]]
    """
    lengths = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts))
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


@dataclass(frozen=True, slots=True)
class WordStates:
    """Words as a model reads them, in their order, with the encoder's state at each.

    Args:
        words: the words, or their stems where the model reads stems.
        ids: of the words in the model's vocabulary, 0 for those outside.  # (T,) int64
        states: one row for each word.  # (T, D) float32
    """

    words: tuple[str, ...]
    ids: NDArray[np.int64]
    states: NDArray[np.float32]

    def followed_by(self, other: WordStates) -> WordStates:
        """Return these words and then those of another text, each with the states of its own text."""
        if not other.words:
            return self
        return WordStates(
            self.words + other.words,
            np.concatenate([self.ids, other.ids]),
            np.concatenate([self.states, other.states]),
        )


def runtime_of(config: EncoderConfig, arrays: Mapping[str, NDArray[np.floating]]) -> EncoderRuntime:
    """Return what runs an encoder.

    Raises:
        MissingExtraError: torch is not installed.
        SettingError: a parameter is missing, unknown or of another shape.
    """
    try:
        from askalike.models.encoders.networks.encoder import EncoderRuntime
    except ImportError as error:
        raise MissingExtraError(f"{config.kind} encoders run in torch, which is not installed", "train") from error
    return EncoderRuntime(config, arrays)


_EMBEDDING: Final = "embedding"
_COUNTS: Final = "counts"


def fault_of(arrays: Mapping[str, NDArray[np.generic]], settings: ModelSettings, vocabulary: Vocabulary) -> str:
    """Return what the arrays of a model hold that does not fit its settings and vocabulary, "" where all fits."""
    shapes = {_EMBEDDING: (len(vocabulary), settings.encoder.input_size), **settings.encoder.shapes()}
    stored = arrays.get(_EMBEDDING)
    if stored is not None and stored.ndim == 2 and len(stored) != len(vocabulary):
        return f"{len(stored) - 1} vectors of words, but there are {len(vocabulary.words)} words in the vocabulary"
    for name, shape in shapes.items():
        array = arrays.get(name)
        if array is None or array.dtype != np.float32 or array.shape != shape:
            what = "nothing" if array is None else f"{array.dtype.name} {array.shape}"
            return f"{what} for {name}, but expected float32 {shape}"
        if not np.isfinite(array).all():
            return f"numbers for {name} that are not finite"
    if extra := sorted(arrays.keys() - {*shapes, _COUNTS}):
        return f"more than the model needs: {', '.join(extra)[:200]}"
    if settings.unknown != "vector" and arrays[_EMBEDDING][UNKNOWN].any():
        return "a vector of unknown words, which are to be zero"
    counts = arrays.get(_COUNTS)
    if counts is not None and (counts.dtype != np.int64 or counts.shape != (len(vocabulary),)):
        return f"counts of words {counts.dtype.name} {counts.shape}, but expected int64 ({len(vocabulary)},)"
    if counts is not None and counts.min() < 0:
        return f"counts of words down to {counts.min()}, but expected numbers ≥ 0"
    return ""


_BATCHES_AT_ONCE: Final = 16  # texts of so many batches are sorted by length together
_Item = TypeVar("_Item")


class Model:
    """An encoder with its words: made by ``Model.load`` or, after training, by ``Model.build``.

    A model does not change, and any number of threads may use it at once.

    Args:
        arrays: the encoder's parameters and ``embedding``, float32, and ``counts``, int64, where they are known; they
            fit settings and vocabulary.
    """

    def __init__(
        self,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        arrays: Mapping[str, NDArray[np.generic]],
        origin: Manifest,
    ) -> None:
        self.settings: Final = settings
        self.vocabulary: Final = vocabulary
        self.origin: Final = origin
        self._arrays = arrays
        self._reader = QuestionReader(settings.reads, settings.word_limit, settings.stems)
        self._written = replace(self._reader, stems="")
        self._is_dropping = settings.unknown == "dropped"
        self._runtime = runtime_of(settings.encoder, self.parameters())

    @classmethod
    def build(
        cls,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        embedding: NDArray[np.floating],
        parameters: Mapping[str, NDArray[np.floating]],
        *,
        counts: NDArray[np.int64] | None = None,
        training_data: str = "",
        dev_scores: Mapping[str, float] | None = None,
    ) -> Model:
        """Return the model of trained numbers, which are kept in float32.

        Args:
            embedding: word vectors (V, D_in); row 0 stands for unknown words, row i for the word of id i.
            parameters: with names and shapes of ``settings.encoder.shapes()``.
            counts: how often each word occurred in the training texts (V,), at 0 all unknown words together; ≥ 0.
            training_data: SHA-256 of the training data, in hexadecimal, or "" when unknown.
            dev_scores: measure → its value on the development set.

        Raises:
            SettingError: counts, shapes or numbers that do not fit.
        """
        arrays: dict[str, NDArray[np.generic]] = {
            name: np.array(values, np.float32) for name, values in {**parameters, _EMBEDDING: embedding}.items()
        }
        if counts is not None:
            arrays[_COUNTS] = counts.copy()
        if fault := fault_of(arrays, settings, vocabulary):
            raise SettingError(f"weights hold {fault}", "use numbers, words and settings that were made together")
        return cls(settings, vocabulary, arrays, Manifest.of_origin(training_data, dev_scores))

    @classmethod
    def load(cls, path: Path | str) -> Model:
        """Return the model in a folder; nothing of it is run, and every file is checked.

        Raises:
            ModelNotFoundError: there is no model at ``path``.
            ModelVersionError: it was written by an incompatible version.
            DamagedModelError: a file is damaged, missing, or does not fit the others.
        """
        manifest, contents = read_folder(Path(path))
        with naming(Path(path)):
            settings = ModelSettings.from_json(contents.config)
            vocabulary = Vocabulary.from_bytes(contents.vocabulary)
            if fault := fault_of(contents.arrays, settings, vocabulary):
                raise DamagedModelError(f"weights hold {fault}", "take the files of one model from where they came")
        return cls(settings, vocabulary, contents.arrays, manifest)

    def save(self, path: Path | str) -> None:
        """Write the model's folder: whole or not at all. A model that is there is replaced by the complete new one.

        The same model gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        contents = Contents(self.settings.to_json(), self.vocabulary.to_bytes(), self._arrays)
        write_folder(Path(path), contents, self.origin)

    @property
    def dimensions(self) -> int:
        """Return D, the dimensions of a vector."""
        return self.settings.encoder.hidden_size

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """Return how often each word occurred in the training texts, or None where that is not known.

        At 0 are all unknown words together; not to be changed.  # (V,)
        """
        return cast("NDArray[np.int64] | None", self._arrays.get(_COUNTS))

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        """Return the encoder's parameters, to go on training from; not to be changed."""
        return {name: cast("NDArray[np.float32]", self._arrays[name]) for name in self.settings.encoder.shapes()}

    def embedding(self) -> NDArray[np.float32]:
        """Return the word vectors, to go on training from; not to be changed.  # (V, D_in)"""
        return cast("NDArray[np.float32]", self._arrays[_EMBEDDING])

    def encode(self, questions: Sequence[Question], batch_size: int = 256) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question; a question without words has the zero vector.

        Args:
            batch_size: texts that are worked on at once, ≥ 1; it changes speed and memory, not vectors.

        Returns:
            (N, D) float32, in the order of the questions.
        """
        return self._encoded(questions, self._read, batch_size)

    def encode_queries(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return the vectors of what is searched for, which is read as questions are.  # (N, D)"""
        return self.encode(questions)

    def encode_text(self, texts: Sequence[str], batch_size: int = 256) -> NDArray[np.float32]:
        """Return one vector of length 1 for each plain text, read as a title is.  # (N, D) float32"""
        return self._encoded(texts, lambda text: [self._ids(text)], batch_size)

    def states(self, questions: Sequence[Question], batch_size: int = 256) -> list[WordStates]:
        """Return the words that are read of each question with the encoder's states: of its title, then of its body.

        Title and body are encoded each on its own, or as one text where the model reads them joined. A question without
        words has no states.

        Args:
            batch_size: texts that are worked on at once, ≥ 1; it changes speed and memory, not states.

        Returns:
            N values in the order of the questions; each word takes 4·D bytes.
        """
        titles = self._states([self._seen(self._reader.title(question)) for question in questions], batch_size)
        bodies = self._states([self._seen(self._reader.body(question)) for question in questions], batch_size)
        return [title.followed_by(body) for title, body in zip(titles, bodies, strict=True)]

    def known_words(self, question: Question) -> list[str]:
        """Return the words that are read of a question and have a vector of their own, as they are written, in order.

        Every other word has the vector of the unknown: a question of such words alone is as near to any other one.
        """
        written, read = ([*reader.title(question), *reader.body(question)] for reader in (self._written, self._reader))
        return [word for word, stem in zip(written, read, strict=True) if stem in self.vocabulary]

    def _seen(self, words: list[str]) -> list[str]:
        """Return the words without those that are dropped."""
        return [word for word in words if word in self.vocabulary] if self._is_dropping else words

    def _ids(self, text: str) -> list[int]:
        return self.vocabulary.ids(self._seen(self._reader.text(text)))

    def _read(self, question: Question) -> list[list[int]]:
        """Return the ids of what is read of a question: of its title, and of its body where that is read."""
        fields = [self._reader.title(question), self._reader.body(question)]
        return [self.vocabulary.ids(self._seen(field)) for field in fields]

    def _encoded(
        self, items: Sequence[_Item], read: Callable[[_Item], list[list[int]]], batch_size: int
    ) -> NDArray[np.float32]:
        check_size(batch_size)
        vectors = np.zeros((len(items), self.dimensions), dtype=np.float32)
        at_once = _BATCHES_AT_ONCE * batch_size
        for begin in range(0, len(items), at_once):
            fields = list(zip(*map(read, items[begin : begin + at_once]), strict=True))
            pooled = self._pooled([text for field in fields for text in field], batch_size)
            vectors[begin : begin + at_once] = pooled.reshape(len(fields), -1, self.dimensions).sum(axis=0)
        return unit_rows(vectors)

    def _pooled(self, texts: Sequence[Sequence[int]], batch_size: int) -> NDArray[np.float32]:
        """Return the pooled vectors of texts given as ids, texts of like length together.  # (len(texts), D)"""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for places in of_like_length(texts, batch_size):
            vectors[places] = self._runtime.pooled(*self._words([texts[place] for place in places]))
        return vectors

    def _states(self, texts: Sequence[Sequence[str]], batch_size: int) -> list[WordStates]:
        """Return the words of each text with their states: each text is encoded on its own."""
        check_size(batch_size)
        ids = [self.vocabulary.ids(text) for text in texts]
        none = np.zeros((0, self.dimensions), dtype=np.float32)
        states = [none] * len(texts)
        for places in of_like_length(ids, batch_size):
            words, lengths = self._words([ids[place] for place in places])
            parts = np.split(self._runtime.states(words, lengths), np.cumsum(lengths)[:-1])
            for place, part in zip(places.tolist(), parts, strict=True):
                states[place] = part.copy()  # so that it does not hold the whole batch
        return [
            WordStates(tuple(text), np.array(own, dtype=np.int64), part)
            for text, own, part in zip(texts, ids, states, strict=True)
        ]

    def _words(self, texts: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the vectors of the words, text after text (N, D_in), and how many words each text has (B,)."""
        return self.embedding()[np.concatenate(texts)], np.array([len(text) for text in texts], dtype=np.int64)


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring each row to length 1, but for rows of zeros, and return them.

    >>> unit_rows(np.array([[0.0, 4.0], [0.0, 0.0]], dtype=np.float32)).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors
