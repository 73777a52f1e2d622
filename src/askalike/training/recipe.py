"""A recipe: everything that decides how a model is trained, as a file that can be read, kept and cited.

It is a ``Recipe`` of an encoder or a ``SiameseRecipe``; reading one does not need torch.
Settings that cannot be used raise SettingError when they are made.

**Siamese networks.** ::

    ranker = "scqa"     or "dsqa", whose sides share nothing
    reads = "joined"

    [network]           sizes, see ``models.siamese.config``
    [pairs]             the loss, see ``PairOptions``
    [loop]              how it is made smaller, see ``SgdSettings``

Source: Das et al. 2016 (ACL), table 1: batches of 100, learning rate 0.01, momentum 0.05.
Reading: a sample is a question with an answer and a label, and a batch has 100 of them. For each question there is one
positive and one negative: the paper speaks of both kinds and of no ratio.
Reading: the margin "generally varies between 0 to 1", and is not stated; the default is 0. Vectors that are all alike
lose (1 - m) / 2 a sample, and next to nothing leads away from there; a wider margin makes that place cheaper. What
keeps the learning rate of table 1 from leading there is what parameters begin as (``models.siamese.network``, LOG.md).
Reading: a batch's loss is summed in equation 2 and averaged by the library of the authors; the default is the mean,
which dev sets prefer (docs/papers/readings.md).
Reading: the paper does not clip gradients, and its epochs are those that validation is best with.
Differs: there are twelve epochs, and three without a lower loss on pairs that were held out end it. The paper's curve
is flat after 60; here that loss goes on falling a little, and dev MAP falls with it from the tenth epoch on (LOG.md).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from askalike.errors import SettingError
from askalike.models.encoders.settings import (
    EncoderConfig,
    ModelSettings,
    Precision,
    Unknown,
)
from askalike.models.siamese.config import SIAMESE_KINDS, Initial, SiameseConfig, SiameseReads
from askalike.models.vocabulary import Reads
from askalike.settings import check_settings, read_settings, read_table
from askalike.text.settings import TextSettings
from askalike.training.vector_files import VectorFormat

Schedule = Literal["constant", "linear"]
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

    epochs: int = 10
    learning_rate: float = 1e-3
    schedule: Schedule = "constant"
    clip: float = 5.0
    patience: int = 3
    stop_on: str = "mrr"

    def __post_init__(self) -> None:
        check_settings(self)

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

    momentum: float = 0.0


HELD_OUT_LOSS: Final = "held-out loss"
"""The mean loss of the samples of pairs that are never learned from."""

Reduction = Literal["mean", "sum"]
"""What of the samples' losses a step makes smaller."""

Order = Literal["frequency", "shuffled"]
"""How trigrams stand along the vector: the most frequent first, or as the seed shuffles them."""

