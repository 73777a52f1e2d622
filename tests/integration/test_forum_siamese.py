"""Siamese models as rankers of a forum: learned by the command, gone on with, asked for by name, misspelt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.command import Run
from tests.tiny_models import synonym_model, trigram_model

from askalike import Answer, Filters, Forum, ForumSettings, Link, Question
from askalike.errors import DamagedModelError, ForumError, SettingError
from askalike.forum.rerankers import ModelVectors
from askalike.models.siamese.model import SiameseModel
from askalike.search import Query, SearchSettings
from askalike.search.settings import TextualSettings

WORDS = ["router", "antenna", "wireless", "printer", "toner", "paper", "battery", "charger", "laptop", "evening"]
QUESTIONS = [
    Question("router", "router antenna evening", "wireless"),
    Question("printer", "printer toner evening", "paper"),
    Question("battery", "battery charger evening", "laptop"),
]
TINY = """
ranker = "{ranker}"

[network]
kernel_width = 4
channels = [4, 4]
poolings = [3, 2]
output_size = 8

[pairs]
batch_size = 4
held_out = 2

[loop]
epochs = 3
"""


@pytest.fixture(autouse=True)
def no_general_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.index.encoder_settings.default_model", lambda: None)


@pytest.fixture
def forum(tmp_path: Path) -> Path:
    """Return a forum that has learned to compare trigrams."""
    trigram_model(WORDS).save(tmp_path / "model")
    with Forum.create(tmp_path / "my.forum") as made:
        made.add(QUESTIONS)
        made.use_ranker("scqa", tmp_path / "model")
    return tmp_path / "my.forum"


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    """Return a forum of 24 answered questions of three kinds."""
    with Forum.create(tmp_path / "answered.forum") as made:
        kinds = [("router", "antenna signal"), ("printer", "toner cartridge"), ("battery", "charger voltage")]
        made.add([Question(f"q{n}", f"{kinds[n % 3][0]} trouble{n}", "it is slow") for n in range(24)])
        made.add_answers([Answer(f"a{n}", f"q{n}", f"{kinds[n % 3][1]} {n}", score=1) for n in range(24)])
    return tmp_path / "answered.forum"


def recipe(tmp_path: Path, ranker: str) -> Path:
    path = tmp_path / f"{ranker}.toml"
    path.write_text(TINY.format(ranker=ranker), encoding="utf-8")
    return path


@pytest.mark.parametrize("ranker", ["scqa", "t-scqa"])
def test_a_misspelt_query_finds_its_question(forum: Path, ranker: str) -> None:
    with Forum.open(forum) as opened:
        words = opened.similar("anntena roter evening", ranker="lexical")
        assert {hit.question.id: round(hit.score, 6) for hit in words} == dict.fromkeys(
            ("router", "printer", "battery"), round(words[0].score, 6)
        ), "by its words it is as like the others"
        hits = opened.similar("anntena roter evening", ranker=ranker)
        assert hits[0].question.id == "router"
        assert hits[0].score > hits[1].score
        assert hits[0].components["cosine"] > 1.2 * hits[1].components["cosine"]


@pytest.mark.parametrize("ranker", ["scqa", "t-scqa"])
def test_a_query_of_misspelt_words_alone_finds_its_question(forum: Path, ranker: str) -> None:
    with Forum.open(forum) as opened:
        for asked, meant in (("anntena roter", "router"), ("pirnter", "printer"), ("batery chargre", "battery")):
            assert opened.similar(asked, ranker="lexical") == []
            hits = opened.similar(asked, ranker=ranker)
            assert [hit.question.id for hit in hits] == [meant]
            assert hits[0].components["bm25"] == 0
            assert opened.similar(asked, ranker=ranker, filters=Filters(exclude_ids=frozenset([meant]))) == []
            assert opened.similar(asked, ranker=ranker, filters=Filters(tags=("none",))) == []
        assert opened.similar("roter", "my anntena", ranker=ranker)[0].question.id == "router", "of the body too"
        assert opened.similar("rtr", ranker=ranker) == [], "short words are near to everything"


def test_trigrams_that_were_never_seen_change_nothing(forum: Path) -> None:
    with Forum.open(forum) as opened:
        before = opened.ranking(Query("router evening", ranker="scqa"))
        assert opened.ranking(Query("router evening zzz", ranker="scqa")) == before
        assert opened.similar("zzz qqq", ranker="scqa") == []
        opened.add(Question("zzz", "zzz qqq"))
        assert opened.similar("zzz qqq", ranker="scqa") == [], "nothing is known of it"
        assert [hit.question.id for hit in opened.similar("zzz qqq", ranker="t-scqa")] == ["zzz"], "its words are"


def test_both_rankers_use_what_was_learned_once(forum: Path) -> None:
    with Forum.open(forum) as opened:
        alone, beside = (
            {hit.question.id: hit for hit in opened.similar("toner evening", ranker=name)}
            for name in (
                "scqa",
                "t-scqa",
            )
        )
        for identifier, hit in alone.items():
            share = beside[identifier].components["bm25_share"]
            assert hit.score == hit.components["cosine"]
            alpha = TextualSettings().alpha
            assert beside[identifier].score == pytest.approx(alpha * hit.score + (1 - alpha) * share)
        for name in ("dsqa", "t-dsqa"):
            with pytest.raises(ForumError, match=f"not learned the ranker '{name}'") as raised:
                opened.similar("toner", ranker=name)
            assert raised.value.hint.endswith('--recipe dsqa"')
    settings = ForumSettings(search=SearchSettings(ranker="t-scqa", textual=TextualSettings(0.0)))
    with Forum.open(forum, settings=settings) as opened:
        assert opened.similar("toner evening")[0].score == 1.0, "BM25 alone"


def test_words_are_explained_by_leaving_them_out(forum: Path) -> None:
    with Forum.open(forum) as opened:
        hits = opened.search(Query("toner evening", ranker="scqa", is_explained=True)).hits
        found = {
            one.question.id: {part.word: part.effect for part in one.explanation.effects}
            for one in hits
            if one.explanation is not None
        }
        toner, evening = found["printer"]["toner"], found["printer"]["evening"]
        assert toner > 0
        assert found["router"]["toner"] < 0 < found["router"]["evening"]
        without = {hit.question.id: hit.score for hit in opened.similar("evening", ranker="scqa")}
        assert toner == pytest.approx(hits[0].score - without["printer"], abs=1e-5)
        assert evening > 0


def test_an_edited_question_is_read_anew_and_a_new_model_answers_at_once(forum: Path, tmp_path: Path) -> None:
    with Forum.open(forum) as opened:
        before = dict(opened.ranking(Query("toner evening", ranker="scqa")))
        opened.edit(Question("router", "toner evening"))
        assert dict(opened.ranking(Query("toner evening", ranker="scqa")))["router"] == pytest.approx(1.0)
        assert before["router"] < 0.9
        trigram_model(["evening"]).save(tmp_path / "other")
        opened.use_ranker("scqa", tmp_path / "other")
        assert [score for _, score in opened.ranking(Query("toner evening", ranker="scqa"))] == pytest.approx([1.0] * 3)


def test_vectors_are_kept_up_to_their_size() -> None:
    model, questions = trigram_model(WORDS), [(n, Question(str(n), WORDS[n % 10])) for n in range(40)]
    vectors = ModelVectors(model, size_bytes=3000)
    for _ in range(2):
        for begin in range(0, 40, 8):
            part = questions[begin : begin + 8]
            expected = model.encode([question for _, question in part])
            assert [row.tolist() for row in vectors.of_questions(part)] == expected.tolist()
            assert 0 < vectors.kept_bytes <= 3000
    assert vectors.of_query(Query("Router")).tolist() == model.encode_text(["router"])[0].tolist()


def test_what_is_no_model_of_the_ranker_is_refused(forum: Path, tmp_path: Path) -> None:
    synonym_model().save(tmp_path / "encoder")
    with Forum.open(forum) as opened:
        with pytest.raises(DamagedModelError, match="share their parameters, but expected one of 'dsqa'"):
            opened.use_ranker("dsqa", tmp_path / "model")
        with pytest.raises(DamagedModelError):
            opened.use_ranker("scqa", tmp_path / "encoder")
        with pytest.raises(SettingError, match="no ranker 't-scqa' that learns"):
            opened.use_ranker("t-scqa", tmp_path / "model")
        assert opened.similar("toner", ranker="scqa"), "what was there answers"


def test_the_average_of_the_candidates_is_a_threshold(forum: Path, run: Run) -> None:
    settings = ForumSettings(search=SearchSettings(threshold="average"))
    for ranker in ("scqa", "t-scqa", "lexical"):
        with Forum.open(forum) as opened:
            every = opened.ranking(Query("toner evening", ranker=ranker))
        average = sum(score for _, score in every) / 3
        assert len(every) == 3
        with Forum.open(forum, settings=settings) as opened:
            shown = opened.ranking(Query("toner evening", ranker=ranker))
            assert shown == [(one, score) for one, score in every if score >= average] == every[:1]
            assert opened.ranking(Query("toner evening", k=1, ranker=ranker)) == shown, "however few are asked for"
            assert len(opened.ranking(Query("evening", ranker="lexical"))) >= 1, "of equals none is below"
    found = run("search", forum, "toner evening", "--ranker", "scqa", "--threshold", "average", "--json").json
    assert [one["question"]["id"] for one in found] == ["printer"]
    assert len(run("search", forum, "toner evening", "--ranker", "scqa", "--json").json) == 3
    wrong = run("search", forum, "toner", "--threshold", "median")
    assert wrong.code == 2
    assert "there is no threshold 'median'" in wrong.err


def test_the_command_line_shows_what_each_word_brought(forum: Path, run: Run) -> None:
    words = ("search", forum, "toner evening", "--ranker", "scqa", "--explain")
    shown = run(*words).out
    assert "cosine 0." in shown
    assert "toner +0." in shown
    found = run(*words, "--json").json
    assert {one["word"] for one in found[0]["explanation"]["effects"]} == {"toner", "evening"}


def test_a_forum_is_searched_without_torch(forum: Path) -> None:
    import subprocess

    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from askalike import Forum\n"
        f"with Forum.open({str(forum)!r}) as opened:\n"
        "    print([hit.question.id for hit in opened.similar('tonner evening', ranker='t-scqa')][0])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "printer"


@pytest.mark.parametrize("ranker", ["scqa", "dsqa"])
def test_a_forum_learns_both_kinds_from_its_answers(run: Run, answered: Path, tmp_path: Path, ranker: str) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    done = run("train", answered, "--recipe", recipe(tmp_path, ranker), "--seed", 1)
    assert done.code == 0, done.err
    assert "24 best answers beside answers to other questions; from no duplicate links" in done.out
    assert f"{ranker} (at most 3 epochs); kernel_width 4" in done.out
    assert f"--ranker {ranker}" in done.out
    assert f"the ranker {ranker} answers where it is asked for, as does t-{ranker} (" in done.out
    assert f"{ranker}, epoch 3" not in done.out, "progress goes to the error stream"
    assert "siamese, epoch 3" in done.err
    model = SiameseModel.load(answered / "rankers" / ranker)
    assert model.settings.network.is_shared == (ranker == "scqa")
    with Forum.open(answered) as opened:
        for name in (ranker, f"t-{ranker}"):
            hits = opened.similar("router trouble", ranker=name, k=5)
            assert hits
            assert all(hit.score > 0 and "cosine" in hit.components for hit in hits)


def test_with_a_dev_part_all_rankers_that_were_learned_are_compared(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    words = [f"thing{letter}{letter}" for letter in "abcdefghijklmnop"]
    with Forum.create(tmp_path / "big.forum") as made:
        made.add([Question(f"{word}{n}", f"{word} broke", f"number {n} here") for word in words for n in range(2)])
        made.add_answers([Answer(f"{word}a", f"{word}0", f"{word} repair") for word in words])
        made.add_links([Link(f"{word}1", f"{word}0", "duplicate") for word in words])
    told = run("train", tmp_path / "big.forum", "--recipe", recipe(tmp_path, "scqa"), "--json").json
    assert told["dev_queries_that_count"] > 0
    assert told["dev_rankers"].keys() == {"scqa", "t-scqa"}
    assert told["dev_ranker"] == told["dev_rankers"]["scqa"]
    assert (told["ranker"], told["learned_marks"], told["siamese"]["output_size"]) == ("scqa", 0, 8)


def test_a_stopped_training_goes_on_and_gives_the_same_model(
    run: Run, answered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    from askalike.training.loop import _StageRun

    words = ("train", answered, "--recipe", recipe(tmp_path, "scqa"), "--json")
    whole = run(*words)
    assert whole.json["beginning"] == "anew"
    expected = (answered / "rankers" / "scqa" / "weights.safetensors").read_bytes()
    steps = _StageRun._step
    left = [8]

    def stopping(*given: Any) -> float:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return steps(*given)

    with monkeypatch.context() as patched:
        patched.setattr(_StageRun, "_step", stopping)
        done = run(*words)
        assert done.code == 130
        assert "To go on" in done.err
    (answered / "rankers" / "scqa" / "manifest.json").unlink()
    (answered / "rankers" / "scqa").rename(answered / "away")
    again = run(*words)
    assert again.json["beginning"] == "goes on"
    assert (answered / "rankers" / "scqa" / "weights.safetensors").read_bytes() == expected
    assert run(*words, "--seed", 1).code == 0
    assert (answered / "rankers" / "scqa" / "weights.safetensors").read_bytes() != expected


def test_too_few_answers_and_too_few_trigrams_are_said(run: Run, tmp_path: Path, forum: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    done = run("train", forum, "--recipe", "scqa")
    assert done.code == 2
    assert "0 questions with an answer and words on both sides" in " ".join(done.err.split())
    assert "learns from nothing else" in " ".join(done.err.split())
    with Forum.open(forum) as opened:
        opened.add_answers([Answer(one.id, one.id, "take it to the shop") for one in QUESTIONS])
    done = run("train", forum, "--recipe", "scqa")
    assert done.code == 2
    assert "trigrams pool less, or learn from more texts" in " ".join(done.err.split()).replace("hint: ", "")


@pytest.mark.parametrize("option", [("--from", "general"), ("--processes", 2)])
def test_options_that_have_no_use_are_refused(run: Run, answered: Path, option: tuple[object, ...]) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    done = run("train", answered, "--recipe", "scqa", *option)
    assert done.code == 2
    assert f"{option[0]} with a recipe of scqa, which begins anew" in " ".join(done.err.split())


def test_both_rankers_of_a_network_are_known_to_be_there(forum: Path) -> None:
    with Forum.open(forum) as opened:
        known = opened.rankers()
    assert (known["scqa"], known["t-scqa"]) == (True, True)
    assert (known["dsqa"], known["t-dsqa"]) == (False, False)
