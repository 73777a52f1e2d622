"""A body in its markup to text: the one door to the readers of each markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from askalike.errors import SettingError
from askalike.text.banner import without_banner
from askalike.text.characters import safe
from askalike.text.hypertext import Segment, read_html
from askalike.text.markdown import read_markdown
from askalike.types import Markup

__all__ = ["Segment", "excerpt", "plain_text", "readable", "segments"]

LONGEST_REMEMBERED: Final = 20_000
MOST_REMEMBERED: Final = 256


def _read_plain(body: str) -> list[Segment]:
    return [Segment("prose", body)]


READERS: Final[dict[str, Callable[[str], list[Segment]]]] = {
    "html": read_html,
    "markdown": read_markdown,
    "plain": _read_plain,
}


def segments(body: str, markup: Markup) -> list[Segment]:
    """Return the stretches of prose and code of a body, without a banner that names the original of a duplicate.

    HTML: ``<pre>`` blocks are code, inline ``<code>`` is prose. Markdown: fenced and indented blocks are code; marks
    are stripped to their text, addresses of links are dropped. Plain: one stretch of prose.

    Raises:
        SettingError: an unknown markup.
    """
    reader = READERS.get(markup)
    if reader is None:
        raise SettingError(f"markup {markup!r}, but expected one of: {', '.join(READERS)}", "name a listed markup")
    found = reader(safe(body))
    if found and found[0].kind == "prose":
        found[0] = Segment("prose", without_banner(found[0].text))
    return [segment for segment in found if segment.text.strip()]


def readable(body: str, markup: Markup, *, with_code: bool) -> str:
    """Return the text of a body, white space as it comes: what terms are made from.

    The last ones are remembered: a search reads its own body and those of its hits several times.
    """
    read = _readable if len(body) <= LONGEST_REMEMBERED else _readable.__wrapped__
    return read(body, markup, with_code)


@lru_cache(MOST_REMEMBERED)
def _readable(body: str, markup: Markup, with_code: bool) -> str:
    return "\n\n".join(part.text for part in segments(body, markup) if with_code or part.kind == "prose")


_BLANK_LINES = re.compile(r"\n{3,}")


def plain_text(body: str, markup: Markup, *, with_code: bool = True) -> str:
    """Return the text of a body for reading: prose and code in order, without banner and control characters.

    Runs of white space within a line become one space, and more than one empty line becomes one.

    >>> plain_text("<p>Run  <code>ls</code>:</p><pre><code>ls -l</code></pre>", "html")
    'Run ls:\\n\\nls -l'
    """
    text = readable(body, markup, with_code=with_code)
    lines = "\n".join([" ".join(line.split()) for line in text.split("\n")])
    return _BLANK_LINES.sub("\n\n", lines).strip("\n")


_WORD = re.compile(r"\S+")


def excerpt(text: str, length: int) -> str:
    """Return the beginning of ``text`` on one line, at most ``length`` characters, cut after a word with ``…``.

    A first word that is too long is cut within. Only as much of the text is read as is shown.

    Raises:
        SettingError: ``length`` is less than 1.

    >>> excerpt("Edit the file,\\nthen restart.", 20)
    'Edit the file, then…'
    """
    if length < 1:
        raise SettingError(f"excerpt of {length} characters, but expected at least 1", "ask for a larger length")
    shown: list[str] = []
    room = length
    for match in _WORD.finditer(text):
        word = match[0]
        if len(word) > room:
            return _ended(" ".join(shown) or word, length)
        shown.append(word)
        room -= len(word) + 1
    return " ".join(shown)


def _ended(shown: str, length: int) -> str:
    """Return ``shown`` with an ellipsis, within ``length`` characters."""
    if len(shown) < length:
        return shown + "…"
    head, space, _ = shown[:length].rpartition(" ")
    return (head if space else shown[: length - 1]) + "…"
