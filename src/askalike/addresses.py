"""Where a forum shows its questions: an address with ``{id}`` where ids go, such as https://forum.example.org/t/{id}."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from askalike.errors import InputError, SettingError

PLACE: Final = "{id}"
EXPECTED: Final = "expected one such as https://forum.example.org/t/{id}"
_PATTERN: Final = re.compile(r"https?://[^\s/?#{}]+/[^\s{}]*\{id\}[^\s{}]*", re.IGNORECASE)


def is_pattern(text: str) -> bool:
    """Return whether a text is an address of the web with one place for ids."""
    return _PATTERN.fullmatch(text) is not None


def address(pattern: str, identifier: str) -> str:
    """Return the address of a question, "" without a pattern.

    >>> address("https://forum.example.org/t/{id}", "a b")
    'https://forum.example.org/t/a%20b'
    """
    return pattern.replace(PLACE, quote(identifier, safe=""))


def check_pattern(text: str, name: str) -> str:
    """Return a pattern.

    Raises:
        SettingError: it is none.
    """
    if not is_pattern(text):
        raise SettingError(f"{name} is {text!r}", EXPECTED)
    return text


def read_config(path: Path) -> dict[str, Any]:
    """Return what a forum's config.toml holds; nothing where there is none.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", "correct it, or delete it") from error


def site_pattern(config: Path) -> str:
    """Return where a forum's site shows its questions, by ``url`` under ``[site]`` of its config.toml; "" if unsaid.

    Raises:
        InputError, SettingError: the file cannot be read, or names no such address.
    """
    site = read_config(config).get("site", {})
    url = site.get("url", "") if isinstance(site, dict) else site
    return check_pattern(str(url), f"site.url of {config}") if url != "" else ""
