"""Language models learned from questions and best answers, and their recipes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import structs

from askalike.models.language.kinds import (
    LikelihoodOptions,
    PhraseOptions,
    TopicOptions,
    TranslationOptions,
    TransLMOptions,
    VotedTopicOptions,
)
from askalike.models.language.likelihood import Parallel, TermLists, term_ids
from askalike.models.language.model import LanguageModel
from askalike.models.language.phrases import PhraseLearning
from askalike.models.language.topics import TopicLearning, learn_topics, learn_voted_topics
from askalike.models.language.translation import Alignment, learn_translations
from askalike.progress import SilentProgress
from askalike.text.settings import TextSettings
from askalike.training.corpus import TrainingData
from askalike.training.language import LanguageRecipe, learn_language_model
from askalike.types import Answer, Question

DATA = TrainingData(
    [Question("1", "router drops", "wifi"), Question("2", "printer", "router"), Question("3", "lonely")],
    answers=[
        Answer("a", "1", "change channel"),
        Answer("b", "1", "never read"),
        Answer("c", "2", "channel printer"),
    ],
)


def learned(recipe: LanguageRecipe) -> LanguageModel:
    return learn_language_model(recipe, DATA, TextSettings(stem=False), SilentProgress())


def test_terms_are_counted_over_questions_and_known_of_best_answers_too() -> None:
    model = learned(LanguageRecipe("translm", TransLMOptions(), Alignment(2)))
    # questions: router 2, drops, wifi, printer, lonely; answers: change, channel 2, printer
    counts = dict(zip(model.vocabulary.words, model.collection.counts[1:].tolist(), strict=True))
    assert counts == {
        "channel": 0,
        "printer": 1,
        "router": 2,
        "change": 0,
        "drops": 1,
        "lonely": 1,
        "wifi": 1,
    }
    assert model.origin.training_data == DATA.digest()


def test_translations_are_those_of_both_directions() -> None:
    model = learned(LanguageRecipe("translation", TranslationOptions(), Alignment(3), pair_terms=2))
    read = [("router drops", "change channel"), ("printer router", "channel printer")]
    ids = [[term_ids(model.vocabulary, text.split()) for text in pair] for pair in read]
    pairs = Parallel.of([(first, second) for first, second in ids]).both_ways()
    expected = learn_translations(pairs, len(model.vocabulary), Alignment(3))
    np.testing.assert_array_equal(model.learned.translations.matrix().toarray(), expected.matrix().toarray())


def test_query_likelihood_reads_no_answers() -> None:
    model = learned(LanguageRecipe("lmir", LikelihoodOptions(), None, min_count=2))
    assert model.vocabulary.words == ("router",)
    assert model.collection.counts.tolist() == [4, 2], "at 0 all others together"
    assert len(model.learned.translations) == 0


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_phrases_are_counted_over_pairs_that_are_aligned_both_ways() -> None:
    recipe = LanguageRecipe("phrase", PhraseOptions(least=1, longest=2, heuristic="union"), Alignment(3))
    model = learned(recipe)
    read = [("router drops wifi", "change channel"), ("printer router", "channel printer")]
    pairs = Parallel.of([tuple(term_ids(model.vocabulary, text.split()) for text in pair) for pair in read])
    translations = learn_translations(pairs.both_ways(), len(model.vocabulary), Alignment(3))
    expected = PhraseLearning("union", 2, 1).learned(pairs, translations, len(model.vocabulary))
    assert len(model.learned.phrases) == len(expected) > 0
    np.testing.assert_array_equal(model.learned.phrases.values, expected.values)
    np.testing.assert_array_equal(model.learned.phrases.book.keys, expected.book.keys)
    assert len(model.learned.translations) == 0, "phrases stand for them"


def test_topics_are_those_of_questions_with_their_best_answers() -> None:
    model = learned(LanguageRecipe("qatm", TopicOptions(topics=2, iterations=5), None))
    assert "never" not in model.vocabulary.words, "of the second answer"
    ids = [term_ids(model.vocabulary, text.split()) for text in ("router drops wifi", "printer router", "lonely")]
    answers = [term_ids(model.vocabulary, text.split()) for text in ("change channel", "channel printer", "")]
    settings = TopicLearning(topics=2, iterations=5)
    expected = learn_topics(TermLists.of(ids), TermLists.of(answers), len(model.vocabulary), settings)
    np.testing.assert_array_equal(model.learned.topics.questions, expected.questions)
    np.testing.assert_array_equal(model.learned.topics.answers, expected.answers)
    reseeded = learned(LanguageRecipe("qatm", TopicOptions(topics=2, iterations=5), None).seeded(7))
    assert not np.array_equal(reseeded.learned.topics.questions, expected.questions)


def test_votes_and_acceptance_say_which_answers_shape_topics() -> None:
    options = VotedTopicOptions(topics=2, iterations=5, most_answers=2, accepted_votes=4)
    answers = [
        Answer("a", "1", "change channel", score=1, is_accepted=True),
        Answer("b", "1", "reboot", score=2),
        Answer("c", "1", "left out", score=9),
        Answer("d", "2", "channel printer", score=-3),
    ]
    data = TrainingData(DATA.questions, answers=answers)
    recipe = LanguageRecipe("sqatm", options, Alignment(2))
    model = learn_language_model(recipe, data, TextSettings(stem=False), SilentProgress())
    assert "reboot" in model.vocabulary.words
    assert "left" not in model.vocabulary.words, "of the third answer"
    ids = [term_ids(model.vocabulary, text.split()) for text in ("router drops wifi", "printer router", "lonely")]
    read = [term_ids(model.vocabulary, text.split()) for text in ("change channel", "reboot", "channel printer")]
    given = TermLists.of(ids), TermLists.of(read), np.array([0, 0, 1]), np.array([5, 2, -3])
    expected = learn_voted_topics(*given, len(model.vocabulary), TopicLearning(topics=2, iterations=5))
    np.testing.assert_array_equal(model.learned.topics.answers, expected.answers)
    pairs = Parallel.of([(ids[0], read[0]), (ids[1], read[2])]).both_ways()
    translations = learn_translations(pairs, len(model.vocabulary), Alignment(2))
    np.testing.assert_array_equal(model.learned.translations.values, translations.values)
    liked = TrainingData(DATA.questions, answers=[structs.replace(answers[0], score=7), *answers[1:]])
    assert liked.digest() == data.digest()
    other = learn_language_model(recipe, liked, TextSettings(stem=False), SilentProgress())
    assert other.origin.training_data != model.origin.training_data, "votes are learned from"
