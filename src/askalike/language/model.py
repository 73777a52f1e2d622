"""A learned language model: what it counted and learned, with how it reads texts, as a folder.

::

    config.json           kind, options, how texts become terms
    vocabulary.txt        one term a line; its line is its id
    weights.safetensors   counts (V,) int64; starts (V + 1,) int64, sources (K,) int64 and values (K,) float32 of
                          t(w|u), where there are any
    manifest.json         as every model's

Enters: a folder, or what training has found; questions, answers. Leaves: their terms, ``QueryModel``.
May import: errors, text, types, encode's folder and vocabulary, its neighbours in language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike._version import __version__
from askalike.encode.folder import Contents, read_folder, write_folder
from askalike.encode.manifest import FORMAT, Manifest
from askalike.encode.vocabulary import Vocabulary
from askalike.errors import DamagedModelError, SettingError
from askalike.language.collection import Collection
from askalike.language.kinds import Options, options_of
from askalike.language.likelihood import QueryModel
from askalike.language.terms import term_ids
from askalike.language.translations import Translations
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Question

__all__ = ["LanguageModel", "LanguageSettings", "Reads", "TermReader"]

Reads = Literal["title and body", "title"]
_AGAIN: Final = "take the files of one model from where they came, or train it again"
_TABLE: Final = {"starts": np.dtype(np.int64), "sources": np.dtype(np.int64), "values": np.dtype(np.float32)}


@dataclass(frozen=True, slots=True)
class LanguageSettings:
    """A language model, but for its terms and numbers.

    Args:
        kind: a name in ``KINDS``.
        options: the kind's own.
        reads: what of a question is read.
        text: how it becomes terms.

    Raises:
        SettingError: a value that is not listed, or options of another kind.
    """

    kind: str
    options: Options
    reads: Reads = "title and body"
    text: TextSettings = field(default_factory=TextSettings)

    def __post_init__(self) -> None:
        if self.reads not in get_args(Reads):
            raise SettingError(f"reads is {self.reads!r}, but expected one of: {', '.join(get_args(Reads))}")
        options_of(self.kind, asdict(self.options))

    def to_json(self) -> dict[str, object]:
        """Return the settings as JSON can hold them."""
        return asdict(self) | {"text": self.text.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> LanguageSettings:
        """Return the settings that ``to_json`` stored.

        Raises:
            SettingError: a name too many or too few, or a value that cannot be used.
        """
        kind, options, text = stored.get("kind"), stored.get("options"), stored.get("text")
        is_whole = set(stored) == {"kind", "options", "reads", "text"}
        if not (is_whole and isinstance(kind, str) and isinstance(options, dict) and isinstance(text, dict)):
            raise SettingError(
                f"settings {', '.join(sorted(stored)) or 'none'}, but expected those of a language model: kind, "
                "options, reads and text",
                "name the folder of a language model",
            )
        reads: Reads = stored["reads"]  # type: ignore[assignment]  # looked at where the settings are made
        return cls(kind, options_of(kind, options), reads, TextSettings.from_json(text))


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
        settings: the kind and how texts are read.
        vocabulary: the known terms.
        collection: their counts, (V,).
        translations: t(w|u), (V + 1,) rows; none where the kind learns none.
        origin: what it was trained on.
    """

    def __init__(
        self,
        settings: LanguageSettings,
        vocabulary: Vocabulary,
        collection: Collection,
        translations: Translations,
        origin: Manifest,
    ) -> None:
        self.settings: Final = settings
        self.vocabulary: Final = vocabulary
        self.collection: Final = collection
        self.translations: Final = translations
        self.origin: Final = origin
        self.reader: Final = TermReader(settings.reads, Analyzer(settings.text))
        self.query_model: Final[QueryModel] = settings.options.made(collection, translations)

    @classmethod
    def build(
        cls,
        settings: LanguageSettings,
        vocabulary: Vocabulary,
        collection: Collection,
        translations: Translations | None = None,
        *,
        training_data: str = "",
    ) -> LanguageModel:
        """Return the model of what was counted and learned.

        Args:
            training_data: SHA-256 of the training data, in hexadecimal, or "" when unknown.
        """
        learned = translations or Translations.none(len(vocabulary))
        return cls(settings, vocabulary, collection, learned, Manifest(FORMAT, __version__, training_data))

    @classmethod
    def load(cls, path: Path | str) -> LanguageModel:
        """Return the model in a folder, every file checked.

        Raises:
            ModelNotFoundError: there is no model at ``path``.
            ModelVersionError: it was written by an incompatible version.
            DamagedModelError: a file is damaged, missing, or does not fit the others, or it is another sort of model.
        """
        manifest, contents = read_folder(Path(path))
        try:
            settings = LanguageSettings.from_json(contents.config)
        except SettingError as error:
            raise DamagedModelError(f"{path}: config.json: {error.message}", error.hint) from error
        vocabulary = Vocabulary.from_bytes(contents.vocabulary)
        arrays: dict[str, NDArray[Any]] = dict(contents.arrays)
        if fault := _fault(arrays, len(vocabulary)):
            raise DamagedModelError(f"{path}: weights.safetensors holds {fault}", _AGAIN)
        learned = (
            Translations(arrays["starts"], arrays["sources"].astype(np.int32), arrays["values"])
            if "values" in arrays
            else Translations.none(len(vocabulary))
        )
        return cls(settings, vocabulary, Collection(arrays["counts"]), learned, manifest)

    def save(self, path: Path | str) -> None:
        """Write the model's folder, whole or not at all; the same model gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        arrays: dict[str, NDArray[np.generic]] = {"counts": self.collection.counts}
        if len(self.translations):
            arrays |= {name: getattr(self.translations, name).astype(dtype) for name, dtype in _TABLE.items()}
        write_folder(Path(path), Contents(self.settings.to_json(), self.vocabulary.to_bytes(), arrays), self.origin)

    def question_ids(self, question: Question) -> NDArray[np.int64]:
        """Return the terms of a question as ids, in order and with repetitions.  # (L,)"""
        return term_ids(self.vocabulary, self.reader.question(question))

    def answer_ids(self, answer: Answer) -> NDArray[np.int64]:
        """Return the terms of an answer as ids.  # (L,)"""
        return term_ids(self.vocabulary, self.reader.answer(answer))


