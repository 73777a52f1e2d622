"""The encoder that the package brings: six layers of a transformer in 8 bits.

::

    general/
      model.onnx      the graph of ``transformer_graph`` in 8 bits
      vocabulary.txt  a piece a line
      manifest.json   sizes, origin and the SHA-256 of the other files

``python -m recipes.encoder export`` writes the folder; the model card is beside it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.models.graph_weights import with_weights
from askalike.models.transformer import POOLINGS, Network, Pieces, normalised, session
from askalike.models.transformer_folder import Array
from askalike.models.wordpiece import WordPiece

GRAPH_FILE: Final = "model.onnx"
VOCABULARY_FILE: Final = "vocabulary.txt"
MANIFEST_FILE: Final = "manifest.json"
FORMAT: Final = 1
MOST_PIECES: Final = 1.7
"""Of English titles, 95 % have fewer pieces a word; of those in ten other European languages a fifth has."""
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
READ_CHARACTERS: Final = 2_000
"""Only so much of a text is read: more than 128 pieces of words."""

_MEND: Final = "install askalike again"


@dataclass(frozen=True, slots=True)
class GeneralManifest:
    """What the folder says of itself.

    Args:
        dimensions: of a vector.
        max_pieces: texts are cut here.
        origin: the models that it was made from, and how far it was trained.
        files: name → SHA-256 in hexadecimal.
    """

    dimensions: int
    max_pieces: int
    origin: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def name(self) -> str:
        """Return the encoder's name, which changes with everything that decides a vector."""
        described = json.dumps([self.dimensions, self.max_pieces, sorted(self.files.items())])
        return f"general@{hashlib.sha256(described.encode()).hexdigest()[:12]}"

    def to_bytes(self) -> bytes:
        """Return the file."""
        return (json.dumps(asdict(self), indent=2, sort_keys=True) + "\n").encode()


def read_manifest(folder: Path) -> GeneralManifest:
    """Return the manifest of the encoder's folder.

    Raises:
        DamagedModelError: it cannot be read.
    """
    path = folder / MANIFEST_FILE
    try:
        manifest = GeneralManifest(**json.loads(path.read_bytes()))
        if manifest.format != FORMAT or manifest.files.keys() != {GRAPH_FILE, VOCABULARY_FILE}:
            raise ValueError(f"its format is {manifest.format} and its files are {sorted(manifest.files)}")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DamagedModelError(f"{path} cannot be read: {str(error)[:200]}", _MEND) from error
    return manifest


class GeneralEncoder:
    """Texts → vectors of length 1, the mean of their pieces' states; any thread may ask.

    Args:
        numbers: weights in place of those of the folder's graph.

    Raises:
        DamagedModelError: a file of the folder is not as it was written, or the numbers are not of its graph.
    """

    def __init__(
        self, folder: Path, *, threads: int | None = None, numbers: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        manifest = read_manifest(folder)
        graph, vocabulary = (_content(folder, name, manifest) for name in (GRAPH_FILE, VOCABULARY_FILE))
        if numbers is not None:
            graph = with_weights(graph, numbers)
        self.name = manifest.name
        self.dimensions = manifest.dimensions
        self._max_pieces = manifest.max_pieces
        self._pieces = vocabulary.decode().splitlines()
        self._words = WordPiece(self._pieces)
        self._network = Network(session(graph), self._tokenize, max_pieces=manifest.max_pieces, threads=threads)

    def _tokenize(self, texts: Sequence[str]) -> list[Pieces]:
        return [Pieces(self._words.encode(text, self._max_pieces)) for text in texts]

    def reads(self, text: str) -> bool:
        """Return whether a text looks like English: few pieces are needed for a word."""
        words = _LETTERS.findall(text[:READ_CHARACTERS])
        return sum(map(self._words.count, words)) <= MOST_PIECES * len(words)

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries, in their order, made in the caller's thread.  # (N, D) float32"""
        return self._encode(texts, threads=1)

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents, in their order, made on all cores of the process.  # (N, D) float32"""
        return self._encode(texts)

    def token_states(self, texts: Sequence[str]) -> list[tuple[list[str], Array]]:
        """Return each text's pieces, special ones among them, with their states.  # (T,), (T, D) float32"""
        return [([self._pieces[number] for number in ids], states) for ids, states in self._network.token_states(texts)]

    def _encode(self, texts: Sequence[str], threads: int | None = None) -> Array:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)  # (N, D)
        for places, means in self._network.run(texts, _mean_of_states, threads):
            vectors[places] = means
        return vectors


def _mean_of_states(states: Array, mask: NDArray[np.bool_]) -> Array:
    return normalised(POOLINGS["mean"](states, mask))


def _content(folder: Path, name: str, manifest: GeneralManifest) -> bytes:
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise DamagedModelError(f"{folder / name} cannot be read: {error.strerror or error}", _MEND) from error
    if hashlib.sha256(data).hexdigest() != manifest.files[name]:
        raise DamagedModelError(f"{folder / name} is not as it was written", _MEND)
    return data


@cache
def general_encoder(folder: Path) -> GeneralEncoder:
    """Return the encoder of a folder, read once a process.

    Raises:
        DamagedModelError: as ``GeneralEncoder``.
    """
    return GeneralEncoder(folder)
