"""A client of the service, with nothing but the standard library.

::

    from askalike.client import Client

    client = Client("http://127.0.0.1:8765", key="ask_...")
    for hit in client.similar("Wifi drops every evening", k=5).hits:
        print(hit.score, hit.question.title)

Answers are the values of ``askalike.types``' names with the fields of the JSON; fields that this version does not know
are left out, so that a newer service may be asked. One client may be shared by threads: each request has its own
connection.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from askalike.errors import AskalikeError, SettingError

Verdict = Literal["duplicate", "different", "withdrawn"]
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


@dataclass(frozen=True, slots=True)
class Post:
    """A question as the service sends it; in lists, ``body`` is empty and ``excerpt`` is not."""

    id: str
    title: str
    body: str = ""
    markup: str = "plain"
    tags: tuple[str, ...] = ()
    created: str | None = None
    closed: str | None = None
    score: int | None = None
    url: str = ""
    author: str = ""
    excerpt: str = ""
    answers: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A similar question.

    Args:
        likelihood: how likely both ask the same, None where the ranker cannot tell.
        answer: the text of the best answer, or "".
        via: the id of the question that was found, where its original stands in for it, or "".
        raw: all that the service said of it.
    """

    rank: int
    score: float
    question: Post
    likelihood: float | None = None
    answer: str = ""
    via: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Similar:
    """What a search found, best first."""

    ranker: str
    took_ms: float
    hits: tuple[Hit, ...]
    corrections: Mapping[str, str] = field(default_factory=dict)  # misspelt word of the query → what it was read as


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a question: added, edited, unchanged or deleted; searches find it where ``indexed``."""

    id: str
    operation: str
    indexed: bool


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What became of one of many questions: on disk, or refused with an error."""

    id: str | None
    operation: str = ""
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two questions that may ask the same; ``question`` is the later one."""

    question: Post
    candidate: Post
    score: float


@dataclass(frozen=True, slots=True)
class PairsPage:
    """A page of pairs, best first; ``next`` is the cursor of the page after it, None at the end."""

    pairs: tuple[Pair, ...]
    next: str | None


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
            more: further fields of the request: markup, tags, before, exclude, ranker, explain, id.

        Raises:
            ServiceError: it was refused.
        """
        return _similar(self._ask("POST", "/v1/similar", {"title": title, "body": body, "k": k, **more}))

    def similar_to(self, identifier: str, k: int = 10) -> Similar:
        """Return what is similar to a stored question.

        Raises:
            ServiceError: there is none, with status 404, or it was refused.
        """
        return _similar(self._ask("GET", f"{_path(identifier)}/similar?{urlencode({'k': k})}"))

    def question(self, identifier: str) -> Post:
        """Return a stored question.

        Raises:
            ServiceError: there is none, with status 404, or it was refused.
        """
        return _post(self._ask("GET", _path(identifier))["question"])

    def put(self, identifier: str, title: str, body: str = "", **more: Any) -> Written:
        """Add or replace a question; it is on disk when this returns.

        Args:
            more: further fields: markup, tags, created, closed, score, url, author.

        Raises:
            ServiceError: it was refused.
        """
        found = self._ask("PUT", _path(identifier), {"title": title, "body": body, **more})
        return Written(found["id"], found["operation"], found["indexed"])

    def delete(self, identifier: str) -> Written:
        """Delete a question with its answers and links.

        Raises:
            ServiceError: there is none, with status 404, or it was refused.
        """
        found = self._ask("DELETE", _path(identifier))
        return Written(found["id"], found["operation"], found["indexed"])

    def put_answer(self, identifier: str, question_id: str, body: str, **more: Any) -> Written:
        """Add or replace an answer.

        Args:
            more: further fields: markup, created, score, author, accepted.

        Raises:
            ServiceError: its question is not there, with status 404, or it was refused.
        """
        given = {"question_id": question_id, "body": body, **more}
        found = self._ask("PUT", f"/v1/answers/{quote(identifier, safe='')}", given)
        return Written(found["id"], found["operation"], found["indexed"])

    def mark(self, identifier: str, original: str) -> None:
        """Mark a question a duplicate of another.

        Raises:
            ServiceError: one of them is not there, with status 404, or it was refused.
        """
        self._ask("PUT", f"{_path(identifier)}/originals/{quote(original, safe='')}")

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

    def judge(self, question: str, candidate: str, verdict: Verdict, by: str = "") -> None:
        """Store a person's verdict on two questions.

        Raises:
            ServiceError: one of them is not there, with status 404, or it was refused.
        """
        given = {"question": question, "candidate": candidate, "verdict": verdict, "by": by}
        self._ask("POST", "/v1/feedback", given)

    def duplicates(self, cursor: str | None = None, limit: int = 20, minimum: float = 0.5) -> PairsPage:
        """Return a page of the archive's pairs that may ask the same.

        Raises:
            ServiceError: it was refused.
        """
        asked = {"limit": limit, "minimum": minimum} | ({"cursor": cursor} if cursor else {})
        found = self._ask("GET", f"/v1/duplicates?{urlencode(asked)}")
        pairs = (Pair(_post(one["question"]), _post(one["candidate"]), one["score"]) for one in found["pairs"])
        return PairsPage(tuple(pairs), found["next"])

    def status(self) -> dict[str, Any]:
        """Return what the forum holds and how the service does.

        Raises:
            ServiceError: it was refused.
        """
        found: dict[str, Any] = self._ask("GET", "/v1/status")
        return found

    def _put_batch(self, batch: Sequence[Mapping[str, Any]]) -> Iterator[Acknowledgement]:
        content = "".join(json.dumps(one) + "\n" for one in batch).encode()
        answer = self._send("POST", "/v1/questions:bulk", content, "application/x-ndjson")
        told = [json.loads(line) for line in answer.splitlines(keepends=True) if line.endswith(b"\n")]
        for one in told:
            if "line" in one:
                yield Acknowledgement(one["id"], one.get("operation", ""), one.get("error", ""), one.get("hint", ""))
        if not told or not told[-1].get("done"):
            reasons = [one["error"] for one in told if "error" in one and "line" not in one]
            raise ServiceError(0, "; ".join(reasons) or "the answer was cut", "send again what was not acknowledged")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        return json.loads(self._send(method, path, content, "application/json"))

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