_NO_CLIP: Final = 1e9


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Of the loss over questions with answers.

    Args:
        batch_size: samples in a batch, half of them positive, half negative; even, ≥ 4.
        margin: m in [0, 1): a cosine up to which another question's answer costs nothing.
        held_out: pairs that are never learned from, to measure the loss on; a tenth of all at most.
        reduction: a batch's loss is the ``mean`` of its samples' or their ``sum``.
    """

    batch_size: int = 100
    margin: float = 0.0
    held_out: int = 2_000
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        check_settings(self)
        if self.batch_size % 2:
            raise SettingError(
                f"batch_size is {self.batch_size}, but expected an even number: half of a batch is positive",
                "set batch_size",
            )


def _loop() -> SgdSettings:
    return SgdSettings(epochs=12, learning_rate=0.01, clip=_NO_CLIP, patience=3, stop_on=HELD_OUT_LOSS, momentum=0.05)


@dataclass(frozen=True, slots=True)
class SiameseRecipe:
    """Everything that decides how a siamese model is trained, but for data and seed.

    Args:
        kernel_width, channels, poolings, output_size, is_shared: of the network, see ``SiameseConfig``.
        reads: title and body of a question as one text, or its title alone.
        min_count: a trigram must occur this often in what is learned from, ≥ 1.
        max_size: at most this many trigrams, the most frequent ones, ≥ 1; None for all.
        order: how trigrams stand: ``frequency`` or ``shuffled``.
        initial: what parameters begin as: ``he`` or ``even``, see ``models.siamese.network``.
        loop: how it is made smaller; ``stop_on`` may be "mrr", where there are dev sets.
    """

    kernel_width: int = 10
    channels: tuple[int, ...] = (8, 8, 8)
    poolings: tuple[int, ...] = (5, 5, 4)
    output_size: int = 128
    is_shared: bool = True
    text: TextSettings = field(default_factory=TextSettings)
    reads: SiameseReads = "joined"
    min_count: int = 1
    max_size: int | None = None
    order: Order = "frequency"
    initial: Initial = "he"
    pairs: PairOptions = field(default_factory=PairOptions)
    loop: SgdSettings = field(default_factory=_loop)

    def __post_init__(self) -> None:
        check_settings(self)
        self.network(1 << 40)  # whatever the vocabulary will be, the rest is checked now

    def network(self, vocabulary_size: int) -> SiameseConfig:
        """Return the network for so many trigrams."""
        return SiameseConfig(
            vocabulary_size,
            kernel_width=self.kernel_width,
            channels=self.channels,
            poolings=self.poolings,
            output_size=self.output_size,
            is_shared=self.is_shared,
        )

    @property
    def ranker(self) -> str:
        """Return the ranker of a forum that the model is."""
        return next(name for name, is_shared in SIAMESE_KINDS.items() if is_shared == self.is_shared)

    def to_json(self) -> str:
        """Return the recipe as text, which several languages alone add to: work that was begun before them goes on."""
        held = asdict(self)
        if not held["text"]["languages"]:
            del held["text"]["languages"]
        return json.dumps(held, sort_keys=True)

    @staticmethod
    def is_meant(stored: Mapping[str, Any]) -> bool:
        """Return whether a TOML file's contents are such a recipe."""
        ranker = stored.get("ranker")
        return isinstance(ranker, str) and ranker in SIAMESE_KINDS

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> SiameseRecipe:
        """Return the recipe of a TOML file's contents; how words are made of text, a forum says.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used; names the place.
        """
        own = {key: value for key, value in stored.items() if key not in ("ranker", "network", "pairs", "loop")}
        sizes = read_table(stored, "network", {})
        for place, names, given in (("top level", _PLAIN, own), ("network", _SIZES, sizes)):
            if unknown := sorted(set(given) - set(names)):
                raise SettingError(f"{place}: {', '.join(unknown)} is unknown, expected only: {', '.join(names)}")
        loop = read_settings(SgdSettings, {**_plain(_loop()), **read_table(stored, "loop", {})}, "loop")
        pairs = read_settings(PairOptions, read_table(stored, "pairs", {}), "pairs")
        is_shared = SIAMESE_KINDS[stored["ranker"]]
        return read_settings(cls, {**own, **sizes, "is_shared": is_shared, "pairs": pairs, "loop": loop}, "recipe")


_PLAIN: Final = ("reads", "min_count", "max_size", "order", "initial")
_SIZES: Final = ("kernel_width", "channels", "poolings", "output_size")


def _plain(settings: SgdSettings) -> dict[str, Any]:
    return {entry.name: getattr(settings, entry.name) for entry in fields(settings)}


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
    batch_size: int = 256
    held_out: int = 2_000

    def __post_init__(self) -> None:
        check_settings(self)
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

    batch_size: int = 25
    negatives: int = 20
    margin: float = 0.2
    drawn_for: DrawnFor = "pair"

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class ContrastiveOptions:
    """Of symmetric InfoNCE.

    Args:
        views: name, see ``View`` → how often an epoch goes over them, ≥ 0; 0.5 takes half of them each time.
        batch_size: pairs of views in a batch, ≥ 2.
        temperature: τ > 0.
        hard_negatives: of each question, at most so many.
        topical: share of the batches that hold questions of one topic, or of few: negatives that are harder to tell
            from the partner than random ones.
    """

    views: Mapping[View, float]
    batch_size: int = 256
    temperature: float = 0.05
    hard_negatives: int = 0
    topical: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)
        if not sum(self.views.values()):
            raise SettingError(f"views {dict(self.views)}, but expected a share above 0", "set a larger share")


