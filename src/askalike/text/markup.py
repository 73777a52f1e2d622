"""A body in its markup to text, by segments of prose and code: the one way to the readers of each markup.

**HTML.** A post of ordinary size is parsed by lexbor. The tree that HTML's rules ask for can be much larger than its
source, and some sources take time that grows with their square (100,000 nested elements: 23 s; 100,000 attributes: 29
s), so beyond ``MOST_TAGS`` or ``LONGEST_PARSED`` a post is read without a tree, by dropping its tags from left to
right. The largest of 8,596 posts of four Stack Exchange sites has 364 tags and 21,025 characters.

**Markdown.** Blocks first: fenced blocks (to the end of the text where the closing fence is missing) and blocks
indented by four spaces or a tab after an empty line, or by eight inside a list, are code. Then the marks within prose
are stripped to their text: emphasis, inline code, links and images (their address is dropped), quotations, headings,
bullets, rulers, reference definitions, backslash escapes, common HTML tags, character references. A mark without its
partner stays.

Differs: from CommonMark in that links do not nest, emphasis does not cross a line, and HTML blocks are not code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from typing import Final, Literal

from selectolax.lexbor import LexborHTMLParser

from askalike.errors import SettingError
from askalike.text.banner import drop_html_banners, may_hold_banner, without_banner
from askalike.text.characters import safe
from askalike.types import Markup


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
    stretches: list[Segment] = []
    for position, part in enumerate(_CODE_PLACE.split(text)):
        if position % 2 == 0:
            stretches.append(Segment("prose", part.strip()))
        elif int(part) < len(codes):
            stretches.append(Segment("code", safe(codes[int(part)]).strip("\n")))
    return stretches


# Each of these consumes to the end of the text when its end is missing, so that it is tried once only.
_DROPPED = re.compile(rf"<!--(?:.*?-->|.*)|<({_UNSEEN})\b(?:.*?</\1\s*>|.*)", re.IGNORECASE | re.DOTALL)
_PRE = re.compile(r"<pre\b[^<>]*>(.*?)(?:</pre\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"</?[a-z!?][^<>]*>", re.IGNORECASE)


def _read_without_tree(body: str) -> list[Segment]:
    """Return the segments of a very large or very tangled post, in time that grows with its length only."""
    stretches: list[Segment] = []
    for position, part in enumerate(_PRE.split(_BLOCK_TAG.sub("\n<", _DROPPED.sub(" ", body)))):
        text = safe(unescaped(_TAG.sub("", part)))
        stretches.append(Segment("code", text.strip("\n")) if position % 2 else Segment("prose", text.strip()))
    return stretches


_HUGE_REFERENCE = re.compile("&#[0-9]{8,};?")


def unescaped(text: str) -> str:
    """Return ``text`` with its character references resolved; a number of eight digits or more becomes ``U+FFFD``.

    >>> unescaped("a &lt; b &amp; c")
    'a < b & c'
    """
    return unescape(_HUGE_REFERENCE.sub("\ufffd", text)) if "&" in text else text


_SIGNS_OF_CODE = ("    ", "\t", "```", "~~~")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_BULLET = re.compile(r" {0,3}(?:[*+-]|\d{1,9}[.)])[ \t]")


def read_markdown(body: str) -> list[Segment]:
    """Return the prose and the code blocks of a Markdown post in order."""
    if not any(sign in body for sign in _SIGNS_OF_CODE):
        stretches = [(False, body)]
    else:
        stretches = [(is_code, "\n".join(lines)) for is_code, lines in _blocks(body.split("\n"))]
    return [Segment("code", text.strip("\n")) if is_code else _prose(text) for is_code, text in stretches]


def _blocks(lines: list[str]) -> list[tuple[bool, list[str]]]:
    """Return runs of lines as (is code, lines), fences and the code's indentation left out."""
    blocks: list[tuple[bool, list[str]]] = [(False, [])]
    fence = ""
    after_empty, in_list = True, False
    for line in lines:
        is_empty = not line.strip()
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
                blocks.append((False, []))
            else:
                blocks[-1][1].append(line)
            continue
        opening = _FENCE.match(line)
        if opening:
            fence = opening[1]
            blocks.append((True, []))
            continue
        is_code = blocks[-1][0]
        width = _indentation(line)
        if is_empty and is_code:
            blocks[-1][1].append("")
        elif not is_empty and width >= (8 if in_list else 4) and (is_code or after_empty):
            if not is_code:
                blocks.append((True, []))
            blocks[-1][1].append(line.expandtabs(4)[8 if in_list else 4 :])
        else:
            if is_code:
                blocks.append((False, []))
            blocks[-1][1].append(line)
            if not is_empty and width < 4:
                in_list = _BULLET.match(line) is not None or (in_list and (width >= 2 or not after_empty))
        after_empty = is_empty
    return blocks