def _fault(arrays: Mapping[str, NDArray[Any]], size: int) -> str:
    """Return what is wrong with a file's arrays, or nothing."""
    if set(arrays) not in ({"counts"}, {"counts", *_TABLE}):
        return f"{', '.join(sorted(arrays))[:200]}, but expected counts, and perhaps {', '.join(_TABLE)}"
    counts = arrays["counts"]
    if counts.dtype != np.int64 or counts.shape != (size,) or counts.min() < 0:
        return f"counts {counts.dtype} {counts.shape}, but expected ({size},) whole numbers ≥ 0"
    return _fault_of_table(arrays, size) if "values" in arrays else ""


def _fault_of_table(arrays: Mapping[str, NDArray[Any]], size: int) -> str:
    starts, sources, values = (arrays[name] for name in _TABLE)
    shapes = {"starts": (size + 1,), "sources": (values.size,), "values": (values.size,)}
    for name, dtype in _TABLE.items():
        if arrays[name].dtype != dtype or arrays[name].shape != shapes[name]:
            return f"{name} {arrays[name].dtype} {arrays[name].shape}, but expected {dtype} {shapes[name]}"
    if (starts[0], starts[-1]) != (0, len(values)) or np.diff(starts).min() < 0:
        return f"starts from {starts[0]} to {starts[-1]}, but expected them to rise from 0 to {len(values)}"
    if sources.min() < 1 or sources.max() >= size:
        return f"sources outside the {size - 1} terms of the vocabulary"
    if not ((values > 0) & (values <= 1)).all():
        return "values that are no probabilities"
    return ""
