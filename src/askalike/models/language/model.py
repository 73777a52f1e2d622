"""A learned language model: what it counted and learned, with how it reads texts, as a folder.

::

    config.json           kind, options, how texts become terms
    vocabulary.txt        one term a line; its line is its id
    weights.safetensors   counts (V,) int64                                                       terms of questions
                          starts (V + 1,) int64, sources (K,) int64, values (K,) float32          t(w|u)
                          phrase_keys (P,) int64, phrase_starts (P + 1,) int64,
                          phrase_sources (K,) int64, phrase_values (K,) float32                   P(w|t)
                          topic_questions (V, K) float32, topic_answers (V, K) float32            φ, ψ
    manifest.json         as every model's

What has no number, such as the translations of a forum without answers, has no arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError
from askalike.models.folder import Contents, Manifest, read_model, write_folder
from askalike.models.language.kinds import Learned, Options, WordAlignments, options_of
from askalike.models.language.likelihood import Collection, QueryModel, TermLists, term_ids
from askalike.models.language.phrases import MOST_TERMS, PhraseBook, PhraseTable
from askalike.models.language.topics import Topics
from askalike.models.language.translation import Translations
from askalike.models.vocabulary import Vocabulary
from askalike.settings import check_settings, read_stored
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Question

Reads = Literal["title and body", "title"]
Arrays = Mapping[str, NDArray[Any]]

_AGAIN: Final = "take the files of one model from where they came, or train it again"

_TABLE: Final = {"starts": np.dtype(np.int64), "sources": np.dtype(np.int64), "values": np.dtype(np.float32)}
_KEYS: Final = "phrase_keys"
_PHRASES: Final = "phrase_"
_PHRASE_NAMES: Final = (_KEYS, *(_PHRASES + name for name in _TABLE))
_MARGIN: Final = 1e-3
_TOPIC_NAMES: Final = ("topic_questions", "topic_answers")


@dataclass(frozen=True, slots=True)
class LanguageSettings:
    """A language model, but for its terms and numbers."""

    kind: str
    options: Options
    reads: Reads = "title and body"
    text: TextSettings = field(default_factory=TextSettings)

    def __post_init__(self) -> None:
        check_settings(self)
        options_of(self.kind, asdict(self.options))

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return asdict(self) | {"text": self.text.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> LanguageSettings:
        """Return the settings that ``to_json`` stored."""
        kind, options = stored.get("kind"), stored.get("options")
        if isinstance(kind, str) and isinstance(options, dict):
            stored = {**stored, "options": options_of(kind, options)}
        return read_stored(cls, stored, "settings of a language model")


@dataclass(frozen=True, slots=True)
class TermReader:
    """Questions and answers as terms, the same in training and after."""

    reads: Reads
    analyzer: Analyzer

    def question(self, question: Question) -> list[str]:
        """Return the terms of the title, and of the body where it is read."""
        if self.reads == "title":
            return self.analyzer.terms(question.title)
        prepared = self.analyzer.prepare(question.title, question.body, question.markup)
        return prepared.title + prepared.body

    def answer(self, answer: Answer) -> list[str]:
        """Return the terms of an answer."""
        return self.analyzer.prepare("", answer.body, answer.markup).body


class LanguageModel:
    """What was learned; it does not change, and any number of threads may use it at once.

    Args:
        learned: what else was, as far as the kind learns it.
    """

    def __init__(
        self,
        settings: LanguageSettings,
        vocabulary: Vocabulary,
        collection: Collection,
        learned: Learned,
        origin: Manifest,
    ) -> None:
        self.settings: Final = settings
        self.vocabulary: Final = vocabulary
        self.collection: Final = collection
        self.learned: Final = learned
        self.origin: Final = origin
        self.reader: Final = TermReader(settings.reads, Analyzer(settings.text))
        self.scorer: Final[QueryModel] = settings.options.model(collection, learned)

    @classmethod
    def build(
        cls,
        settings: LanguageSettings,
        vocabulary: Vocabulary,
        collection: Collection,
        learned: Learned | None = None,
        *,
        training_data: str = "",
    ) -> LanguageModel:
        """Return the model of what was counted and learned.

        Args:
            training_data: SHA-256 of the training data, in hexadecimal, or "" when unknown.
        """
        origin = Manifest.of_origin(training_data)
        return cls(settings, vocabulary, collection, learned or Learned.none(len(vocabulary)), origin)

    @classmethod
    def load(cls, path: Path | str) -> LanguageModel:
        """Return the model in a folder, every file checked.

        Raises:
            ModelNotFoundError: there is no model at ``path``.
            ModelVersionError: it was written by an incompatible version.
            DamagedModelError: a file is damaged, missing, or does not fit the others, or it is another sort of model.
        """
        stored = read_model(Path(path), LanguageSettings.from_json)
        settings, size = stored.settings, len(stored.vocabulary)
        arrays: Arrays = stored.arrays
        if fault := _fault(arrays, size, settings.options):
            raise DamagedModelError(f"{path}: weights.safetensors holds {fault}", _AGAIN)
        learned = _learned(arrays, size, settings.options)
        return cls(settings, stored.vocabulary, Collection(arrays["counts"]), learned, stored.manifest)

    def save(self, path: Path | str) -> None:
        """Write the model's folder, whole or not at all; the same model gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        arrays = {"counts": self.collection.counts, **_arrays(self.learned)}
        write_folder(Path(path), Contents(self.settings.to_json(), self.vocabulary.to_bytes(), arrays), self.origin)

    def question_ids(self, question: Question) -> NDArray[np.int64]:
        """Return the terms of a question as ids, in order and with repetitions.  # (L,)"""
        return term_ids(self.vocabulary, self.reader.question(question))

    def answer_ids(self, answer: Answer) -> NDArray[np.int64]:
        """Return the terms of an answer as ids.  # (L,)"""
        return term_ids(self.vocabulary, self.reader.answer(answer))

    def mixtures(self, questions: TermLists, answers: TermLists | None) -> NDArray[np.float64] | None:
        """Return θ of candidates, which does not hang on the query; None where the kind has no topics.  # (N, K)"""
        has_topics = self.settings.options.topic_learning is not None
        return self.learned.topics.mixtures(questions, answers) if has_topics else None

    def word_alignments(self, asked: NDArray[np.int64], theirs: NDArray[np.int64]) -> WordAlignments:
        """Return which words of a candidate each word of a query is matched with, as far as the kind can say.

        Args:
            asked: terms of the query as ids, in order.  # (T,)
            theirs: those of the candidate.  # (U,)
        """
        return self.settings.options.word_alignments(self.learned, asked, theirs)


