"""Posts and hits as a page shows them: safe HTML, excerpts, the places of matched words, a likelihood in words.

HTML is an allow-list of plain elements, nothing that runs or loads. Scripts, styles, frames, forms, classes and ids are
dropped, and so are addresses other than http, https and mailto, relative ones among them: they would lead to the
service. An image becomes a link to it, with its description: whoever reads decides whether another host is told. A body
that is very large or very tangled is shown as plain text, since parsers take time that grows with its square (20,000
nested elements: 1.8 s).
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import Final

import nh3
from markdown_it import MarkdownIt
from msgspec.structs import asdict

from askalike.schemas import PARTS, Highlights, Likelihood, ListedQuestion, Ranges, ShownAnswer, Via
from askalike.text.analyzer import Analyzer
from askalike.text.characters import safe
from askalike.text.markup import (
    LONGEST_PARSED,
    LONGEST_REMEMBERED,
    MOST_REMEMBERED,
    MOST_TAGS,
    excerpt,
    plain_text,
    readable,
)
from askalike.types import Answer, Hit, Markup, Match, Question, likelihood_word

EXCERPT_CHARACTERS: Final = 280
READ_CHARACTERS: Final = 20_000
"""Characters of a body that are read for its excerpt."""
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
    """Return a body as HTML that is safe to show; the latest are cached, since typing repeats a search.

    >>> safe_html("<p onclick='x()'>Edit <code>a</code><script>x()</script></p>", "html")
    '<p>Edit <code>a</code></p>'
    >>> safe_html('<img src="https://a.example/b.png" alt="The error">', "html")
    '<a href="https://a.example/b.png" rel="nofollow noopener noreferrer">image: The error</a>'
    >>> safe_html("a < b\\n\\nc", "plain")
    '<p>a &lt; b</p><p>c</p>'
    """
    return (_safe_html if len(body) <= LONGEST_REMEMBERED else _safe_html.__wrapped__)(body, markup)


@lru_cache(MOST_REMEMBERED)
def _safe_html(body: str, markup: Markup) -> str:
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
    attributes = {name.lower(): html.unescape("".join(values)) for name, *values in _ATTRIBUTE.findall(image[1])}
    address, described = (html.escape(attributes.get(name, "").strip()) for name in ("src", "alt"))
    if not address.lower().startswith(("http://", "https://")):
        return described
    return f'<a href="{address}">image{": " if described else ""}{described}</a>'


def _paragraphs(text: str) -> str:
    parts = (html.escape(part.strip("\n"), quote=False).replace("\n", "<br>") for part in text.split("\n\n"))
    return "".join(f"<p>{part}</p>" for part in parts if part.strip())


def shown_likelihood(value: float | None) -> Likelihood:
    """Return how likely two questions are duplicates, as a number and in words."""
    return Likelihood(value, likelihood_word(value))


def shown_answer(answer: Answer) -> ShownAnswer:
    """Return an answer, ready to be shown."""
    return ShownAnswer(
        **asdict(answer), html=safe_html(answer.body, answer.markup), text=plain_text(answer.body, answer.markup)
    )


def hit_fields(hit: Hit, wanted: Mapping[str, Set[str]], analyzer: Analyzer) -> dict[str, object]:
    """Return fields of a hit as they are sent; nothing is made of those that are left out.

    Args:
        wanted: as ``SimilarRequest.hit_parts`` gives them.
    """
    question, reading = hit.question, analyzer.of(hit.question.language)
    excerpt = question_excerpt(question) if wanted.keys() & {"excerpt", "highlights"} else ""
    fields: dict[str, object] = {}
    for name, parts in wanted.items():
        match name:
            case "likelihood":
                fields[name] = shown_likelihood(hit.likelihood)
            case "highlights":
                in_title, in_excerpt = (highlights(text, hit.matched, reading) for text in (question.title, excerpt))
                fields[name] = Highlights(in_title, in_excerpt)
            case "question":
                fields[name] = {part: getattr(question, part) for part in PARTS[name] if part in parts}
            case "excerpt":
                fields[name] = excerpt
            case "best_answer":
                fields[name] = hit.answer and answer_fields(hit.answer, parts)
            case "answers":
                fields[name] = hit.answer_count
            case "via":
                fields[name] = hit.via and shown_duplicate(hit.via, hit.matched, analyzer)
            case _:
                fields[name] = getattr(hit, name)
    return fields


def answer_fields(answer: Answer, parts: Set[str]) -> dict[str, object]:
    """Return fields of ``HitAnswer``, of the best answer to a hit."""
    conversions = {"text": plain_text, "html": safe_html}
    named = asdict(answer) | {"accepted": answer.is_accepted}
    return {
        part: conversions[part](answer.body, answer.markup) if part in conversions else named[part]
        for part in PARTS["best_answer"]
        if part in parts
    }


def shown_duplicate(via: Question, matched: Sequence[Match], analyzer: Analyzer) -> Via:
    """Return the duplicate that was found, in whose place its original is shown."""
    return Via(via.id, via.title, highlights(via.title, matched, analyzer.of(via.language)))


def listed(question: Question, answers: int) -> ListedQuestion:
    """Return a question as lists show it."""
    return ListedQuestion(
        question.id,
        question.title,
        question.created,
        question.score,
        answers,
        question.url,
        question_excerpt(question),
        question.tags,
    )


def question_excerpt(question: Question) -> str:
    """Return the beginning of a question's body as plain text."""
    return excerpt(readable(question.body[:READ_CHARACTERS], question.markup, with_code=True), EXCERPT_CHARACTERS)


def highlights(text: str, matched: Sequence[Match], analyzer: Analyzer) -> Ranges:
    """Return the ranges (start, end) of ``text`` that hold a word of the same term as one that matched, ascending.

    Counted in Unicode code points, the end not included. Ranges do not overlap; words that touch, as ideographs do,
    share one.

    >>> from askalike.text.settings import TextSettings
    >>> highlights("Printers print. A printer!", [Match("printer", "title", 1.0)], Analyzer(TextSettings()))
    [[0, 8], [18, 25]]
    """
    wanted = set(analyzer.terms(" ".join({match.word for match in matched})))
    ranges: list[list[int]] = []
    for start, end in analyzer.spans_among(text, wanted):
        if ranges and start <= ranges[-1][1]:
            ranges[-1][1] = max(end, ranges[-1][1])
        else:
            ranges.append([start, end])
    return ranges
