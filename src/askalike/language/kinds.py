"""The language models that can be learned, by name: what can be chosen of each, and how it is made of what was learned.

Enters: choices, or what ``to_json`` stored. Leaves: checked options, ``QueryModel``. May import: errors, its neighbours
in language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final

from askalike.errors import SettingError
from askalike.language.collection import Collection
from askalike.language.likelihood import QueryModel
from askalike.language.smoothing import Method, QueryLikelihood, Smoothing
from askalike.language.translation import TranslationModel
from askalike.language.translations import Translations
from askalike.language.translm import Mixture, TransLM

__all__ = ["KINDS", "LikelihoodOptions", "Options", "TransLMOptions", "TranslationOptions", "options_of"]


@dataclass(frozen=True, slots=True)
class LikelihoodOptions:
    """Query likelihood, LMIR.

    Args:
        smoothing: ``dirichlet`` or ``jelinek-mercer``.
        weight: its μ or λ.
    """

    smoothing: Method = "dirichlet"
    weight: float = 100.0

    def __post_init__(self) -> None:
        Smoothing(self.smoothing, self.weight)

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return False

    def made(self, collection: Collection, translations: Translations) -> QueryModel:
        """Return the model; translations are not looked at."""
        return QueryLikelihood(collection, Smoothing(self.smoothing, self.weight))


@dataclass(frozen=True, slots=True)
class TranslationOptions:
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
        self.made(Collection.none(), Translations.none())

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return False

    def made(self, collection: Collection, translations: Translations) -> QueryModel:
        """Return the model."""
        return TranslationModel(collection, translations, Smoothing(self.smoothing, self.weight), self.kept)


@dataclass(frozen=True, slots=True)
class TransLMOptions:
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
        self.made(Collection.none(), Translations.none())

    @property
    def reads_answers(self) -> bool:
        """Whether a candidate's best answer is part of it."""
        return self.answer > 0

    def made(self, collection: Collection, translations: Translations) -> QueryModel:
        """Return the model."""
        mixture = Mixture(self.words, self.translations, self.answer)
        return TransLM(collection, translations, Smoothing(self.smoothing, self.weight), mixture)


Options = LikelihoodOptions | TranslationOptions | TransLMOptions

KINDS: Final[Mapping[str, type[Options]]] = {
    "lmir": LikelihoodOptions,
    "translation": TranslationOptions,
    "translm": TransLMOptions,
}
"""Name → its options; all but ``lmir`` learn translations."""


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
        value = stored[entry.name]
        wanted = (int, float) if isinstance(defaults[entry.name], float) else str
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise SettingError(f"{entry.name} is {value!r}, but expected a {type(defaults[entry.name]).__name__}")
    return KINDS[kind](**stored)  # type: ignore[arg-type]  # the types were looked at
