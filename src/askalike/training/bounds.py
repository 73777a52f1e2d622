"""The range of every number of a recipe: beyond it a training could not begin, or would never end.

What does not go together, such as a vector gate of a network that has none, the settings refuse by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from askalike.errors import SettingError

Range = tuple[float, float]
"""The least and the greatest number that is taken; whole numbers where the setting is one."""

_TINIEST: Final = 1e-12
_BELOW_ONE: Final = (0, 0.999)
_SHARE: Final = (0, 1)
_WEIGHT: Final = (0, 1e6)
_SIZE: Final = (1, 4_096)
_BATCH: Final = (1, 65_536)
_ROUNDS: Final = (1, 100_000)
_COUNT: Final = (1, 1_000_000_000)
_HELD_OUT: Final = (0, 10_000_000)

BOUNDS: Final[Mapping[str, Mapping[str, Range]]] = {
    "Recipe": {"word_limit": (1, 100_000)},
    "WordSettings": {
        "max_size": (1, 10_000_000),
        "min_count": _COUNT,
        "size": _SIZE,
        "epochs": _ROUNDS,
        "workers": (1, 256),
    },
    "EncoderConfig": {
        "input_size": _SIZE,
        "hidden_size": _SIZE,
        "order": (1, 64),
        "decay": _BELOW_ONE,
        "layers": (1, 16),
    },
    "StageSettings": {"dropout": _BELOW_ONE},
    "LoopSettings": {
        "epochs": _ROUNDS,
        "learning_rate": (_TINIEST, 100),
        "clip": (_TINIEST, 1e12),
        "patience": (0, 100_000),
    },
    "SgdSettings": {"momentum": _BELOW_ONE},
    "DecodingOptions": {"batch_size": _BATCH, "held_out": _HELD_OUT},
    "MaxMarginOptions": {"batch_size": _BATCH, "negatives": (1, 10_000), "margin": (_TINIEST, 1_000)},
    "ContrastiveOptions": {
        "views": (0, 1_000),
        "batch_size": (2, 65_536),
        "temperature": (1e-4, 1_000),
        "hard_negatives": (0, 1_000),
        "topical": _SHARE,
    },
    "ReconstructionOptions": {"batch_size": _BATCH, "held_out": _HELD_OUT},
    "LanguageRecipe": {"min_count": _COUNT, "max_size": (1, 100_000_000), "pair_terms": (1, 100_000)},
    "Alignment": {"iterations": _ROUNDS, "least": _BELOW_ONE},
    "LikelihoodOptions": {"weight": (_TINIEST, 1e9)},
    "TranslationOptions": {"weight": (_TINIEST, 1e9), "kept": _BELOW_ONE},
    "TransLMOptions": {"weight": (_TINIEST, 1e9), "words": _WEIGHT, "translations": _WEIGHT, "answer": _WEIGHT},
    "PhraseOptions": {"weight": (_TINIEST, 1e9), "kept": _SHARE, "longest": (1, 8), "least": _COUNT},
    "TopicOptions": {
        "weight": (_TINIEST, 1e9),
        "share": (_TINIEST, 1),
        "topics": (1, 10_000),
        "alpha": (_TINIEST, 1e6),
        "eta": (_TINIEST, 1e6),
        "answer_weight": _WEIGHT,
        "iterations": _ROUNDS,
        "seed": (0, 2**32 - 1),
    },
    "VotedTopicOptions": {
        "words": _WEIGHT,
        "translations": _WEIGHT,
        "answer": _WEIGHT,
        "most_answers": (1, 1_000_000),
        "accepted_votes": (0, 1_000_000_000),
    },
    "SiameseRecipe": {
        "kernel_width": (1, 1_000),
        "channels": (1, 1_024),
        "poolings": (1, 100_000),
        "output_size": _SIZE,
        "min_count": _COUNT,
        "max_size": (1, 10_000_000),
    },
    "PairOptions": {"batch_size": (4, 65_536), "margin": _BELOW_ONE, "held_out": _HELD_OUT},
}
"""Name of a class of settings → setting → its range; of a list or table of numbers, that of each. Settings of a class
that a class extends are those of both."""


def bounds_of(kind: type) -> dict[str, Range]:
    """Return the range of each number of a class of settings."""
    return {name: found for base in reversed(kind.__mro__) for name, found in BOUNDS.get(base.__name__, {}).items()}


def check_bounds(kind: type, stored: Mapping[str, object], where: str) -> None:
    """Refuse numbers of a table that are out of range; what is no number is for the settings to refuse.

    Raises:
        SettingError: names the place, the setting, its value and the range.
    """
    for name, (least, most) in bounds_of(kind).items():
        for place, value in _numbers(name, stored.get(name)):
            if not least <= value <= most:  # nan fails too
                expected = f"{least:,} to {most:,}" if isinstance(value, int) else f"{least:g} to {most:g}"
                found = f"{where}: {place} is {_shown(value)}"
                raise SettingError(f"{found}, but expected a number from {expected}", f"set {name}")


def _numbers(name: str, value: object) -> Iterator[tuple[str, int | float]]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value
    elif isinstance(value, list | tuple):
        for place, one in enumerate(value, start=1):
            yield from _numbers(f"{name}, number {place},", one)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _numbers(f"{name}.{key}", one)


def _shown(value: int | float) -> str:
    """Return a number as a message can hold it: TOML allows thousands of digits."""
    return f"{value}" if isinstance(value, float) or abs(value) < 10**30 else "a number of more than 30 digits"
