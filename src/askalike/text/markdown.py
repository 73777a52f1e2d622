"""Markdown to segments of prose and code.

Blocks first: fenced blocks (to the end of the text where the closing fence is missing) and blocks indented by four
spaces or a tab after an empty line, or by eight inside a list, are code. Then the marks within prose are stripped to
their text: emphasis, inline code, links and images (their address is dropped), quotations, headings, bullets, rulers,
reference definitions, backslash escapes, common HTML tags, character references. A mark without its partner stays.

Differs: from CommonMark in that links do not nest, emphasis does not cross a line, and HTML blocks are not code.
"""

from __future__ import annotations

import re

from askalike.text.characters import safe
from askalike.text.hypertext import Segment, unescaped

_SIGNS_OF_CODE = ("    ", "\t", "```", "~~~")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_BULLET = re.compile(r" {0,3}(?:[*+-]|\d{1,9}[.)])[ \t]")


def read_markdown(body: str) -> list[Segment]:
    """Return the prose and the code blocks of a Markdown post in order."""
    if not any(sign in body for sign in _SIGNS_OF_CODE):
        stretches = [(False, body)]
    else:
        stretches = [(is_code, "\n".join(lines)) for is_code, lines in _blocks(body.split("\n"))]
    found = [Segment("code", text.strip("\n")) if is_code else _prose(text) for is_code, text in stretches]
    return [segment for segment in found if segment.text.strip()]


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
_TAG = re.compile(
    r"</?(?:a|b|i|em|strong|p|br|div|span|code|pre|kbd|sub|sup|img|ul|ol|li|h[1-6]|blockquote|table|tbody|thead|tr|td|th"
    r"|hr|details|summary|del|ins|s|u|font|center)(?:\s[^<>]*|/)?>|<!--(?:.*?-->|.*)",
    re.IGNORECASE | re.DOTALL,
)
_STARS = re.compile(r"(\*(?<![\w*]\*)\*{0,2})(?=[^\s*])([^*\n]++)(?<=\S)\1(?![\w*])")
_LOW_LINES = re.compile(r"(_(?<!\w_)_{0,2})(?=[^\s_])([^_\n]++)(?<=\S)\1(?![\w_])")
_STRUCK = re.compile(r"~~(?=\S)([^~\n]++)~~")


def _prose(text: str) -> Segment:
    """Return a stretch of Markdown without code blocks as the text that a reader sees."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[match.lastindex or 0])
        return f"{_HELD}{len(held) - 1}{_ENDED}"

    if "`" in text or "\\" in text:
        text = _LITERAL.sub(hold, text.replace(_HELD, " ").replace(_ENDED, " "))
    if _HAS_LINE_MARK.search(text):
        text = _LINE_MARKS.sub("", text)
    text = _without_inline_marks(text)
    if "&" in text:
        text = safe(unescaped(text))
    if held:
        text = _PLACE.sub(lambda match: held[int(match[1])] if int(match[1]) < len(held) else "", text)
    return Segment("prose", text.strip("\n"))


def _without_inline_marks(text: str) -> str:
    if "[" in text:
        text = _LINK.sub(r"\1", text)
        if "](" in text:  # an image inside a link
            text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub(" ", _AUTOLINK.sub(r"\1", text))
    if "*" in text:
        text = _STARS.sub(r"\2", _STARS.sub(r"\2", text))
    if "_" in text:
        text = _LOW_LINES.sub(r"\2", _LOW_LINES.sub(r"\2", text))
    if "~~" in text:
        text = _STRUCK.sub(r"\1", text)
    return text
