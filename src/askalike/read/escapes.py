"""Whether titles were escaped for HTML, as Reddit's and Stack Exchange's interfaces give them: ``&gt;`` for ``>``.

Titles are plain text in every format that is read here, so a title that speaks of ``&gt;`` is left as it is. Only
tables and JSON Lines can come from an interface that escapes, and show it: where titles are escaped, none has a bare
``<``, ``>`` or ``&``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

SAMPLED_TITLES: Final = 1_000
"""So many records at the beginning are looked at."""

ESCAPED_TITLES: Final = (
    "titles are escaped for HTML (&amp; for &); that is taken off; if they are not, say --no-html-escaped"
)
"""What the user should know about it."""

_LEAST: Final = 3
_REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_BARE = re.compile("[<>&]")


def are_escaped(titles: Iterable[str]) -> bool:
    """Say whether titles were escaped: several have a character reference, and none a sign that would be one.

    >>> are_escaped(["AT&amp;T", "a &lt; b", "Why &quot;x&quot;?", "How?"])
    True
    >>> are_escaped(["How does &gt; work in HTML?", "Tom & Jerry", "What is &amp;?", "And &lt;?", "&nbsp;"])
    False
    """
    found = 0
    for title in titles:
        rest, count = _REFERENCE.subn("", title)
        if _BARE.search(rest):
            return False
        found += count > 0
    return found >= _LEAST