@dataclass(frozen=True, slots=True)
class ReconstructionOptions:
    """Of the autoencoder; its decoder follows from the encoder's kind.

    Args:
        batch_size: texts in a batch, ≥ 1.
        held_out: questions that are never learned from, to measure perplexity on; a tenth of all at most.
    """

    batch_size: int = 48
    held_out: int = 2_000

    def __post_init__(self) -> None:
        check_settings(self)


Options: TypeAlias = DecodingOptions | MaxMarginOptions | ContrastiveOptions | ReconstructionOptions

ObjectiveName = Literal["decoding", "max-margin", "contrastive", "reconstruction"]

OBJECTIVES: Final[Mapping[str, type[Options]]] = {
    "decoding": DecodingOptions,
    "max-margin": MaxMarginOptions,
    "contrastive": ContrastiveOptions,
    "reconstruction": ReconstructionOptions,
}
"""Objective → its options."""


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
        vectors: ``word2vec`` (trained on the data), ``random``, or the path of a file of vectors, from where the
            training is started.
        vectors_format: of that file: ``word2vec-text``, ``word2vec-binary`` or ``glove``.
        workers: threads of word2vec; with more than one, no two trainings are equal.
        is_trained: word vectors learn in every stage, or stay fixed.
        unknown: what stands for unknown words.
        weighted: each word's vector is multiplied by its idf in the texts that are learned from, or by 1.
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
    weighted: Weighted = "equally"

    def __post_init__(self) -> None:
        check_settings(self)
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
    dropout: float = 0.1
    needs: Needs = ""
    first_epoch: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
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
        embedding_precision: how the finished model keeps word vectors.
        encoder_precision: how it keeps the encoder's parameters.
        stems: the Snowball language to whose stems words are brought, or "" for words as they are written.
        ranker: the ranker of a forum that the model is for, such as "ramn", or "" for the forum's own model.
        gate_bias: what is added to the first b^λ of a gated RCNN, in [-10, 10]: with 0 λ is about 0.5 at first and a
            state one of its last four words; with 3 it is about 0.95.
        spread: the encoder's first values are even in ± this, biases too; 0 draws them as
            ``models.encoders.networks.encoder`` says.
    """

    encoder: EncoderConfig
    stages: tuple[StageSettings, ...]
    words: WordSettings = field(default_factory=WordSettings)
    reads: Reads = "title and body"
    word_limit: int = 100
    arithmetic: Arithmetic = "float32"
    embedding_precision: Precision = "int8"
    encoder_precision: Precision = "float16"
    stems: str = ""
    ranker: str = ""
    gate_bias: float = 0.0
    spread: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)
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
        return ModelSettings(
            self.encoder,
            self.reads,
            self.word_limit,
            self.words.unknown,
            self.embedding_precision,
            self.encoder_precision,
            self.stems,
        )

    def hard_negatives(self) -> int:
        """Return how many hard negatives of a question some stage takes at most."""
        options = (stage.options for stage in self.stages)
        return max(one.hard_negatives if isinstance(one, ContrastiveOptions) else 0 for one in options)

    def to_json(self) -> str:
        """Return the recipe as text; the same for one that was made before there was a setting."""
        return json.dumps(stored(self) | {"encoder": self.encoder.to_json()}, sort_keys=True)

    @classmethod
    def from_mapping(cls, stored: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a TOML file's contents.

        Raises:
            SettingError: a name that is no setting, or a value that cannot be used; names the place.
        """
        plain = {key: value for key, value in stored.items() if key not in ("words", "encoder", "stage")}
        if "stages" in plain:
            raise SettingError("top level: stages, but expected [[stage]], once for each stage", "correct it")
        words = read_settings(WordSettings, read_table(stored, "words", {}), "words")
        config = read_settings(EncoderConfig, {"input_size": words.size, **read_table(stored, "encoder")}, "encoder")
        stages = stored.get("stage", [])
        if not isinstance(stages, list):
            raise SettingError("[stage] is a single table, but expected a list", "write [[stage]], also for one")
        listed = tuple(_stage(stage, f"stage {place}") for place, stage in enumerate(stages, start=1))
        return read_settings(cls, {**plain, "encoder": config, "words": words, "stages": listed}, "top level")


