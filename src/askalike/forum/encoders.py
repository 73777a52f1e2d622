"""A forum's encoders and reranker, named by its user or given as objects; queries as the encoders read them, and the
words that misspelt ones are corrected by.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from askalike.data import general_words
from askalike.errors import EncoderError
from askalike.files import remove_file, replace_whole, sync_folder
from askalike.index.vector_set import VectorSet
from askalike.models.encoder_settings import PROBED, EncoderSettings, RerankerSettings, read_reranker, read_settings
from askalike.models.text_encoder import TextEncoder
from askalike.models.text_questions import is_same, loaded_reranker, probed_encoder
from askalike.search import Query, Reranker
from askalike.search.correction import KnownWords
from askalike.search.reranker import checked_scores
from askalike.store import ForumLayout, Store
from askalike.text.analyzer import Analyzer
from askalike.text.markup import readable
from askalike.text.tokens import words
from askalike.types import Question

AnyEncoder = TextEncoder | EncoderSettings | str
"""An encoder, or what names one."""

AnyReranker = Reranker | RerankerSettings | str
"""What scores questions beside a query, or what names one."""


class NamedReranker:
    """What puts the best hits of a forum in its order; any thread may ask."""

    def __init__(self, layout: ForumLayout) -> None:
        self._layout = layout
        self._guard = threading.Lock()
        self._object: Reranker | None = None
        self._read: tuple[RerankerSettings, Reranker] | None = None

    def use(self, reranker: AnyReranker | None) -> None:
        """Let a reranker order the best hits, after a first question to it; see ``Models.use_reranker``."""
        if reranker is None:
            self._object = self._read = None
            remove_file(self._layout.reranker)
            sync_folder(self._layout.folder)
            return
        named = RerankerSettings.parse(reranker) if isinstance(reranker, str) else reranker
        scorer = loaded_reranker(named, is_named=True) if isinstance(named, RerankerSettings) else named
        texts = ("Wifi drops every evening", "Wireless goes down at night", "Printer is offline")
        query, *questions = (Question("", text) for text in texts)
        checked_scores(scorer, query, questions)
        with self._guard:
            if isinstance(named, RerankerSettings):
                replace_whole(self._layout.reranker, named.to_bytes())
                self._object, self._read = None, (named, scorer)
            else:
                self._object = scorer

    def get(self) -> Reranker | None:
        """Return the reranker that was given or that the forum names now, None where there is none.

        Raises:
            EncoderError: it cannot be had.
        """
        if self._object is not None:
            return self._object
        named = read_reranker(self._layout.reranker)
        if named is None:
            return None
        with self._guard:
            if self._read is None or self._read[0] != named:
                self._read = (named, loaded_reranker(named, is_named=False))
            return self._read[1]


def take_encoder(encoder: AnyEncoder, before_in: ForumLayout) -> tuple[EncoderSettings, TextEncoder, bool]:
    """Return an encoder for a forum, its settings, and whether they are others than the forum names.

    Raises:
        SettingError: none is named so.
        EncoderError: it cannot be had, or gives no vectors.
    """
    text_encoder: TextEncoder | None = None
    if isinstance(encoder, str):
        wanted = EncoderSettings.parse(encoder)
    elif isinstance(encoder, EncoderSettings):
        wanted = encoder
    else:
        text_encoder, wanted = encoder, EncoderSettings("python", name=encoder.name)
    before = None
    with suppress(EncoderError):  # what is damaged is replaced
        before = read_settings(before_in.encoder)
    loaded_encoder, settings = probed_encoder(wanted, text_encoder)
    if before is not None and _is_same_endpoint(before, settings):
        settings = replace(settings, name=before.name, probe=before.probe)
    return settings, loaded_encoder, settings != before


def _is_same_endpoint(before: EncoderSettings, now: EncoderSettings) -> bool:
    """Return whether an endpoint or a model of fastembed gives the vectors that it gave before, wherever it is now."""
    is_alike = now.kind in PROBED and before.has_same_vectors(now)
    return is_alike and is_same(np.array(now.probe, dtype=np.float32), before.probe)


LEAST_READ: Final = 2_000
MOST_READ: Final = 5_000
LEAST_HAVING: Final = 2
MOST_LETTERS: Final = 48
RECOUNTED: Final = 1_000
"""Changes until the words of a language are counted anew."""
_READ_TOGETHER: Final = 500


class QueryEncoder:
    """``search.Encoder`` through the encoder or model of a set of vectors.

    Args:
        analyzer: the forum's. A query that it makes no term of, or of whose terms the forum's own model knows none, has
            a vector of zeros: it would be as near to one question as to another.
    """

    def __init__(self, vectors: VectorSet, analyzer: Analyzer) -> None:
        self._vectors = vectors
        self._analyzer = analyzer

    def encode(self, queries: Sequence[Query]) -> NDArray[np.float32]:
        """Return the vectors (N, D) of queries, zeros where one has no informative word.

        Raises:
            ModelError: the model cannot be read.
            EncoderError: the encoder cannot be had, does not answer, or gave something else than vectors.
        """
        vectors = np.zeros((len(queries), self._vectors.dimensions), dtype=np.float32)
        places = [place for place, query in enumerate(queries) if self._is_encoded(query) and self._has_terms(query)]
        if places:
            chosen = (queries[place] for place in places)
            vectors[places] = self._vectors.encode_queries(
                [Question("", query.title, query.body, query.markup) for query in chosen]
            )
        return vectors

    def reads(self, query: Query) -> bool:
        """Return whether the query is in a language of the encoder; of the bundled one, by its words too."""
        return self._is_encoded(query) and self._vectors.reads(f"{query.title}\n{query.body}")

    def _is_encoded(self, query: Query) -> bool:
        return self._analyzer.settings.is_encoded(query.language, self._vectors.languages)

    def _has_terms(self, query: Query) -> bool:
        analyzer = self._analyzer.of(query.language)
        whole = Question("", query.title, query.body, query.markup)
        for part in (Question("", query.title), whole):  # the title is mostly enough to see that something is known
            known = self._vectors.known_words(part)
            if known is None:
                prepared = analyzer.prepare(query.title, query.body, query.markup)
                return bool(prepared.title or prepared.body)
            if any(map(analyzer.terms, known)):
                return True
        return False


class LanguageWords:
    """The words of a forum's own questions in a language, counted when first needed.

    A word is one that at least ``LEAST_HAVING`` of up to ``MOST_READ`` questions have, or of as many in the forum's
    other languages: names are the same in all. Where fewer than ``LEAST_READ`` are in the language, too many words have
    been written by nobody yet: those of the bundled encoder's vocabulary are right too, and of another language than
    its own every word is.

    Args:
        language: its code; "" for a forum in one.
        has_vocabulary: the bundled encoder knows its words.
    """

    def __init__(self, store: Store, language: str, *, has_vocabulary: bool = False) -> None:
        self._store, self._language, self._has_vocabulary = store, language, has_vocabulary
        self._guard = threading.Lock()
        self._counted_at = -1
        self._words: KnownWords | None = None

    def known(self) -> KnownWords | None:
        """Return the words; None where they are too few, and the encoder does not know the language's."""
        now = self._store.last_change() // RECOUNTED
        with self._guard:
            if self._counted_at != now:
                self._counted_at, self._words = now, self._counted()
            return self._words

    def _counted(self) -> KnownWords | None:
        numbers = self._store.numbers(languages=(self._language,) if self._language else ())
        vocabulary: Sequence[str] = ()
        if len(numbers) < LEAST_READ:
            vocabulary = general_words() if self._has_vocabulary else ()
            if not vocabulary:
                return None
        known = [*self._frequent_words(numbers), *vocabulary]
        letters = Counter(letter for word in known for letter in word)
        usual = "".join(letter for letter, _ in letters.most_common(MOST_LETTERS))
        others = self._frequent_words(sorted(set(self._store.numbers()).difference(numbers))) if self._language else []
        return KnownWords({word: rank for rank, word in enumerate(dict.fromkeys([*known, *others]))}, usual)

    def _frequent_words(self, numbers: Sequence[int]) -> list[str]:
        """Return the words that enough of some questions have, most frequent first."""
        chosen = numbers[:: math.ceil(len(numbers) / MOST_READ) or 1]
        counts: Counter[str] = Counter()
        for start in range(0, len(chosen), _READ_TOGETHER):
            for question in self._store.questions_by_num(chosen[start : start + _READ_TOGETHER]).values():
                text = f"{question.title}\n{readable(question.body, question.markup, with_code=False)}"
                counts.update({word for word in words(text) if word.isalpha()})
        return [word for word, count in counts.most_common() if count >= LEAST_HAVING]
