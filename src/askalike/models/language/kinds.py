"""The language models that can be learned, by name: what can be chosen of each, and how it is made of what was learned.

Enters: choices, or what ``to_json`` stored. Leaves: checked options, ``QueryScorer``. May import: errors, its
neighbours in language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from askalike.errors import SettingError
from askalike.models.language.kind import Kind
from askalike.models.language.learned import Learned
from askalike.models.language.stand_ins import StandIns, by_phrases, by_translations
from askalike.models.language.topic_kinds import TopicOptions, VotedTopicOptions
from askalike.models.query_likelihood.collection import Collection
from askalike.models.query_likelihood.likelihood import ByWords, QueryScorer
from askalike.models.query_likelihood.smoothing import Method, QueryLikelihood, Smoothing
from askalike.models.translation.phrase_learning import PhraseLearning
from askalike.models.translation.phrases import PhraseModel, Segmentation
from askalike.models.translation.translation import TranslationModel
from askalike.models.translation.translm import Mixture, TransLM
from askalike.models.translation.word_links import Heuristic

__all__ = [
    "KINDS",
    "LikelihoodOptions",
    "Options",
    "PhraseOptions",
    "TopicOptions",
    "TransLMOptions",
    "TranslationOptions",
    "VotedTopicOptions",
    "options_of",
]

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LikelihoodOptions(Kind):
    """Query likelihood, LMIR.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ or λ.
    """

    is_aligned: ClassVar[bool] = False

    smoothing: Method = "dirichlet"
    weight: float = 100.0

    def __post_init__(self) -> None:
        Smoothing(self.smoothing, self.weight)

    def made(self, collection: Collection, learned: Learned) -> QueryScorer:
        """Return the model; nothing else that was learned is looked at."""
        return ByWords(QueryLikelihood(collection, Smoothing(self.smoothing, self.weight)))

    def stand_ins(self, learned: Learned, asked: Ids, theirs: Ids) -> StandIns:
        """Return nothing: a word has only itself."""
        return StandIns.none(len(asked))


@dataclass(frozen=True, slots=True)
class TranslationOptions(Kind):
    """The word translation model.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ or λ.
        kept: σ in [0, 1), the share of words that stay as they are.
    """

    smoothing: Method = "jelinek-mercer"
    weight: float = 0.2
    kept: float = 0.0

    def __post_init__(self) -> None:
        self.made(Collection.none(), Learned())

    def made(self, collection: Collection, learned: Learned) -> QueryScorer:
        """Return the model."""
        smoothing = Smoothing(self.smoothing, self.weight)
        return ByWords(TranslationModel(collection, learned.translations, smoothing, self.kept))

    def stand_ins(self, learned: Learned, asked: Ids, theirs: Ids) -> StandIns:
        """Return what translates into each word."""
        return by_translations(learned.translations, asked, theirs)


@dataclass(frozen=True, slots=True)
class TransLMOptions(Kind):
    """TransLM; the weights of its three parts are brought to sum to 1.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ or λ.
        words: α ≥ 0, of the question's own words.
        translations: β ≥ 0, of what they translate into.
        answer: γ ≥ 0, of the best answer's words; 0 reads no answers.
    """

    smoothing: Method = "dirichlet"
    weight: float = 100.0
    words: float = 0.6
    translations: float = 0.4
    answer: float = 0.0

    def __post_init__(self) -> None:
        self.made(Collection.none(), Learned())

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return self.answer > 0

    def made(self, collection: Collection, learned: Learned) -> QueryScorer:
        """Return the model."""
        mixture = Mixture(self.words, self.translations, self.answer)
        return ByWords(TransLM(collection, learned.translations, Smoothing(self.smoothing, self.weight), mixture))

    def stand_ins(self, learned: Learned, asked: Ids, theirs: Ids) -> StandIns:
        """Return what translates into each word."""
        return by_translations(learned.translations, asked, theirs)


@dataclass(frozen=True, slots=True)
class PhraseOptions(Kind):
    """The phrase-based translation model.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ or λ.
        kept: σ in [0, 1], the share of words that stay as they are.
        segmentation: ``best`` or ``sum``, over the ways to cut a query into phrases.
        heuristic, longest, least: how phrases are learned, see ``PhraseLearning``.
    """

    smoothing: Method = "jelinek-mercer"
    weight: float = 0.2
    kept: float = 0.5
    segmentation: Segmentation = "best"
    heuristic: Heuristic = "grow-diag-final"
    longest: int = 3
    least: int = 2

    def __post_init__(self) -> None:
        self.made(Collection.none(), Learned())
        PhraseLearning(self.heuristic, self.longest, self.least)

    @property
    def phrase_learning(self) -> PhraseLearning:
        """How phrases are learned."""
        return PhraseLearning(self.heuristic, self.longest, self.least)

    def made(self, collection: Collection, learned: Learned) -> QueryScorer:
        """Return the model."""
        smoothing = Smoothing(self.smoothing, self.weight)
        return PhraseModel(collection, learned.phrases, smoothing, self.kept, self.segmentation)

    def stand_ins(self, learned: Learned, asked: Ids, theirs: Ids) -> StandIns:
        """Return the phrase that becomes a phrase with each word."""
        return by_phrases(learned.phrases, asked, theirs)


Options = LikelihoodOptions | TranslationOptions | TransLMOptions | PhraseOptions | TopicOptions | VotedTopicOptions

KINDS: Final[Mapping[str, type[Options]]] = {
    "lmir": LikelihoodOptions,
    "translation": TranslationOptions,
    "translm": TransLMOptions,
    "phrase": PhraseOptions,
    "qatm": TopicOptions,
    "sqatm": VotedTopicOptions,
}
"""Name → its options; what each learns it says itself, see ``Kind``."""

_TAKEN: Final[Mapping[type, type | tuple[type, ...]]] = {float: (int, float)}
"""What else than its own type a value may have."""


def options_of(kind: str, stored: Mapping[str, object]) -> Options:
    """Return options that were stored, all of them.

    >>> options_of("lmir", {"smoothing": "dirichlet", "weight": 10.0}).weight
    10.0

    Raises:
        SettingError: there is no such kind, a name is missing or too many, or a value cannot be used.
    """
    if kind not in KINDS:
        raise SettingError(f"there is no language model {kind!r}", f"expected one of {', '.join(KINDS)}")
    defaults = asdict(KINDS[kind]())
    if set(stored) != set(defaults):
        raise SettingError(
            f"options of {kind} are {', '.join(sorted(stored)) or 'none'}, but expected {', '.join(sorted(defaults))}",
            "use those that were saved with the model",
        )
    for entry in fields(KINDS[kind]):
        value, kind_of = stored[entry.name], type(defaults[entry.name])
        if not isinstance(value, _TAKEN.get(kind_of, kind_of)) or isinstance(value, bool):
            raise SettingError(f"{entry.name} is {value!r}, but expected a {kind_of.__name__}")
    return KINDS[kind](**stored)  # type: ignore[arg-type]  # the types were looked at
