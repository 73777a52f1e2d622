"""What every command says: notes and errors, JSON, and text that cannot harm a terminal. Loading it costs little."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

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

    @property
    def has_bars(self) -> bool:
        """Return whether progress may be drawn."""
        return not self.is_quiet and not self.is_json


messages = Messages()


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
