"""Vectors of questions, kept on disk: each text is encoded once by one encoder."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoder_settings import general_settings
from askalike.models.text_questions import TextQuestions, loaded
from askalike.types import Question
from recipes.folders import WORK

BATCH: Final = 256


class KeptVectors:
    """Questions → vectors of length 1, as a forum's index has them.

    Args:
        encoder: None is the bundled one.
    """

    def __init__(self, encoder: TextQuestions | None = None) -> None:
        self.settings = general_settings() if encoder is None else encoder.settings
        self._path = WORK / "scorer-vectors.sqlite"
        self._encoder = encoder

    def encode(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Return one vector of each question.  # (N, D) float32"""
        keys = [self._key(question) for question in questions]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=60)) as known:
            known.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
            missing = {key: question for key, question in zip(keys, questions, strict=True) if not _row(known, key)}
            self._learn(known, missing)
            rows = b"".join(_row(known, key) for key in keys)
        return np.frombuffer(rows, dtype=np.float32).reshape(-1, self.settings.dimensions)

    def _key(self, question: Question) -> bytes:
        parts = (self.settings.name, question.title, question.body, question.markup)
        return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).digest()

    def _learn(self, known: sqlite3.Connection, missing: dict[bytes, Question]) -> None:
        """Encode questions, those of like length together, and keep each batch as soon as it is done."""
        if missing and self._encoder is None:
            self._encoder = TextQuestions(loaded(self.settings), self.settings)
        order = sorted(missing, key=lambda key: len(missing[key].title) + len(missing[key].body))
        began = time.monotonic()
        for start in range(0, len(order), BATCH):
            keys = order[start : start + BATCH]
            assert self._encoder is not None
            vectors = self._encoder.encode([missing[key] for key in keys])
            with known:
                rows = [(key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)]
                known.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            done = start + len(keys)
            if len(order) > BATCH and (done == len(order) or start % (16 * BATCH) == 0):
                rate = done / (time.monotonic() - began)
                print(f"encoded {done:,} of {len(order):,}, {rate:.0f} a second", file=sys.stderr, flush=True)


def _row(known: sqlite3.Connection, key: bytes) -> bytes:
    """Return a text's stored vector, or nothing."""
    row = known.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
    return b"" if row is None else bytes(row[0])