def _refusal(answer: http.client.HTTPResponse, content: bytes) -> ServiceError:
    wait = answer.headers.get("Retry-After", "")
    wait_s = float(wait) if wait.isdigit() else None
    try:
        told = json.loads(content)
        return ServiceError(answer.status, str(told["error"]), str(told["hint"]), wait_s)
    except (ValueError, KeyError, TypeError):
        hint = "is this the service, or something before it?"
        return ServiceError(answer.status, f"it answered {answer.status} {answer.reason}", hint, wait_s)


def _similar(found: Mapping[str, Any]) -> Similar:
    corrections = {one["written"]: one["meant"] for one in found["corrections"]}
    return Similar(found["ranker"], found["took_ms"], tuple(map(_hit, found["hits"])), corrections)


def _hit(found: Mapping[str, Any]) -> Hit:
    best, via = found["best_answer"], found["via"]
    return Hit(
        found["rank"],
        found["score"],
        _post(found["question"]),
        found["likelihood"]["value"],
        best["text"] if best else "",
        via["id"] if via else "",
        found,
    )


def _post(found: Mapping[str, Any]) -> Post:
    known = {name: value for name, value in found.items() if name in Post.__dataclass_fields__}
    return Post(**{**known, "tags": tuple(known.get("tags", ()))})


def _path(identifier: str) -> str:
    return f"/v1/questions/{quote(identifier, safe='')}"
