"""One connection of HTTP/1.1: uvicorn's, with an end to everything that a client can keep the service waiting for.

What h11 refuses, the application never sees: those answers are made here, as JSON as all others.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Mapping
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from askalike.server.admission import Admission, Notices
from askalike.server.problem import Refused
from askalike.server.settings import Limits

LOG: Final = logging.getLogger("askalike.server.requests")

BUFFER_BYTES: Final = 16_384
"""Read from a connection at a time; a larger buffer would let one client hold the event loop."""
MIN_TAKEN_BYTES: Final = 65_536
"""A client that takes less of its answer in ``Limits.write_s`` is cut off."""
MAX_LINGER_BYTES: Final = 64_000_000
MAX_ANSWERS: Final = 1_000
"""Answers of one connection; then it is closed, so that a lasting client meets workers that started later."""
FREE_CHUNKS: Final = 1_000
MIN_CHUNK_BYTES: Final = 16
"""Smallest mean size of a body's chunks beyond ``FREE_CHUNKS``: a chunk costs more than its bytes."""


class Phase(Enum):
    """What a connection waits for."""

    NEW = auto()
    HEAD = auto()
    BODY = auto()
    WORK = auto()
    WRITE = auto()
    LINGER = auto()
    IDLE = auto()
    CLOSING = auto()


PHASE_LIMITS: Final[Mapping[Phase, str]] = {
    Phase.NEW: "first_byte_s",
    Phase.HEAD: "head_s",
    Phase.BODY: "write_s",
    Phase.WORK: "write_s",
    Phase.WRITE: "write_s",
    Phase.LINGER: "linger_s",
    Phase.IDLE: "idle_s",
    Phase.CLOSING: "write_s",
}
"""Phase → the field of ``Limits`` that ends it; the end of ``WORK`` only starts it again."""
_buffer: Final = bytearray(BUFFER_BYTES)


