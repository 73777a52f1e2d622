"""A trained siamese model: questions in, vectors out, without torch.

::

    similarity(a, b) = cos(v(a), v(b))

Source: Das et al. 2016 (ACL), section 5.
Reading: a question is compared with a question. Where sides share nothing (DSQA) both go through the question's side:
the answer's has never seen a question. The paper does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.models.encoders.folder import Contents, Manifest, naming, read_model, write_folder
from askalike.models.encoders.model import check_size
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.models.encoders.weights import Packed
from askalike.models.siamese.config import SIDES, SiameseSettings
from askalike.models.siamese.runtime import Runtime
from askalike.models.siamese.trigram_texts import SiameseReader, TrigramTexts
from askalike.types import Answer, Question

_PRECISION: Final = "float32"
_AGAIN: Final = "take the files of one model from where they came"
_Item = TypeVar("_Item")


class SiameseModel:
    """A siamese network with its trigrams: made by ``SiameseModel.load`` or, after training, by ``SiameseModel.build``.

    A model does not change, and any number of threads may use it at once. A text without known trigrams has the zero
    vector, which is as near to everything as to nothing: its cosine is 0.

    Args:
        settings: the network and how texts are read.
        vocabulary: the known trigrams, most frequent first.
        parameters: with names and shapes of ``settings.network.shapes()``, float32.
        origin: what it was trained on, and its scores.

    Raises:
        SettingError: as many trigrams as the network does not have, or parameters that do not fit or are not finite.
    """

    def __init__(
        self,
        settings: SiameseSettings,
        vocabulary: Vocabulary,
        parameters: Mapping[str, NDArray[np.float32]],
        origin: Manifest,
    ) -> None:
        if len(vocabulary.words) != settings.network.vocabulary_size:
            raise SettingError(
                f"{len(vocabulary.words)} trigrams, but the network has {settings.network.vocabulary_size}", _AGAIN
            )
        found = {name: array.shape for name, array in parameters.items()}
        if found != settings.network.shapes():
            raise SettingError(f"siamese parameters {found}, but expected {settings.network.shapes()}", _AGAIN)
        self.settings: Final = settings
        self.vocabulary: Final = vocabulary
        self.origin: Final = origin
        self._packed = {name: Packed.of(array, _PRECISION) for name, array in parameters.items()}
        self._reader = SiameseReader(settings.text, settings.reads)
        self._runtime = Runtime(settings.network, self.parameters())

    @classmethod
    def build(
        cls,
        settings: SiameseSettings,
        vocabulary: Vocabulary,
        parameters: Mapping[str, NDArray[np.float32]],
        *,
        training_data: str = "",
        dev_scores: Mapping[str, float] | None = None,
    ) -> SiameseModel:
        """Return the model of trained numbers.

        Args:
            parameters: with names and shapes of ``settings.network.shapes()``.
            training_data: SHA-256 of the training data, in hexadecimal, or "" when unknown.
            dev_scores: measure → its value on the development set.

        Raises:
            SettingError: trigrams, shapes or numbers that do not fit.
        """
        return cls(settings, vocabulary, parameters, Manifest.of_origin(training_data, dev_scores))

    @classmethod
    def load(cls, path: Path | str) -> SiameseModel:
        """Return the model in a folder; nothing of it is run, and every file is checked.

        Raises:
            ModelNotFoundError: there is no model at ``path``.
            ModelVersionError: it was written by an incompatible version.
            DamagedModelError: a file is damaged, missing, or does not fit the others.
        """
        stored = read_model(Path(path), SiameseSettings.from_json)
        settings, arrays = stored.settings, stored.arrays
        shapes = settings.network.shapes()
        with naming(Path(path)):
            packed = {name: Packed.taken_from(arrays, name, shapes[name], _PRECISION) for name in shapes}
            if extra := sorted(set(arrays) - set(shapes)):
                raise DamagedModelError(
                    f"weights.safetensors holds more than the model needs: {', '.join(extra)[:200]}", _AGAIN
                )
            try:
                parameters = {name: one.unpacked() for name, one in packed.items()}
                return cls(settings, stored.vocabulary, parameters, stored.manifest)
            except SettingError as error:
                raise DamagedModelError(error.message, error.hint) from error

    def save(self, path: Path | str) -> None:
        """Write the model's folder: whole or not at all. A model that is there is replaced by the complete new one.

        The same model gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        contents = Contents(self.settings.to_json(), self.vocabulary.to_bytes(), self.parameters())
        write_folder(Path(path), contents, self.origin)

    @property
    def dimensions(self) -> int:
        """Return D, the dimensions of a vector."""
        return self.settings.network.output_size

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        """Return the network's parameters, to go on training from; not to be changed."""
        return {name: packed.unpacked() for name, packed in self._packed.items()}

    def encode(self, questions: Sequence[Question], batch_size: int = 100) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question, zero for one without known trigrams.

        Args:
            batch_size: texts that are worked on at once, ≥ 1; it changes speed and memory, not vectors.

        Returns:
            (N, D) float32, in the order of the questions.
        """
        return self._encoded(questions, self._reader.question, batch_size, SIDES[0])

    def encode_text(self, texts: Sequence[str], batch_size: int = 100) -> NDArray[np.float32]:
        """Return one vector of length 1 for each plain text, read as a question's title is.  # (N, D) float32"""
        return self._encoded(texts, self._reader.text, batch_size, SIDES[0])

    def encode_answers(self, answers: Sequence[Answer], batch_size: int = 100) -> NDArray[np.float32]:
        """Return one vector of length 1 for each answer, through the answer's side.  # (N, D) float32"""
        return self._encoded(answers, self._reader.answer, batch_size, SIDES[1])

    def without_words(self, question: Question, most: int = 100) -> tuple[list[str], NDArray[np.float32]]:
        """Return distinct words that are read of a question, in their order, and its vector without each of them.

        A word is left out with all its repetitions.

        Args:
            most: only so many words are left out, the first, since a text is encoded for each.

        Returns:
            W words, (W, D) float32.
        """
        read = self._reader.question_words(question)
        words = list(dict.fromkeys(read))[:most]
        rest = ([one for one in read if one != word] for word in words)
        return words, self._encoded([*rest], self._reader.trigrams, 100, SIDES[0])

    def _encoded(
        self, items: Sequence[_Item], read: Callable[[_Item], list[str]], batch_size: int, side: str
    ) -> NDArray[np.float32]:
        check_size(batch_size)
        found = np.zeros((len(items), self.dimensions), dtype=np.float32)
        for begin in range(0, len(items), batch_size):
            texts = TrigramTexts.of(map(read, items[begin : begin + batch_size]), self.vocabulary)
            found[begin : begin + batch_size] = self._runtime.encode(texts, np.arange(len(texts)), side)
        norms = np.sqrt(np.einsum("nd,nd->n", found, found))[:, None]
        np.divide(found, norms, out=found, where=norms > 0)
        return found
