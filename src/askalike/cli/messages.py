"""What every command says: notes, errors and progress, JSON, and text that cannot harm a terminal.

rich is loaded when something is shown; who asks for JSON does not wait for it.
"""

from __future__ import annotations

import json
import re
import sys
import time
import unicodedata
from datetime import UTC, datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_ODD_BYTE = re.compile("[\udc80-\udcff]")  # as Python reads a byte of a path that is no UTF-8
_UNSEEN = {"Cc", "Cf", "Cs"}


class Messages:
    """What is said on the error stream: notes and progress, for people or, with ``--log-json``, one object a line."""

    is_quiet = is_verbose = is_json = False

    @cached_property
    def console(self) -> Console:
        """Return the error stream; rich is loaded when something is said."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    def say(self, text: str, level: str = "info", **fields: object) -> None:
        """Say something that is worth knowing, unless nothing but errors is wanted."""
        if self.is_quiet and level not in ("error", "hint", "stopped"):
            return
        if self.is_json:
            moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = {"at": moment, "level": level, "message": text, **fields}
            sys.stderr.write(json.dumps(line, default=str) + "\n")
            sys.stderr.flush()
        else:
            style = {"error": "red", "debug": "dim", "note": "dim"}.get(level)
            # a terminal gets whole words a line; a file or pipe gets one line, so that no path is broken
            self.console.print(
                text,
                markup=False,
                style=style,
                soft_wrap=level not in ("error", "hint") or not self.console.is_terminal,
            )

    def note(self, text: str) -> None:
        """Say a sentence that came with a result."""
        self.say(text if self.is_json else f"note: {text}", "note")


messages = Messages()


FIRST_LINE_S, LINE_EVERY_S = 60.0, 180.0


class BarProgress:
    """Shows each phase of long work as one line; without a terminal, every three minutes how far it has come.

    Args:
        says_start: without a terminal, a line says what begins, too.
    """

    def __init__(self, *, says_start: bool = False) -> None:
        self._has_lines = not (messages.is_json or messages.is_quiet or sys.stderr.isatty())
        self._says_start = says_start and self._has_lines
        self._done = self._total = 0
        self._unit, self._next_line_s = "", 0.0
        self._bars = None if messages.is_quiet or messages.is_json or not sys.stderr.isatty() else _bars()
        self._task: TaskID | None = None
        self._phase = ""
        self._began_s = 0.0

    def __enter__(self) -> BarProgress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._finish()
        if self._bars is not None:
            self._bars.stop()

    def start(self, phase: str, total: int, unit: str) -> None:
        """Begin a phase; the one before is shown as done."""
        self._finish()
        self._phase, self._began_s = safe(phase), time.monotonic()
        if self._bars is not None:
            self._task = self._bars.add_task(self._phase, total=total or None, unit=unit, rate="")
        if messages.is_json:
            messages.say(self._phase, "progress", total=total, unit=unit)
        self._done, self._total, self._unit = 0, total, unit
        self._next_line_s = self._began_s + FIRST_LINE_S
        if self._says_start:
            messages.say(f"{self._phase}: {total:,} {unit}" if total else self._phase)

    def advance(self, count: int) -> None:
        """Move the current phase on."""
        if self._bars is not None and self._task is not None:
            task = self._bars.tasks[self._task]
            self._bars.update(self._task, advance=count, rate=_rate(task.speed, task.fields["unit"]))
        self._done += count
        if self._has_lines and self._done and (now_s := time.monotonic()) >= self._next_line_s:
            self._next_line_s = now_s + LINE_EVERY_S
            left_s = (now_s - self._began_s) * max(0, self._total - self._done) / self._done
            left = f" of {self._total:,} {self._unit}, about {left_s / 60:,.0f} minutes left" if self._total else ""
            messages.say(f"{self._phase}: {self._done:,}{left}")

    def notice(self, text: str) -> None:
        """Show a sentence above the bars."""
        messages.note(safe(text))

    def _finish(self) -> None:
        if not self._phase:
            return
        if messages.is_verbose:
            spent_s = time.monotonic() - self._began_s
            messages.say(f"{self._phase}: {spent_s:.2f} s", "debug", seconds=round(spent_s, 3))
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=self._bars.tasks[self._task].total or 0)
        self._phase, self._task = "", None


def _bars() -> Progress:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}", style="dim", markup=False),
        TimeRemainingColumn(compact=True),
        console=messages.console,
    )


def _rate(speed: float | None, unit: str) -> str:
    if not speed:
        return ""
    return f"{speed / 1e6:.1f} MB/s" if unit == "bytes" else f"{speed:,.0f} {unit}/s"


def safe(text: str) -> str:
    """Return text that cannot move the cursor, set colours or turn the writing direction: one line, no controls.

    Bytes of a path that are no UTF-8 are written out, so that it can be told from others.

    >>> safe("red \\x1b[31m alert\\nnext"), safe("caf\\udce9.csv")
    ('red [31m alert next', 'caf\\\\xe9.csv')
    """
    spaced = _ODD_BYTE.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", " ".join(text.split()))
    if spaced.isascii() and spaced.isprintable():
        return spaced
    return "".join(letter for letter in spaced if unicodedata.category(letter) not in _UNSEEN or letter == "\u200d")


def print_json(value: Any) -> None:
    """Print one JSON value, readable and in the order given; what the output cannot hold, JSON writes as an escape."""
    import msgspec

    shown = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=msgspec.to_builtins) + "\n"
    try:
        shown.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        shown = json.dumps(value, indent=2, allow_nan=False, default=msgspec.to_builtins) + "\n"
    sys.stdout.write(shown)
    sys.stdout.flush()  # a full disk is told while there is somebody to tell it
