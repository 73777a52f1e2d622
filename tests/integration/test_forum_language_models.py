"""Language models as rankers of a forum: learned by the command, asked for by name, explained, replaced."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run

from askalike import Answer, Forum, Link, Query, Question
from askalike.errors import DamagedModelError, ModelError, SettingError
from askalike.models.language.kinds import KINDS, TopicOptions
from askalike.models.language.model import LanguageModel

QUESTIONS = [
    Question("wlan", "wlan drops in the evening", "the whole house"),
    Question("printer", "printer offline in the evening", "the whole house"),
    Question("car", "car will not start in the evening", "the whole house"),
    Question("paper", "printer jams", "paper everywhere"),
]
ANSWERS = [
    Answer("a1", "wlan", "change the wireless channel, wireless is crowded", score=3),
    Answer("a2", "printer", "switch the printer on again, printer asleep", score=1),
    Answer("a3", "car", "charge the battery", score=1),
    Answer("a4", "paper", "take the paper out", score=1),
]


@pytest.fixture
def forum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("askalike.index.encoder_settings.default_model", lambda: None)
    with Forum.create(tmp_path / "my.forum") as made:
        made.add(QUESTIONS)
        made.add_answers(ANSWERS)
    return tmp_path / "my.forum"


@pytest.fixture(params=list(KINDS))
def learned(
    request: pytest.FixtureRequest,
    forum: Path,
    run: Run,
) -> tuple[Path, str]:
    assert run("train", forum, "--recipe", request.param).code == 0
    return forum, request.param


def test_a_learned_model_answers_by_its_name(learned: tuple[Path, str]) -> None:
    path, name = learned
    with Forum.open(path) as opened:
        hits = opened.similar("printer drops", ranker=name)
        assert [hit.question.id for hit in hits][:1] in (["printer"], ["paper"], ["wlan"])
        assert {hit.question.id for hit in hits} == {"printer", "paper", "wlan"}, "that share a word with it"
        assert all(hit.score > 0 and hit.components["likelihood"] == hit.score for hit in hits)
        assert opened.ranking(Query("printer drops", ranker=name)) == [(hit.question.id, hit.score) for hit in hits]
        assert opened.similar("", ranker=name) == []


def test_words_are_explained_by_the_word_that_stands_for_them(learned: tuple[Path, str]) -> None:
    path, name = learned
    with Forum.open(path) as opened:
        hits = opened.search(Query("wireless evening", ranker=name, is_explained=True)).hits
        (wireless, evening) = next(one.explanation.matches for one in hits if one.question.id == "wlan")  # type: ignore[union-attr]
    assert (evening.word, evening.match, evening.similarity, evening.is_missing) == ("evening", "evening", 1.0, False)
    assert wireless.is_missing
    assert wireless.importance == 1.0 >= evening.importance > 0
    if name in ("lmir", "phrase"):  # here no two phrases meet twice
        assert (wireless.match, wireless.similarity) == ("", 0.0)
    elif wireless.match or name != "qatm":  # words that are not alike enough stand for nothing
        assert wireless.match in {"wlan", "drop", "whole", "hous", "evening"}
        assert 0 < wireless.similarity <= 1


def test_a_translation_makes_the_difference(forum: Path, run: Run) -> None:
    """Of three questions that share "evening", the one whose answer speaks of wireless comes first."""
    for name in ("lmir", "translation", "translm", "sqatm"):
        assert run("train", forum, "--recipe", name).code == 0
    with Forum.open(forum) as opened:
        for name in ("translation", "translm", "sqatm"):
            first, second = opened.similar("wireless evening", ranker=name)[:2]
            assert first.question.id == "wlan", name
            assert first.score > second.score
        assert opened.search(Query("nowhere", ranker="lmir", is_explained=True)).hits == ()


def test_a_phrase_is_explained_by_a_phrase(forum: Path, run: Run, tmp_path: Path) -> None:
    with Forum.open(forum) as opened:
        opened.add([Question(f"n{n}", "reset router") for n in range(3)])
        opened.add_answers([Answer(f"b{n}", f"n{n}", "factory defaults") for n in range(3)])
    recipe = tmp_path / "mine.toml"
    recipe.write_text('ranker = "phrase"\n[options]\nlongest = 2\nheuristic = "union"\n', encoding="utf-8")
    assert run("train", forum, "--recipe", recipe).code == 0
    with Forum.open(forum) as opened:
        hits = opened.search(Query("factory defaults router", ranker="phrase", is_explained=True)).hits
        matches = hits[0].explanation.matches  # type: ignore[union-attr]
    assert hits[0].question.id in {"n0", "n1", "n2"}
    assert [one.match for one in matches] == ["reset router", "reset router", "router"]
    assert [one.is_missing for one in matches] == [True, True, False]
    assert 0 < matches[0].similarity <= 1


def test_the_plan_says_what_is_learned_from(forum: Path, run: Run) -> None:
    done = run("train", forum, "--recipe", "translm")
    assert done.code == 0
    shown = done.out
    assert "all questions and 4 best answers, both ways, by 10 iterations" in shown
    assert "translm; smoothing jelinek-mercer" in shown
    assert "--ranker translm" in shown
    done = run("train", forum, "--recipe", "lmir", "--json")
    assert done.code == 0
    told: dict[str, Any] = done.json
    assert (told["ranker"], told["learned_marks"], told["iterations"], told["dev_ranker"]) == ("lmir", 0, 0, None)
    assert told["language_model"] == {"ranker": "lmir", "smoothing": "jelinek-mercer", "weight": 0.7}


def test_topics_are_learned_from_answers_and_told(forum: Path, run: Run) -> None:
    done = run("train", forum, "--recipe", "qatm", "--seed", 3)
    assert done.code == 0
    assert "all questions and 4 best answers, topics by 100 iterations; from no duplicate links" in done.out
    assert LanguageModel.load(forum / "rankers" / "qatm").settings.options == TopicOptions(seed=3)
    with Forum.open(forum) as opened:
        before = opened.ranking(Query("wlan evening", ranker="qatm"))
        assert opened.ranking(Query("wlan evening", ranker="qatm")) == before, "topics that were kept change nothing"
        opened.add_answers([Answer("a6", "car", "wireless channel, wireless is crowded", score=9)])
        after = dict(opened.ranking(Query("wlan evening", ranker="qatm")))
        assert after["car"] > dict(before)["car"], "its new answer tells what it is about"
        assert after["printer"] == dict(before)["printer"]


def test_votes_are_learned_from(forum: Path, run: Run) -> None:
    with Forum.open(forum) as opened:
        opened.add_answers([Answer("a7", "wlan", "reboot everything", score=1)])
    done = run("train", forum, "--recipe", "sqatm")
    assert done.code == 0
    told = done.out
    assert "questions and 5 answers, both ways, by 10 iterations of IBM's model 1, topics by 100 iterations" in told
    words = LanguageModel.load(forum / "rankers" / "sqatm").vocabulary.words
    assert "reboot" in words, "of the second answer"
    with Forum.open(forum) as opened:
        assert opened.similar("wireless evening", ranker="sqatm")[0].question.id == "wlan"


def test_with_a_dev_part_the_ranker_is_compared(tmp_path: Path, run: Run) -> None:
    with Forum.create(tmp_path / "big.forum") as made:
        words = [f"thing{letter}" for letter in "abcdefghijklmnop"]
        made.add([Question(f"{word}{n}", f"{word} broke", f"number {n} here") for word in words for n in range(2)])
        made.add_links([Link(f"{word}1", f"{word}0", "duplicate") for word in words])
    done = run("train", tmp_path / "big.forum", "--recipe", "lmir", "--json")
    assert done.code == 0
    told = done.json
    assert told["dev_queries_that_count"] > 0
    assert told["dev_ranker"] == pytest.approx(1.0)


def test_options_of_networks_are_refused(forum: Path, run: Run) -> None:
    for option in (("--from", "general"), ("--device", "cuda"), ("--threads", 2), ("--processes", 2)):
        done = run("train", forum, "--recipe", "lmir", *option)
        assert done.code != 0
        assert "trains no network" in done.err


def test_a_new_answer_counts_at_once(forum: Path, run: Run) -> None:
    assert run("train", forum, "--recipe", "translm").code == 0
    with Forum.open(forum) as opened:
        opened.add(Question("late", "evening trouble", "the whole house"))
        before = dict(opened.ranking(Query("channel evening", ranker="translm")))
        opened.add_answers([Answer("a5", "late", "another channel")])
        after = dict(opened.ranking(Query("channel evening", ranker="translm")))
        assert after["late"] > before["late"]
        opened.edit(Question("late", "channel evening"))
        assert dict(opened.ranking(Query("channel evening", ranker="translm")))["late"] > after["late"]


def test_another_rankers_model_is_refused(forum: Path, run: Run) -> None:
    assert run("train", forum, "--recipe", "lmir").code == 0
    with Forum.open(forum) as opened:
        with pytest.raises(DamagedModelError, match="holds the language model 'lmir', but expected 'translm'"):
            opened.use_ranker("translm", forum / "rankers" / "lmir")
        with pytest.raises(ModelError):
            opened.use_ranker("ramn", forum / "rankers" / "lmir")
        with pytest.raises(SettingError, match="no ranker 'lexical' that learns"):
            opened.use_ranker("lexical", forum / "rankers" / "lmir")
        assert opened.similar("printer", ranker="lmir"), "what was there answers"


def test_the_command_line_shows_what_stands_for_each_word(forum: Path, run: Run) -> None:
    assert run("train", forum, "--recipe", "translm").code == 0
    done = run("search", forum, "wireless evening unheard", "--ranker", "translm", "--explain")
    assert done.code == 0
    shown = done.out
    assert "times likelier a word" in shown
    assert "wireless█→" in shown
    assert "→ " not in shown, "nothing stands for a word that was never seen"


def test_a_forum_without_answers_learns_no_translations(tmp_path: Path, run: Run) -> None:
    with Forum.create(tmp_path / "bare.forum") as made:
        made.add(QUESTIONS)
    assert run("train", tmp_path / "bare.forum", "--recipe", "translm").code == 0
    with Forum.open(tmp_path / "bare.forum") as opened:
        assert opened.similar("printer offline", ranker="translm")[0].question.id == "printer"


@pytest.mark.parametrize("damage", ["no manifest", "half a manifest", "a file"])
def test_a_damaged_ranker_is_named_and_trained_again(forum: Path, run: Run, damage: str) -> None:
    assert run("train", forum, "--recipe", "lmir").code == 0
    place = forum / "rankers" / "lmir"
    if damage == "no manifest":
        (place / "manifest.json").unlink()
    elif damage == "half a manifest":
        (place / "manifest.json").write_bytes((place / "manifest.json").read_bytes()[:50])
    else:
        shutil.rmtree(place)
        place.write_bytes(b"?")
    done = run("search", forum, "printer", "--ranker", "lmir")
    assert done.code == 1
    told = done.err
    assert str(place) in told.replace("\n", "")
    assert "--recipe lmir" in told
    assert run("search", forum, "printer").code == 0, "nothing else is lost"
    assert run("train", forum, "--recipe", "lmir").code == 0
    assert run("search", forum, "printer", "--ranker", "lmir").code == 0
