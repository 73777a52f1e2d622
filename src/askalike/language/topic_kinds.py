"""The language models with topics: what can be chosen of each, and how it is made of what was learned.

Enters: choices. Leaves: checked options, ``QueryScorer``. May import: errors, its neighbours in language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from askalike.language.collection import Collection
from askalike.language.kind import Kind
from askalike.language.learned import Learned
from askalike.language.likelihood import QueryScorer
from askalike.language.smoothing import Method, QueryLikelihood, Smoothing
from askalike.language.stand_ins import StandIns, by_topics
from askalike.language.topic_model import TopicModel, TopicScorer
from askalike.language.topic_training import TopicLearning

__all__ = ["TopicOptions"]

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
        _learning(self)

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it: it tells what the candidate is about."""
        return self.answer_weight > 0

    @property
    def topic_learning(self) -> TopicLearning:
        """How topics are learned."""
        return _learning(self)

    def made(self, collection: Collection, learned: Learned) -> QueryScorer:
        """Return the model."""
        words = QueryLikelihood(collection, Smoothing(self.smoothing, self.weight))
        return TopicScorer(TopicModel(words, learned.topics, self.share))

    def stand_ins(self, learned: Learned, asked: Ids, theirs: Ids) -> StandIns:
        """Return the word that is most alike by topics."""
        return by_topics(learned.topics, asked, theirs)


def _learning(options: TopicOptions) -> TopicLearning:
    return TopicLearning(
        options.topics, options.alpha, options.eta, options.answer_weight, options.iterations, options.seed
    )
