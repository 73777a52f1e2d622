"""all-MiniLM-L6-v2 through the package's own runtime, its vectors kept on disk because it is slow.

``ASKALIKE_MINILM`` names the folder with the weights. Title and body are joined by a line break; the model reads the
first 256 word pieces, as its authors configured it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.models.transformer import Transformer
from askalike.text.markup import plain_text
from askalike.types import Question
from recipes.folders import MINILM, WORK

DIMENSIONS = 384
BATCH = 64
CACHE = WORK / "minilm-onnx.sqlite"


class MiniLM:
    """Questions → vectors of length 1, as ``askalike.Model.encode`` gives them; each text is encoded once ever."""

    def __init__(self) -> None:
        self._network: Any = None

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question.  # (N, 384)"""
        texts = [f"{one.title}\n{plain_text(one.body, one.markup)}".strip() for one in questions]
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(CACHE, timeout=60)) as known:
            known.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
            self._learn(known, {key: text for key, text in zip(keys, texts, strict=True) if not _vector(known, key)})
            rows = b"".join(_vector(known, key) for key in keys)
        return np.frombuffer(rows, dtype=np.float32).reshape(-1, DIMENSIONS)

    def _learn(self, known: sqlite3.Connection, texts: dict[bytes, str]) -> None:
        """Encode texts, those of like length together, and keep each batch as soon as it is done."""
        if texts and self._network is None:
            self._network = Transformer.load(MINILM, threads=1)
        order = sorted(texts, key=lambda key: len(texts[key]))
        began = time.monotonic()
        for start in range(0, len(order), BATCH):
            keys = order[start : start + BATCH]
            vectors = np.asarray(self._network.encode_document([texts[key] for key in keys]), dtype=np.float32)
            rows = [(key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)]
            with known:
                known.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            done = start + len(keys)
            rate = done / (time.monotonic() - began)
            print(f"minilm {done:,} of {len(order):,}, {rate:.0f} a second", file=sys.stderr, flush=True)


def _vector(known: sqlite3.Connection, key: bytes) -> bytes:
    """Return a text's stored vector, or nothing."""
    row = known.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
    return b"" if row is None else bytes(row[0])
