"""Topics learned from all answers of a question, each as much as its votes say: SQATM-V as far as it can be had.

::

    v_a     = (1 + max(0, votes of a)) / Σ_{a' of the same question} (1 + max(0, votes of a'))
    n(d, w) = Σ_{a of d} v_a · tf(w, a)                                            for the words of answers

and ``topic_training`` with these counts: what the answers of a question say together counts as one answer, most of it
that which people found good. TBLM_SQATM-V is then ``TopicModel`` with these topics, over a model of words.

Enters: terms of questions and of answers, votes. Leaves: ``Topics``. May import: its neighbours in language.

Source: Zhang, Wu, Wu, Li and Zhou 2014 (CIKM), told from memory: questions and answers share topics and have a language
each, the topics of an answer also decide a signal of its quality, and votes can be that signal.
Differs: there, as in supervised topic models (Blei and McAuliffe 2007), the signal is drawn from the topics, by a
regression that is learned with them. Here votes are weights that are given: an answer that was voted down or passed
over hardly shapes the topics, but no topic is known to be one of good answers. The weights above are a choice of ours,
relative to the question's other answers, since forums vote in different measure; votes below 0 count as 0. A ranker
infers a candidate's topics from its question and its best answer, not from all answers.
Reading: Das et al. 2016 and later papers write TBLM for the score; in Zhang et al. it is taken to be a topic-based
language model. Their equation is not in what could be read; any model of words can stand in ``TopicModel``, query
likelihood or the translation-based language model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.query_likelihood.lists import TermLists
from askalike.models.topics.topic_training import TopicLearning, learn_topics
from askalike.models.topics.topics import Topics

__all__ = ["learn_voted_topics", "vote_weights"]

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def vote_weights(votes: NDArray[np.integer], questions: Ids) -> Floats:
    """Return v_a of each answer; those of a question sum to 1.  # (A,)

    Args:
        votes: of each answer, 0 where it is not known.  # (A,)
        questions: which question each answer is of, ≥ 0.  # (A,)

    Example:
        One question with 5 votes, 1 vote and 2 against: 6/9, 2/9 and 1/9; another with one answer.

        >>> vote_weights(np.array([5, 1, -2, 0]), np.array([0, 0, 0, 1])).round(4).tolist()
        [0.6667, 0.2222, 0.1111, 1.0]
    """
    own = 1.0 + np.maximum(votes, 0)
    return np.asarray(own / np.bincount(questions, weights=own)[questions])


def learn_voted_topics(
    questions: TermLists,
    answers: TermLists,
    answered: Ids,
    votes: NDArray[np.integer],
    size: int,
    settings: TopicLearning,
    report: Callable[[int, float], None] = lambda *_: None,
) -> Topics:
    """Return the topics of questions with all of their answers; the same from the same, in any order of the answers.

    Args:
        questions: N texts.
        answers: A texts.
        answered: which question each answer is of, from 0 to N - 1.  # (A,)
        votes: of each answer.  # (A,)
        size: V, ids of the vocabulary with 0.
        report: as ``learn_topics``.

    Raises:
        SettingError: there are not as many votes or questions as answers, or a question that is not there.
    """
    if not len(answers) == len(answered) == len(votes):
        raise SettingError(
            f"{len(answers)} answers to {len(answered)} questions with {len(votes)} votes", "give one of each"
        )
    if len(answered) and not 0 <= answered.min() <= answered.max() < len(questions):
        raise SettingError(
            f"answers to questions {answered.min()} to {answered.max()} of {len(questions)}", "expected 0 ≤ number < N"
        )
    order = np.argsort(answered, kind="stable")
    texts = np.split(answers.ids, answers.starts[1:-1]) if len(answers) else []
    together = TermLists(
        np.concatenate([np.zeros(0, np.int64), *(texts[place] for place in order.tolist())]),
        np.concatenate([[0], np.cumsum(np.bincount(answered, answers.lengths(), len(questions)))]).astype(np.int64),
    )
    weights = np.repeat(vote_weights(votes, answered)[order], answers.lengths()[order])
    return learn_topics(questions, together, size, settings, weights, report)