class Connection(H11Protocol, asyncio.BufferedProtocol):
    """A connection with limits; the application is asked as uvicorn does.

    Args:
        more: as uvicorn gives them.
    """

    def __init__(self, *, limits: Limits, admission: Admission, notices: Notices, **more: Any) -> None:
        super().__init__(**more)
        self.conn = self._requests = _Requests(h11.SERVER, limits.head_bytes)
        self.logger = _ERRORS
        self._limits = limits
        self._admission = admission
        self._notices = notices
        self._phase = Phase.NEW
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = self._lingered = 0
        self._is_known = False

    # -- what the event loop calls -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, where there is room."""
        super().connection_made(transport)
        if not self._admission.admit(self, self.client[0] if self.client else ""):
            self._notices.note("refused: too many connections at work")
            refusal = Refused(503, "too many connections are open", "try again soon", {"Retry-After": "1"})
            self._refuse(refusal)
        self._update(restarts=True)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return where the next bytes go; they are taken out at once, so that all connections share it."""
        return _buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Read the bytes that have come."""
        if self._phase is Phase.LINGER:
            self._lingered += nbytes
            if self._lingered > MAX_LINGER_BYTES:
                self._cut("its request was refused, and it did not stop sending")
                return
        self.data_received(bytes(_buffer[:nbytes]))
        self._update(
            restarts=self._phase is Phase.BODY and nbytes > 1_000
        )  # one that sends goes after those that do not

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._update()

    def resume_writing(self) -> None:
        """Go on once the client reads."""
        super().resume_writing()
        self._update()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._admission.forget(self)
        super().connection_lost(exc)

    # -- what uvicorn calls ------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Enter the phase after an answer."""
        super().on_response_complete()
        self._unset_keepalive_if_required()  # it is ours to end
        self._is_known |= self._requests.status < HTTPStatus.BAD_REQUEST
        self._update()

    def shutdown(self) -> None:
        """Close at once, or after the answer under way."""
        super().shutdown()
        self._update()

    def send_400_response(self, msg: str) -> None:
        """Answer what h11 refuses."""
        fault = self._requests.fault
        status = fault.error_status_hint if fault is not None else 400
        reason = _QUOTED.sub("", str(fault or msg))  # what came may hold a key
        self._refuse(Refused(status, f"the request is not HTTP/1.1: {reason}"[:300], HINTS.get(status, HINT)))

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: an upgrade is an offer, and not to take it is an answer."""

    # -- what is waited for ------------------------------------------------------------------------------------

    def close_for_another(self) -> None:
        """Close at once."""
        self._notices.note(f"closed for another: {self._phase.name.lower()}")
        self._cut("")

    def _current_phase(self) -> Phase:
        """Return the phase that the connection is in."""
        if self.transport.is_closing():
            return Phase.CLOSING
        is_answered = self.cycle is None or self.cycle.response_complete
        if not is_answered and self.conn.their_state is h11.SEND_BODY:
            return Phase.BODY
        if self.flow.write_paused:
            return Phase.WRITE
        if not is_answered:
            return Phase.WORK
        if self.conn.their_state is h11.SEND_BODY:
            return Phase.LINGER
        if self.conn.trailing_data[0]:
            return Phase.HEAD
        return Phase.NEW if self.cycle is None else Phase.IDLE

    def _update(self, *, restarts: bool = False) -> None:
        """Enter the current phase and start its timer.

        Args:
            restarts: start the timer anew even where the phase has not changed.
        """
        phase = self._current_phase()
        if phase is self._phase and not restarts:
            return
        self._phase = phase
        self._unsent = self.transport.get_write_buffer_size()
        self._admission.note(self, "work" if phase is Phase.WORK else "known" if self._is_known else "strange")
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(getattr(self._limits, PHASE_LIMITS[phase]), self._on_timeout)

    def _on_timeout(self) -> None:
        """End what lasted too long: refuse, close or cut."""
        phase, unsent = self._phase, self.transport.get_write_buffer_size()
        if self._current_phase() is not phase or phase is Phase.WORK:
            self._update(restarts=True)
        elif phase is Phase.HEAD:
            self._notices.note("timed out: head")
            hint = "send the whole head of a request at once"
            self._refuse(Refused(408, f"the head did not come within {self._limits.head_s:g} s", hint))
            self._update()
        elif phase in (Phase.NEW, Phase.IDLE) and not unsent:
            if phase is Phase.NEW:
                self._notices.note("timed out: new")
            self.transport.close()
            self._update()
        elif phase is Phase.BODY and not self.flow.write_paused:
            self._update(restarts=True)  # the application has its own limits while it reads
        elif phase in (Phase.WRITE, Phase.CLOSING) and 0 < unsent <= self._unsent - MIN_TAKEN_BYTES:
            self._update(restarts=True)
        else:
            self._cut(f"timed out: {phase.name.lower()}")

    def _cut(self, notice: str) -> None:
        if notice:
            self._notices.note(notice)
        self.transport.abort()

    # -- answers without the application -----------------------------------------------------------------------

    def _refuse(self, problem: Refused) -> None:
        """Answer, where no answer was begun, and close."""
        identifier = secrets.token_hex(8)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            content = json.dumps({"error": problem.error, "hint": problem.hint}).encode()
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(content)),
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
                "X-Request-Id": identifier,
                "Connection": "close",
                **problem.headers,
            }
            head = h11.Response(
                status_code=problem.status,
                reason=HTTPStatus(problem.status).phrase.encode(),
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            )
            for event in (head, h11.Data(data=content), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None and not self.cycle.response_complete:  # the application still reads the body
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        client = self.client[0] if self.client else ""
        fields = {"request": identifier, "route": "none", "status": problem.status, "client": client}
        if problem.status != HTTPStatus.SERVICE_UNAVAILABLE:
            LOG.info("", extra={"fields": fields})
        self.transport.close()


class _Requests(h11.Connection):
    """What a client sends, refused also where two readers of it could disagree, or where it costs too much to read."""

    def __init__(self, role: type[h11.SERVER], most_bytes: int) -> None:
        super().__init__(role, most_bytes)
        self._answers = 0
        self.fault: h11.RemoteProtocolError | None = None
        self.status = 0
        self._chunks = self._bytes = 0
        self._head: list[bytes] = []

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Return an event as bytes, and remember the status that it tells; the head of an answer of a length that is
        known comes with what follows it, so that both are sent at once. A connection ends with its last answer.
        """
        self._answers += isinstance(event, h11.Response)
        if isinstance(event, h11.Response) and self._answers >= MAX_ANSWERS and self._may_end(event):
            headers = [*event.headers, (b"connection", b"close")]
            event = h11.Response(status_code=event.status_code, reason=event.reason, headers=headers)
        parts = super().send_with_data_passthrough(event)
        if isinstance(event, h11.Response):
            self.status = event.status_code
            if parts is not None and any(name == b"content-length" for name, _ in event.headers):
                self._head, parts = parts, []
        elif self._head and parts is not None:
            parts, self._head = [*self._head, *parts], []
        return parts

    def _may_end(self, response: h11.Response) -> bool:
        """Return whether the connection may end with an answer: all that came is read, else it would be reset."""
        is_read = self.their_state is not h11.SEND_BODY and not self.trailing_data[0]
        return is_read and all(name != b"connection" for name, _ in response.headers)

    def next_event(self) -> Any:
        """Return what has come.

        Raises:
            h11.RemoteProtocolError: it is refused.
        """
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                event = _in_origin_form(event)
                self._chunks = self._bytes = 0
                names = [name for name, _ in event.headers]
                if b"transfer-encoding" in names:  # two readers could take its length differently: it could smuggle
                    if b"content-length" in names:
                        raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
                    if event.http_version < b"1.1":
                        raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")
            elif isinstance(event, h11.Data):
                self._chunks += 1
                self._bytes += len(event.data)
                if self._chunks > FREE_CHUNKS and self._bytes < MIN_CHUNK_BYTES * self._chunks:
                    raise h11.RemoteProtocolError(f"the body comes in chunks of less than {MIN_CHUNK_BYTES} bytes")
        except h11.RemoteProtocolError as error:
            self.fault = error
            raise
        return event


def _in_origin_form(request: h11.Request) -> h11.Request:
    """Return a request whose line may name a whole address, as clients of proxies send it, by its path alone.

    Raises:
        h11.RemoteProtocolError: the address is of another host than ``Host`` names.
    """
    scheme, separator, rest = request.target.partition(b"://")
    if not separator or scheme.lower() not in (b"http", b"https"):
        return request
    authority, slash, path = rest.partition(b"/")
    if any(name == b"host" and value.lower() != authority.lower() for name, value in request.headers):
        raise h11.RemoteProtocolError("the address names another host than Host")
    target = slash + path or b"/"
    return h11.Request(method=request.method, headers=request.headers, target=target, http_version=request.http_version)


_ERRORS: Final = logging.getLogger("askalike.server.connection")
_ERRORS.setLevel(logging.ERROR)  # uvicorn warns of each request that it refuses; those are in our own log

_QUOTED: Final = re.compile(r""":? \(?(bytearray\()?b?['"].*""", re.DOTALL)
"""What h11 shows of a request at the end of a message."""
HINT: Final = "send a request of HTTP/1.1; was it meant for another port?"
HINTS: Final = {431: "send a shorter address and fewer headers", 501: "send the body as it is, or in chunks"}
