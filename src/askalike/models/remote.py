"""Endpoints: OpenAI's as encoders of texts, Cohere's as scorers of pairs; many other servers speak the same.

Documents are patient: their batches are asked for again after 408, 425, 429, 5xx, time-outs, broken connections and
answers that are no vectors, each time later, or when ``Retry-After`` says. Queries are not, since words can answer, and
neither are scores, since the first order can: they have one short try, and after a failure none is made for a while.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from askalike.errors import EncoderError
from askalike.models.text_encoder import READ_OF_PAIRS, Array, checked, text_of
from askalike.types import Question
from askalike.web import FailedError, RefusedError, Web, pause_s

_Found = TypeVar("_Found")

TEXTS_A_BATCH: Final = 32
CHARACTERS_A_BATCH: Final = 60_000
TOO_LARGE: Final = 413
_ABSENT: Final = (ConnectionRefusedError, socket.gaierror)
"""Nothing listens at an address, or no machine has the name."""
_ANSWER_BYTES_A_TEXT: Final = 1 << 20
_AGAIN_LATER: Final = "see whether it runs, and try again: what was encoded is kept"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an endpoint is waited for.

    Args:
        tries: requests for one batch of documents before it is an error.
        first_tries: in place of these where nothing listens at the address, and nothing has answered there before.
        first_pause_s: before the second; each is twice the one before, up to ``web.LONGEST_PAUSE_S``.
        timeout_s: of a request for documents, from its beginning to the last byte.
        query_timeout_s: of a request for a query.
        rest_s: no query is asked for so long after one failed.
    """

    tries: int = 8
    first_tries: int = 3
    first_pause_s: float = 0.5
    timeout_s: float = 120.0
    query_timeout_s: float = 4.0
    rest_s: float = 30.0


class _TooLargeError(Exception):
    """The endpoint takes no request of this size."""


