"""Banners that name the original of a duplicate, at the beginning of a body: they give the answer away.

Older posts of Stack Exchange begin with a quotation "Possible Duplicate:" and linked titles; newer pages put a notice
"This question already has answers here" before the body. Anything else in the body is the asker's and stays.

Where a banner ends:

* HTML: with its element (the quotation or notice). A banner in a plain paragraph ends with the paragraph, or, where
  the paragraph goes on with prose, after its first link; a paragraph without link takes the list or the paragraphs of
  links behind it along.
* Text with line ends: quoted lines go together; else the paragraph of the banner (to the first empty line) if it has
  at most 600 characters, else its line if it has at most 300; a banner alone in its paragraph takes the next along.
* Text in one line, where nothing marks the end: all goes to the first question mark within 160 characters (longer
  than a title may be), else to the first end of a sentence, else to the end; for "Duplicates" every further sentence
  goes that follows directly and ends in a question mark. A title that ends in no mark takes the beginning of the body
  along: rather a sentence lost than a title leaked.
"""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborNode

_PHRASE = (
    r"(?:(?:possible|exact)\s+duplicate(?P<many>s)?(?:\s*:|[ \t*_]*(?=\n|$))"
    r"|(?:possible|exact|marked\s+as\s+an?)\s+duplicate\s+of\b:?"
    r"|duplicate\s+of(?:\s*:|(?=\s+(?:https?:|[\[\"#])))"
    r"|this\s+question\s+(?:already has|may already have)\s+(?:an?\s+)?answers?(?:\s+here\b\s*:?|\s*:))"
)
_DECORATION = r"[\s>*_#\"'\[(]{0,40}"
_BANNER = re.compile(_DECORATION + _PHRASE, re.IGNORECASE)
_SEARCHED: Final = 2_000  # characters at the beginning in which a banner can start
_MOST_BANNERS: Final = 20

_LONGEST_PARAGRAPH: Final = 600
_LONGEST_LINE: Final = 300
_LONGEST_TITLE: Final = 160
_EMPTY_LINE = re.compile(r"\n[ \t>]*\n")
_QUOTED_LINES = re.compile(r"(?:[ \t]*(?:>|&gt;)[^\n]*(?:\n|$))+")
_QUESTION_END = re.compile(r"\?+(?=\s|$)")
# A full stop after an initial or abbreviation ends no sentence. Each run of signs is tried once, from its beginning.
_SENTENCE_END = re.compile(r"(?<![.!?])(?<!\b[A-Za-z])(?<!\b(?:vs|eg|ie|no|St|Dr|Mr))[.!?]++(?=\s++[^a-z\s]|\s*+$)")


def may_hold_banner(source: str) -> bool:
    """Return whether the beginning of a source has a word of a banner: a cheap test before any other."""
    beginning = source[:_SEARCHED].lower()
    return "duplicate" in beginning or "already ha" in beginning


def without_banner(text: str) -> str:
    """Return ``text`` without the banners at its beginning.

    >>> without_banner("Possible Duplicate: Is a visa needed? I fly on Monday.")
    'I fly on Monday.'
    """
    if not may_hold_banner(text):
        return text
    for _ in range(_MOST_BANNERS):
        match = _BANNER.match(text)
        if match is None:
            break
        text = text[_end_of_banner(text, match) :].lstrip()
    return text


def _end_of_banner(text: str, banner: re.Match[str]) -> int:
    """Return where the banner that ``banner`` begins has ended."""
    quoted = _QUOTED_LINES.match(text)
    if quoted and text[quoted.end() :].strip():
        return quoted.end()
    start = banner.end()
    empty = _EMPTY_LINE.search(text, start)
    if empty and not text[start : empty.start()].strip(" \t*_:\n"):  # alone in its paragraph
        start = empty.end()
        empty = _EMPTY_LINE.search(text, start)
    if empty and empty.start() - banner.start() <= _LONGEST_PARAGRAPH:
        return empty.end()
    while start < len(text) and text[start] in " \t*_:\n":
        start += 1
    line_end = text.find("\n", start)
    if 0 <= line_end <= start + _LONGEST_LINE:
        return line_end
    return _end_of_titles(text, start, has_many=banner["many"] is not None)


def _end_of_titles(text: str, start: int, *, has_many: bool) -> int:
    """Return where the titles that begin at ``start`` end, in a text where nothing but sentences marks it."""
    question = _QUESTION_END.search(text, start, start + _LONGEST_TITLE + 1)
    end = question or _SENTENCE_END.search(text, start)
    if end is None:
        return len(text)
    position = end.end()
    while has_many:
        end = _SENTENCE_END.search(text, position)
        if end is None or "?" not in end[0]:
            break
        position = end.end()
    return position


_WRAPPERS: Final = frozenset({"div", "section", "article", "main", "body", "html"})
_NOTICE_CLASS = re.compile(r"notice|duplicate|question-status|originals", re.IGNORECASE)
_BESIDE_LINKS = re.compile(r"\d+ answers?|\b(?:and|or)\b|[\W_]+")


def drop_html_banners(root: LexborNode) -> None:
    """Remove the banners at the beginning of ``root``'s content from the tree."""
    for _ in range(_MOST_BANNERS):
        element = _content(root.child)
        # a wrapper around the whole post is entered; a wrapper that is a notice is not
        while element is not None and element.tag in _WRAPPERS and not _is_notice(element):
            element = _content(element.child)
        if element is None or _BANNER.match(element.text()) is None:
            return
        if not _drop(element):
            return


def _is_notice(element: LexborNode) -> bool:
    return _NOTICE_CLASS.search(element.attributes.get("class") or "") is not None


def _content(node: LexborNode | None) -> LexborNode | None:
    """Return a node, or the first one after it that has text."""
    while node is not None and not (node.text() or "").strip():
        node = node.next
    return node


def _drop(element: LexborNode) -> bool:
    """Remove one banner; return False where it has no element of its own, so that the text is to be judged."""
    if element.tag in ("blockquote", "aside", *_WRAPPERS):
        element.decompose()
        return True
    if element.tag not in ("p", "h1", "h2", "h3", "h4", "h5", "h6"):
        return False
    links = element.css("a")
    if not links:
        if _BANNER.sub("", element.text(), count=1).strip():
            return False
        following = _content(element.next)
        while following is not None and _is_of_links(following):
            beyond = _content(following.next)
            following.decompose()
            following = beyond
        element.decompose()
        return True
    if _holds_links_only(_BANNER.sub("", element.text(), count=1), links):
        element.decompose()
    else:
        _drop_through_first_link(element)
    return True


def _is_of_links(element: LexborNode) -> bool:
    links = element.css("a") if element.tag in ("p", "ul", "ol", "blockquote") else []
    return bool(links) and _holds_links_only(element.text(), links)


def _holds_links_only(text: str, links: list[LexborNode]) -> bool:
    """Return whether ``text`` has no words beyond those of ``links``, "and", "or" and a number of answers."""
    for link in links:
        text = text.replace(link.text(), " ", 1)
    return not _BESIDE_LINKS.sub("", text)


def _drop_through_first_link(paragraph: LexborNode) -> None:
    while (node := paragraph.child) is not None:
        is_last = node.tag == "a" or (node.tag != "-text" and node.css_first("a") is not None)
        node.decompose()
        if is_last:
            return
