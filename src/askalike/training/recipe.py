"""A recipe: everything that decides how a model is trained, as a file that can be read, kept and cited.

Reading one does not need torch. Settings that cannot be used raise SettingError when they are made.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from msgspec import Meta

from askalike.errors import SettingError
from askalike.models.encoders.settings import EncoderConfig, ModelSettings, Unknown
from askalike.models.vocabulary import Reads
from askalike.settings import BatchSize, BelowOne, Epochs, HeldOut, Size, check_fields, fit, read_settings

Schedule = Literal["constant", "linear"]
_Table = dict[str, Any]
LOWER_IS_BETTER: Final = ("perplexity", "held-out loss")
"""How the names of measures begin of which a lower one is better."""

_WARMUP: Final = 0.05  # share of the steps in which a linear schedule rises


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How an objective is made smaller.

    Args:
        epochs: at most so many, ≥ 1.
        learning_rate: Adam's, or that of SGD.
        schedule: ``constant``, or ``linear``: rises over the first twentieth of all steps, then falls to zero.
        clip: greatest length of the gradient of all parameters together.
        patience: epochs without a better dev measure after which the stage ends; 0 runs all epochs and keeps the last.
        stop_on: the dev measure, higher is better; one whose name begins as ``LOWER_IS_BETTER`` says counts the other
            way.
    """

    epochs: Epochs = 10
    learning_rate: Annotated[float, Meta(ge=1e-12, le=100)] = 1e-3
    schedule: Schedule = "constant"
    clip: Annotated[float, Meta(ge=1e-12, le=1e12)] = 5.0
    patience: Annotated[int, Meta(ge=0, le=100_000)] = 3
    stop_on: str = "mrr"

    def __post_init__(self) -> None:
        check_fields(self)

    def rate(self, done: float) -> float:
        """Return the learning rate when a share ``done`` of all steps, in [0, 1), is done.

        >>> LoopSettings(learning_rate=1.0, schedule="linear").rate(0.525)
        0.5
        """
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * min((done + 1e-9) / _WARMUP, (1 - done) / (1 - _WARMUP))


@dataclass(frozen=True, slots=True)
class SgdSettings(LoopSettings):
    """How an objective is made smaller by stochastic gradient descent (SGD) in place of Adam.

    ::

        m ← μ m + g,   x ← x - η m

    Args:
        momentum: μ in [0, 1).
    """

    momentum: BelowOne = 0.0


Context = Literal["title", "body", "similar"]
CONTEXTS: Final[tuple[Context, ...]] = get_args(Context)
"""What a title is written from: the title itself, the body, the title or body of a labelled duplicate."""

DrawnFor = Literal["pair", "query"]

View = Literal["title-body", "marked", "answers"]
"""Two views of the same thing: title and body, two questions labelled as duplicates, a question and its answer."""


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """Of the encoder-decoder.

    Args:
        contexts: names in ``CONTEXTS``, each once.
        batch_size: titles in a batch, ≥ 1.
        held_out: questions that are never learned from, to measure perplexity on; a tenth of all at most.
    """

    contexts: tuple[Context, ...] = CONTEXTS
    batch_size: BatchSize = 256
    held_out: HeldOut = 2_000

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.contexts or len(set(self.contexts)) != len(self.contexts):
            raise SettingError(f"contexts {list(self.contexts)}, but expected at least one, each once", "set contexts")


@dataclass(frozen=True, slots=True)
class MaxMarginOptions:
    """Of max-margin.

    Args:
        batch_size: pairs in a batch, or queries, ≥ 1.
        negatives: random questions for each pair and epoch, K ≥ 1.
        margin: δ > 0.
        drawn_for: whether each ``pair`` has negatives of its own, or all pairs of a ``query``, which then lie in one
            batch, share them.
    """

    batch_size: BatchSize = 25
    negatives: Annotated[int, Meta(ge=1, le=10_000)] = 20
    margin: Annotated[float, Meta(ge=1e-12, le=1_000)] = 0.2
    drawn_for: DrawnFor = "pair"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class ContrastiveOptions:
    """Of symmetric InfoNCE.

    Args:
        views: name, see ``View`` → how often an epoch goes over them, ≥ 0; 0.5 takes half of them each time.
        batch_size: pairs of views in a batch, ≥ 2.
        temperature: τ > 0.
        max_batches: batches of an epoch at most, drawn by chance from all; 0 takes all.
    """

    views: Mapping[View, Annotated[float, Meta(ge=0, le=1_000)]]
    batch_size: Annotated[int, Meta(ge=2, le=65_536)] = 256
    temperature: Annotated[float, Meta(ge=1e-4, le=1_000)] = 0.05
    max_batches: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not sum(self.views.values()):
            raise SettingError(f"views {dict(self.views)}, but expected a share above 0", "set a larger share")


@dataclass(frozen=True, slots=True)
class ReconstructionOptions:
    """Of the autoencoder; its decoder follows from the encoder's kind.

    Args:
        batch_size: texts in a batch, ≥ 1.
        held_out: questions that are never learned from, to measure perplexity on; a tenth of all at most.
    """

    batch_size: BatchSize = 48
    held_out: HeldOut = 2_000

    def __post_init__(self) -> None:
        check_fields(self)


