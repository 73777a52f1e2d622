"""A client of the service, with nothing but the standard library and msgspec.

::

    from askalike.client import Client

    client = Client("http://127.0.0.1:8765", key="ask_...")
    for hit in client.similar("Wifi drops every evening", k=5).hits:
        print(hit.score, hit.question.title)

Answers are the values of ``askalike.schemas``, as the service sends them; fields that this version does not know are
left out, so that a newer service may be asked. One client may be shared by threads: each request has its own
connection.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec.structs import asdict, astuple

from askalike.errors import AskalikeError, SettingError
from askalike.schemas import Acknowledgement, Error, PairsPage, ShownQuestion, Similar, Status, Written
from askalike.types import Draw, Feedback, Question, Verdict

_Answer = TypeVar("_Answer", bound=msgspec.Struct)

BULK = 500


class ServiceError(AskalikeError):
    """The service refused a request, or could not be reached.

    Args:
        status: of HTTP; 0 where there was no answer.
        retry_after_s: when to try again, None where the service did not say.
    """

    def __init__(self, status: int, message: str, hint: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, hint)
        self.status = status
        self.retry_after_s = retry_after_s


class _Line(msgspec.Struct, frozen=True):
    """Any line of a bulk stream's answer: an acknowledgement, an error, or the end."""

    line: int = 0
    id: str | None = None
    operation: Any = ""
    error: str = ""
    hint: str = ""
    done: bool = False


