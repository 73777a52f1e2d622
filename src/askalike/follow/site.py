"""What every site that is followed gives: what its lists show, what a thread of it holds; and how it is asked.

A site has four methods. ``poll(cursor)`` returns what has changed since the cursor, as far as lists show it;
``sweep(cursor)`` a part of everything that is there, from this place on; ``read(identifier)`` a thread as it is now.
``check_access()`` asks for what is always there: a site that refuses this refuses us, and its threads are not gone.
Each raises FailedError where another try may succeed, and SourceError where none will; ``read`` raises Unreadable where
a thread has to stay as it was read before.

Requests have a distance in time, which grows where the site says that it is too short.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from askalike.errors import SourceError
from askalike.readers.frame import ReadContext
from askalike.readers.values import Unreadable, as_object, as_objects
from askalike.types import Answer, Link, Question, Record, Thread
from askalike.web import FailedError, RefusedError, Web, retry_after

Cursor = Any
"""A value of JSON that only its site understands; None before the first poll, and before a sweep."""

MAX_LIST_PAGES: Final = 10
"""Pages of a list that one poll reads."""
_MAX_BYTES: Final = 32 << 20
_ID: Final = re.compile(r"[1-9][0-9]{0,17}")
_TIMEOUT_S: Final = 30.0
FIRST_LIMIT_S: Final = 60.0
LONGEST_LIMIT_S: Final = 3_600.0
FORGOTTEN_S: Final = 600.0
"""So long after a limit, the next counts as the first again."""
_ABOUT_LIMITS: Final = re.compile(rb"rate.?limit|abuse|too many", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of what a site lists.

    Args:
        cursor: the place behind it; None at the end of a sweep.
        stamps: the id of each thread, with a text that differs when the thread does; "" to read it in any case.
        hidden: ids of threads that the site says are deleted, or not for everybody.
        is_sweep_due: changes were missed that only a sweep finds.
    """

    cursor: Cursor
    stamps: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    is_sweep_due: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A thread as it is now.

    Args:
        thread: None where it is deleted or not public.
        rejects: what of it cannot be read.
        is_there: though it may not be public.
    """

    thread: Thread | None
    rejects: tuple[str, ...] = ()
    is_there: bool = True


class Stopped(Exception):
    """The process was told to stop; work that was not finished is done again by the next."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, as whoever follows a site or writes to it sees it.

    Args:
        now: seconds since 1970, for what is kept on disk.
        steady: seconds that never go back, for the waits of this process.
        pause: waits so many seconds; raises Stopped where the process was told to stop.
    """

    now: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


class Pace:
    """Keeps requests apart, so that no minute has more than the rate, also where processes are killed and begin again.

    The distance counts from when an answer came, since its request may have reached the site at any moment before.

    Args:
        rate: requests a minute; 0 for no limit.
    """

    def __init__(self, rate: int, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self._distance_s = 60.0 / rate if rate else 0.0
        self._next_s = self.clock.steady() + self._distance_s
        self._limits, self._limit_ends_s = 0, self._next_s

    def wait_s(self) -> float:
        """Return in how many seconds a request may be sent; 0 for now."""
        return max(0.0, self._next_s - self.clock.steady())

    def begin(self) -> None:
        """Wait until a request may be sent."""
        while (wait_s := self.wait_s()) > 0:
            self.clock.pause(wait_s)

    def end(self) -> None:
        """Note that the answer to a request came, or will not come."""
        self.close(self._distance_s)

    def close(self, seconds: float) -> None:
        """Send nothing for so long."""
        self._next_s = max(self._next_s, self.clock.steady() + seconds)

    def limit(self, asked_s: float | None) -> float:
        """Send nothing for a while, since the site says that its limit is reached; return the seconds.

        It is as long as the site asks. Where it names no time, or refuses again soon after that time, it is a minute at
        least, and twice as long each time, also where other requests are answered meanwhile: writes have limits of
        their own.

        Args:
            asked_s: the seconds that the site asks to wait, or None.
        """
        if self.clock.steady() > self._limit_ends_s + FORGOTTEN_S:
            self._limits = 0
        repeats = self._limits - 1 if asked_s else self._limits
        own_s = min(FIRST_LIMIT_S * 2.0**repeats, LONGEST_LIMIT_S) if repeats >= 0 else 0.0
        seconds = max(asked_s or 0.0, own_s)
        self._limits += 1
        self._limit_ends_s = self.clock.steady() + seconds
        self.close(seconds)
        return seconds


class Api:
    """Asks a site for JSON, no faster than it allows.

    Args:
        address: of the site, without a slash at its end.
        headers: that every request has.
        key: never quoted in an error.
    """

    def __init__(self, address: str, headers: Mapping[str, str], key: str, pace: Pace) -> None:
        self.address, self.pace = address, pace
        self._headers, self._web = dict(headers), Web(address, key)

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", body: Any = None
    ) -> tuple[Any, Mapping[str, str]]:
        """Return JSON and the answer's headers; None for a 304.

        Args:
            body: JSON that is sent; None for none.

        Raises:
            FailedError: it did not answer, or not with JSON, or its limit is reached; another try may succeed.
            RefusedError: a status such as 404, or a redirection, which is not followed.
            SourceError: the key is refused.
        """
        content = None if body is None else json.dumps(body).encode()
        of_body = {} if body is None else {"Content-Type": "application/json"}
        self.pace.begin()
        try:
            answer = self._web.send(
                self.address + path,
                {**self._headers, **of_body, **(headers or {})},
                _MAX_BYTES,
                _TIMEOUT_S,
                content,
                method,
            )
        except FailedError as error:
            if error.status == 429:
                raise self._limit_error(f"{path} {error}", error.headers) from error
            raise FailedError(f"{self.address}{path} {error}", error.pause_s, error.status) from error
        except RefusedError as error:
            if error.status == 403 and _is_about_limits(error):
                raise self._limit_error(f"{path} {error}", error.headers) from error
            if error.status == 401:
                raise SourceError(f"{self.address}{path} {error}", "check the key, and what it may read") from error
            raise
        finally:
            self.pace.end()
        try:
            value = None if answer.status == 304 else json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            reason = "JSON nested too deep" if isinstance(error, RecursionError) else f"no JSON ({error})"
            raise FailedError(f"{self.address}{path} answered {reason}") from error
        for problem in as_objects(as_object(value).get("errors")):  # GraphQL answers a limit with status 200
            message = str(problem.get("message"))[:200]
            if problem.get("type") == "RATE_LIMITED" or _ABOUT_LIMITS.search(message.encode()):
                raise self._limit_error(f"{path} answered: {message}", answer.headers)
        if _is_used_up(answer.headers):
            self.pace.close(self._seconds_asked(answer.headers) or 0.0)
        return value, answer.headers

    def _limit_error(self, why: str, headers: Mapping[str, str]) -> FailedError:
        """Send nothing for a while, and return the error that the site's limit is reached."""
        return FailedError(f"{self.address}{why}", self.pace.limit(self._seconds_asked(headers)), 429)

    def _seconds_asked(self, headers: Mapping[str, str]) -> float | None:
        asked_s, reset = retry_after(headers), headers.get("x-ratelimit-reset", "")
        if asked_s is None and _is_used_up(headers) and reset.isdecimal():
            asked_s = max(float(reset[:12]) + 1 - self.pace.clock.now(), 0.0)
        return asked_s

    def refusal(self, error: RefusedError, what: str) -> SourceError:
        """Return the error that a list of the site is refused, or leads elsewhere."""
        if 300 <= error.status < 400:
            place = self._web.quoted(error.headers.get("location", "another address"))
            return SourceError(
                f"{self.address} leads to {place}; redirections are not followed",
                "follow that address, if it is the forum's",
            )
        return SourceError(f"{self.address} {error}", f"check the address, and that the key may read {what}")


