"""What a forum that is followed looks like, whatever it runs on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from askalike.errors import SourceError
from askalike.follow.pace import Pace
from askalike.readers.frame import Limits, ReadContext, ReadOptions, Rejects
from askalike.readers.values import Unreadable
from askalike.types import Answer, Link, Question, Record, Thread
from askalike.web import FailedError, RefusedError, Web

Cursor = Any
"""A value of JSON that only its source understands; None before the first poll, and before a sweep."""

_MOST_BYTES = 32 << 20
_TIMEOUT_S, _PATIENT_TIMEOUT_S = 10.0, 30.0
_MOST_LATE = 1_000


@dataclass(frozen=True, slots=True)
class Seen:
    """A thread that a list of the forum names.

    Args:
        stamp: differs when the thread does, as far as the list shows it; "" where it is to be read in any case.
    """

    id: str
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of what a poll or a sweep found.

    Args:
        cursor: behind it; None where a sweep has come to its end.
        seen: threads that are there, and read where their stamp is new.
        gone: ids that the source says are deleted, or not for everybody.
        is_sweep_due: something was missed that only a sweep finds.
    """

    cursor: Cursor
    seen: tuple[Seen, ...] = ()
    gone: tuple[str, ...] = ()
    is_sweep_due: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A thread as it is now.

    Args:
        thread: None where it is not there, or not public.
        rejects: what of it cannot be read.
        is_there: though it may not be public.
    """

    thread: Thread | None
    rejects: tuple[str, ...] = ()
    is_there: bool = True


class Source(Protocol):
    """A forum that is followed.

    Every method raises FailedError where another try may succeed, and SourceError where none will.
    """

    kind: str
    address: str
    pace: Pace

    def poll(self, cursor: Cursor) -> Iterator[Piece]:
        """Yield what has changed since the cursor, as far as the forum's lists show it."""

    def sweep(self, place: Cursor) -> Piece:
        """Return a piece of everything that is there, from this place on."""

    def read(self, identifier: str) -> Reading:
        """Return a thread as it is now; raise Unreadable where its question cannot be read."""

    def check_access(self) -> None:
        """Ask for what is always there. A site that refuses this too refuses us: its threads are not gone."""


class Site:
    """Asks a site for JSON, no faster than it allows.

    It waits 10 s for an answer, since events wait meanwhile; 30 s where something is written, or where the same was
    asked before and did not come.

    Args:
        address: of the site, without a slash at its end.
        headers: that every request has.
        key: never quoted.
    """

    def __init__(self, address: str, headers: Mapping[str, str], key: str, pace: Pace) -> None:
        self.address, self.pace = address, pace
        self._headers, self._web = dict(headers), Web(address, key)
        self._late: dict[str, None] = {}

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", body: Any = None
    ) -> tuple[Any, Mapping[str, str]]:
        """Return JSON and the answer's headers; None for a 304.

        Args:
            body: JSON that is sent; None for none.

        Raises:
            FailedError: it did not answer, or not with JSON; another try may succeed.
            RefusedError: a status such as 404.
            SourceError: it leads elsewhere, or the key is refused.
        """
        self.pace.begin()
        content = None if body is None else json.dumps(body).encode()
        sent = {**self._headers, **({} if body is None else {"Content-Type": "application/json"}), **(headers or {})}
        timeout_s = _TIMEOUT_S if body is None and path not in self._late else _PATIENT_TIMEOUT_S
        try:
            answer = self._web.send(self.address + path, sent, _MOST_BYTES, timeout_s, content, method)
        except FailedError as error:
            if not error.status:
                self._late[path] = None
                if len(self._late) > _MOST_LATE:
                    del self._late[next(iter(self._late))]
            raise FailedError(f"{self.address}{path} {error}", error.pause_s, error.status) from error
        except RefusedError as error:
            self._explain(path, error)
            raise
        finally:
            self.pace.end()
        self._late.pop(path, None)
        if answer.status == 304:
            return None, answer.headers
        try:
            return json.loads(answer.content), answer.headers
        except (ValueError, RecursionError) as error:
            found = "JSON nested too deep" if isinstance(error, RecursionError) else f"no JSON ({error})"
            raise FailedError(f"{self.address}{path} answered {found}") from error

    def _explain(self, path: str, error: RefusedError) -> None:
        if 300 <= error.status < 400:
            place = self._web.quoted(error.headers.get("location", "another address"))
            raise SourceError(
                f"{self.address}{path} leads to {place}, where nobody goes without being told",
                "follow that address, if it is the forum's",
            ) from error
        if error.status == 401:
            raise SourceError(f"{self.address}{path} {error}", "check the key, and what it may read") from error


def reading_of(records: Iterator[Record], context: ReadContext) -> Reading:
    """Return the thread of a reader's records.

    Raises:
        Unreadable: there is no question among them.
    """
    question, answers, links = None, [], []
    for record in records:
        if isinstance(record, Question):
            question = record
        elif isinstance(record, Answer):
            answers.append(record)
        elif isinstance(record, Link):
            links.append(record)
    rejects = tuple(reject.reason for reject in context.rejects.first)
    if question is None:
        raise Unreadable(rejects[0] if rejects else "there is no question in it")
    unique = {answer.id: answer for answer in answers}
    return Reading(Thread(question, tuple(unique.values()), tuple(dict.fromkeys(links))), rejects)


def reading_context(site_url: str = "") -> ReadContext:
    """Return the context in which one thread is read."""
    return ReadContext(ReadOptions(site_url=site_url, limits=Limits(document_bytes=_MOST_BYTES)), Rejects())


def refused(error: RefusedError, site: Site, what: str) -> SourceError:
    """Return the error that a list of the site is refused."""
    return SourceError(f"{site.address} {error}", f"check the address, and that the key may read {what}")
