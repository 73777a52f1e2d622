"""A post's body as HTML that a page may put into itself: an allow-list of plain elements, nothing that runs or loads.

Scripts, styles, frames, forms, classes and ids are dropped, and so are addresses other than http, https and mailto,
relative ones among them: they would lead to the service. An image becomes a link to it, with its description: whoever
reads decides whether another host is told. A body that is very large or very tangled is shown
as plain text, since parsers take time that grows with its square (20,000 nested elements: 1.8 s).
"""

from __future__ import annotations

import html
import re
from typing import Final

import nh3
from markdown_it import MarkdownIt

from askalike.text.characters import safe
from askalike.text.hypertext import LONGEST_PARSED, MOST_TAGS
from askalike.text.markup import plain_text
from askalike.types import Markup

LONGEST_MARKDOWN: Final = 20_000  # characters; hostile ones of this length take half a second

_NAMES = """
p br hr h1 h2 h3 h4 h5 h6 blockquote pre code kbd samp ul ol li dl dt dd b strong i em s del ins sub sup a abbr
table thead tbody tr th td
"""
ELEMENTS: Final = frozenset(_NAMES.split())
_ATTRIBUTES: Final = {"a": {"href", "title"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}}
_SCHEMES: Final = {"http", "https", "mailto"}

_IMAGE: Final = re.compile(r"<img\b([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(r"""\b(src|alt)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)

_CLEANER: Final = nh3.Cleaner(
    tags=set(ELEMENTS),
    clean_content_tags={"script", "style", "template", "noscript", "title", "iframe", "textarea", "select"},
    attributes=_ATTRIBUTES,
    url_schemes=_SCHEMES,
    url_relative="deny",
    link_rel="nofollow noopener noreferrer",
)


def safe_html(body: str, markup: Markup) -> str:
    """Return a body as HTML that is safe to show.

    >>> safe_html("<p onclick='x()'>Edit <code>a</code><script>x()</script></p>", "html")
    '<p>Edit <code>a</code></p>'
    >>> safe_html('<img src="https://a.example/b.png" alt="The error">', "html")
    '<a href="https://a.example/b.png" rel="nofollow noopener noreferrer">image: The error</a>'
    >>> safe_html("a < b\\n\\nc", "plain")
    '<p>a &lt; b</p><p>c</p>'
    """
    text = safe(body)
    if markup == "html" and len(text) <= LONGEST_PARSED and text.count("<") <= MOST_TAGS:
        return _cleaned(text)
    if markup == "markdown" and len(text) <= LONGEST_MARKDOWN:
        return _cleaned(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    return _paragraphs(text if markup == "plain" else plain_text(text, markup))


def _cleaned(text: str) -> str:
    """Return HTML without what may not be shown; images become links first, so that these are cleaned as all else."""
    return _CLEANER.clean(_IMAGE.sub(_linked, text))


def _linked(image: re.Match[str]) -> str:
    found = {name.lower(): html.unescape("".join(values)) for name, *values in _ATTRIBUTE.findall(image[1])}
    address, described = (html.escape(found.get(name, "").strip()) for name in ("src", "alt"))
    if not address.lower().startswith(("http://", "https://")):
        return described
    return f'<a href="{address}">image{": " if described else ""}{described}</a>'


def _paragraphs(text: str) -> str:
    parts = (html.escape(part.strip("\n"), quote=False).replace("\n", "<br>") for part in text.split("\n\n"))
    return "".join(f"<p>{part}</p>" for part in parts if part.strip())
