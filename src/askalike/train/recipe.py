"""A recipe: everything that decides how a model is trained, as a file that can be read, kept and cited.

Enters: a TOML file, or the name of one that ships. Leaves: a checked ``Recipe``.
May import: encode's settings, errors, its neighbours in train that need no torch.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from askalike.encode.config import EncoderConfig
from askalike.encode.precision import Precision
from askalike.encode.settings import ModelSettings, Reads, Unknown
from askalike.errors import SettingError
from askalike.train.loop_settings import LoopSettings
from askalike.train.word_vectors.files import VectorFormat

__all__ = ["OBJECTIVES", "SHIPPED", "Recipe", "StageSettings", "WordSettings", "load_recipe"]

SHIPPED: Final = Path(__file__).parent / "recipes"
"""The recipes that come with the package, one TOML file each."""

ObjectiveName = Literal["decoding", "max-margin", "contrastive"]
Arithmetic = Literal["float32", "bfloat16"]

OBJECTIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "decoding": ("batch_size", "contexts", "held_out"),
    "max-margin": ("batch_size", "negatives", "margin"),
    "contrastive": ("batch_size", "views", "temperature", "hard_negatives", "topical"),
}
"""Objective → the options that it knows."""

_Settings = TypeVar("_Settings")


@dataclass(frozen=True, slots=True)
class WordSettings:
    """Vocabulary and word vectors.

    Args:
        max_size: words of the vocabulary, the most frequent, ≥ 1.
        min_count: how often a word must occur.
        vectors: ``word2vec`` (trained on the data), ``random``, or the path of a file of vectors.
        vectors_format: of that file: ``word2vec-text``, ``word2vec-binary`` or ``glove``.
        size: dimensions of a word vector.
        epochs: of word2vec.
        workers: threads of word2vec; with more than one, no two trainings are equal.
        is_trained: word vectors learn in every stage, or stay fixed.
        unknown: what stands for unknown words.
    """

    max_size: int = 60_000
    min_count: int = 2
    vectors: str = "word2vec"
    vectors_format: VectorFormat = "word2vec-text"
    size: int = 200
    epochs: int = 5
    workers: int = 1
    is_trained: bool = False
    unknown: Unknown = "vector"


@dataclass(frozen=True, slots=True)
class StageSettings:
    """One objective and how it is made smaller.

    Args:
        objective: a name in ``OBJECTIVES``.
        loop: epochs, learning rate and so on.
        dropout: share of numbers left out, in [0, 1).
        options: the objective's own.
        needs: "" or "pairs": the stage is left out where the data has no marked pairs.
    """

    objective: ObjectiveName
    loop: LoopSettings = field(default_factory=LoopSettings)
    dropout: float = 0.1
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is trained.

    Args:
        words: vocabulary and word vectors.
        encoder: the network; its ``input_size`` is that of the word vectors.
        stages: one after the other.
        reads: what of a question is encoded.
        word_limit: words of a title or body that are read.
        arithmetic: of matrix products in training: ``bfloat16`` is faster where the processor has it.
        embedding_precision: how the finished model keeps word vectors.
        encoder_precision: how it keeps the encoder's parameters.
    """

    encoder: EncoderConfig
    stages: tuple[StageSettings, ...]
    words: WordSettings = field(default_factory=WordSettings)
    reads: Reads = "title and body"
    word_limit: int = 100
    arithmetic: Arithmetic = "float32"
    embedding_precision: Precision = "int8"
    encoder_precision: Precision = "float16"

    def __post_init__(self) -> None:
        if self.encoder.input_size != self.words.size:
            raise SettingError(
                f"an encoder of {self.encoder.input_size} numbers a word, but word vectors of {self.words.size}",
                "set both to the same size",
            )
        if self.arithmetic not in get_args(Arithmetic):
            raise SettingError(
                f"arithmetic {self.arithmetic!r}, but expected one of: {', '.join(get_args(Arithmetic))}"
            )
        self.model_settings()

    def model_settings(self) -> ModelSettings:
        """Return the settings of the model that comes out."""
        return ModelSettings(
            self.encoder,
            self.reads,
            self.word_limit,
            self.words.unknown,
            self.embedding_precision,
            self.encoder_precision,
        )

    def to_json(self) -> str:
        """Return the recipe as text that is the same for the same recipe."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a TOML file's contents.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used; names the place.
        """
        plain = {key: value for key, value in stored.items() if key not in ("words", "encoder", "stage")}
        words = _made(WordSettings, stored.get("words", {}), "words")
        encoder = stored.get("encoder")
        stages = stored.get("stage", [])
        if not isinstance(encoder, Mapping) or not isinstance(stages, list):
            raise SettingError("a recipe without [encoder], or with a [stage] instead of [[stage]]", "add it")
        config = EncoderConfig.from_json({"input_size": words.size, **encoder})
        made = tuple(_stage(stage, f"stage {place}") for place, stage in enumerate(stages, start=1))
        return _made(cls, {**plain, "encoder": config, "words": words, "stages": made}, "recipe")


def load_recipe(name: str | Path) -> Recipe:
    """Return the recipe in a file, or one of those that ship by its name.

    Raises:
        SettingError: there is none, or it cannot be used; names the file.
    """
    path = SHIPPED / f"{name}.toml"
    if not path.is_file() or path.parent != SHIPPED:
        path = Path(name)
    if not path.is_file():
        shipped = ", ".join(sorted(found.stem for found in SHIPPED.glob("*.toml")))
        raise SettingError(f"there is no recipe {str(name)!r}", f"give a file, or one of: {shipped}")
    try:
        return Recipe.from_mapping(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"recipe {path} is no TOML: {error}", "correct it") from error
    except SettingError as error:
        raise SettingError(f"recipe {path}: {error.message}", error.hint) from error


def _stage(stored: object, where: str) -> StageSettings:
    if not isinstance(stored, Mapping):
        raise SettingError(f"{where} is no table", "write [[stage]] and its settings below")
    objective = stored.get("objective")
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise SettingError(f"{where}: objective {objective!r}, but expected one of: {', '.join(OBJECTIVES)}")
    options = {key: stored[key] for key in OBJECTIVES[objective] if key in stored}
    own = {key: stored[key] for key in ("objective", "dropout", "needs") if key in stored}
    rest = {key: value for key, value in stored.items() if key not in {*options, *own}}
    loop = _made(LoopSettings, rest, f"{where} ({objective})")
    return _made(StageSettings, {**own, "loop": loop, "options": options}, where)


def _made(kind: type[_Settings], stored: Mapping[str, Any], where: str) -> _Settings:
    known = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]  # every kind is a dataclass
    if unknown := sorted(set(stored) - set(known)):
        raise SettingError(f"{where} holds {', '.join(unknown)}, but expected only: {', '.join(known)}", "correct it")
    for name, value in stored.items():
        default = next(entry.default for entry in fields(kind) if entry.name == name)  # type: ignore[arg-type]
        wanted: Any = {bool: bool, int: int, float: (int, float), str: str}.get(type(default))
        if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)):
            raise SettingError(f"{where}: {name} is {value!r}, but expected a {type(default).__name__}", "correct it")
    return kind(**stored)
