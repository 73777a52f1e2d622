"""Laws of text preparation that hold for any input, however broken."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from askalike.text import Analyzer, TextSettings, excerpt, plain_text, segments, words
from askalike.text.analyzer import LONGEST_TERM
from askalike.text.settings import LANGUAGES
from askalike.types import Markup

ENGLISH = Analyzer(TextSettings())
ANALYZERS = {language: Analyzer(TextSettings(language=language)) for language in LANGUAGES}

any_text = st.text(st.characters(), max_size=60)
"""Every character that Python's strings can hold, lone surrogates too."""

_FRAGMENTS = [
    *("word", "Don't", "c++", "c#", ".net", "22.04", "v1.2-rc1", "0x1F", "1,000", "U.S.", "wi-fi", "x_y"),
    *("é", "İ", "ß", "日本", "हिन्दी", "😀", "½", "™", "\u0301", "\uff9e", "\u200b", "\u200f", "\x00", "\ud800"),
    *("/etc/hosts", "C:\\a\\b.c", "\\\\nas\\x", "~/.a", "http://a.b/c?d=e", "www.a.b", "me@a.b"),
    *(" ", "\n", "\n\n", "\n    ", "\t", "\u00a0", "'", "’", "-", ".", ",", "/", "\\", "@", ":", "_", "#", "!", "&"),
    *("*", "**", "`", "```", "~~~", ">", "[", "](", ")", "&lt;", "&#0;", "&#xD800;", "\ue0000\ue001"),
    *("<p>", "</p>", "<pre>", "</pre>", "<b>", "<a href=x>", "<blockquote>", "</blockquote>", "<!--", "-->"),
    *("<script>", "Possible Duplicate:", "This question already has answers here:", "? "),
]
tangled_text = st.lists(st.sampled_from(_FRAGMENTS), max_size=25).map("".join)
"""What words, markup and banners are made of, in any order."""

texts = any_text | tangled_text
markups: st.SearchStrategy[Markup] = st.sampled_from(["html", "markdown", "plain"])


@given(texts, markups)
def test_any_body_is_read_to_text_that_can_be_stored(body: str, markup: Markup) -> None:
    for segment in segments(body, markup):
        assert segment.text.strip()
        assert segment.kind in ("prose", "code")
    text = plain_text(body, markup)
    text.encode("utf-8")
    assert "\0" not in text
    assert "\n\n\n" not in text
    assert len(plain_text(body, markup, with_code=False)) <= len(text)


@given(texts, markups)
def test_terms_are_short_and_hold_no_white_space(body: str, markup: Markup) -> None:
    prepared = ENGLISH.prepare(body, body, markup)
    for term in prepared.title + prepared.body:
        assert term.split() == [term]
        assert 1 <= len(term) <= LONGEST_TERM
        assert "\0" not in term
        term.encode("utf-8")


@given(texts)
@example("(c++)")
@example("word.")
def test_every_term_has_a_word_of_the_text(text: str) -> None:
    terms = ENGLISH.terms(text)
    first_words = ENGLISH.first_among(text, set(terms))
    assert list(first_words) == list(dict.fromkeys(terms))
    assert all(word and word in text for word in first_words.values())


@given(texts, texts)
def test_no_word_crosses_white_space(first: str, second: str) -> None:
    assert words(f"{first} {second}") == words(first) + words(second)
    assert ENGLISH.terms(f"{first} {second}") == ENGLISH.terms(first) + ENGLISH.terms(second)


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_case_changes_no_word(text: str) -> None:
    assert words(text.upper()) == words(text.lower())


plain_words = st.from_regex(r"[a-z]{1,12}|[0-9]{1,6}(\.[0-9]{1,4}){0,3}|/[a-z]{1,8}(/[a-z]{1,8}){0,3}", fullmatch=True)


@given(st.lists(plain_words, max_size=20))
@settings(max_examples=30)
def test_words_joined_by_spaces_come_back(listed: list[str]) -> None:
    assert words(" ".join(listed)) == listed


@given(st.text(max_size=60), st.sampled_from(LANGUAGES))
@settings(max_examples=200)
def test_every_language_takes_any_text(text: str, language: str) -> None:
    assert all(term.split() == [term] for term in ANALYZERS[language].terms(text))


@given(texts, st.integers(1, 50))
def test_an_excerpt_fits_its_length_and_begins_like_the_text(text: str, length: int) -> None:
    shown = excerpt(text, length)
    assert len(shown) <= length
    assert " ".join(text.split()).startswith(shown.removesuffix("…"))