def _arrays(learned: Learned) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of what is not empty."""
    arrays: dict[str, NDArray[np.generic]] = {}
    if len(learned.translations):
        arrays |= {name: getattr(learned.translations, name).astype(dtype) for name, dtype in _TABLE.items()}
    if len(learned.phrases):
        arrays[_KEYS] = learned.phrases.book.keys
        arrays |= {_PHRASES + name: getattr(learned.phrases, name).astype(dtype) for name, dtype in _TABLE.items()}
    if len(learned.topics.questions) > 1:
        arrays |= dict(zip(_TOPIC_NAMES, (learned.topics.questions, learned.topics.answers), strict=True))
    return arrays


def _learned(arrays: Arrays, size: int, options: Options) -> Learned:
    """Return what ``_arrays`` gave, of arrays in which ``_fault`` finds nothing wrong."""
    translations, phrases, topics = Translations.none(size), PhraseTable.none(size), Topics.none()
    if "values" in arrays:
        translations = Translations(arrays["starts"], arrays["sources"].astype(np.int32), arrays["values"])
    if _KEYS in arrays:
        keys, (starts, sources, values) = arrays[_KEYS], (arrays[_PHRASES + name] for name in _TABLE)
        phrases = PhraseTable(PhraseBook(keys, size, _depth(keys, size)), starts, sources, values)
    if (learning := options.topic_learning) and _TOPIC_NAMES[0] in arrays:
        questions, answers = (arrays[name] for name in _TOPIC_NAMES)
        topics = Topics(questions, answers, learning.alpha, learning.answer_weight)
    return Learned(translations, phrases, topics)


def _fault(arrays: Arrays, size: int, options: Options) -> str:
    """Return what is wrong with a file's arrays, which may be hostile, or nothing."""
    if "counts" not in arrays:
        return f"{', '.join(sorted(arrays))[:200]}, but expected counts"
    counts = arrays["counts"]
    if counts.dtype != np.int64 or counts.shape != (size,) or counts.min() < 0:
        return f"counts {counts.dtype} {counts.shape}, but expected ({size},) whole numbers ≥ 0"
    others = set(arrays) - {"counts"}
    groups = [tuple(_TABLE)]
    groups += [_PHRASE_NAMES] if options.phrase_learning else []
    groups += [_TOPIC_NAMES] if options.topic_learning else []
    held = [group for group in groups if set(group) & others]
    if others != {name for group in held for name in group}:
        expected = ", ".join(name for group in groups for name in group)
        return f"{', '.join(sorted(others))[:200]} beside counts, but expected counts, and perhaps {expected}"
    if "values" in arrays:
        if fault := _fault_of_rows(arrays, "", size):
            return fault
        if arrays["sources"].min() < 1 or arrays["sources"].max() >= size:
            return f"sources outside the {size - 1} terms of the vocabulary"
    if _KEYS in arrays and (fault := _fault_of_phrases(arrays, size)):
        return fault
    learning = options.topic_learning
    return _fault_of_topics(arrays, (size, learning.topics)) if learning and _TOPIC_NAMES[0] in arrays else ""


