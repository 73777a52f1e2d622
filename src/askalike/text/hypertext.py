"""HTML to segments of prose and code.

A post of ordinary size is parsed by lexbor. The tree that HTML's rules ask for can be much larger than its source, and
some sources take time that grows with their square (100,000 nested elements: 23 s; 100,000 attributes: 29 s), so
beyond ``MOST_TAGS`` or ``LONGEST_PARSED`` a post is read without a tree, by dropping its tags from left to right. The
largest of 8,596 posts of four Stack Exchange sites has 364 tags and 21,025 characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Final, Literal

from selectolax.lexbor import LexborHTMLParser

from askalike.text.banner import drop_html_banners, may_hold_banner
from askalike.text.characters import safe


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a post, in the order of the post; ``text`` is not empty and free of markup and control characters.

    Prose keeps the line ends of its source and has one at each block element; code keeps its lines as they are.
    """

    kind: Literal["prose", "code"]
    text: str


MOST_TAGS: Final = 1_000
LONGEST_PARSED: Final = 100_000  # characters

_BLOCKS = (
    "address|article|aside|blockquote|br|caption|dd|details|div|dl|dt|figcaption|figure|footer|form|h[1-6]|header|hr|"
    "li|main|nav|ol|option|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_BLOCK_TAG = re.compile(rf"<(?=/?(?:{_BLOCKS})[\s/>])", re.IGNORECASE)
_UNSEEN = "script|style|template|noscript|title"
_UNSEEN_TAG = re.compile(rf"<(?:{_UNSEEN})\b", re.IGNORECASE)
_PRE_TAG = re.compile(r"<pre\b", re.IGNORECASE)
# private-use characters mark where a code block stood
_OPEN, _CLOSE = "\ue000", "\ue001"
_CODE_PLACE = re.compile(f"{_OPEN}([0-9]{{1,6}}){_CLOSE}")


def read_html(body: str) -> list[Segment]:
    """Return the prose and the ``<pre>`` blocks of an HTML post in order; scripts, styles and comments are dropped."""
    if "<" not in body:
        return [Segment("prose", safe(unescaped(body)))]
    if len(body) > LONGEST_PARSED or body.count("<") > MOST_TAGS:
        return _read_without_tree(body)
    return _read_tree(body)


def _read_tree(body: str) -> list[Segment]:
    source = _BLOCK_TAG.sub("\n<", body.replace(_OPEN, " ").replace(_CLOSE, " "))
    tree = LexborHTMLParser(source)
    root = tree.body or tree.root
    if root is None:
        return []
    if _UNSEEN_TAG.search(source):
        tree.strip_tags(_UNSEEN.split("|"))
    if may_hold_banner(source):
        drop_html_banners(root)
    codes: list[str] = []
    if _PRE_TAG.search(source):
        for block in tree.css("pre"):
            codes.append(block.text())
            block.replace_with(f"{_OPEN}{len(codes) - 1}{_CLOSE}")
    return _put_back(safe(root.text()), codes)


def _put_back(text: str, codes: list[str]) -> list[Segment]:
    """Return ``text`` as prose, cut where a place mark stands for a code block."""
    found: list[Segment] = []
    for position, part in enumerate(_CODE_PLACE.split(text)):
        if position % 2 == 0:
            found.append(Segment("prose", part.strip()))
        elif int(part) < len(codes):
            found.append(Segment("code", safe(codes[int(part)]).strip("\n")))
    return [segment for segment in found if segment.text.strip()]


# Each of these consumes to the end of the text when its end is missing, so that it is tried once only.
_DROPPED = re.compile(rf"<!--(?:.*?-->|.*)|<({_UNSEEN})\b(?:.*?</\1\s*>|.*)", re.IGNORECASE | re.DOTALL)
_PRE = re.compile(r"<pre\b[^<>]*>(.*?)(?:</pre\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"</?[a-z!?][^<>]*>", re.IGNORECASE)


def _read_without_tree(body: str) -> list[Segment]:
    """Return the segments of a very large or very tangled post, in time that grows with its length only."""
    text = _BLOCK_TAG.sub("\n<", _DROPPED.sub(" ", body))
    found: list[Segment] = []
    for position, part in enumerate(_PRE.split(text)):
        stretch = safe(unescaped(_TAG.sub("", part)))
        found.append(Segment("code", stretch.strip("\n")) if position % 2 else Segment("prose", stretch.strip()))
    return [segment for segment in found if segment.text.strip()]


_HUGE_REFERENCE = re.compile("&#[0-9]{8,};?")


def unescaped(text: str) -> str:
    """Return ``text`` with its character references resolved; a number of eight digits or more becomes ``U+FFFD``.

    >>> unescaped("a &lt; b &amp; c")
    'a < b & c'
    """
    return unescape(_HUGE_REFERENCE.sub("\ufffd", text)) if "&" in text else text
