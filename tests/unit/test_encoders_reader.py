"""What a model reads of a question: title and body apart, joined, or the title alone; as written, or stems."""

from __future__ import annotations

from dataclasses import replace

import pytest

from askalike.models.vocabulary import QuestionReader, Reads
from askalike.types import Question

QUESTION = Question("1", "WiFi drops daily", "<p>Routers at <code>/etc/hosts</code></p>", "html")


def test_title_and_body_are_cut_each_on_its_own() -> None:
    reader = QuestionReader("title and body", 2)
    assert reader.title(QUESTION) == ["wifi", "drops"]
    assert reader.body(QUESTION) == ["routers", "at"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (2, ["wifi", "drops"]),
        (3, ["wifi", "drops", "daily"]),
        (5, ["wifi", "drops", "daily", "routers", "at"]),
        (100, ["wifi", "drops", "daily", "routers", "at", "/etc/hosts"]),
    ],
)
def test_a_joined_text_is_cut_as_one_and_stands_for_the_title(limit: int, expected: list[str]) -> None:
    reader = QuestionReader("joined", limit)
    assert reader.title(QUESTION) == expected
    assert reader.body(QUESTION) == []


def test_a_joined_text_may_have_no_title_or_no_body() -> None:
    reader = QuestionReader("joined", 9)
    assert reader.title(replace(QUESTION, title="")) == ["routers", "at", "/etc/hosts"]
    assert reader.title(replace(QUESTION, body="")) == ["wifi", "drops", "daily"]
    assert reader.title(Question("2", "?", "!")) == []


@pytest.mark.parametrize("reads", ["title and body", "title", "joined"])
def test_stems_are_as_many_as_the_words(reads: Reads) -> None:
    plain, stems = QuestionReader(reads, 5), QuestionReader(reads, 5, "english")
    stem = {"drops": "drop", "daily": "daili", "routers": "router"}
    for written, read in ((plain.title, stems.title), (plain.body, stems.body)):
        assert read(QUESTION) == [stem.get(word, word) for word in written(QUESTION)]
    assert stems.text("Routers of /etc/hosts dropping daily words") == ["router", "of", "/etc/hosts", "drop", "daili"]
