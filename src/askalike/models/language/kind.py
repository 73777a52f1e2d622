"""What every kind of language model says of itself, so that learning, saving and ranking need not know which it is.

Enters: nothing. Leaves: ``Kind``. May import: its neighbours in language.
"""

from __future__ import annotations

from typing import ClassVar

from askalike.models.topics.topic_training import TopicLearning
from askalike.models.translation.phrase_learning import PhraseLearning

__all__ = ["Kind"]


class Kind:
    """What is so of a kind that says nothing else."""

    __slots__ = ()

    is_aligned: ClassVar[bool] = True
    """Whether words of questions and of best answers are aligned by IBM's model 1."""

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return False

    @property
    def phrase_learning(self) -> PhraseLearning | None:
        """How phrases are learned; None where they are not."""
        return None

    @property
    def topic_learning(self) -> TopicLearning | None:
        """How topics are learned; None where they are not."""
        return None

    @property
    def most_answers(self) -> int:
        """How many answers of a question are learned from, the best."""
        return 1

    @property
    def accepted_votes(self) -> int:
        """How many votes it counts that an answer was accepted."""
        return 0
