"""The recipe of a language model: which, what it reads, how its translations are learned. ::

    ranker = "translm"
    pair_terms = 60

    [options]       what can be chosen of the model, see ``language.kinds``
    [alignment]     how translations are learned, see ``language.ibm1``; not for a kind that learns none

Enters: a TOML file's contents. Leaves: a checked ``LanguageRecipe``. May import: language, errors, its neighbours in
train that need no torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from askalike.errors import SettingError
from askalike.language.ibm1 import Alignment
from askalike.language.kinds import KINDS, Options
from askalike.language.model import Reads
from askalike.language.topic_kinds import TopicOptions
from askalike.models.encoders.settings import check_choice, check_whole
from askalike.training.settings import made, table

__all__ = ["LanguageRecipe"]


@dataclass(frozen=True, slots=True)
class LanguageRecipe:
    """How a language model is learned.

    Args:
        ranker: the ranker of a forum that it is, a name in ``language.kinds.KINDS``.
        options: the kind's own.
        alignment: how translations are learned; None for a kind that learns none, such as ``lmir``.
        reads: what of a question is read.
        min_count: how often a term must occur in questions and best answers together to be known, ≥ 1.
        max_size: terms that are known, the most frequent, ≥ 1.
        pair_terms: of a question and of an answer only so many known terms are aligned, the first, ≥ 1.

    Raises:
        SettingError: a value that cannot be used.
    """

    ranker: str
    options: Options
    alignment: Alignment | None
    reads: Reads = "title and body"
    min_count: int = 1
    max_size: int = 200_000
    pair_terms: int = 60

    def __post_init__(self) -> None:
        check_choice("ranker", self.ranker, KINDS)
        check_choice("reads", self.reads, get_args(Reads))
        for name in ("min_count", "max_size", "pair_terms"):
            check_whole(name, getattr(self, name), 1)

    @staticmethod
    def is_meant(stored: Mapping[str, Any]) -> bool:
        """Return whether a TOML file's contents are such a recipe: a language model by name, and no network."""
        ranker = stored.get("ranker")
        return isinstance(ranker, str) and ranker in KINDS and not {"encoder", "stage", "words"} & set(stored)

    def seeded(self, seed: int) -> LanguageRecipe:
        """Return the recipe with another seed of what is drawn: what topics begin with."""
        options = self.options
        if isinstance(options, TopicOptions):
            return replace(self, options=replace(options, seed=seed))
        return self

    def to_json(self) -> str:
        """Return the recipe as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> LanguageRecipe:
        """Return the recipe of a TOML file's contents.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used; names the place.
        """
        ranker = stored["ranker"]
        learns = KINDS[ranker].is_aligned
        if "alignment" in stored and not learns:
            raise SettingError(f"[alignment] in a recipe of {ranker}, which learns no translations", "take it out")
        options = made(KINDS[ranker], table(stored, "options", {}), "options")
        alignment = made(Alignment, table(stored, "alignment", {}), "alignment") if learns else None
        return made(cls, {**stored, "options": options, "alignment": alignment}, "top level")