class _Endpoint:
    """An address that is asked by POST; any thread may ask.

    Args:
        name: as errors call it, with what it is.
        key: sent as a bearer token, or "".
        pause: waits so many seconds.
        clock: seconds of any beginning.
    """

    def __init__(
        self,
        name: str,
        address: str,
        path: str,
        key: str,
        patience: Patience | None,
        pause: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self._shown, self._path, self._key = name, path, key
        self._address = address.rstrip("/")
        self._patience = patience or Patience()
        self._pause, self._clock = pause, clock
        self._resting_until = float("-inf")
        self._web = Web(address, key, clock)

    def _at_once(self, ask: Callable[[], _Found]) -> _Found:
        """Return what one try gives; none is made for a while after one failed.

        Raises:
            EncoderError: it does not answer, or did not shortly before.
        """
        now = self._clock()
        if now < self._resting_until:
            raise self._error(f"did not answer shortly before, and is asked again in {self._resting_until - now:.0f} s")
        try:
            return ask()
        except (FailedError, _TooLargeError) as error:
            self._resting_until = self._clock() + self._patience.rest_s
            raise self._error(str(error)) from error

    def _sent(self, content: bytes, count: int, timeout_s: float) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        most = _ANSWER_BYTES_A_TEXT * (count + 1)
        try:
            return self._web.send(self._address + self._path, headers, most, timeout_s, content).content
        except RefusedError as error:
            if error.status == TOO_LARGE:
                raise _TooLargeError(str(error)) from error
            raise self._error(str(error), "check its address, its model and its key") from error

    def _error(self, what: str, hint: str = _AGAIN_LATER) -> EncoderError:
        return EncoderError(f"the {self._shown} at {self._address} {what}", hint)


class RemoteEncoder(_Endpoint):
    """An endpoint; any thread may ask.

    Args:
        address: up to its ``/v1``, as that of text-embeddings-inference, Ollama and vLLM too.
        model: what the endpoint calls it.
        key: sent as a bearer token, or "".
        dimensions: that its vectors have to have; 0 takes those of the first.
        pause: waits so many seconds.
        clock: seconds of any beginning.
    """

    def __init__(
        self,
        address: str,
        model: str,
        key: str = "",
        *,
        dimensions: int = 0,
        patience: Patience | None = None,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = f"openai:{model}"
        self._model, self._dimensions = model, dimensions
        self._guard = threading.Lock()
        self._has_answered = False
        super().__init__(f"encoder {self.name}", address, "/embeddings", key, patience, pause, clock)

    @property
    def dimensions(self) -> int:
        """Return the dimensions of its vectors, 0 before the first answer."""
        return self._dimensions

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of queries.  # (N, D) float32

        Raises:
            EncoderError: it does not answer, or did not shortly before.
        """
        timeout_s = self._patience.query_timeout_s
        parts = self._at_once(lambda: [self._answer(batch, timeout_s) for batch in batches(texts)])
        return _joined(parts, self._dimensions)

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the vectors of documents.  # (N, D) float32

        Raises:
            EncoderError: it does not answer after all tries, or refuses.
        """
        return _joined([part for batch in batches(texts) for part in self._insisting(batch)], self._dimensions)

    def _insisting(self, texts: list[str]) -> Iterator[Array]:
        for failures in range(self._patience.tries):
            try:
                yield self._answer(texts, self._patience.timeout_s)
                return
            except _TooLargeError as error:
                if len(texts) == 1:
                    raise self._error(str(error)) from error
                yield from self._insisting(texts[: len(texts) // 2])
                yield from self._insisting(texts[len(texts) // 2 :])
                return
            except FailedError as error:
                is_absent = isinstance(getattr(error.__cause__, "reason", None), _ABSENT) and not self._has_answered
                tries = self._patience.tries
                if is_absent:
                    tries = min(tries, self._patience.first_tries)
                if failures >= tries - 1:
                    raise self._error(f"{error}, after {failures + 1} tries") from error
                self._pause(pause_s(self._patience.first_pause_s, failures, error.pause_s))

    def _answer(self, texts: Sequence[str], timeout_s: float) -> Array:
        """Return the vectors of one request, checked.

        Raises:
            FailedError, _TooLargeError: try again, or with less.
            EncoderError: it refuses.
        """
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        content = self._sent(json.dumps(body).encode(), len(texts), timeout_s)
        try:
            data = sorted(json.loads(content)["data"], key=lambda row: int(row["index"]))
            if [row["index"] for row in data] != list(range(len(data))):
                raise ValueError("the indexes of its vectors are not 0, 1, 2, …")
            rows = [row["embedding"] for row in data]
            width = self._dimensions or len(rows[0])
            vectors = checked(rows, len(texts), width, self.name)
        except (ValueError, TypeError, KeyError, IndexError, RecursionError, EncoderError) as error:
            raise FailedError(f"gave an answer that is no vectors: {self._web.quoted(str(error))}") from error
        with self._guard:
            self._has_answered = True
            self._dimensions = self._dimensions or width
        return vectors


class RemoteReranker(_Endpoint):
    """An endpoint that says how well texts answer to a query; any thread may ask.

    Args:
        address: without ``/rerank``, with its version, such as ``/v2``.
        model, key, patience, pause, clock: as ``RemoteEncoder``; a request may take as long as one for a query.
    """

    def __init__(
        self,
        address: str,
        model: str,
        key: str = "",
        *,
        patience: Patience | None = None,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = f"cohere:{model}"
        self._model = model
        super().__init__(f"reranker {self.name}", address, "/rerank", key, patience, pause, clock)

    def score(self, query: Question, questions: Sequence[Question]) -> list[float]:
        """Return a finite number for each question, higher where it fits better.

        Raises:
            EncoderError: it does not answer, or did not shortly before.
        """
        return self.score_texts(
            text_of(query, READ_OF_PAIRS), [text_of(question, READ_OF_PAIRS) for question in questions]
        )

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a finite number for each text, as ``score``."""
        return self._at_once(lambda: self._scores(query, texts)) if texts else []

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        body = {"model": self._model, "query": query, "documents": list(texts)}
        content = self._sent(json.dumps(body).encode(), len(texts), self._patience.query_timeout_s)
        try:
            rows = json.loads(content)["results"]
            scores = {row["index"]: float(row["relevance_score"]) for row in rows}
            if scores.keys() != set(range(len(texts))) or len(rows) != len(texts):
                raise ValueError(f"{len(rows)} scores for {len(texts)} texts")
            if not all(map(math.isfinite, scores.values())):
                raise ValueError("a score is not finite")
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            raise FailedError(f"gave an answer that is no scores: {self._web.quoted(str(error))}") from error
        return [scores[place] for place in range(len(texts))]


def key_in(variable: str, address: str) -> str:
    """Return an endpoint's key, the value of an environment variable; "" where none is named.

    Raises:
        EncoderError: there is no such variable.
    """
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        raise EncoderError(f"the key of the endpoint at {address} is not in the environment", f"set {variable} to it")
    return key


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts in batches of at most ``TEXTS_A_BATCH`` and about ``CHARACTERS_A_BATCH``, in their order."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == TEXTS_A_BATCH or size + len(text) > CHARACTERS_A_BATCH):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _joined(parts: Sequence[Array], dimensions: int) -> Array:
    return np.concatenate(parts) if parts else np.zeros((0, dimensions), dtype=np.float32)
