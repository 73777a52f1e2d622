"""The language models with topics: what can be chosen of each, and how it is made of what was learned.

Enters: choices. Leaves: checked options, ``QueryScorer``. May import: errors, its neighbours in language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.language.kind import Kind
from askalike.models.language.learned import Learned
from askalike.models.language.stand_ins import StandIns, by_topics, by_translations
from askalike.models.query_likelihood.collection import Collection
from askalike.models.query_likelihood.likelihood import QueryScorer
from askalike.models.query_likelihood.smoothing import Method, QueryLikelihood, Smoothing
from askalike.models.topics.topic_model import TopicModel, TopicScorer
from askalike.models.topics.topic_training import TopicLearning
from askalike.models.translation.translm import Mixture, TransLM

__all__ = ["TopicOptions", "VotedTopicOptions"]

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TopicOptions(Kind):
    """Query likelihood beside the topics of questions and their answers, QATM.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ or λ.
        share: in (0, 1], that of the words beside the topics.
        topics, alpha, eta, answer_weight, iterations, seed: how topics are learned, see ``TopicLearning``; with an
            ``answer_weight`` of 0 no answers are read.
    """

    is_aligned: ClassVar[bool] = False

    smoothing: Method = "jelinek-mercer"
    weight: float = 0.7
    share: float = 0.7
    topics: int = 50
    alpha: float = 0.1
    eta: float = 0.01
    answer_weight: float = 1.0
    iterations: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        self.made(Collection.none(), Learned())
        self.topic_learning  # noqa: B018 - looks at its settings

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it: it tells what the candidate is about."""
        return self.answer_weight > 0

    @property
    def topic_learning(self) -> TopicLearning:
        """How topics are learned."""
        return TopicLearning(self.topics, self.alpha, self.eta, self.answer_weight, self.iterations, self.seed)

    def made(self, collection: Collection, learned: Learned) -> QueryScorer:
        """Return the model."""
        words = QueryLikelihood(collection, Smoothing(self.smoothing, self.weight))
        return TopicScorer(TopicModel(words, learned.topics, self.share))

    def stand_ins(self, learned: Learned, asked: Ids, theirs: Ids) -> StandIns:
        """Return the word that is most alike by topics."""
        return by_topics(learned.topics, asked, theirs)


@dataclass(frozen=True, slots=True)
class VotedTopicOptions(TopicOptions):
    """TransLM beside the topics of questions and of all their answers by votes: TBLM_SQATM-V, see ``sqatm``.

    Args:
        share: in (0, 1], that of TransLM beside the topics.
        answer_weight: and the other settings of topics, as those of ``TopicOptions``; with ``answer`` and this of 0 a
            candidate's answer is not read.
        words, translations, answer: α, β, γ ≥ 0 of TransLM.
        most_answers: topics are learned from so many answers of a question, the best, ≥ 1.
        accepted_votes: how many votes it counts that an answer was accepted, ≥ 0.
    """

    is_aligned: ClassVar[bool] = True

    weight: float = 0.5
    words: float = 0.6
    translations: float = 0.4
    answer: float = 0.0
    most_answers: int = 10
    accepted_votes: int = 3

    def __post_init__(self) -> None:
        TopicOptions.__post_init__(self)  # a class with slots is made twice, and super() knows the first
        if self.most_answers < 1 or self.accepted_votes < 0:
            raise SettingError(
                f"most_answers is {self.most_answers} and accepted_votes {self.accepted_votes}",
                "expected most_answers ≥ 1 and accepted_votes ≥ 0",
            )

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return self.answer > 0 or self.answer_weight > 0

    def made(self, collection: Collection, learned: Learned) -> QueryScorer:
        """Return the model."""
        mixture = Mixture(self.words, self.translations, self.answer)
        words = TransLM(collection, learned.translations, Smoothing(self.smoothing, self.weight), mixture)
        return TopicScorer(TopicModel(words, learned.topics, self.share))

    def stand_ins(self, learned: Learned, asked: Ids, theirs: Ids) -> StandIns:
        """Return what translates into each word, and where nothing does, the word that is most alike by topics."""
        return by_translations(learned.translations, asked, theirs).or_else(by_topics(learned.topics, asked, theirs))
