"""Hostile posts neither crash nor take time that grows with the square of their length.

Each case is large enough that a quadratic reading would take minutes; no clock is needed to notice.
"""

from __future__ import annotations

from typing import get_args

import pytest

from askalike.text import Analyzer, TextSettings, excerpt, plain_text
from askalike.types import Markup

N = 100_000
HOSTILE = {
    "nested elements": "<div>" * N,
    "open formatting": "<p>" + "".join(f"<b id={number}>" for number in range(N // 10)) + "<p>x" * (N // 10),
    "attributes": "<p " + " ".join(f"a{number}" for number in range(N)) + ">x",
    "open comments": "<!--" * N,
    "open code": "<pre>" * N,
    "open quotes": '<a title="' * N,
    "huge reference": "&#" + "9" * N + ";",
    "open brackets": "[" * N,
    "open links": "[a](" * N,
    "spaces in a link": "[a](" + " " * N + "x",
    "stars": "*a " * N,
    "back quotes": " ".join("`" * (number % 50 + 1) for number in range(N // 20)),
    "rulers": "- " * N + "x",
    "scheme": "a+" * N,
    "address": "a@" * N,
    "dots": "a." * N,
    "slashes": "/a" * N,
    "combining marks": "a" + "\u0301\u0316" * N,
    "halfwidth marks": "a" + "\uff9e\u0316" * N,
    "long ligatures": "\ufdfa" * (N // 20),
    "lone surrogates": "\ud800" * N,
    "nul": "\0" * N,
    "one letter words": "a b c d " * (N // 4),
    "one long word": "a" * N,
    "banners": "Possible Duplicate:\n" * N,
    "signs that end no sentence": "Possible Duplicate: x " + "!?" * N + "a",
    "signs between spaces": "Possible Duplicate: x " + "! " * N + "a",
    "titles": "Possible Duplicates: " + "a? " * N,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_post_is_read_in_every_markup(name: str) -> None:
    for markup in get_args(Markup):
        text = plain_text(HOSTILE[name], markup)
        text.encode("utf-8")
        assert "\0" not in text
        assert len(excerpt(text, 80)) <= 80
        terms = Analyzer(TextSettings()).prepare("", HOSTILE[name], markup).body
        assert all(0 < len(term) <= 64 for term in terms)