def _indentation(line: str) -> int:
    """Return the columns of white space before a line's text, a tab reaching the next multiple of four."""
    margin = line[: len(line) - len(line.lstrip(" \t"))]
    return len(margin.expandtabs(4))


_HELD, _ENDED = "\ue000", "\ue001"  # private-use characters mark what is put back unchanged
_PLACE = re.compile(f"{_HELD}([0-9]{{1,9}}){_ENDED}")
_LITERAL = re.compile(r"\\([\\`*_{}\[\]()#+\-.!>~|<&])|``((?:[^`\n]|`(?!`))+)``|`([^`\n]+)`")
_LINE_MARKS = re.compile(
    r"^[ \t]{0,3}(?:\[[^\]\n]+\]:[ \t]*\S[^\n]*"  # [1]: address
    r"|(?:[-*_=][ \t]*){3,}$"  # ruler, underline of a heading
    r"|(?:\|[ \t]*)?:?-{3,}:?[ \t]*(?:\|[ \t:|-]*)?$"  # rule of a table
    r"|(?:(?:>|&gt;)[ \t]?)*+(?:[*+-][ \t]+)?(?:\#{1,6}[ \t]+)?)",
    re.MULTILINE,
)
_HAS_LINE_MARK = re.compile(r"^[ \t]{0,3}(?:[\[*_=>#+|:-]|&gt;)", re.MULTILINE)
_TITLE = r"[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+')"
_ADDRESS = rf"\([ \t]*+<?[^()\s<>]*+(?:\([^()\s]*+\)[^()\s]*+)?>?(?:{_TITLE})?+[ \t]*+\)"
_LINK = re.compile(rf"!?\[([^\[\]\n]*)\](?:{_ADDRESS}|[ ]?\[[^\[\]\n]*\])")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto):[^<>\s]+|[\w.+-]{1,64}@[\w.-]+)>")
_MARKDOWN_TAG = re.compile(
    r"</?(?:a|b|i|em|strong|p|br|div|span|code|pre|kbd|sub|sup|img|ul|ol|li|h[1-6]|blockquote|table|tbody|thead|tr|td|th"
    r"|hr|details|summary|del|ins|s|u|font|center)(?:\s[^<>]*|/)?>|<!--(?:.*?-->|.*)",
    re.IGNORECASE | re.DOTALL,
)
_STARS = re.compile(r"(\*(?<![\w*]\*)\*{0,2})(?=[^\s*])([^*\n]++)(?<=\S)\1(?![\w*])")
_LOW_LINES = re.compile(r"(_(?<!\w_)_{0,2})(?=[^\s_])([^_\n]++)(?<=\S)\1(?![\w_])")
_STRUCK = re.compile(r"~~(?=\S)([^~\n]++)~~")


def _prose(text: str) -> Segment:
    """Return a stretch of Markdown without code blocks as the text that a reader sees."""
    lines: list[str] = []

    def hold(match: re.Match[str]) -> str:
        lines.append(match[match.lastindex or 0])
        return f"{_HELD}{len(lines) - 1}{_ENDED}"

    if "`" in text or "\\" in text:
        text = _LITERAL.sub(hold, text.replace(_HELD, " ").replace(_ENDED, " "))
    if _HAS_LINE_MARK.search(text):
        text = _LINE_MARKS.sub("", text)
    text = _without_inline_marks(text)
    if "&" in text:
        text = safe(unescaped(text))
    if lines:
        text = _PLACE.sub(lambda match: lines[int(match[1])] if int(match[1]) < len(lines) else "", text)
    return Segment("prose", text.strip("\n"))


def _without_inline_marks(text: str) -> str:
    if "[" in text:
        text = _LINK.sub(r"\1", text)
        if "](" in text:  # an image inside a link
            text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _MARKDOWN_TAG.sub(" ", _AUTOLINK.sub(r"\1", text))
    if "*" in text:
        text = _STARS.sub(r"\2", _STARS.sub(r"\2", text))
    if "_" in text:
        text = _LOW_LINES.sub(r"\2", _LOW_LINES.sub(r"\2", text))
    if "~~" in text:
        text = _STRUCK.sub(r"\1", text)
    return text


LONGEST_REMEMBERED: Final = 20_000
MOST_REMEMBERED: Final = 256


READERS: Final[dict[str, Callable[[str], list[Segment]]]] = {
    "html": read_html,
    "markdown": read_markdown,
    "plain": lambda body: [Segment("prose", body)],
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
    stretches = reader(safe(body))
    if stretches and stretches[0].kind == "prose":
        stretches[0] = Segment("prose", without_banner(stretches[0].text))
    return [segment for segment in stretches if segment.text.strip()]


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
    shown = " ".join(text.split(None, length // 2 + 1))  # more words would not fit: what is left of them lies beyond
    if len(shown) <= length:
        return shown
    head, space, _ = shown[:length].rpartition(" ")
    return (head if space else shown[: length - 1]) + "…"
