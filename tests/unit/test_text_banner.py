"""A banner that names the original of a duplicate is removed, and nothing of the question with it."""

from __future__ import annotations

import pytest

from askalike.text.markup import plain_text

QUOTED = (
    "<blockquote>\n  <p><strong>Possible Duplicate:</strong><br>\n"
    '  <a href="https://example.org/questions/1">Old title</a>  </p>\n</blockquote>\n\n'
)
NOTICE = (
    '<div class="question-status question-originals-of-duplicate"><p>This question already has answers here:</p>'
    '<ul><li><a href="/q/1">Old title</a> <span>(3 answers)</span></li></ul></div>'
)
ASIDE = (
    '<aside class="s-notice"><div><b>This question already has an answer here</b>:</div>'
    '<div><a href="/q/1">Old title</a></div></aside>'
)


@pytest.mark.parametrize(
    "banner",
    [
        QUOTED,
        QUOTED + NOTICE,
        NOTICE,
        ASIDE,
        '<p><b>Possible Duplicate:</b> <a href="x">Old title</a></p>',
        "<p>Possible Duplicate:</p><ul><li><a href='x'>Old title</a></li></ul>",
        "<p>Possible Duplicate: <a href='x'>Old title</a> (3 answers) and <a href='y'>other</a></p>",
        "<p>Possible Duplicate: Old title</p>",
    ],
)
def test_html_banners_end_with_their_element(banner: str) -> None:
    assert plain_text(f"{banner}<p>My <a href='y'>own</a> question.</p>", "html") == "My own question."


def test_a_banner_inside_a_wrapper_leaves_the_rest_of_the_wrapper() -> None:
    assert plain_text(f'<div class="post-text">{QUOTED}<p>My question.</p></div>', "html") == "My question."


def test_a_paragraph_that_goes_on_loses_the_banner_through_its_first_link() -> None:
    own = "My own question?"
    body = f'<p><b>Possible Duplicate:</b> <a href="x">Old title</a> {own}</p>'
    assert plain_text(body, "html") == own


def test_a_banner_in_a_post_read_without_a_tree_goes_too() -> None:
    rows = "<p>row</p>" * 1000
    assert plain_text(QUOTED + rows, "html").startswith("row")


@pytest.mark.parametrize(
    "body",
    [
        "> **Possible Duplicate:**  \n> [Old title](http://a.b/c)  \n\nMy question.",
        "**Possible Duplicate:**\n[Old title](http://a.b/c)\n\nMy question.",
        "Possible Duplicate: [Old title](http://a.b/c)\nMy question.",
        "Possible Duplicates:\n\n* [Old title](http://a.b/c)\n* [Other old title](http://a.b/d)\n\nMy question.",
        "Duplicate of https://a.b/old-title\n\nMy question.",
    ],
)
def test_markdown_banners_end_with_their_paragraph_or_line(body: str) -> None:
    assert plain_text(body, "markdown") == "My question."


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Possible Duplicate: Is a visa needed? I fly on Monday. Why?", "I fly on Monday. Why?"),
        ("Possible Duplicates: Is one? Are two? I fly. Why?", "I fly. Why?"),
        ("Possible Duplicate: Old title I fly on Monday. Where to? Thanks.", "Thanks."),
        ("Possible Duplicate: Visa for the U.S. and me vs. you I fly. Next.", "Next."),
        ("Possible Duplicate: Old title without an end", ""),
        ("possible duplicate : old title ? my question", "my question"),
        ("Possible Duplicate:\nOld title\nMy question.", "My question."),
        ("This question already has an answer here: Old title?\n\nMy question.", "My question."),
    ],
)
def test_where_nothing_marks_the_end_a_sentence_goes(body: str, expected: str) -> None:
    assert plain_text(body, "plain") == expected


@pytest.mark.parametrize(
    "body",
    [
        "Possible duplicate messages arrive in my inbox. Why?",
        "Duplicates of my photos appear.",
        "Duplicate of my photo appears.",
        "This question already has an answer but it is old.",
        "I know: possible duplicate: of what?",
        "Edit: this is not a possible duplicate: see below.",
    ],
)
def test_what_is_no_banner_stays(body: str) -> None:
    assert plain_text(body, "plain") == body
    assert plain_text(f"<p>{body}</p>", "html") == body