Options: TypeAlias = DecodingOptions | MaxMarginOptions | ContrastiveOptions | ReconstructionOptions

ObjectiveName = Literal["decoding", "max-margin", "contrastive", "reconstruction"]

OBJECTIVES: Final[Mapping[str, type[Options]]] = {
    "decoding": DecodingOptions,
    "max-margin": MaxMarginOptions,
    "contrastive": ContrastiveOptions,
    "reconstruction": ReconstructionOptions,
}
"""Objective → its options."""

ADAPTING: Final = ("contrastive", "max-margin")
"""Objectives of which the bundled encoder can learn."""

SHIPPED: Final = Path(__file__).parent / "recipes"
"""The recipes that come with the package, one TOML file each."""

Arithmetic = Literal["float32", "bfloat16"]
Weighted = Literal["equally", "by idf"]
Needs = Literal["", "pairs"]


@dataclass(frozen=True, slots=True)
class WordSettings:
    """Vocabulary and word vectors.

    Args:
        max_size: words of the vocabulary, the most frequent, ≥ 1.
        min_count: how often a word must occur, ≥ 1.
        vectors: ``word2vec`` (trained on the data), ``random``, or the path of a text file of vectors, as
            word2vec and GloVe write them, from where the training is started.
        workers: threads of word2vec; with more than one, no two trainings are equal.
        is_trained: word vectors learn in every stage, or stay fixed.
        unknown: what stands for unknown words.
        weighted: each word's vector is multiplied by its idf in the texts that are learned from, or by 1.
    """

    max_size: Annotated[int, Meta(ge=1, le=10_000_000)] = 60_000
    min_count: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 2
    vectors: str = "word2vec"
    size: Size = 200
    epochs: Epochs = 5
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    is_trained: bool = False
    unknown: Unknown = "vector"
    weighted: Weighted = "equally"

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.vectors:
            raise SettingError("vectors is '', but expected word2vec, random, or the path of a file", "set vectors")


@dataclass(frozen=True, slots=True)
class StageSettings:
    """One objective and how it is made smaller.

    Args:
        objective: a name in ``OBJECTIVES``.
        dropout: share of numbers left out, in [0, 1).
        needs: "" or "pairs": the stage is left out where the data has no labelled pairs.
        first_epoch: the first one that may be the best; 0 is the network before the stage.
    """

    objective: ObjectiveName
    options: Options
    loop: LoopSettings = field(default_factory=LoopSettings)
    dropout: BelowOne = 0.1
    needs: Needs = ""
    first_epoch: Annotated[int, Meta(ge=0, le=100)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.options, OBJECTIVES[self.objective]):
            raise SettingError(f"options of {self.objective} are {self.options!r}", "give those of the objective")
        measured = ("mrr", "map", *self._held_out())
        if self.loop.stop_on not in measured and not self.loop.stop_on.endswith((" mrr", " map")):
            expected = ", ".join((*measured, '"NAME mrr"', '"NAME map"'))
            raise SettingError(f"stop_on is {self.loop.stop_on!r}, but expected one of: {expected}", "set stop_on")

    def _held_out(self) -> tuple[str, ...]:
        """Return the measures of held-out texts that the objective has."""
        if isinstance(self.options, DecodingOptions):
            return tuple(f"perplexity from {context}" for context in self.options.contexts)
        return ("perplexity",) if isinstance(self.options, ReconstructionOptions) else ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is trained.

    Args:
        encoder: the network; its ``input_size`` is that of the word vectors.
        stages: one after the other, at least one.
        word_limit: words of a title or body that are read, or of both where they are joined.
        arithmetic: of matrix products in training: ``bfloat16`` is faster where the processor has it.
        stems: the Snowball language to whose stems words are brought, or "" for words as they are written.
        gate_bias: what is added to the first b^λ of a gated RCNN, in [-10, 10]: with 0 λ is about 0.5 at first and a
            state one of its last four words; with 3 it is about 0.95.
        spread: the encoder's first values are even in ± this, biases too; 0 draws them as
            ``models.encoders.networks.encoder`` says.
    """

    encoder: EncoderConfig
    stages: tuple[StageSettings, ...]
    words: WordSettings = field(default_factory=WordSettings)
    reads: Reads = "title and body"
    word_limit: Annotated[int, Meta(ge=1, le=100_000)] = 100
    arithmetic: Arithmetic = "float32"
    stems: str = ""
    gate_bias: Annotated[float, Meta(ge=-10, le=10)] = 0.0
    spread: Annotated[float, Meta(ge=0, le=10)] = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.stages:
            raise SettingError("a recipe without a stage", "add [[stage]] with an objective")
        if self.encoder.input_size != self.words.size:
            raise SettingError(
                f"an encoder of {self.encoder.input_size} numbers a word, but word vectors of {self.words.size}",
                "set both to the same size",
            )
        if self.gate_bias and not self.encoder.gate_size:
            raise SettingError(
                f"gate_bias is {self.gate_bias}, but the encoder {self.encoder.kind} has no gates to learn",
                "leave it out, or take the kind rcnn with the gate vector or scalar",
            )
        self.model_settings()

    def model_settings(self) -> ModelSettings:
        """Return the settings of the model that comes out."""
        return ModelSettings(self.encoder, self.reads, self.word_limit, self.words.unknown, self.stems)

    def to_json(self) -> str:
        """Return the recipe as text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a TOML file's contents.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used; names the place.
        """
        words = read_settings(WordSettings, stored.get("words", {}), "words")
        encoder = {"input_size": words.size, **fit(stored.get("encoder", {}), _Table, "encoder")}
        config = read_settings(EncoderConfig, encoder, "encoder")
        return read_settings(cls, {**_with_stages(stored), "encoder": config, "words": words}, "top level")


@dataclass(frozen=True, slots=True)
class Adaptation:
    """How the bundled encoder is adapted to a forum.

    Args:
        stages: contrastive or max-margin, at least one.
        arithmetic: as of ``Recipe``.
    """

    stages: tuple[StageSettings, ...]
    arithmetic: Arithmetic = "float32"

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.stages or any(stage.objective not in ADAPTING for stage in self.stages):
            raise SettingError(
                f"the bundled encoder is adapted by stages of {' or '.join(ADAPTING)}", "give one or more"
            )

    def to_json(self) -> str:
        """Return the recipe as text."""
        return json.dumps(asdict(self), sort_keys=True)


def shipped_recipes() -> list[str]:
    """Return the names of the recipes that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def network_recipe(name: str | Path) -> Recipe:
    """Return the recipe of a network, as ``read_recipe``.

    Raises:
        SettingError: as ``read_recipe``, or it adapts the bundled encoder.
    """
    recipe = read_recipe(name)
    if isinstance(recipe, Adaptation):
        raise SettingError(f"recipe {name} adapts the bundled encoder and trains no network", "take lei2016")
    return recipe


