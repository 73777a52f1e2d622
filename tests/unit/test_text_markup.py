"""Each markup is read to the text that a person sees, code apart from prose."""

from __future__ import annotations

import pytest

from askalike.errors import SettingError
from askalike.text.markup import LONGEST_PARSED, MOST_TAGS, excerpt, plain_text, segments
from askalike.types import Markup


def _kinds(body: str, markup: Markup) -> list[tuple[str, str]]:
    return [(segment.kind, segment.text) for segment in segments(body, markup)]


def test_html_pre_blocks_are_code_and_inline_code_is_prose() -> None:
    body = "<p>Run <code>ls</code>:</p>\n<pre><code>if a &lt; b:\n    go()\n</code></pre>\n<p>Why?</p>"
    assert _kinds(body, "html") == [("prose", "Run ls:"), ("code", "if a < b:\n    go()"), ("prose", "Why?")]


def test_html_blocks_part_words_and_inline_marks_do_not() -> None:
    assert plain_text("<p>one</p><p>t<b>w</b>o<br>three</p><ul><li>four<li>five</ul>", "html").split() == [
        *("one", "two", "three", "four", "five")
    ]


def test_html_scripts_styles_and_comments_are_dropped() -> None:
    assert plain_text("a<script>x()</script><style>p{}</style><!-- no -->b", "html") == "ab"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>open <b>never closed", "open never closed"),
        ("</p></div>text</b>", "text"),
        ("a < b and c > d", "a < b and c > d"),
        ("<frameset>", ""),
        ("&#xD800;&#0;x&nbsp;y &#99999999999999;", "\ufffd\ufffdx y \ufffd"),
        ("<p title='a > b'>text</p>", "text"),
        ("", ""),
    ],
)
def test_broken_html_is_read_as_a_browser_does(body: str, expected: str) -> None:
    assert plain_text(body, "html") == expected


def test_a_post_with_very_many_tags_is_read_without_a_tree() -> None:
    rows = "<p>row <i>of</i> text &amp; more</p>" * (MOST_TAGS // 2)
    body = f"<script>x</script><!-- no -->{rows}<pre><code>a &lt; b</code></pre><p>end"
    parts = _kinds(body, "html")
    assert [kind for kind, _ in parts] == ["prose", "code", "prose"]
    assert parts[0][1].split("\n")[0] == "row of text & more"
    assert parts[1:] == [("code", "a < b"), ("prose", "end")]


def test_tree_and_no_tree_read_the_same() -> None:
    body = "<h1>Title</h1><p>one <a href='x'>two</a></p><pre>code\n  here</pre><ul><li>three</li></ul>"
    padding = "<p>" + "x" * LONGEST_PARSED + "</p>"
    assert plain_text(body + padding, "html").split()[:-1] == plain_text(body, "html").split()


def test_a_place_mark_in_the_source_is_harmless() -> None:
    assert _kinds("\ue0007\ue001<pre>code</pre>&#xE000;9&#xE001;", "html")[-1] == ("code", "code")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("**bold** and *it* and ***both*** ~~gone~~ _low_ __lower__", "bold and it and both gone low lower"),
        ("2 * 3 * 4, snake_case_name, a*b", "2 * 3 * 4, snake_case_name, a*b"),
        ('[text](http://a.b/c_(d) "title") and ![picture](x.png) [ref][1]', "text and picture ref"),
        ("[![badge](x.png)](http://a.b)", "badge"),
        ("see [text][1]\n\n[1]: http://a.b 'title'", "see text"),
        ("> quoted\n>> twice\n&gt; reddit", "quoted\ntwice\nreddit"),
        ("# Heading #1\n\nText\n====\n\n---\n* one\n- two\n+ three", "Heading #1\n\nText\n\none\ntwo\nthree"),
        (r"\*kept\* C:\Users\name 1\. x", r"*kept* C:\Users\name 1. x"),
        ("use `a*b*c` and ``x`y`` now", "use a*b*c and x`y now"),
        ("<https://a.b> <me@a.b> <b>bold</b> <stdio.h>", "https://a.b me@a.b bold <stdio.h>"),
        ("a &amp; b &lt;tag&gt;", "a & b <tag>"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n\n| 1 | 2 |"),
    ],
)
def test_markdown_marks_are_stripped_to_their_text(body: str, expected: str) -> None:
    assert plain_text(body, "markdown") == expected


def test_markdown_fences_are_code() -> None:
    body = "before\n```python\nx = *a*\n~~~\n````\nafter\n~~~\nopen\n"
    assert _kinds(body, "markdown") == [
        ("prose", "before"),
        ("code", "x = *a*\n~~~"),
        ("prose", "after"),
        ("code", "open"),
    ]


def test_markdown_indented_blocks_after_an_empty_line_are_code() -> None:
    body = "text\n    goes on\n\n    code\n\n\tmore\n\nend"
    assert _kinds(body, "markdown") == [("prose", "text\n    goes on"), ("code", "code\n\nmore"), ("prose", "end")]


def test_markdown_text_indented_in_a_list_is_prose() -> None:
    body = "- item\n\n    still the item\n\n        code\n\nend"
    assert [kind for kind, _ in _kinds(body, "markdown")] == ["prose", "code", "prose"]


def test_code_can_be_left_out_of_plain_text() -> None:
    assert plain_text("a\n\n    code\n\nb", "markdown", with_code=False) == "a\n\nb"


def test_white_space_is_collapsed_and_control_characters_go() -> None:
    assert plain_text("a \t b\x00\r\n\r\n\n\n\nc\u00a0 d\ud800 ", "plain") == "a b\n\nc d"


def test_an_unknown_markup_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingError, match="html, markdown, plain"):
        segments("x", "rtf")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("Edit the file,\nthen restart.", 100, "Edit the file, then restart."),
        ("Edit the file,\nthen restart.", 20, "Edit the file, then…"),
        ("Edit the file", 13, "Edit the file"),
        ("Edit the file", 12, "Edit the…"),
        ("Edit the file", 8, "Edit…"),
        ("abcdefgh", 5, "abcd…"),
        ("abcdefgh", 1, "…"),
        ("  \n ", 5, ""),
        ("", 5, ""),
    ],
)
def test_an_excerpt_is_cut_after_a_word(text: str, length: int, expected: str) -> None:
    assert excerpt(text, length) == expected
