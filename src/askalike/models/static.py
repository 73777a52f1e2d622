"""A static model as model2vec writes it: a text's vector is the weighted mean of the vectors of its pieces.

::

    v(text) = Σ_t w_t e_t / T          over the T known pieces of the text, at most 512

Source: Tulkens and van Dongen, "Model2Vec: Fast State-of-the-Art Static Embeddings", 2024.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import safetensors
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, MissingExtraError, ModelError, ModelNotFoundError
from askalike.models.text_encoder import Array

MOST_PIECES: Final = 512
_CHARACTERS_A_PIECE: Final = 16
_MAX_BYTES: Final = 2 << 30
_TYPES: Final = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
_AGAIN: Final = "take the folder again from where it came"


class StaticEncoder:
    """Word pieces with vectors of their own.

    Args:
        tokenizer: of the package ``tokenizers``.
        mapping: a piece's id → its row; None where they are the same.  # (V,)
        weights: of pieces; None where all count alike.  # (V,)
        unknown: the id of the piece that stands for what is not known, which is left out; None where there is none.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Any,
        rows: Array,
        mapping: NDArray[np.int64] | None,
        weights: NDArray[np.float32] | None,
        unknown: int | None,
    ) -> None:
        self.name = name
        self.dimensions: Final[int] = rows.shape[1]
        self._tokenizer, self._rows, self._mapping, self._weights = tokenizer, rows, mapping, weights
        self._unknown = unknown

    @classmethod
    def load(cls, folder: Path) -> StaticEncoder:
        """Read a folder with ``model.safetensors`` and ``tokenizer.json``; nothing of it is run.

        Raises:
            ModelNotFoundError: there is none.
            DamagedModelError: a file is damaged, or does not fit the other.
            MissingExtraError: the package tokenizers is not installed.
        """
        weights, written = folder / "model.safetensors", folder / "tokenizer.json"
        if not weights.is_file() or not written.is_file():
            raise ModelNotFoundError(
                f"there is no static model at {folder}", "name a folder with model.safetensors and tokenizer.json"
            )
        if max(weights.stat().st_size, written.stat().st_size) > _MAX_BYTES:
            raise ModelError(f"the model at {folder} is larger than {_MAX_BYTES >> 30} GB", "take a smaller one")
        data, text = weights.read_bytes(), written.read_bytes()
        found = _arrays(data, weights)
        rows = found.get("embeddings", found.get("embedding.weight"))
        if rows is None or rows.ndim != 2 or not rows.size or rows.dtype.kind != "f":
            raise DamagedModelError(f"{weights} has no embeddings of two dimensions", _AGAIN)
        tokenizer = _tokenizer(text, written)
        size = tokenizer.get_vocab_size()
        mapping, factors = found.get("mapping"), found.get("weights")
        for name, one in (("mapping", mapping), ("weights", factors)):
            if one is not None and one.shape != (size,):
                raise DamagedModelError(f"{weights} has {name} of shape {one.shape} for {size} pieces", _AGAIN)
        if mapping is not None and (mapping.dtype.kind != "i" or mapping.min() < 0 or mapping.max() >= len(rows)):
            raise DamagedModelError(f"{weights} maps pieces to rows that are not there", _AGAIN)
        if mapping is None and size > len(rows):
            raise DamagedModelError(f"{written} has {size} pieces, and {weights} {len(rows)} vectors", _AGAIN)
        digest = hashlib.sha256(hashlib.sha256(data).digest() + hashlib.sha256(text).digest()).hexdigest()[:12]
        return cls(
            f"model2vec:{folder.name}@{digest}",
            tokenizer,
            rows.astype(np.float32),
            None if mapping is None else mapping.astype(np.int64),
            None if factors is None else factors.astype(np.float32),
            _unknown(tokenizer),
        )

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of texts; one without a known piece has zeros.  # (N, D) float32"""
        found = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        cut = [text[: MOST_PIECES * _CHARACTERS_A_PIECE] for text in texts]
        for place, read in enumerate(self._tokenizer.encode_batch(cut, add_special_tokens=False)):
            ids = np.array([one for one in read.ids if one != self._unknown][:MOST_PIECES], dtype=np.int64)
            if len(ids):
                rows = self._rows[ids if self._mapping is None else self._mapping[ids]]  # (T, D)
                found[place] = (rows if self._weights is None else rows * self._weights[ids][:, None]).mean(axis=0)
        return found

    encode_document = encode_query


def _arrays(data: bytes, path: Path) -> dict[str, NDArray[Any]]:
    try:
        entries = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        raise DamagedModelError(f"{path} cannot be read: {str(error)[:200]}", _AGAIN) from error
    found = {
        name: np.frombuffer(entry["data"], _TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in entries
        if entry["dtype"] in _TYPES
    }
    for name, values in found.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DamagedModelError(f"{path} has numbers in {name[:60]!r} that are not finite", _AGAIN)
    return found


def _tokenizer(text: bytes, path: Path) -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtraError(
            "the package tokenizers is not installed, which reads static models", "transformers"
        ) from error
    try:
        found = tokenizers.Tokenizer.from_buffer(text)
    except Exception as error:  # tokenizers raises nothing more precise
        raise DamagedModelError(f"{path} cannot be read: {str(error)[:200]}", _AGAIN) from error
    found.no_padding()
    found.no_truncation()
    return found


def _unknown(tokenizer: Any) -> int | None:
    name = getattr(tokenizer.model, "unk_token", None)
    found: int | None = tokenizer.token_to_id(name) if isinstance(name, str) else None
    return found
