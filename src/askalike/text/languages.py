"""Which language a text is in: by its letters, and by what the forum's other texts are in.

::

    l* = argmax_{l ∈ L} log P(text | l) + log (n(l) + 1) / (Σ n + |L|)

``L`` are the forum's languages, ``n(l)`` how many of its questions are in one. A title is short, and says less than
knowing that nine of ten questions are in English. Where a language that is not the forum's is likelier by more than
``FOREIGN`` nats for each √byte, as of another script, that language is the answer: the text is nobody's here.

Only prose counts, and no more of it than ``MOST_CHARACTERS``: no code, address, path, number or name with signs in it.
A text without any is in no language ("").

Source: Lui and Baldwin 2012, "langid.py: An Off-the-shelf Language Identification Tool" (ACL): naive Bayes over byte
n-grams, through py3langid, which scales its scores by √byte to compare texts of different lengths. Chosen by
``benchmarks.languages``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from askalike.errors import SettingError, optional_module
from askalike.text.markup import readable
from askalike.types import Markup, Question, language_code

_CODES: Final = """
ace af am an ar ary arz as az ba bcl be bg bn br bs ca crh cs cy da de dz el en eo es et eu ext fa fi fo fr fuv fy ga
gcf gcr gd gl gom grc gu gug guw ha hbo he hi hr ht hu hy id ig is it ja jv ka kab kik kk km kn ko ku ky la lb lg lij
ln lo lt ltg lv mg mk ml mn mr ms mt my ne nl nn no nso oc om or pa pcm pl ps pt qu ro ru rw sa sdh se si sk sl sn so
sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz uzs vec vi vo wa wuu xh yo yue zh zu
"""
CODES: Final = frozenset(_CODES.split())
"""The languages that can be told apart: ISO 639-1 codes, where there are such."""

MOST_CHARACTERS: Final = 1_000
FOREIGN: Final = 4.0
"""Of 4,123 titles in a forum's eight languages, one in 200 is above it, most of these in a ninth after all: LOG.md."""

_READ: Final = 4 * MOST_CHARACTERS
_NO_PROSE: Final = re.compile(r"[\d/\\@_=<>{}|$#]|^-")


def known_languages(names: Sequence[str]) -> tuple[str, ...]:
    """Return the codes of a forum's languages, each once, in their order.

    Raises:
        SettingError: one cannot be detected.
    """
    codes = tuple(dict.fromkeys(map(language_code, names)))
    if unknown := [code for code in codes if code not in CODES]:
        raise SettingError(
            f"the forum's language {unknown[0]!r} cannot be detected", f"expected some of: {', '.join(sorted(CODES))}"
        )
    return codes


@cache
def _identifier() -> Any:
    langid = optional_module("py3langid.langid", "a forum in several languages needs py3langid", "languages")
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)


class Detector:
    """Tells the languages of a forum apart. Safe to share between threads.

    Args:
        languages: codes, as ``known_languages`` gives them.
        counts: code → how many of the forum's questions are in it; ``note`` counts another.

    Raises:
        MissingExtraError: of ``language_of``: py3langid is not installed.
    """

    def __init__(self, languages: Sequence[str], counts: Mapping[str, int] | None = None) -> None:
        self._languages = tuple(languages)
        self._counts = Counter({code: (counts or {}).get(code, 0) for code in languages})

    def language_of(self, title: str, body: str = "", markup: Markup = "plain") -> str:
        """Return the code of a text's language; "" where it has no prose."""
        text = prose(title, body, markup)
        if not any(map(str.isalpha, text)):
            return ""
        scores = dict(_identifier().rank(text))
        total = self._counts.total() + len(self._languages)
        here = {code: scores[code] + math.log((self._counts[code] + 1) / total) for code in self._languages}
        best = max(here, key=lambda code: here[code])
        other = max(scores.keys() - here.keys() - {"zxx"}, key=lambda code: scores[code])
        is_foreign = scores[other] - scores[best] > FOREIGN * math.sqrt(len(text.encode(errors="replace")))
        return str(other if is_foreign else best)

    def tag(self, question: Question) -> Question:
        """Return a question with its language, detected where nobody has said it; and count it."""
        if not question.language or question.is_language_detected:
            language = self.language_of(question.title, question.body, question.markup)
            question = replace(question, language=language, is_language_detected=bool(language))
        self.note(question.language)
        return question

    def note(self, language: str) -> None:
        """Count another question in a language."""
        if language in self._counts:
            self._counts[language] += 1


def prose(title: str, body: str = "", markup: Markup = "plain") -> str:
    """Return the beginning of a text without what is no prose.

    >>> prose("Wie starte ich nginx?", "Mit /etc/init.d/nginx nicht:\\n\\n    nginx -t -c new.conf", "markdown")
    'Wie starte ich nginx? Mit nicht:'
    """
    shown = readable(body[:_READ], markup, with_code=False) if body else ""
    pieces = f"{title[:_READ]} {shown}".split()
    return " ".join(piece for piece in pieces if not _NO_PROSE.search(piece))[:MOST_CHARACTERS]