AnyRecipe = Recipe | SiameseRecipe
"""What a file can hold."""


_LATER: Final[Mapping[str, object]] = {
    "stems": "",
    "ranker": "",
    "gate_bias": 0.0,
    "spread": 0.0,
    "weighted": "equally",
    "drawn_for": "pair",
    "first_epoch": 0,
}
"""Settings that came after the first recipes were stored, with what was done before there was one."""


def stored(part: Any) -> dict[str, Any]:
    """Return a recipe or a part of one as JSON has it; the same for one that was made before there was a setting.

    >>> stored(MaxMarginOptions()), "drawn_for" in stored(MaxMarginOptions(drawn_for="query"))
    ({'batch_size': 25, 'negatives': 20, 'margin': 0.2}, True)
    """
    absent = object()
    return asdict(part, dict_factory=lambda held: {name: one for name, one in held if _LATER.get(name, absent) != one})


def shipped_recipes() -> list[str]:
    """Return the names of the recipes that come with the package."""
    return sorted(found.stem for found in SHIPPED.glob("*.toml"))


def network_recipe(name: str | Path) -> Recipe:
    """Return the recipe of an encoder in a file, or one of those that ship by its name.

    Raises:
        SettingError: there is none, it cannot be used, or it is that of a siamese network.
    """
    found = load_recipe(name)
    if not isinstance(found, Recipe):
        raise SettingError(f"the recipe {str(name)!r} trains no encoder, but {found.ranker}", "name another recipe")
    return found


def load_recipe(name: str | Path) -> AnyRecipe:
    """Return the recipe in a file, or one of those that ship by its name; its contents say which kind it is.

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
        if SiameseRecipe.is_meant(stored):
            return SiameseRecipe.from_mapping(stored)
        if "ranker" in stored and "encoder" not in stored:
            known = ", ".join(sorted(SIAMESE_KINDS))
            raise SettingError(f"no recipe without an encoder has the ranker {stored['ranker']!r}", f"expected {known}")
        return Recipe.from_mapping(stored)
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


def _stage(stored: object, where: str) -> StageSettings:
    if not isinstance(stored, Mapping):
        raise SettingError(f"{where} is {stored!r}, but expected a table", "write [[stage]] and its settings below")
    objective = stored.get("objective")
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise SettingError(f"{where}: objective is {objective!r}, but expected one of: {', '.join(OBJECTIVES)}")
    where = f"{where} ({objective})"
    kind = OBJECTIVES[objective]
    known = {part: [entry.name for entry in fields(part)] for part in (kind, LoopSettings)}
    own = ("objective", "dropout", "needs", "first_epoch")
    if unknown := sorted(set(stored) - {*known[kind], *known[LoopSettings], *own}):
        expected = ", ".join((*own, *known[kind], *known[LoopSettings]))
        raise SettingError(f"{where}: {', '.join(unknown)} is unknown, expected only: {expected}", "correct it")
    options, loop = (
        read_settings(part, {key: stored[key] for key in known[part] if key in stored}, where) for part in known
    )
    plain = {key: stored[key] for key in own if key in stored}
    return read_settings(StageSettings, {**plain, "options": options, "loop": loop}, where)
