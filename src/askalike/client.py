"""A client of the service, with nothing but the standard library and msgspec.

::

    from askalike.client import Client

    client = Client("http://127.0.0.1:8765", key="ask_...")
    for hit in client.similar("Wifi drops every evening", k=5).hits:
        print(hit.score, hit.question.title)

Answers are the values of ``askalike.schemas``, as the service sends them; fields that this version does not know are
left out, so that a newer service may be asked. One client may be shared by threads; connections are kept for the next
request.
A program with an event loop calls it in a thread: ``await asyncio.to_thread(client.similar, "Wifi drops")``.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec.structs import asdict

from askalike import operations
from askalike.errors import AskalikeError, SettingError
from askalike.operations import JSON, Operation
from askalike.schemas import (
    Error,
    Followed,
    GroupsPage,
    Health,
    HelpedCount,
    LogPage,
    Opened,
    PairsPage,
    QuestionsPage,
    ShownQuestion,
    Similar,
    Status,
    Written,
)
from askalike.types import Draw, LogEntry, Question, Verdict

_Answer = TypeVar("_Answer")


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


class Client:
    """Asks a service.

    Args:
        address: such as "http://127.0.0.1:8765".
        key: made by ``askalike keys``; "" where the service asks for none.
        timeout_s: until a request is given up.

    Raises:
        SettingError: the address is none.
        ServiceError: of every method: the service refused it, with 404 where it does not know an id, or gave no answer.
    """

    def __init__(self, address: str, key: str = "", timeout_s: float = 30.0) -> None:
        try:
            parts = urlsplit(address)
            self._host, self._port, self._prefix = parts.hostname or "", parts.port, parts.path.rstrip("/")
        except ValueError:  # a port that is none, half a pair of brackets
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(f"{address!r} is no address", "expected one such as http://127.0.0.1:8765")
        self.address = address
        self._is_secure = parts.scheme == "https"
        self._key = key
        self._timeout_s = timeout_s
        self._idle: list[http.client.HTTPConnection] = []
        self._guard = threading.Lock()

    def close(self) -> None:
        """Close the connections that are kept; the client may be used again."""
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        if hasattr(self, "_guard"):  # else it was refused its address
            self.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def similar(self, /, title: str = "", body: str = "", k: int = 10, **more: Any) -> Similar:
        """Return questions that ask the same as a text, or as the stored question whose ``id`` is named alone.

        Args:
            more: further fields of the request: markup, tags, not_tags, before, after, answered, closed, languages,
                query_language, minimum, order, exclude, ranker, id, fields. What ``fields`` leaves out of a hit has its
                default.
        """
        return self._call(operations.SIMILAR, body={"title": title, "body": body, "k": k, **more})

    def questions(self, after: str | None = None, limit: int = 20) -> QuestionsPage:
        """Return a page of the forum's questions, newest first; ``after`` is the ``next`` of the page before."""
        return self._call(operations.QUESTIONS, query={"limit": limit, "after": after})

    def question(self, identifier: str) -> Question:
        """Return a stored question."""
        return self.shown(identifier).question

    def shown(self, identifier: str) -> ShownQuestion:
        """Return a stored question with its answers and links."""
        return self._call(operations.QUESTION, identifier)

    def put(self, /, identifier: str, title: str, body: str = "", **more: Any) -> Written:
        """Add or replace a question; it is on disk when this returns.

        Args:
            more: further fields: markup, tags, created, closed, score, url, author.
        """
        return self._call(operations.PUT_QUESTION, identifier, body={"title": title, "body": body, **more})

    def delete(self, identifier: str) -> Written:
        """Delete a question with its answers and links."""
        return self._call(operations.DELETE_QUESTION, identifier)

    def put_answer(self, /, identifier: str, question_id: str, body: str, **more: Any) -> Written:
        """Add or replace an answer.

        Args:
            more: further fields: markup, created, score, author, accepted.
        """
        answer = {"question_id": question_id, "body": body, **more}
        return self._call(operations.PUT_ANSWER, identifier, body=answer)

    def delete_answer(self, identifier: str) -> Written:
        """Delete an answer."""
        return self._call(operations.DELETE_ANSWER, identifier)

    def mark(self, identifier: str, original: str) -> Written:
        """Link a question as a duplicate of another."""
        return self._call(operations.MARK, identifier, original)

    def unmark(self, identifier: str, original: str) -> Written:
        """Remove a duplicate link."""
        return self._call(operations.UNMARK, identifier, original)

    def duplicates(
        self,
        cursor: str | None = None,
        limit: int = 20,
        minimum: float | str = 0.5,
        *,
        sample: bool = False,
        tag: str | None = None,
    ) -> PairsPage:
        """Return a page of the archive's pairs that may be duplicates.

        Args:
            minimum: the least score, or a promise such as "precision:0.9".
            tag: only pairs of which a question has it.
            sample: every fifth is drawn at random, whatever its score: for a queue that people judge.
        """
        query = {"limit": limit, "minimum": minimum, "cursor": cursor, "sample": sample, "tag": tag}
        return self._call(operations.PAIRS, query=query)

    def decide(
        self,
        question: str,
        candidate: str,
        verdict: Verdict,
        by: str = "",
        draw: Draw | None = None,
        *,
        link: bool = True,
    ) -> LogEntry:
        """Decide on a pair: a judgement, and an entry of the log.

        Args:
            candidate: the original, where they are duplicates.
            by: who decides, where there is no key with a name.
            draw: as it came with the pair.
            link: link a duplicate to its original.
        """
        decision: dict[str, Any] = {"question": question, "candidate": candidate, "verdict": verdict, "by": by}
        decision |= {"link": link} | ({"draw": asdict(draw)} if draw else {})
        return self._call(operations.DECIDE, body=decision)

    def undo(self, number: int, by: str = "") -> LogEntry:
        """Undo a decision, by the number of its entry in the log."""
        return self._call(operations.UNDO, body={"number": number, "by": by})

    def log(self, limit: int = 20, before: int = 0, pair: tuple[str, str] | None = None) -> LogPage:
        """Return a page of the moderators' log, newest first.

        Args:
            before: the ``next`` of the page before.
            pair: only entries on these two questions.
        """
        question, candidate = pair or (None, None)
        query = {"limit": limit, "before": before, "question": question, "candidate": candidate}
        return self._call(operations.LOG, query=query)

    def groups(self, cursor: str | None = None, limit: int = 20, minimum: float = 0.85) -> GroupsPage:
        """Return a page of groups of questions that ask the same, largest first."""
        return self._call(operations.GROUPS, query={"limit": limit, "minimum": minimum, "cursor": cursor})

    def helped(self, identifier: str) -> HelpedCount:
        """Count that a question answered the one that somebody was about to ask."""
        return self._call(operations.HELPED, identifier)

    def opened(self, identifier: str) -> Opened:
        """Count that a suggested question was opened."""
        return self._call(operations.OPENED, identifier)

    def follow(self, content: bytes, headers: Mapping[str, str]) -> Followed:
        """Pass on a webhook of the forum that this one follows, as it came.

        Args:
            content: its body, of which its signature is.
            headers: those that say what it is, and who signed it.
        """
        return _read(self._send(operations.FOLLOW, operations.FOLLOW.path, content, headers), Followed)

    def metrics(self) -> str:
        """Return counts and times, as Prometheus reads them."""
        return self._send(operations.METRICS, operations.METRICS.path).decode()

    def health(self) -> Health:
        """Return that the service lives."""
        return self._call(operations.HEALTH)

    def ready(self) -> Health:
        """Return that the service is ready to answer."""
        return self._call(operations.READY)

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document of the service."""
        return self._call(operations.DOCUMENT)

    def status(self) -> Status:
        """Return what the forum holds and how the service does."""
        return self._call(operations.STATUS)

    def _call(
        self,
        operation: Operation[_Answer],
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> _Answer:
        """Return what the service answers to an operation.

        Args:
            path: the values of its path's names.
            query: of its query string; None asks for nothing, truth values are JSON's.
        """
        values = iter(path)
        target = re.sub(r"{\w+}", lambda _: quote(next(values), safe=""), operation.path)
        written = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in (query or {}).items()
            if value is not None
        }
        content = None if body is None else json.dumps(body).encode()
        received = self._send(operation, f"{target}?{urlencode(written)}" if written else target, content)
        return _read(received, operation.returns)

    def _send(
        self, operation: Operation[Any], path: str, content: bytes | None = None, more: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the answer to a request; a body is JSON."""
        headers = {**(more or {}), "Content-Type": JSON} if content is not None else {}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        is_repeatable = operation.method != "POST" or operation.is_search
        try:
            answer, received = self._exchange(operation.method, self._prefix + path, content, headers, is_repeatable)
        except (OSError, http.client.HTTPException) as error:
            where = f"{self._host}:{self._port}" if self._port else self._host
            raise ServiceError(0, f"the service at {where} gave no answer: {error}", "is it running?") from error
        if answer.status >= 400:
            raise _refusal(answer, received)
        return received

    def _exchange(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str], is_repeatable: bool
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Return the answer over a kept connection, which opens again where the service has closed it.

        Args:
            is_repeatable: to ask twice is as to ask once; anything else goes over a new connection, once.
        """
        with self._guard:
            connection = self._idle.pop() if self._idle else self._new_connection()
        if not is_repeatable:
            connection.close()
        while True:
            is_kept = connection.sock is not None
            try:
                connection.request(method, path, content, headers)
                answer = connection.getresponse()
                received = answer.read()
            except BaseException as error:
                connection.close()
                if is_kept and isinstance(error, ConnectionError):
                    continue
                raise
            with self._guard:
                self._idle.append(connection)
            return answer, received

    def _new_connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout_s)


def _read(content: bytes, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "is this the service, or something before it?"
        raise ServiceError(0, f"the answer cannot be read: {error}", hint) from error


def _refusal(answer: http.client.HTTPResponse, content: bytes) -> ServiceError:
    wait = answer.headers.get("Retry-After", "")
    wait_s = float(wait) if wait.isascii() and wait.isdecimal() else None
    try:
        refusal = _read(content, Error)
    except ServiceError as error:
        return ServiceError(answer.status, f"it answered {answer.status} {answer.reason}", error.hint, wait_s)
    return ServiceError(answer.status, refusal.error, refusal.hint, wait_s)
