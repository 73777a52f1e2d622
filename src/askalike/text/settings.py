"""How a forum's text becomes terms: the choices that are stored with an index, since query and index must agree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import Stemmer

from askalike.errors import SettingError
from askalike.settings import check_fields, read_settings
from askalike.text.languages import known_languages

LANGUAGES: Final[tuple[str, ...]] = tuple(sorted(Stemmer.algorithms()))
"""Every language for which the installed PyStemmer has a Snowball stemmer."""

NO_LANGUAGE: Final = "none"
"""Stands for any language without a stemmer: words are kept as they are written, all of them."""

_CODES: Final[Mapping[str, str]] = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""ISO 639-1 code → the name of its stemmer."""

_SUBTAG = re.compile("[-_.@]")


def language_name(code: str) -> str:
    """Return the name of a language that was given by name, ISO 639-1 code, BCP 47 tag or locale; others as they are.

    >>> language_name("de"), language_name("pt-BR"), language_name("German"), language_name("klingon")
    ('german', 'portuguese', 'german', 'klingon')
    """
    name = code.strip().lower()
    if name in (NO_LANGUAGE, *LANGUAGES):
        return name
    return _CODES.get(_SUBTAG.split(name)[0], code)


def stemmer_name(code: str) -> str:
    """Return the name of the stemmer of a language by its code, or ``NO_LANGUAGE``.

    >>> stemmer_name("de"), stemmer_name("ja")
    ('german', 'none')
    """
    return _CODES.get(code, NO_LANGUAGE)


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How titles and bodies become index terms.

    Args:
        language: a Snowball stemmer, one of ``LANGUAGES``, also by its ISO 639-1 code or a tag such as ``de-AT``; or
            ``NO_LANGUAGE``, for which the two last ones do nothing.
        with_code: index the text of code blocks too.
        stem: bring words to their stem (``mounting`` and ``mounted`` become ``mount``).
        stop_words: drop function words (``the``, ``is``). Languages without a list in ``analyzer.STOP_WORDS``
            drop none.
        languages: codes of several languages that the forum is in, the main one first, whose stemmer ``language`` is
            then: each text is read by the rules of its own. Nothing for a forum in one.
        refined: read what Snowball and plain words leave out: the plural of an initialism has the stem of its singular
            (``NFTs`` is ``nft``), and operators that stand alone are words (``!==``).

    >>> TextSettings(language="german").to_json()
    {'language': 'german', 'with_code': True, 'stem': True, 'stop_words': True, 'refined': True}
    """

    language: str = "english"
    with_code: bool = True
    stem: bool = True
    stop_words: bool = True
    languages: tuple[str, ...] = ()
    refined: bool = True

    def __post_init__(self) -> None:
        check_fields(self, "text setting ")
        object.__setattr__(self, "languages", known_languages(self.languages))
        if self.languages:
            object.__setattr__(self, "language", stemmer_name(self.languages[0]))
        if len(self.languages) == 1:
            object.__setattr__(self, "languages", ())
        object.__setattr__(self, "language", language_name(self.language))  # it is stored under one name
        if self.language not in (NO_LANGUAGE, *LANGUAGES):
            raise SettingError(
                f"text language {self.language!r}, but expected one of: {', '.join(LANGUAGES)}",
                f"choose a listed language or its code, such as de; or {NO_LANGUAGE} for any other:"
                " words are then read as they are written",
            )

    @classmethod
    def of(cls, languages: str, *, with_code: bool = True) -> TextSettings:
        """Return the settings of a forum in one language, or in several with commas between, the main one first.

        >>> TextSettings.of("german").languages, TextSettings.of("en, de-AT").languages
        ((), ('en', 'de'))

        Raises:
            SettingError: there is no such language.
        """
        named = [name for part in languages.split(",") if (name := part.strip())] or [languages]
        if len(named) == 1:
            return cls(named[0], with_code)
        return cls(with_code=with_code, languages=tuple(named))

    @property
    def named(self) -> str:
        """Return what ``of`` makes the same languages of."""
        return ",".join(self.languages) or self.language

    @property
    def model_language(self) -> str:
        """Return which of the forum's languages models are looked for: English, for which there are some, or the
        main one."""
        return "english" if self.reads("english") else self.language

    def is_encoded(self, language: str, by: Sequence[str]) -> bool:
        """Return whether an encoder that reads these languages encodes a text in one; () are all.

        A forum in one language is encoded whole, whatever its texts are in.
        """
        return not self.languages or not by or (language or self.languages[0]) in by

    def reads(self, language: str) -> bool:
        """Return whether the forum is in a language, given by its stemmer's name, alone or among others."""
        return language in (self.language, *map(stemmer_name, self.languages))

    def to_json(self) -> dict[str, str | bool | list[str]]:
        """Return the settings as a mapping that JSON can hold; of a forum in one language without ``languages``."""
        values = {name: value for name, value in asdict(self).items() if name != "languages"}
        return values | {"languages": list(self.languages)} if self.languages else values

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> TextSettings:
        """Return the settings that ``to_json`` stored; settings that are absent take their default.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used.
        """
        return read_settings(cls, stored, "text settings")


SNOWBALL: Final = TextSettings(refined=False)
"""English words with Snowball's stems and nothing else, by which the papers' systems are measured."""
