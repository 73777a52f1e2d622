"""A learned language model: what it counted and learned, with how it reads texts, as a folder.

::

    config.json           kind, options, how texts become terms
    vocabulary.txt        one term a line; its line is its id
    weights.safetensors   counts (V,) int64, and the arrays of what else was learned, see ``learned``
    manifest.json         as every model's

Enters: a folder, or what training has found; questions, answers. Leaves: their terms, ``QueryScorer``.
May import: errors, text, types, encode's folder and vocabulary, its neighbours in language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from askalike.errors import DamagedModelError, SettingError
from askalike.language.collection import Collection
from askalike.language.kinds import Options, options_of
from askalike.language.learned import Learned
from askalike.language.likelihood import QueryScorer
from askalike.language.lists import TermLists
from askalike.language.stand_ins import StandIns
from askalike.language.terms import term_ids
from askalike.models.encoders.folder import Contents, Manifest, read_model, write_folder
from askalike.models.encoders.vocabulary import Vocabulary
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Answer, Question

__all__ = ["LanguageModel", "LanguageSettings", "Reads", "TermReader"]

Reads = Literal["title and body", "title"]
_AGAIN: Final = "take the files of one model from where they came, or train it again"


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
        learned: what else was, as far as the kind learns it.
        origin: what it was trained on.
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
        self.scorer: Final[QueryScorer] = settings.options.made(collection, learned)

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
        arrays: dict[str, NDArray[Any]] = dict(stored.arrays)
        if fault := _fault(arrays, size, settings.options):
            raise DamagedModelError(f"{path}: weights.safetensors holds {fault}", _AGAIN)
        learned = Learned.from_arrays(arrays, size, settings.options)
        return cls(settings, stored.vocabulary, Collection(arrays["counts"]), learned, stored.manifest)

    def save(self, path: Path | str) -> None:
        """Write the model's folder, whole or not at all; the same model gives the same bytes.

        Raises:
            ModelExistsError: there is something else than a model at ``path``.
            ModelError: it cannot be written.
        """
        arrays = {"counts": self.collection.counts, **self.learned.to_arrays()}
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

    def stand_ins(self, asked: NDArray[np.int64], theirs: NDArray[np.int64]) -> StandIns:
        """Return which words of a candidate stand for each word of a query, as far as the kind can say.

        Args:
            asked: terms of the query as ids, in order.  # (T,)
            theirs: those of the candidate.  # (U,)
        """
        return self.settings.options.stand_ins(self.learned, asked, theirs)


def _fault(arrays: Mapping[str, NDArray[Any]], size: int, options: Options) -> str:
    """Return what is wrong with a file's arrays, or nothing."""
    others = {name: array for name, array in arrays.items() if name != "counts"}
    if "counts" not in arrays:
        return f"{', '.join(sorted(arrays))[:200]}, but expected counts"
    counts = arrays["counts"]
    if counts.dtype != np.int64 or counts.shape != (size,) or counts.min() < 0:
        return f"counts {counts.dtype} {counts.shape}, but expected ({size},) whole numbers ≥ 0"
    return Learned.fault(others, size, options)