class Client:
    """Asks a service.

    Args:
        address: such as "http://127.0.0.1:8765".
        key: made by ``askalike keys``; "" where the service asks for none.
        timeout_s: until a request is given up.

    Raises:
        SettingError: the address is none.
    """

    def __init__(self, address: str, key: str = "", timeout_s: float = 30.0) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(f"{address!r} is no address", "expected one such as http://127.0.0.1:8765")
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._is_secure = parts.scheme == "https"
        self._key = key
        self._timeout_s = timeout_s

    def similar(self, title: str, body: str = "", k: int = 10, **more: Any) -> Similar:
        """Return earlier questions that ask the same.

        Args:
            more: further fields of the request: markup, tags, before, exclude, ranker, explain, id, draft.

        Raises:
            ServiceError: it was refused.
        """
        return self._ask(Similar, "POST", "/v1/similar", {"title": title, "body": body, "k": k, **more})

    def similar_to(self, identifier: str, k: int = 10) -> Similar:
        """Return what is similar to a stored question.

        Raises:
            ServiceError: there is none, with status 404, or it was refused.
        """
        return self._ask(Similar, "GET", f"{_path(identifier)}/similar?{urlencode({'k': k})}")

    def question(self, identifier: str) -> Question:
        """Return a stored question.

        Raises:
            ServiceError: there is none, with status 404, or it was refused.
        """
        return self._ask(ShownQuestion, "GET", _path(identifier)).question

    def put(self, identifier: str, title: str, body: str = "", **more: Any) -> Written:
        """Add or replace a question; it is on disk when this returns.

        Args:
            more: further fields: markup, tags, created, closed, score, url, author.

        Raises:
            ServiceError: it was refused.
        """
        return self._ask(Written, "PUT", _path(identifier), {"title": title, "body": body, **more})

    def delete(self, identifier: str) -> Written:
        """Delete a question with its answers and links.

        Raises:
            ServiceError: there is none, with status 404, or it was refused.
        """
        return self._ask(Written, "DELETE", _path(identifier))

    def put_answer(self, identifier: str, question_id: str, body: str, **more: Any) -> Written:
        """Add or replace an answer.

        Args:
            more: further fields: markup, created, score, author, accepted.

        Raises:
            ServiceError: its question is not there, with status 404, or it was refused.
        """
        given = {"question_id": question_id, "body": body, **more}
        return self._ask(Written, "PUT", f"/v1/answers/{quote(identifier, safe='')}", given)

    def mark(self, identifier: str, original: str) -> None:
        """Link a question as a duplicate of another.

        Raises:
            ServiceError: one of them is not there, with status 404, or it was refused.
        """
        self._ask(Written, "PUT", f"{_path(identifier)}/originals/{quote(original, safe='')}")

    def put_many(self, questions: Iterable[Mapping[str, Any]]) -> Iterator[Acknowledgement]:
        """Add or replace questions, some hundred with each request; yield what became of each, in their order.

        Args:
            questions: fields as of ``put``, with ``id``.

        Raises:
            ServiceError: a request was refused whole, or its answer was cut; what was yielded is stored.
        """
        batch: list[Mapping[str, Any]] = []
        for one in questions:
            batch.append(one)
            if len(batch) == BULK:
                yield from self._put_batch(batch)
                batch = []
        if batch:
            yield from self._put_batch(batch)

    def judge(
        self, question: str, candidate: str, verdict: Verdict, by: str = "", draw: Draw | None = None
    ) -> Feedback:
        """Store a person's judgement on two questions.

        Args:
            draw: as it came with the pair.

        Raises:
            ServiceError: one of them is not there, with status 404, or it was refused.
        """
        given: dict[str, Any] = {"question": question, "candidate": candidate, "verdict": verdict, "by": by}
        given |= {"draw": asdict(draw)} if draw else {}
        return self._ask(Feedback, "POST", "/v1/feedback", given)

    def duplicates(
        self, cursor: str | None = None, limit: int = 20, minimum: float = 0.5, *, sample: bool = False
    ) -> PairsPage:
        """Return a page of the archive's pairs that may be duplicates.

        Args:
            sample: every fifth is drawn at random, whatever its score: for a queue that people judge.

        Raises:
            ServiceError: it was refused.
        """
        asked = {"limit": limit, "minimum": minimum, "sample": str(sample).lower()}
        asked |= {"cursor": cursor} if cursor else {}
        return self._ask(PairsPage, "GET", f"/v1/duplicates?{urlencode(asked)}")

    def status(self) -> Status:
        """Return what the forum holds and how the service does.

        Raises:
            ServiceError: it was refused.
        """
        return self._ask(Status, "GET", "/v1/status")

    def _put_batch(self, batch: Sequence[Mapping[str, Any]]) -> Iterator[Acknowledgement]:
        content = "".join(json.dumps(one) + "\n" for one in batch).encode()
        answer = self._send("POST", "/v1/questions:bulk", content, "application/x-ndjson")
        lines = [line for line in answer.splitlines(keepends=True) if line.endswith(b"\n")]
        found = [_read(line, _Line) for line in lines]
        yield from (Acknowledgement(*astuple(one)[:-1]) for one in found if one.line)
        if not found or not found[-1].done:
            errors = [one.error for one in found if one.error and not one.line]
            raise ServiceError(0, "; ".join(errors) or "the answer was cut", "send again what was not acknowledged")

    def _ask(self, kind: type[_Answer], method: str, path: str, body: Mapping[str, Any] | None = None) -> _Answer:
        content = None if body is None else json.dumps(body).encode()
        return _read(self._send(method, path, content, "application/json"), kind)

    def _send(self, method: str, path: str, content: bytes | None, kind: str) -> bytes:
        make = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = make(self._host, self._port, timeout=self._timeout_s)
        headers = {"Content-Type": kind} if content is not None else {}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.request(method, self._prefix + path, content, headers)
            answer = connection.getresponse()
            found = answer.read()
        except (OSError, http.client.HTTPException) as error:
            where = f"{self._host}:{self._port}" if self._port else self._host
            raise ServiceError(0, f"the service at {where} gave no answer: {error}", "is it running?") from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise _refusal(answer, found)
        return found


def _read(content: bytes, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "is this the service, or something before it?"
        raise ServiceError(0, f"the answer cannot be read: {error}", hint) from error


def _refusal(answer: http.client.HTTPResponse, content: bytes) -> ServiceError:
    wait = answer.headers.get("Retry-After", "")
    wait_s = float(wait) if wait.isdigit() else None
    try:
        found = _read(content, Error)
    except ServiceError as error:
        return ServiceError(answer.status, f"it answered {answer.status} {answer.reason}", error.hint, wait_s)
    return ServiceError(answer.status, found.error, found.hint, wait_s)


def _path(identifier: str) -> str:
    return f"/v1/questions/{quote(identifier, safe='')}"
