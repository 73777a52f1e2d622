"""How a forum's text becomes terms: the choices that are stored with an index, since query and index must agree.

Enters: choices of the user, or what ``to_json`` stored. Leaves: a checked ``TextSettings``.
May import: errors, stop_words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Final

import Stemmer

from askalike.errors import SettingError

__all__ = ["LANGUAGES", "NO_LANGUAGE", "TextSettings"]

LANGUAGES: Final[tuple[str, ...]] = tuple(sorted(Stemmer.algorithms()))
"""Every language for which the installed PyStemmer has a Snowball stemmer."""

NO_LANGUAGE: Final = "none"
"""Stands for any language without a stemmer: words are kept as they are written, all of them."""


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How titles and bodies become index terms.

    Args:
        language: a Snowball stemmer, one of ``LANGUAGES``; or ``NO_LANGUAGE``, for which the two last ones do nothing.
        with_code: index the text of code blocks too.
        stem: bring words to their stem (``mounting`` and ``mounted`` become ``mount``).
        stop_words: drop function words (``the``, ``is``). Languages without a list in ``stop_words.STOP_WORDS``
            drop none.

    Raises:
        SettingError: an unknown language, or a choice of another type.

    >>> TextSettings(language="german").to_json()
    {'language': 'german', 'with_code': True, 'stem': True, 'stop_words': True}
    """

    language: str = "english"
    with_code: bool = True
    stem: bool = True
    stop_words: bool = True

    def __post_init__(self) -> None:
        if self.language not in (NO_LANGUAGE, *LANGUAGES):
            raise SettingError(
                f"text language {self.language!r}, but expected one of: {', '.join(LANGUAGES)}",
                f"choose a listed language, or {NO_LANGUAGE} for any other: words are then read as they are written",
            )
        for name in ("with_code", "stem", "stop_words"):
            value: object = getattr(self, name)
            if not isinstance(value, bool):
                raise SettingError(f"text setting {name} is {value!r}, but expected true or false", f"set {name}")

    def to_json(self) -> dict[str, str | bool]:
        """Return the settings as a flat mapping that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> TextSettings:
        """Return the settings that ``to_json`` stored; settings that are absent take their default.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used.
        """
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(stored) - set(known))
        if unknown:
            raise SettingError(
                f"text settings hold {', '.join(unknown)}, but expected only: {', '.join(known)}",
                "remove the names that are no settings, or use the version of askalike that wrote them",
            )
        return cls(**stored)  # type: ignore[arg-type]  # the types are checked at construction
