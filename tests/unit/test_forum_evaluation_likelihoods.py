"""Language models as systems: on tasks small enough to check by hand."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.evaluation.forum.tasks import Likelihoods, RerankTask, likelihood_report
from askalike.models.language.kinds import KINDS, Learned, TopicOptions, TransLMOptions
from askalike.models.language.likelihood import Collection
from askalike.models.language.model import LanguageModel, LanguageSettings
from askalike.models.language.topics import Topics
from askalike.models.language.translation import Translations
from askalike.models.vocabulary import Vocabulary
from askalike.types import Answer, Question

QUERY = Question("q", "slow wifi")
QUESTIONS = [QUERY, Question("a", "slow food"), Question("b", "sluggish wlan"), Question("c", "fast food")]
GIVEN = {"q": [("c", 3.0), ("a", 2.0), ("b", 1.0)]}
DOCUMENTS = {question.id: question for question in QUESTIONS}
TASK = RerankTask("hand", "askubuntu", {"q": QUERY}, DOCUMENTS, GIVEN, GIVEN, {"q": {"b": 1}}, tuple(QUESTIONS))


def model(kind: str = "translm", **options: float) -> LanguageModel:
    words = Vocabulary(["slow", "wifi", "food", "sluggish", "wlan", "fast"])
    learned = Translations.of(np.array([1, 2]), np.array([4, 5]), np.array([0.9, 0.9]), 7)  # slow, wifi
    settings = LanguageSettings(kind, KINDS[kind](**options))
    ids = {word: words.ids([word])[0] for word in words.words}
    assert ids["sluggish"] == 4
    return LanguageModel.build(settings, words, Collection(np.array([0, 2, 1, 2, 1, 1, 1])), Learned(learned))


@pytest.fixture
def stemless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the words be their own stems."""
    monkeypatch.setattr("askalike.text.analyzer.Analyzer._stemmed", lambda _, word: [word])


@pytest.mark.usefixtures("stemless")
def test_candidates_keep_their_order_and_translations_decide() -> None:
    system = Likelihoods(model())
    run = system.rerank(TASK)
    assert [document for document, _ in run["q"]] == ["c", "a", "b"]
    scores = dict(run["q"])
    assert scores["b"] > scores["a"] > scores["c"] > 0
    assert likelihood_report(TASK, model()).means["mrr"] == 1.0
    assert likelihood_report(TASK, model("lmir")).means["mrr"] == pytest.approx(1 / 3), (
        "b shares no word: with c, which was first"
    )


@pytest.mark.usefixtures("stemless")
def test_answers_are_read_where_the_model_reads_them() -> None:
    answers = {"c": [Answer("x", "c", "slow wifi"), Answer("y", "c", "not read")]}
    options = {"words": 0.3, "translations": 0.3, "answer": 0.4}
    assert TransLMOptions(**options).reads_answers  # type: ignore[arg-type]
    system = Likelihoods(model(**options), lambda identifier: answers.get(identifier, []))
    without = Likelihoods(model(**options))
    with_answer, plain = (one.scores(QUERY, [DOCUMENTS["c"]])[0] for one in (system, without))
    assert with_answer > plain


@pytest.mark.usefixtures("stemless")
def test_topics_are_another_way_from_word_to_word() -> None:
    words = model().vocabulary
    held = np.array([[0, 0], [0.3, 0], [0.3, 0], [0, 0.5], [0.2, 0], [0.2, 0], [0, 0.5]], np.float32)
    settings = LanguageSettings("qatm", TopicOptions(topics=2, share=0.5))
    counted = Collection(np.array([0, 2, 1, 2, 1, 1, 1]))
    made = LanguageModel.build(settings, words, counted, Learned(topics=Topics(held, held, alpha=0.1)))
    system = Likelihoods(made)
    scores = dict(system.rerank(TASK)["q"])
    assert scores["b"] > scores["c"], "which shares no word either"
