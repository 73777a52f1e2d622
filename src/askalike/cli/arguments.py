"""Arguments and options that several commands share, and the parsing of their values."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from askalike.errors import SettingError

ForumArgument = Annotated[Path, typer.Argument(metavar="FORUM", help="The forum's folder.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

MAX_BODY_BYTES = 16 * 1024 * 1024


def moment(text: str | None, option: str) -> datetime | None:
    """Return the moment that an option gives: a date or an ISO 8601 date and time, UTC unless it says otherwise.

    Raises:
        SettingError: it is neither, or beyond the first or last day of the calendar in UTC.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise SettingError(
            f"{option} is {text!r}", "expected a date such as 2024-05-01 or 2024-05-01T12:30:00Z"
        ) from error


def body_text(text: str) -> str:
    """Return the body that an option gives; "-" reads it from standard input.

    Raises:
        SettingError: standard input is larger than a body may be, or not UTF-8.
    """
    if text != "-":
        return text
    raw = sys.stdin.buffer.read(MAX_BODY_BYTES + 1)
    if len(raw) > MAX_BODY_BYTES:
        raise SettingError(f"the body is larger than {MAX_BODY_BYTES} bytes", "shorten it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingError(f"the body is not UTF-8: {error}", "convert it first") from error
