"""Rankers that a forum has learned: taken, asked for by name, explained, read again when they were trained anew."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.command import Run
from tests.tiny_models import synonym_model
from tests.tiny_training import dev_score_of

from askalike import Forum, ForumSettings, Question
from askalike.cli.train import result_lines, result_object
from askalike.data import bundled_forum
from askalike.errors import DamagedModelError, ForumError, ModelError, SettingError
from askalike.evaluation import compare
from askalike.evaluation.forum.tasks import likeness
from askalike.forum.rerankers import MAKERS
from askalike.index.states import ModelStates
from askalike.search import RANKER_NAMES, RERANKERS, Query, SearchSettings, learned_as
from askalike.training.session import TrainingResult

QUESTIONS = [
    Question("lost", "lost drops", "the cable"),
    Question("printer", "printer offline", "drops"),
    Question("body", "wireless question", "my wireless drops"),
]


TINY = """
reads = "joined"
word_limit = 10
stems = "english"
ranker = "ramn"

[words]
size = 8
vectors = "random"
is_trained = true

[encoder]
kind = "attention"
hidden_size = 8
layers = 1
pooling = "mean"

[[stage]]
objective = "reconstruction"
epochs = 1
stop_on = "perplexity"
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    synonym_model().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def forum(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("askalike.index.encoder_settings.default_model", lambda: None)
    with Forum.create(tmp_path / "my.forum") as made:
        made.add(QUESTIONS)
        made.use_ranker("ramn", model)
    return tmp_path / "my.forum"


def test_a_learned_ranker_answers_where_it_is_asked_for(forum: Path) -> None:
    with Forum.open(forum) as opened:
        by_words = [hit.question.id for hit in opened.similar("wifi drops")]
        assert by_words[0] != "body", "which is the longest"
        hits = opened.similar("wifi drops", ranker="ramn")
        assert set(by_words) == {"lost", "printer", "body"}, "all share a word"
        assert hits[0].question.id == "body", "where wireless stands for wifi"
        assert all(hit.score > 0 and "rank_factor" in hit.components for hit in hits)
        assert [one for one, _ in opened.ranking(Query("wifi drops", ranker="ramn"))] == [
            hit.question.id for hit in hits
        ]


def test_each_word_of_the_query_is_explained(forum: Path) -> None:
    with Forum.open(forum) as opened:
        hits = opened.search(Query("wifi drops", ranker="ramn", is_explained=True)).hits
        found = {hit.question.id: hit.explanation.matches for hit in hits if hit.explanation is not None}
        wifi, drops = found["body"]
        assert (wifi.word, wifi.match, wifi.is_missing, round(wifi.similarity, 3)) == ("wifi", "wireless", True, 1.0)
        assert (drops.word, drops.match, drops.is_missing) == ("drops", "drops", False)
        other = opened.search(Query("wifi drops", is_explained=True)).hits[0].explanation
        assert other is not None
        assert other.matches == (), "another ranker explains in its own way"


def test_a_ranker_that_was_not_learned_says_how_to_train_it(tmp_path: Path) -> None:
    with Forum.create(tmp_path / "new.forum") as made:
        made.add(QUESTIONS)
        with pytest.raises(ForumError, match="has not learned the ranker 'ramn'") as raised:
            made.similar("wifi", ranker="ramn")
        assert "--recipe ramn" in raised.value.hint
        with pytest.raises(SettingError, match="there is no ranker 'best'"):
            made.similar("wifi", ranker="best")


def test_what_was_trained_anew_answers_without_opening_the_forum_again(forum: Path, tmp_path: Path) -> None:
    synonym_model([{"wifi", "printer"}, {"drops"}, {"offline"}]).save(tmp_path / "other")
    with Forum.open(forum) as opened:
        assert opened.similar("wifi drops", ranker="ramn")[0].question.id == "body"
        opened.use_ranker("ramn", tmp_path / "other")
        assert opened.similar("wifi drops", ranker="ramn")[0].question.id == "printer"


def test_an_edited_question_is_read_anew(forum: Path) -> None:
    with Forum.open(forum) as opened:
        before = {hit.question.id: hit.score for hit in opened.similar("wifi drops", ranker="ramn")}
        opened.edit(Question("printer", "wifi drops"))
        after = {hit.question.id: hit.score for hit in opened.similar("wifi drops", ranker="ramn")}
        assert after["printer"] > before["printer"]


def test_a_folder_that_is_no_model_leaves_the_ranker_as_it_is(forum: Path, tmp_path: Path) -> None:
    with Forum.open(forum) as opened:
        with pytest.raises(ModelError):
            opened.use_ranker("ramn", tmp_path / "nothing")
        assert opened.similar("wifi drops", ranker="ramn")
        (forum / "rankers" / "ramn" / "manifest.json").write_text("{", encoding="utf-8")
        with pytest.raises(DamagedModelError):
            opened.similar("wifi drops", ranker="ramn")


def test_a_model_without_counts_is_no_ranker() -> None:
    with pytest.raises(DamagedModelError, match="how often its words occur"):
        ModelStates(synonym_model(has_counts=False))


def test_states_are_kept_up_to_their_size_and_asked_for_by_many_threads() -> None:
    model = synonym_model()
    questions = [(number, Question(str(number), "wifi drops " * (1 + number % 5))) for number in range(60)]
    expected = model.states([question for _, question in questions])
    source = ModelStates(model, size_bytes=2000)
    wrong: list[int] = []

    def ask(seed: int) -> None:
        for place in np.random.default_rng(seed).permutation(60)[:40].tolist():
            part = questions[place : place + 7]
            for (number, _), found in zip(part, source.of_questions(part), strict=True):
                if not np.array_equal(found.states, expected[number].states):
                    wrong.append(number)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert source.kept_bytes <= 2000


def test_a_query_is_read_as_a_question_is() -> None:
    source = ModelStates(synonym_model())
    assert source.of_query(Query("WiFi", "<b>drops</b>", "html")).words == ("wifi", "drops")
    assert source.frequencies(["wifi", "unheard"]).tolist() == [source.frequencies(["wifi"])[0], 0]


def test_every_learned_ranker_has_a_maker_and_a_name() -> None:
    assert {learned_as(name) for name in RERANKERS} == MAKERS.keys()
    assert set(RERANKERS) <= set(RANKER_NAMES)


def test_the_command_line_shows_what_stands_for_each_word(forum: Path, run: Run) -> None:
    asked = ("search", forum, "wifi drops", "--ranker", "ramn", "--explain")
    done = run(*asked)
    assert done.code == 0
    shown = done.out
    assert "rank factor" in shown
    assert "→wireless 1.00" in shown
    done = run(*asked, "--json")
    assert done.code == 0
    first: dict[str, Any] = done.json[0]
    assert [match["word"] for match in first["explanation"]["matches"]] == ["wifi", "drops"]


def test_the_ranker_of_the_settings_explains_what_it_found(forum: Path) -> None:
    settings = ForumSettings(search=SearchSettings(ranker="ramn"))
    with Forum.open(forum, settings=settings) as opened:
        found = opened.search(Query("wifi drops", is_explained=True))
        assert (found.ranker, found.has_vectors) == ("ramn", False)
        assert "rank_factor" in found.hits[0].components
        assert found.hits[0].explanation is not None
        assert found.hits[0].explanation.matches


def test_a_folder_in_the_place_of_a_rankers_manifest_is_told_as_damage(forum: Path) -> None:
    manifest = forum / "rankers" / "ramn" / "manifest.json"
    manifest.unlink()
    manifest.mkdir()
    with Forum.open(forum) as opened, pytest.raises(DamagedModelError, match=r"manifest\.json cannot be read"):
        opened.similar("wifi", ranker="ramn")


def test_a_ranker_that_is_just_being_replaced_still_answers(forum: Path) -> None:
    with Forum.open(forum) as opened:
        expected = opened.ranking(Query("wifi drops", ranker="ramn"))
        (forum / "rankers" / "ramn").rename(forum / "rankers" / ".ramn.replaced")
    with Forum.open(forum) as opened:
        assert opened.ranking(Query("wifi drops", ranker="ramn")) == expected


def test_texts_of_questions_are_not_kept_with_their_states() -> None:
    source = ModelStates(synonym_model(), size_bytes=1000)
    source.of_questions([(number, Question(str(number), "", "!" * 10_000)) for number in range(50)])
    assert len(source.of_questions([(1, Question("1", "", "!" * 10_000))])) == 1
    assert 0 < source.kept_bytes <= 1000, "an entry without states counts too"


@pytest.mark.parametrize(("learned", "is_said"), [(0.2, True), (0.4, False)])
def test_it_is_said_where_what_was_learned_orders_no_better_than_the_search(learned: float, is_said: bool) -> None:
    words, own = dev_score_of(0.3), dev_score_of(learned)
    assert words.report
    assert own.report
    found = compare(own.report, words.report, "mrr")
    scores = {"ramn": learned}
    result = TrainingResult("ramn", Path("my.forum"), is_taken=True, before=words, rankers=scores, comparison=found)
    lines = list(result_lines(result, Path("my.forum")))
    assert any("orders no better than the search beyond chance" in line for line in lines) is is_said
    assert lines[-1].endswith("--ranker ramn")


@pytest.mark.parametrize(("alike", "is_said"), [(0.99, True), (0.5, False), (None, False)])
def test_it_is_said_where_all_words_are_alike_to_what_was_learned(alike: float | None, is_said: bool) -> None:
    result = TrainingResult("ramn", Path("my.forum"), is_taken=True, likeness=alike)
    lines = list(result_lines(result, Path("my.forum")))
    assert any("mean cosine 0.99" in line for line in lines) is is_said
    assert result_object(result).get("likeness") == alike


def test_likeness_is_that_of_words_that_have_nothing_to_do_with_each_other() -> None:
    alike = synonym_model([{"wifi", "wireless", "wlan", "drops"}, {"printer"}])
    texts = [Question("1", "wifi drops"), Question("2", "wireless wlan")]
    assert likeness(alike, texts) == pytest.approx(1)
    assert likeness(synonym_model(), texts) == pytest.approx(0.5), "wifi and wireless, drops and wlan"
    assert likeness(alike, [Question("1", "?!")]) == 0


def test_an_autoencoder_of_a_forum_is_trained_and_answers(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("torch", reason="training needs torch, which is not installed")
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(TINY, encoding="utf-8")
    with Forum.create(tmp_path / "home.forum") as made:
        made.load(bundled_forum())
    done = run("train", tmp_path / "home.forum", "--recipe", recipe, "--json")
    assert done.code == 0
    assert done.json["ranker"] == "ramn"
    assert -1 <= done.json["likeness"] <= 1
    found = run("search", tmp_path / "home.forum", "router drops wifi", "--ranker", "ramn", "--explain", "--json")
    assert found.json[0]["explanation"]["matches"]