def _fault_of_topics(arrays: Arrays, shape: tuple[int, int]) -> str:
    for name in _TOPIC_NAMES:
        found = arrays[name]
        if found.dtype != np.float32 or found.shape != shape:
            return f"{name} {found.dtype} {found.shape}, but expected float32 {shape}"
        if not ((found >= 0) & (found <= 1)).all() or found.sum(axis=0, dtype=np.float64).max() > 1 + _MARGIN:
            return f"{name} that are no probabilities of the words of a topic"
    return ""


def _fault_of_phrases(arrays: Arrays, size: int) -> str:
    keys = arrays[_KEYS]
    if keys.dtype != np.int64 or keys.ndim != 1:
        return f"{_KEYS} {keys.dtype} {keys.shape}, but expected one row of int64"
    before = keys // size - 1
    is_rising = bool((np.diff(keys) > 0).all()) and keys[0] > 0 and bool((before < np.arange(len(keys))).all())
    if not is_rising or (keys % size == 0).any() or _depth(keys, size) > MOST_TERMS:
        return (
            f"{_KEYS} that are no phrases of up to {MOST_TERMS} of {size - 1} terms, each with its beginnings before it"
        )
    if fault := _fault_of_rows(arrays, _PHRASES, len(keys)):
        return fault
    sources = arrays[_PHRASES + "sources"]
    if sources.min() < 0 or sources.max() >= len(keys):
        return f"{_PHRASES}sources outside the {len(keys)} phrases"
    return ""


def _fault_of_rows(arrays: Arrays, prefix: str, rows: int) -> str:
    """Return what is wrong with probabilities in rows, but for their sources."""
    starts, _, values = (arrays[prefix + name] for name in _TABLE)
    shapes = {"starts": (rows + 1,), "sources": (values.size,), "values": (values.size,)}
    for name, dtype in _TABLE.items():
        found = arrays[prefix + name]
        if found.dtype != dtype or found.shape != shapes[name]:
            return f"{prefix}{name} {found.dtype} {found.shape}, but expected {dtype} {shapes[name]}"
    if (starts[0], starts[-1]) != (0, len(values)) or np.diff(starts).min() < 0:
        return f"{prefix}starts from {starts[0]} to {starts[-1]}, but expected them to rise from 0 to {len(values)}"
    if not ((values > 0) & (values <= 1)).all():
        return f"{prefix}values that are no probabilities"
    return ""


def _depth(keys: NDArray[np.int64], size: int) -> int:
    """Return how many terms the longest of phrases has; above ``MOST_TERMS`` one more than that."""
    before = np.append(keys // size - 1, -1)  # the last is that of nothing
    places, found = np.arange(len(keys)), 0
    while (places >= 0).any() and found <= MOST_TERMS:
        places, found = before[places], found + 1
    return found
