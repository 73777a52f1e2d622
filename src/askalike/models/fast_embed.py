"""Models that the package fastembed runs, by the names that it knows, from its own cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from askalike.errors import EncoderError, MissingExtraError
from askalike.models.text_encoder import Array


class FastEmbedEncoder:
    """A model of fastembed, such as "BAAI/bge-small-en-v1.5"; it reads queries and passages as fastembed does.

    What lies in its cache under a name may change, so that it is known again by its vectors.
    """

    def __init__(self, model: str, embedding: Any) -> None:
        self.name = f"fastembed:{model}"
        self.dimensions = int(embedding.embedding_size)
        self._embedding = embedding

    @classmethod
    def load(cls, model: str, *, is_fetched: bool = False) -> FastEmbedEncoder:
        """Return a model from fastembed's cache (``FASTEMBED_CACHE_PATH``).

        Args:
            is_fetched: let fastembed download a model that is not in its cache.

        Raises:
            MissingExtraError: fastembed is not installed.
            EncoderError: fastembed knows no such model, or it is not there.
        """
        try:
            import fastembed
        except ImportError as error:
            raise MissingExtraError("the package fastembed is not installed", "fastembed") from error
        known = {one["model"].lower(): str(one["model"]) for one in fastembed.TextEmbedding.list_supported_models()}
        if model.lower() not in known:
            raise EncoderError(
                f"fastembed knows no model {model[:200]!r}", f"expected one of its {len(known)}, such as {min(known)}"
            )
        name = known[model.lower()]
        try:
            return cls(name, fastembed.TextEmbedding(name, local_files_only=not is_fetched))
        except Exception as error:  # whatever the hub's client, ONNX Runtime and the tokenizer raise
            raise EncoderError(
                f"fastembed cannot give {name}: {str(error)[:200]}",
                f'let it be downloaded with "askalike encode FORUM --model fastembed:{name}"',
            ) from error

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries.  # (N, D) float32"""
        return self._made(self._embedding.query_embed(list(texts)))

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents.  # (N, D) float32"""
        return self._made(self._embedding.passage_embed(list(texts)))

    def _made(self, vectors: Iterable[Any]) -> Array:
        found = list(vectors)
        return np.array(found, dtype=np.float32) if found else np.zeros((0, self.dimensions), dtype=np.float32)
