"""The parts of a forum's duplicate marks: drawn anew each time until a training keeps them with the forum.

A mark that comes later would otherwise move others from part to part, and a model would be compared by marks that it
has learned. Delete the file, and the parts are drawn anew. ::

    parts.json  {"format": 1, "seed": 0, "parts": {question id: "train", "dev" or "test"}}

Enters: an open forum and its marks. Leaves: ids of each part. May import: archive (its
layout), durable, evaluate, errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from askalike.archive import Layout
from askalike.durable import replace_whole
from askalike.errors import DamagedForumError
from askalike.evaluation import kept_split

__all__ = ["SPLITS", "SPLIT_SEED", "keep_parts", "kept_parts", "split_marks"]

SPLITS: Final[Mapping[str, float]] = {"train": 0.6, "dev": 0.2, "test": 0.2}
"""The parts of a forum's duplicate components and their shares."""

SPLIT_SEED: Final = 0
_FORMAT: Final = 1


def split_marks(forum: Path, pairs: Iterable[tuple[str, str]], seed: int = SPLIT_SEED) -> dict[str, tuple[str, ...]]:
    """Return the questions of each part; those that are kept stay where they are, unless another seed is asked for.

    Raises:
        DamagedForumError: the file that keeps them cannot be read.
    """
    return kept_split(pairs, SPLITS, seed, kept_parts(forum) if seed == SPLIT_SEED else {})


def kept_parts(forum: Path) -> dict[str, str]:
    """Return question → part, as they are kept with the forum; nothing where they are not.

    Raises:
        DamagedForumError: the file cannot be read.
    """
    file = Layout(forum).parts
    try:
        stored = json.loads(file.read_bytes())
        parts = dict(stored["parts"])
        if (stored["format"], stored["seed"]) != (_FORMAT, SPLIT_SEED) or not set(parts.values()) <= set(SPLITS):
            raise ValueError(f"expected format {_FORMAT}, seed {SPLIT_SEED} and the parts {', '.join(SPLITS)}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedForumError(
            f"{file} cannot be read: {error}", "take it from a copy, or delete it to split the duplicates anew"
        ) from error
    return parts


def keep_parts(forum: Path, parts: Mapping[str, str]) -> None:
    """Keep the part of each question with the forum."""
    stored = {"format": _FORMAT, "seed": SPLIT_SEED, "parts": dict(sorted(parts.items()))}
    replace_whole(Layout(forum).parts, json.dumps(stored, indent=1).encode())
