"""Requests to other services: bounded in bytes and time, never redirected, and what to do when one fails."""

from __future__ import annotations

import contextlib
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

AGAIN: Final = frozenset({408, 425, 429, *range(500, 600)})
"""Statuses after which the same request may succeed."""
LONGEST_PAUSE_S: Final = 120.0
_READ_AT_ONCE: Final = 1 << 16
_QUOTED: Final = 200
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class FailedError(Exception):
    """A request failed; the next may succeed.

    Args:
        pause_s: what the service asked to wait, or None.
        status: that it answered with; 0 where it did not answer.
        headers: of the answer, their names in lower case.
    """

    def __init__(
        self, why: str, pause_s: float | None = None, status: int = 0, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(why)
        self.pause_s, self.status, self.headers = pause_s, status, headers or {}


class RefusedError(Exception):
    """A request was refused, and would be again.

    Args:
        status: that it answered with; 0 where a caller refuses what it answered.
        content: of the refusal, at most 64 kB.
        headers: of the answer, their names in lower case.
    """

    def __init__(
        self, why: str, status: int = 0, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(why)
        self.status, self.content, self.headers = status, content, headers or {}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered.

    Args:
        headers: their names in lower case.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes


class Web:
    """Sends requests to one address; any thread may.

    Args:
        address: an address on this machine is asked without a proxy.
        key: never quoted in an error.
        clock: seconds of any beginning.
    """

    def __init__(self, address: str, key: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._key, self._clock = key, clock
        is_local = urlsplit(address).hostname in _LOCAL
        proxies = [urllib.request.ProxyHandler({})] if is_local else []
        self._opener = urllib.request.build_opener(_NoRedirect(), *proxies)

    def send(
        self,
        address: str,
        headers: Mapping[str, str],
        most_bytes: int,
        timeout_s: float,
        content: bytes | None = None,
        method: str = "",
    ) -> Answer:
        """Return what answers a request; a 304 is an answer too.

        Args:
            timeout_s: for the whole answer, but its headers, of which each wait for more may take as long.
            method: "" for a GET, or with ``content`` a POST.

        Raises:
            FailedError: no answer, a longer one, one that takes longer, or a status of ``AGAIN``.
            RefusedError: any other status from 300 on; a redirection is one.
        """
        sent = {"Accept": "application/json", "User-Agent": "askalike", **headers}
        request = urllib.request.Request(
            address, content, sent, method=method or ("GET" if content is None else "POST")
        )
        until = self._clock() + timeout_s
        try:
            with self._opener.open(request, timeout=timeout_s) as answer:
                received = self._read(answer, most_bytes, until)
                return Answer(answer.status, lowered(answer.headers), received)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 304:
                    return Answer(304, lowered(error.headers), b"")
                raise self._refused(error, until) from error
        except (OSError, HTTPException, ValueError) as error:  # URLError and TimeoutError are OSErrors
            reason = getattr(error, "reason", None) or error
            raise FailedError(f"cannot be reached: {self.quoted(str(reason) or type(reason).__name__)}") from error

    def quoted(self, text: str) -> str:
        """Return the beginning of what a service said, on one line and without the key."""
        if self._key:
            text = text.replace(self._key, "…")
        return " ".join(text.split())[:_QUOTED]

    def _read(self, answer: Any, most: int, until: float) -> bytes:
        parts, size = [], 0
        while part := answer.read1(_READ_AT_ONCE):
            size += len(part)
            if size > most:
                raise FailedError(f"gave an answer of more than {most:,} bytes")
            if self._clock() > until:
                raise FailedError("did not finish its answer in time")
            parts.append(part)
        if answer.length:  # urllib takes an answer that ends too early for a whole one
            raise FailedError(f"broke off its answer after {size:,} bytes")
        return b"".join(parts)

    def _refused(self, error: urllib.error.HTTPError, until: float) -> Exception:
        """Return the error of a refusal, with what came of its text in time."""
        answer: Any = error  # it has the methods of the response
        content, headers = b"", lowered(error.headers)
        with contextlib.suppress(OSError, HTTPException):
            while self._clock() < until and (part := answer.read1(_READ_AT_ONCE - len(content))):
                content += part
        why = f"answered {error.code}: {self.quoted(content.decode(errors='replace')) or error.reason}"
        if error.code in AGAIN:
            return FailedError(why, retry_after(headers), error.code, headers)
        return RefusedError(why, error.code, content, headers)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Goes nowhere else than where it was sent: a service must not pass texts and key on, nor lead into a network."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""
        return


def lowered(headers: Message | None) -> dict[str, str]:
    """Return headers with their names in lower case."""
    return {} if headers is None else {name.lower(): value for name, value in headers.items()}


def pause_s(
    first_s: float,
    failures: int,
    asked_s: float | None = None,
    longest_s: float = LONGEST_PAUSE_S,
    longest_asked_s: float = LONGEST_PAUSE_S,
) -> float:
    """Return how long to wait after failures: what the service asked for, or twice as long each time.

    Args:
        first_s: after the first failure, about: so that several do not come together again.
        failures: before the last one.
        longest_s: where the service asks for nothing.
    """
    if asked_s is not None:
        return min(max(asked_s, 0.0), longest_asked_s)
    return min(longest_s, first_s * 2.0 ** min(failures, 20)) * random.uniform(0.75, 1.25)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, given as such or as a date.

    >>> retry_after({"retry-after": "30"}), retry_after({})
    (30.0, None)
    """
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time()) if value else None
    except (ValueError, OverflowError):
        return None
