"""The commands that know of models: encode, search with rankers and explanations, index, info."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import filelock
import pytest
from tests.command import Run
from tests.tiny_models import synonym_model

from askalike import Forum, ForumSettings, Question
from askalike.data import bundled_forum
from askalike.index.catchup import Steps
from askalike.index.vector_sets import OWN_PACE, Pace
from askalike.index.word_indexer import fingerprint
from askalike.index.words import WordIndex
from askalike.models.text_questions import TextQuestions
from askalike.store import ForumLayout, open_store


@pytest.fixture
def forum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("askalike.models.encoder_settings.general_folder", lambda: None)
    with Forum.create(tmp_path / "my.forum") as forum:
        forum.add([Question("wifi", "Wifi drops"), Question("printer", "Printer is offline")])
    return tmp_path / "my.forum"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    synonym_model().save(tmp_path / "synonyms")
    return tmp_path / "synonyms"


def test_encode_takes_a_model_and_search_finds_what_shares_no_word(run: Run, forum: Path, model: Path) -> None:
    assert run("search", forum, "wireless disconnects", "--json").json == []
    before = run("info", forum, "--json").json
    assert (before["model"], before["encoded"], before["not_encoded"]) == (None, 0, 0)
    done = run("encode", forum, "--model", model)
    assert done.code == 0
    assert "2 questions are encoded by the model own (rcnn, 4 dimensions)" in done.out
    again = run("encode", forum, "--json").json
    assert (again["model"], again["encoded"], again["not_encoded"]) == ("own (rcnn, 4 dimensions)", 2, 0)
    assert "own (rcnn, 4 dimensions)" in run("info", forum).out
    (hit,) = run("search", forum, "wireless disconnects", "--json").json
    assert hit["question"]["id"] == "wifi"
    assert hit["components"].pop("same") < hit["score"]
    assert hit["components"] == {"bm25": 0.0, "bm25_share": 0.0, "cosine": pytest.approx(1.0)}
    assert run("search", forum, "wireless disconnects", "--ranker", "words", "--json").json == []
    (hit,) = run("search", forum, "wireless disconnects", "--ranker", "meaning", "--json").json
    assert hit["components"] == {"cosine": pytest.approx(1.0)}


def test_encoding_that_is_stopped_says_what_stays_and_how_to_go_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_after(batches: int) -> None:
        """Let Ctrl-C come when so many batches were encoded and put on disk."""
        left = iter([None] * batches)

        def encode(*of: Any, **how: Any) -> Any:
            if threading.current_thread() is threading.main_thread() and next(left, "") == "":
                raise KeyboardInterrupt
            return real(*of, **how)

        monkeypatch.setattr(TextQuestions, "encode", encode)

    real, forum = TextQuestions.encode, tmp_path / "f"
    monkeypatch.setattr("askalike.index.vector_sets.pace_of", lambda _: Pace(1, Steps(64, 64, 64)))
    words = ("index", bundled_forum(), "--into", forum)
    stop_after(1)
    done = run(*words)
    assert done.code == 130
    kept = f"stopped; all questions were read; vectors encoded so far are kept in {forum}"
    assert f"{kept}. To go on:\n  askalike encode {forum}\n" in done.err
    info = run("info", forum, "--json").json
    assert (info["encoded_by_next_model"], info["not_encoded"], info["questions"]) == (64, 252 - 64, 252)
    assert ["encoded", "by", "next", "model", "64"] in [line.split() for line in run("info", forum).out.splitlines()]
    stop_after(2)
    done = run("encode", forum)
    assert done.code == 130
    assert f"stopped; vectors encoded so far are kept. To go on:\n  askalike encode {forum}\n" in done.err
    assert run("info", forum, "--json").json["encoded_by_next_model"] == 192
    done = run(*words)
    assert (done.code, done.err.splitlines()[-1]) == (130, f"  askalike {' '.join(map(str, words))}")
    monkeypatch.setattr(TextQuestions, "encode", real)
    run("encode", forum)
    info = run("info", forum, "--json").json
    assert (info["encoded"], info["encoded_by_next_model"], info["not_encoded"]) == (252, 0, 0)


def test_building_indexes_anew_that_is_stopped_goes_on(
    run: Run, forum: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    run("encode", forum, "--model", model)
    before = run("info", forum, "--json").json
    with monkeypatch.context() as patched:
        patched.setattr("askalike.models.encoders.model.Model.encode", stopped)
        done = run("reindex", forum)
    assert done.code == 130
    assert "stopped; the archive is complete" in done.err
    assert done.err.endswith(f"To go on:\n  askalike encode {forum}\n")
    run("encode", forum)
    after = run("info", forum, "--json").json
    assert [after[name] for name in ("indexed", "encoded", "not_encoded")] == [before["indexed"], before["encoded"], 0]
    assert before["encoded"] > 0


def test_index_encodes_unless_told_not_to(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.vector_sets.pace_of", lambda _: OWN_PACE._replace(at_once=1))
    assert run("index", bundled_forum(), "--into", tmp_path / "f", "--no-encode").code == 0
    waiting = run("info", tmp_path / "f", "--json").json
    assert (waiting["model"], waiting["not_encoded"]) == (None, 252)
    assert waiting["next_model"].startswith("general@")
    done = run("search", tmp_path / "f", "wifi", "--json")
    assert done.json[0]["components"].keys() == {"bm25", "bm25_share", "same"}
    assert "252 questions are not encoded" in done.err
    assert "hint: askalike encode" in done.err
    assert run("search", tmp_path / "f", "wifi", "--ranker", "words").err == ""
    assert run("index", bundled_forum(), "--into", tmp_path / "f").code == 0
    assert run("info", tmp_path / "f", "--json").json["encoded"] == 252
    assert run("reindex", tmp_path / "f").code == 0
    assert run("info", tmp_path / "f", "--json").json["encoded"] == 252


def test_search_says_that_the_forum_is_still_being_indexed(run: Run, forum: Path) -> None:
    layout = ForumLayout(forum)
    with Forum.open(forum) as opened, contextlib.closing(open_store(layout)) as archive:
        analyzer = opened.analyzer
        with filelock.FileLock(layout.lock):  # another process is indexing
            archive.add_questions([Question("late", "Wlan lost")])
            archive.edit_questions([Question("wifi", "Wlan lost")])
            done = run("search", forum, "wlan", "--json")
            assert (done.code, done.json) == (0, [])
            assert done.err == "note: indexing is not finished: 2 changes to go\n"
        run("search", forum, "wlan")
        with filelock.FileLock(layout.lock):
            archive.edit_questions([Question("wifi", "Wireless lost")])
            assert run("search", forum, "wlan").err == "note: indexing is not finished: 1 change to go\n"
            WordIndex.create(layout.lexical, applied=archive.last_change(), fingerprint=fingerprint(analyzer))
            done = run("search", forum, "wlan")
            assert "No similar questions" in done.out
            assert done.err == "note: indexing is not finished: 0 of 3 questions\n"
    assert run("search", forum, "wlan").err == ""


def test_search_says_what_is_not_encoded_where_meaning_is_searched(
    run: Run, forum: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("encode", forum, "--model", model)
    assert run("search", forum, "wifi").err == ""
    with Forum.open(forum, settings=ForumSettings(has_vectors=False)) as words:
        words.add([Question("a", "Wlan lost"), Question("b", "Wlan silent")])
    monkeypatch.setattr("askalike.index.vector_sets.OWN_PACE", OWN_PACE._replace(at_once=1))
    for words_of_ranker in ((), ("--ranker", "meaning"), ("--json",)):
        said = run("search", forum, "wifi", *words_of_ranker).err.splitlines()
        assert said == [
            "note: 2 questions are not encoded yet",
            f"hint: askalike encode {forum}",
        ]
    assert run("search", forum, "wifi", "--ranker", "words").err == ""
    synonym_model(({"wifi"}, {"wlan"})).save(tmp_path / "new")
    with Forum.open(forum) as opened:
        opened.models.use_model(tmp_path / "new")
    said = run("search", forum, "wifi").err.splitlines()
    assert said[0] == "note: 4 questions are not encoded yet"


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (("encode", "FORUM"), 1, "has no model", "--model FOLDER"),
        (("encode", "FORUM", "--model", "nowhere"), 2, "no encoder 'nowhere', and no such folder", "general"),
    ],
)
def test_errors_say_what_and_what_to_do(
    run: Run, forum: Path, words: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    done = run(*(forum if word == "FORUM" else word for word in words))
    assert done.code == code
    error, notice = done.err.splitlines()
    assert error.startswith("error: ")
    assert message in error
    assert hint in notice
