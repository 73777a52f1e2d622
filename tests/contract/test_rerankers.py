"""One table of the rankers that a forum learns, and the laws that hold for every one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_models import synonym_model, trigram_model

from askalike.forum.rerankers import MAKERS
from askalike.models.language.kinds import KINDS
from askalike.models.siamese.config import SIAMESE_KINDS
from askalike.models.siamese.model import SiameseModel
from askalike.progress import SilentProgress
from askalike.search import RERANKERS, Query, Reranker, SearchSettings, learned_as
from askalike.search.pool import Pooled
from askalike.search.reranker import BY_LETTERS
from askalike.text.settings import TextSettings
from askalike.training.corpus import TrainingData
from askalike.training.language import LanguageRecipe, learn_language_model
from askalike.training.recipe import load_recipe
from askalike.types import Answer, Question

QUESTIONS = [
    Question("1", "wifi drops", "the whole evening"),
    Question("2", "printer offline"),
    Question("3", "", "wireless printer lost"),
    Question("4", "***"),
    Question("5", "wifi wifi printer drops evening"),
]
ANSWERS = [Answer(f"a{one.id}", one.id, "switch it on and off", score=1) for one in QUESTIONS]
FOUND = [
    (Pooled(place, {"bm25": 9.0 - place}, {"lexical": place + 1}), question) for place, question in enumerate(QUESTIONS)
]
QUERY = Query("printer drops", "wifi")


def saved(name: str, folder: Path) -> None:
    """Write a tiny model that a ranker can use."""
    if name in KINDS:
        recipe = load_recipe(name)
        assert isinstance(recipe, LanguageRecipe)
        data = TrainingData(QUESTIONS, answers=ANSWERS)
        learn_language_model(recipe, data, TextSettings(), SilentProgress()).save(folder)
    elif name in SIAMESE_KINDS:
        model = trigram_model(["wifi", "drop", "printer", "evening", "offlin", "lost"])
        if not SIAMESE_KINDS[name]:
            own = model.parameters()
            settings = replace(model.settings, network=replace(model.settings.network, is_shared=False))
            twice = {f"{side}.{key}": value for side in ("question", "answer") for key, value in own.items()}
            model = SiameseModel.build(settings, model.vocabulary, twice)
        model.save(folder)
    else:
        synonym_model().save(folder)


def answers_to(question_id: str) -> list[Answer]:
    return [one for one in ANSWERS if one.question_id == question_id]


@pytest.fixture(scope="module")
def rankers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Reranker]:
    """Return every ranker that can be learned, by name."""
    made: dict[str, Reranker] = {}
    for name, make in MAKERS.items():
        folder = tmp_path_factory.mktemp("rankers") / name
        saved(name, folder)
        made |= make(folder, SearchSettings(), lambda ids: {one: answers_to(one) for one in ids})
    return made


everyone = pytest.mark.parametrize("name", RERANKERS)


def test_every_name_has_a_ranker_and_every_folder_one_of_its_own(rankers: Mapping[str, Reranker]) -> None:
    assert rankers.keys() == RERANKERS.keys()
    assert {learned_as(name) for name in RERANKERS} == MAKERS.keys()
    assert set(MAKERS) <= set(RERANKERS)
    assert {name for name in RERANKERS if learned_as(name) in SIAMESE_KINDS} == BY_LETTERS


@everyone
def test_each_candidate_has_a_finite_score_in_its_place(rankers: Mapping[str, Reranker], name: str) -> None:
    scored = rankers[name].scores(QUERY, FOUND)
    assert [one.key for one in scored] == [one.key for one, _ in FOUND]
    assert all(np.isfinite(one.score) for one in scored)
    assert all(
        one.components["bm25"] == pooled.components["bm25"] for one, (pooled, _) in zip(scored, FOUND, strict=True)
    )
    assert rankers[name].scores(QUERY, FOUND) == scored, "what is kept in memory changes nothing"


@everyone
def test_the_order_of_candidates_does_not_matter(rankers: Mapping[str, Reranker], name: str) -> None:
    order = [3, 0, 4, 1, 2]
    plain = rankers[name].scores(QUERY, FOUND)
    shuffled = rankers[name].scores(QUERY, [FOUND[place] for place in order])
    assert [one.score for one in shuffled] == pytest.approx([plain[place].score for place in order])


@everyone
def test_a_query_without_words_is_like_nothing_by_what_was_learned(rankers: Mapping[str, Reranker], name: str) -> None:
    found = [(pooled._replace(components={"bm25": 0.0}), question) for pooled, question in FOUND]
    assert all(one.score <= 0 for one in rankers[name].scores(Query("***"), found))


@everyone
def test_there_is_an_explanation_for_each_question(rankers: Mapping[str, Reranker], name: str) -> None:
    explained = rankers[name].explain(QUERY, QUESTIONS)
    assert len(explained) == len(QUESTIONS)
    assert explained[0].matches or explained[0].effects
    assert rankers[name].explain(QUERY, []) == []
    assert all(not (one.matches or one.effects) for one in rankers[name].explain(Query("***"), QUESTIONS))
