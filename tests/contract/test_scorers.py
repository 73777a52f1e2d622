"""Laws that every scorer of pairs keeps."""

from __future__ import annotations

import numpy as np
import pytest

from askalike.errors import SettingError
from askalike.evaluation.forum.tasks import SCORERS, JoinedTerms, make_scorer, rerank
from askalike.text.settings import TextSettings
from askalike.types import Question

QUESTIONS = [
    Question("1", "Printer is offline", "It says offline since the update."),
    Question("2", "Router reboots", "Every night the router reboots by itself."),
    Question("3", "Printer prints garbage", "<p>Strange <b>letters</b> on paper</p>", "html"),
    Question("4", "", ""),
]


@pytest.fixture(params=list(SCORERS))
def scorer(request: pytest.FixtureRequest) -> JoinedTerms:
    return make_scorer(request.param, QUESTIONS, TextSettings())


def test_a_batch_gives_what_one_by_one_gives(scorer: JoinedTerms) -> None:
    together = scorer.score(QUESTIONS[0], QUESTIONS)
    alone = [scorer.score(QUESTIONS[0], [question])[0] for question in QUESTIONS]
    assert together.shape == (len(QUESTIONS),)
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_a_question_is_most_similar_to_itself(scorer: JoinedTerms) -> None:
    for place in (0, 1, 2):
        scores = scorer.score(QUESTIONS[place], QUESTIONS)
        assert int(np.argmax(scores)) == place


def test_empty_texts_and_strangers_score_zero(scorer: JoinedTerms) -> None:
    assert scorer.score(QUESTIONS[0], [QUESTIONS[3], Question("5", "completely unrelated zebra")]).tolist() == [0, 0]
    assert scorer.score(QUESTIONS[3], QUESTIONS).tolist() == [0, 0, 0, 0]


def test_no_candidates_give_no_scores(scorer: JoinedTerms) -> None:
    assert scorer.score(QUESTIONS[0], []).shape == (0,)


def test_scores_are_numbers_and_not_negative(scorer: JoinedTerms) -> None:
    for query in QUESTIONS:
        scores = scorer.score(query, QUESTIONS)
        assert np.isfinite(scores).all()
        assert (scores >= 0).all()


def test_re_ranking_keeps_the_candidates_and_their_order(scorer: JoinedTerms) -> None:
    everything = {question.id: question for question in QUESTIONS}
    run = rerank({"1": [("3", 9.0), ("2", 8.0), ("1", 7.0)]}, scorer, everything, everything)
    assert [document for document, _ in run["1"]] == ["3", "2", "1"]
    assert max(run["1"], key=lambda entry: entry[1])[0] == "1"


def test_an_unknown_scorer_is_refused_with_the_choices() -> None:
    with pytest.raises(SettingError, match="bm25, tfidf"):
        make_scorer("magic", QUESTIONS, TextSettings())
