"""The bundled encoder with weights that a forum's own texts have taught it.

A folder of ``models.folder`` keeps the weights in 8 bits; the graph is the package's, so that a folder from elsewhere
brings numbers and nothing that runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.data import general_folder
from askalike.errors import ModelNotFoundError, ModelVersionError
from askalike.models.encoders.model import Model
from askalike.models.folder import Contents, Manifest, ModelLayout, naming, read_folder, write_folder
from askalike.models.general import GRAPH_FILE, READ_CHARACTERS, VOCABULARY_FILE, GeneralEncoder, read_manifest
from askalike.models.graph_weights import Array, digest_without_numbers, in_8_bits, numbers_of, with_weights
from askalike.models.text_encoder import text_of
from askalike.types import Question

KIND: Final = "transformer"
_TRAIN_AGAIN: Final = 'train it again with "askalike train FORUM"'
_WORD: Final = re.compile(r"\w+")


class AdaptedEncoder:
    """Questions and texts → vectors of length 1; any thread may ask. The same weights give the same bytes on disk.

    Args:
        numbers: weights and scales of the package's graph, in 8 bits.
        origin: what they were learned from.

    Raises:
        DamagedModelError: the numbers are not of the names, types and shapes of the package's graph, or not finite.
        ModelNotFoundError: the package contains no encoder.
    """

    def __init__(self, numbers: Mapping[str, NDArray[Any]], origin: Manifest) -> None:
        folder = bundled_folder()
        with_weights((folder / GRAPH_FILE).read_bytes(), numbers)  # raises where they do not fit
        self.origin = origin
        self.dimensions = read_manifest(folder).dimensions
        self._numbers = numbers

    @classmethod
    def build(
        cls,
        weights: Mapping[str, Array],
        *,
        training_data: str = "",
        dev_scores: Mapping[str, float] | None = None,
    ) -> AdaptedEncoder:
        """Return the encoder of weights in float32, brought to 8 bits.

        Args:
            training_data, dev_scores: as those of ``Model.build``.
        """
        numbers = in_8_bits(weights, bundled_numbers())
        return cls(numbers, Manifest.of_origin(training_data, dev_scores))

    @classmethod
    def load(cls, path: Path | str) -> AdaptedEncoder:
        """Return the encoder in a folder; nothing of it is run, and every file is checked.

        Raises:
            ModelNotFoundError: there is none at ``path``.
            ModelVersionError: it was written by an incompatible version, or began as another bundled encoder.
            DamagedModelError: a file is damaged, missing, or does not fit the others.
        """
        manifest, contents = read_folder(Path(path))
        with naming(Path(path)):
            began = _config()
            if contents.config != began or contents.vocabulary != _vocabulary():
                raise ModelVersionError(f"{path} began as another encoder than the package's", _TRAIN_AGAIN)
            return cls(contents.arrays, manifest)

    def save(self, path: Path | str) -> None:
        """Write the folder: whole or not at all; a model that is there is replaced.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        write_folder(Path(path), Contents(_config(), _vocabulary(), self._numbers), self.origin)

    @property
    def numbers(self) -> Mapping[str, NDArray[Any]]:
        """Return the constants of its graph, to go on training from; not to be changed."""
        return {**bundled_numbers(), **self._numbers}

    @cached_property
    def _encoder(self) -> GeneralEncoder:
        return GeneralEncoder(bundled_folder(), numbers=self._numbers)

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question, zeros where there is no text.  # (N, D)"""
        return self.encode_text([text_of(question, READ_CHARACTERS) for question in questions])

    def encode_queries(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return the vectors of what is searched for, which is read as questions are.  # (N, D)"""
        return self.encode(questions)

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector of length 1 for each plain text, as ``encode``.  # (N, D) float32"""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        read = [place for place, text in enumerate(texts) if text.strip()]
        if read:
            vectors[read] = self._encoder.encode_document([texts[place] for place in read])
        return vectors

    def known_words(self, question: Question) -> list[str]:
        """Return the words of a question: pieces make each of them known, where the language is."""
        text = text_of(question, READ_CHARACTERS)
        return _WORD.findall(text.lower()) if self._encoder.reads(text) else []


def load_model(path: Path | str) -> Model | AdaptedEncoder:
    """Return the model in a folder, of either kind, as ``Model.load``."""
    return AdaptedEncoder.load(path) if kind_of(Path(path)) == KIND else Model.load(path)


def kind_of(folder: Path) -> str:
    """Return the kind of encoder that a model's folder names; "" where it names none."""
    layout = ModelLayout(folder)
    layout = layout if folder.is_dir() else ModelLayout(layout.replaced)  # replaced: see models.folder
    with suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
        return str(json.loads(layout.config.read_bytes())["encoder"]["kind"])
    return ""


def bundled_folder() -> Path:
    """Return the folder of the package's encoder.

    Raises:
        ModelNotFoundError: there is none.
    """
    folder = general_folder()
    if folder is None:
        raise ModelNotFoundError("the package contains no encoder", "install askalike again")
    return folder


def bundled_numbers() -> dict[str, NDArray[Any]]:
    """Return the constants of the graph of the package's encoder."""
    return numbers_of((bundled_folder() / GRAPH_FILE).read_bytes())


def _config() -> dict[str, object]:
    """Return what settles everything but the weights."""
    folder = bundled_folder()
    manifest = read_manifest(folder)
    graph = digest_without_numbers((folder / GRAPH_FILE).read_bytes())
    encoder = {"kind": KIND, "hidden_size": manifest.dimensions}
    return {"encoder": encoder, "graph": graph, "max_pieces": manifest.max_pieces}


def _vocabulary() -> bytes:
    return (bundled_folder() / VOCABULARY_FILE).read_bytes()