def read_recipe(name: str | Path) -> Recipe | Adaptation:
    """Return the recipe in a file, or one of those that ship by its name.

    Raises:
        SettingError: there is none, or it cannot be used; names the file.
    """
    path = SHIPPED / f"{name}.toml"
    if not path.is_file() or path.parent != SHIPPED:
        path = Path(name)
    if not path.is_file():
        raise SettingError(
            f"there is no recipe {str(name)!r}", f"give a file, or one of: {', '.join(shipped_recipes())}"
        )
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
        return _adaptation(stored) if "adapts" in stored else Recipe.from_mapping(stored)
    except OSError as error:
        raise SettingError(f"recipe {path} cannot be read: {error.strerror}", "look at its permissions") from error
    except ValueError as error:  # also of a number with too many digits to be read
        raise SettingError(f"recipe {path} is no TOML: {error}", "correct it") from error
    except RecursionError as error:
        raise SettingError(f"recipe {path} nests tables or lists too deeply to be read", "write it flat") from error
    except OverflowError as error:
        raise SettingError(f"recipe {path} has a number that is too large: {error}", "write a smaller one") from error
    except SettingError as error:
        raise SettingError(f"recipe {path}: {error.message}", error.hint) from error


def _adaptation(stored: Mapping[str, Any]) -> Adaptation:
    if stored["adapts"] != "general":
        raise SettingError(f"adapts is {stored['adapts']!r}, but expected general", "correct it")
    return read_settings(Adaptation, {k: v for k, v in _with_stages(stored).items() if k != "adapts"}, "top level")


def _with_stages(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe whose list of tables [[stage]] is read as its stages."""
    if "stages" in stored:
        raise SettingError("top level: stages, but expected [[stage]], once for each stage", "correct it")
    tables = fit(stored.get("stage", []), list[_Table], "stage")
    stages = tuple(_stage(table, f"stage {place}") for place, table in enumerate(tables, start=1))
    return {key: value for key, value in stored.items() if key != "stage"} | {"stages": stages}


def _stage(stored: dict[str, Any], where: str) -> StageSettings:
    """Return the stage of a table, which holds its own settings beside those of its objective and of the loop."""
    objective = fit(stored.get("objective"), ObjectiveName, f"{where}: objective")
    where = f"{where} ({objective})"
    own = ("objective", "dropout", "needs", "first_epoch")
    names = {part: [entry.name for entry in fields(part)] for part in (OBJECTIVES[objective], LoopSettings)}
    known = [*own, *(name for part in names.values() for name in part)]
    if unknown := sorted(set(stored) - set(known)):
        raise SettingError(f"{where}: {', '.join(unknown)} is unknown; known are: {', '.join(known)}", "correct it")
    options, loop = (
        read_settings(part, {name: stored[name] for name in names[part] if name in stored}, where) for part in names
    )
    plain = {name: stored[name] for name in own if name in stored}
    return read_settings(StageSettings, {**plain, "options": options, "loop": loop}, where)