def _is_used_up(headers: Mapping[str, str]) -> bool:
    return headers.get("x-ratelimit-remaining") == "0"


def _is_about_limits(error: RefusedError) -> bool:
    is_said = _is_used_up(error.headers) or "retry-after" in error.headers
    return is_said or _ABOUT_LIMITS.search(error.content) is not None


def thread_reading(records: Iterator[Record], context: ReadContext, *rejects: str) -> Reading:
    """Return the thread of a reader's records.

    Args:
        rejects: what could not be read besides.

    Raises:
        Unreadable: there is no question among them.
    """
    question, answers, links = None, dict[str, Answer](), dict[Link, None]()
    for record in records:
        if isinstance(record, Question):
            question = record
        elif isinstance(record, Answer):
            answers[record.id] = record
        elif isinstance(record, Link):
            links[record] = None
    reasons = tuple(reject.reason for reject in context.rejects.first)
    if question is None:
        raise Unreadable(reasons[0] if reasons else "there is no question in it")
    return Reading(Thread(question, tuple(answers.values()), tuple(links)), (*reasons, *rejects))


def id_text(value: object) -> str:
    """Return the id of a thread or post as digits, "" for what is none.

    >>> id_text(7), id_text("12"), id_text(True), id_text("a/b")
    ('7', '12', '', '')
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    return str(value) if _ID.fullmatch(str(value)) else ""


def stamp_of(values: object) -> str:
    """Return a short text that differs when values of JSON do."""
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=12).hexdigest()
