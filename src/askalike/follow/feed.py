"""A feed of JSON Lines, at an address or in a file: a line a thread in our own format, with ``updated``, ``deleted``.

An address that ends in ``since=`` gets the newest ``updated`` that was read, and answers with the lines from then on,
with those of that very moment too; with nothing behind it, with all. Any other is read whole when it has changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from askalike.errors import SourceError
from askalike.follow.pace import Pace
from askalike.follow.source import Cursor, Piece, Reading, reading_context, reading_of
from askalike.readers.frame import ReadContext
from askalike.readers.jsonl import line_records, load_object
from askalike.readers.values import Unreadable, identifier, moment
from askalike.types import Thread
from askalike.web import FailedError, RefusedError, Web

MOST_BYTES: Final = 256 << 20
MOST_LINE_BYTES: Final = 16 << 20
LINES_A_PIECE: Final = 500
_TIMEOUT_S: Final = 300.0
_REMOTE: Final = re.compile(r"https?://", re.IGNORECASE)


class Feed:
    """One feed.

    Args:
        key: sent as a bearer token, or "".
    """

    kind = "feed"
    are_lists_whole = True

    def __init__(self, address: str, pace: Pace, key: str = "") -> None:
        self.address, self.pace = address, pace
        self._is_remote = bool(_REMOTE.match(address))
        self._has_since = self._is_remote and address.endswith("since=")
        self._headers = {"Accept": "application/x-ndjson"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._web = Web(address, key)
        self._held: tuple[str, list[bytes]] | None = None

    def poll(self, cursor: Cursor) -> Iterator[Piece]:
        """Yield the lines since the cursor; where the feed is always whole, say whether it has changed."""
        known: dict[str, Any] = cursor if isinstance(cursor, dict) else {}
        if not self._has_since:
            held = self._get("") if self._is_remote else None
            mark = held[0] if held else self._mark()
            is_new = mark != known.get("mark")
            self._held = held if is_new else None
            yield Piece({"mark": mark}, is_sweep_due=bool(known) and is_new)
            return
        since = str(known.get("since", ""))
        _, lines = self._get(since)
        for start in range(0, len(lines), LINES_A_PIECE):
            piece, newest = self._piece(lines, start, since)
            if not newest:
                raise SourceError(f"{self.address} gives lines without updated", "each needs it where since= is asked")
            since = newest
            yield Piece(known, threads=piece.threads, gone=piece.gone, rejects=piece.rejects)
        yield Piece({"since": since})

    def sweep(self, place: Cursor) -> Piece:
        """Return some of all lines; one that goes on where the feed has changed begins again."""
        at: dict[str, Any] = place if isinstance(place, dict) else {}
        if self._held is None or (not self._is_remote and self._mark() != self._held[0]):
            self._held = self._get("")
        mark, lines = self._held
        start = at.get("line", 0) if at.get("mark") == mark and isinstance(at.get("line"), int) else 0
        piece, _ = self._piece(lines, start, "")
        start += LINES_A_PIECE
        is_done = start >= len(lines)
        if is_done:
            self._held = None
        return Piece(
            None if is_done else {"mark": mark, "line": start},
            threads=piece.threads,
            gone=piece.gone,
            rejects=piece.rejects,
        )

    def read(self, identifier: str) -> Reading:
        """Raise: threads come by lists alone."""
        raise SourceError(f"{self.address} gives no single thread", "read the feed")

    def check_access(self) -> None:
        """Do nothing: a feed that is refused gives no lines."""

    def _mark(self) -> str:
        """Return what differs when the file does."""
        try:
            found = Path(self.address).stat()
        except OSError as error:
            raise FailedError(f"{self.address} cannot be read: {error.strerror}") from error
        return f"{found.st_mtime_ns}-{found.st_size}"

    def _get(self, since: str) -> tuple[str, list[bytes]]:
        """Return the feed's mark and its lines."""
        if not self._is_remote:
            mark = self._mark()
            try:
                content = Path(self.address).read_bytes()
            except OSError as error:
                raise FailedError(f"{self.address} cannot be read: {error.strerror}") from error
            if len(content) > MOST_BYTES:
                raise SourceError(f"{self.address} has more than {MOST_BYTES:,} bytes", "askalike index reads it")
            return mark, content.splitlines()
        self.pace.begin()
        try:
            answer = self._web.send(self.address + quote(since, safe=""), self._headers, MOST_BYTES, _TIMEOUT_S)
        except RefusedError as error:
            raise SourceError(f"{self.address} {error}", "check the address and the key") from error
        finally:
            self.pace.end()
        return hashlib.blake2b(answer.content, digest_size=12).hexdigest(), answer.content.splitlines()

    def _piece(self, lines: list[bytes], start: int, since: str) -> tuple[Piece, str]:
        """Return some lines, and the newest ``updated`` among them and ``since``."""
        threads: dict[str, tuple[Thread, str]] = {}
        gone: dict[str, None] = {}
        rejects: list[tuple[str, str]] = []
        newest, newest_at = since, moment(since, ReadContext())
        for number, line in enumerate(lines[start : start + LINES_A_PIECE], start + 1):
            if not line.strip():
                continue
            name = f"line {number}"
            try:
                if len(line) > MOST_LINE_BYTES:
                    raise Unreadable(f"the line has {len(line):,} bytes, at most {MOST_LINE_BYTES:,}")
                data = load_object(line)
                name = identifier(data.get("id"))
                at = moment(data.get("updated"), ReadContext())
                if at is not None and (newest_at is None or at > newest_at):
                    newest, newest_at = str(data["updated"]), at
                if data.get("deleted") is True:
                    threads.pop(name, None)
                    gone[name] = None
                    continue
                context = reading_context()
                found = reading_of(line_records(self.address, context)(number, line), context)
            except Unreadable as error:
                rejects.append((name, str(error)))
                continue
            if found.thread is not None:
                gone.pop(name, None)  # a later line on a thread takes the place of an earlier one
                threads[name] = found.thread, hashlib.blake2b(line, digest_size=12).hexdigest()
                rejects += [(name, reason) for reason in found.rejects]
        return Piece(None, threads=tuple(threads.values()), gone=tuple(gone), rejects=tuple(rejects)), newest
