"""Questions as they are compared: what is kept of them comes back whole, or not at all, and follows every change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askalike import Answer, Forum, ForumSettings, Question
from askalike.data import bundled_forum
from askalike.index.cursor import Cursor
from askalike.index.words import IndexEntry, WordIndex
from askalike.search.texts import MOST_WORDS, TextReader, unpacked
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings

READER = TextReader(Analyzer(TextSettings()))
TITLE = "Wifi drops each evening"


@given(st.text(max_size=80), st.text(max_size=800), st.sampled_from(["plain", "html", "markdown"]))
def test_a_text_comes_back_as_it_was_packed(title: str, body: str, markup: str) -> None:
    text, terms, _ = READER.read(title, body, markup)  # type: ignore[arg-type]
    assert unpacked(text.packed()) == text
    assert len(set(terms)) == len(terms) == (len(text.title) + len(text.body)) / 6
    whole, _, prepared = READER.read(title, body, markup, is_whole=True)  # type: ignore[arg-type]
    assert whole == text
    assert prepared == READER.analyzer.prepare(title, body, markup)  # type: ignore[arg-type]


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_text_that_was_changed_is_none(place: int, change: int) -> None:
    packed = bytearray(READER.read(TITLE, "The lights of the router are on.", "plain")[0].packed())
    packed[place % len(packed)] ^= change
    assert unpacked(bytes(packed)) is None
    assert unpacked(bytes(packed[:-1])) is None
    assert unpacked(b"") is None


def test_the_first_words_of_a_title_are_kept_as_they_are_written() -> None:
    text, *_ = READER.read("Why (does) my Wi-Fi drop on iOS 17.2?", "word " * 500, "plain")
    assert text.written == "Why does my Wi Fi drop on iOS 17.2"
    long, *_ = READER.read("word " * 500, "", "plain")
    assert long.written.split() == ["word"] * MOST_WORDS


def test_texts_are_kept_by_the_commit_of_their_entries(tmp_path: Path) -> None:
    index = WordIndex.create(tmp_path / "lexical", applied=0, fingerprint="f")
    with index.writing() as writer:
        writer.put(IndexEntry(1, ["wifi"], [], text=b"one"))
        writer.put(IndexEntry(2, ["wifi"], [], text=b"two"))
        assert index.texts([1, 2]) == {}
        writer.commit(Cursor(1, 0, True, "f"))
        assert WordIndex(index.folder).texts([1, 2]) == {1: b"one", 2: b"two"}
        writer.put(IndexEntry(1, ["wifi"], [], text=b"other"))
        writer.remove([2])
    assert index.texts([1, 2, 3]) == {1: b"one", 2: b"two"}
    with index.writing() as writer:
        writer.put(IndexEntry(1, ["wifi"], [], text=b"other"))
        writer.remove([2])
        writer.commit(Cursor(2, 0, True, "f"))
    assert WordIndex(index.folder).texts([1, 2]) == {1: b"other"}
    anew = WordIndex.create(index.folder, applied=0, fingerprint="g")
    index.reopen()
    assert index.texts([1]) == anew.texts([1]) == {}


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "f", settings=ForumSettings(has_vectors=False)) as forum:
        forum.load(bundled_forum())
        yield forum


def kept(forum: Forum, num: int) -> object:
    return unpacked(forum.indexes.words.index.snapshot().texts([num]).get(num, b""))


def read(question: Question, *answers: Answer) -> object:
    reader = TextReader(Analyzer(TextSettings()))
    text = reader.read(question.title, question.body, question.markup)[0]
    return reader.with_answers(
        text, [term for answer in answers for term in reader.terms_of(answer.body, answer.markup)]
    )


def test_what_is_kept_follows_every_change(forum: Forum) -> None:
    (num,) = forum.store.nums_by_id(["q1001"]).values()
    assert kept(forum, num) == read(forum.question("q1001"), *forum.answers("q1001"))
    forum.edit(Question("q1001", TITLE, "since the update"))
    forum.store.delete_answers([answer.id for answer in forum.answers("q1001")])
    forum.catch_up()
    assert kept(forum, num) == read(Question("q1001", TITLE, "since the update"))
    answers = [Answer(f"x{number}", "q1001", f"word{number}", score=-number) for number in range(4)]
    forum.store.put_answers(answers)
    forum.catch_up()
    assert kept(forum, num) == read(Question("q1001", TITLE, "since the update"), *answers[:3])
    forum.delete("q1001")
    assert kept(forum, num) is None


def test_without_what_is_kept_a_search_finds_the_same(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.postings.CHECKED_BYTES", -1)  # as of a file that is too large to be compared
    expected = forum.similar(TITLE, "The laptop loses the wireless connection.")
    forum.close()
    [path] = (forum.path / "lexical").glob("*.words")
    content = bytearray(path.read_bytes())
    content[-1000:] = bytes(1000)  # where texts end
    path.unlink()
    path.write_bytes(content)
    [finding] = Forum.check(forum.path).findings
    assert (finding.part, finding.path) == ("words", "lexical")
    with Forum.open(forum.path, settings=ForumSettings(has_vectors=False)) as again:
        assert again.similar(TITLE, "The laptop loses the wireless connection.") == expected
        last = max(again.store.numbers())
        assert kept(again, last) is None
    assert Forum.repair(forum.path, settings=ForumSettings(has_vectors=False)).repaired == ("words",)
    assert Forum.check(forum.path).is_sound
    with Forum.open(forum.path, settings=ForumSettings(has_vectors=False)) as again:
        assert again.similar(TITLE, "The laptop loses the wireless connection.") == expected
        question = again.store.questions_by_num([last])[last]
        assert kept(again, last) == read(question, *again.answers(question.id)[:3])
