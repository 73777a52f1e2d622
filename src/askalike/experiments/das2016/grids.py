"""What dev may choose of each language model, and how candidates are scored with a choice.

Policy, in this one place: of all combinations of these values the one with the highest MAP on a set's dev part is taken
for that set, the first of equals; nothing is chosen by a test part. Each seed of a topic model chooses for itself. The
model of word translations is the one that is written, in which no share of the words stays as it is: with such a share,
and without answers of candidates, it would be TransLM.

Enters: nothing. Leaves: lists of options by kind. May import: language.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final, Literal, get_args

from askalike.models.language.kinds import (
    LikelihoodOptions,
    Options,
    PhraseOptions,
    TopicOptions,
    TranslationOptions,
    TransLMOptions,
    VotedTopicOptions,
)
from askalike.models.translation.phrases import Segmentation

__all__ = ["LONGEST", "TOPICS", "grid"]

Method = Literal["dirichlet", "jelinek-mercer"]

FINE: Final[tuple[tuple[Method, float], ...]] = (
    *(("dirichlet", weight) for weight in (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)),
    *(("jelinek-mercer", step / 10) for step in range(1, 10)),
)
COARSE: Final[tuple[tuple[Method, float], ...]] = (
    *(("dirichlet", weight) for weight in (10.0, 30.0, 100.0, 300.0, 1000.0)),
    *(("jelinek-mercer", weight) for weight in (0.1, 0.3, 0.5, 0.7, 0.9)),
)
LONGEST: Final = (2, 3, 4)
TOPICS: Final = (10, 20, 50)


def grid(kind: str, seed: int) -> Iterator[Options]:
    """Yield the options of a kind, those that share what was learned beside each other.

    >>> sum(1 for _ in grid("lmir", 0)), sum(1 for _ in grid("phrase", 0))
    (16, 240)
    """
    if kind == "lmir":
        yield from (LikelihoodOptions(*smoothing) for smoothing in FINE)
    elif kind == "translation":
        yield from (TranslationOptions(*smoothing) for smoothing in FINE)
    elif kind == "translm":
        for smoothing, words in product(COARSE, (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)):
            yield TransLMOptions(*smoothing, words=words, translations=round(1 - words, 2))
    elif kind == "phrase":
        for longest, smoothing, kept, cut in product(LONGEST, COARSE, (0.3, 0.5, 0.7, 0.9), get_args(Segmentation)):
            yield PhraseOptions(*smoothing, kept=kept, segmentation=cut, longest=longest)
    elif kind == "qatm":
        for topics, smoothing, share in product(TOPICS, COARSE, (0.5, 0.7, 0.9)):
            yield TopicOptions(*smoothing, share=share, topics=topics, seed=seed)
    else:
        for topics, smoothing, words, share in product(TOPICS, COARSE, (0.5, 0.8), (0.5, 0.7, 0.9)):
            yield VotedTopicOptions(
                *smoothing, words=words, translations=round(1 - words, 2), share=share, topics=topics, seed=seed
            )
