"""From the library's values to what the service answers."""

from __future__ import annotations

from typing import Final

from askalike.server.highlights import highlights
from askalike.server.safe_html import safe_html
from askalike.server.schemas import (
    AnswerView,
    AttendedView,
    Brief,
    FeedbackView,
    HighlightsView,
    HitView,
    LikelihoodView,
    LikelihoodWord,
    MatchView,
    QuestionView,
    ViaView,
    WordEffectView,
    WordMatchView,
    WordWeightView,
)
from askalike.text.analyzer import Analyzer
from askalike.text.markup import excerpt, plain_text
from askalike.types import Answer, Explanation, Feedback, Hit, Question
from askalike.wire import answer_object, explanation_object, moment_text, question_object

EXCERPT_CHARACTERS = 280
READ_CHARACTERS = 20_000
"""Only so much of a body is read for its excerpt."""

WORDS: Final[tuple[tuple[float, LikelihoodWord], ...]] = (
    (0.9, "almost certain"),
    (0.6, "likely"),
    (0.3, "possible"),
    (0.0, "unlikely"),
)
"""From which likelihood on which word says it."""


def likelihood_view(value: float | None) -> LikelihoodView:
    """Return how likely a pair asks the same, in a word and a number.

    >>> [likelihood_view(value).word for value in (0.93, 0.7, 0.05, None)]
    ['almost certain', 'likely', 'unlikely', 'unknown']
    """
    if value is None:
        return LikelihoodView(None, "unknown")
    return LikelihoodView(value, next((word for least, word in WORDS if value >= least), "unlikely"))


def question_view(question: Question) -> QuestionView:
    """Return a question as it is held."""
    return QuestionView(**question_object(question))


def answer_view(answer: Answer) -> AnswerView:
    """Return an answer, ready to be shown."""
    html, text = safe_html(answer.body, answer.markup), plain_text(answer.body, answer.markup)
    return AnswerView(**answer_object(answer), html=html, text=text)


def hit_view(hit: Hit, analyzer: Analyzer) -> HitView:
    """Return a hit with its highlights and its best answer."""
    shown = _excerpt(hit.question)
    return HitView(
        rank=hit.rank,
        score=hit.score,
        likelihood=likelihood_view(hit.likelihood),
        components=dict(hit.components),
        matched=[MatchView(one.word, one.field, one.weight) for one in hit.matched],
        missing=list(hit.missing),
        highlights=HighlightsView(
            highlights(hit.question.title, hit.matched, analyzer), highlights(shown, hit.matched, analyzer)
        ),
        question=question_view(hit.question),
        excerpt=shown,
        best_answer=answer_view(hit.answer) if hit.answer else None,
        answers=hit.answer_count,
        via=ViaView(hit.via.id, hit.via.title) if hit.via else None,
        attended=attended_view(hit.explanation) if hit.explanation else None,
    )


def attended_view(explanation: Explanation) -> AttendedView:
    """Return how much each word counts."""
    found = explanation_object(explanation)
    title, body, hit = (
        [WordWeightView(**one) for one in found[name]] for name in ("query_title", "query_body", "title")
    )
    matches = [WordMatchView(**one) for one in found["matches"]]
    return AttendedView(title, body, hit, matches, [WordEffectView(**one) for one in found["effects"]])


def brief(question: Question, answers: int) -> Brief:
    """Return a question as lists show it."""
    found = question_object(question)
    return Brief(
        **{name: found[name] for name in ("id", "title", "created", "score", "url", "tags")},
        answers=answers,
        excerpt=_excerpt(question),
    )


def feedback_view(feedback: Feedback) -> FeedbackView:
    """Return a verdict that was stored."""
    return FeedbackView(
        feedback.question_id, feedback.candidate_id, feedback.verdict, feedback.by, moment_text(feedback.at) or ""
    )


def _excerpt(question: Question) -> str:
    return excerpt(plain_text(question.body[:READ_CHARACTERS], question.markup), EXCERPT_CHARACTERS)
