"""What a training keeps with a forum so that an evaluation after it is honest: the splits, and what was learned.

Splits are drawn anew each time until a training keeps them: a link that comes later would otherwise move others from
split to split, and a model would be compared by links that it has learned. ::

    parts.json    {"format": 1, "seed": 0, "parts": {question id: "train", "dev" or "test"}}
    learned.json  {"format": 1, "models": {fingerprint: [ids of the questions whose links were learned]}}

Without the first file the splits are drawn anew; without the second, what the forum's model has learned is not known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from askalike.errors import DamagedForumError
from askalike.evaluation import kept_split
from askalike.files import replace_whole
from askalike.forum import Forum
from askalike.index.model_source import own_model
from askalike.index.vector_set import parse_current, read_current
from askalike.store import ForumLayout

SPLITS: Final[Mapping[str, float]] = {"train": 0.6, "dev": 0.2, "test": 0.2}
"""The splits of a forum's duplicate components and their shares."""

SPLIT_SEED: Final = 0
_FORMAT: Final = 1

_Found = TypeVar("_Found")


def split_links(forum: Path, pairs: Iterable[tuple[str, str]], seed: int = SPLIT_SEED) -> dict[str, tuple[str, ...]]:
    """Return the questions of each split; those that are kept stay where they are, unless another seed is asked for.

    Raises:
        DamagedForumError: the file that keeps them cannot be read.
    """
    return kept_split(pairs, SPLITS, seed, kept_splits(forum) if seed == SPLIT_SEED else {})


def kept_splits(forum: Path) -> dict[str, str]:
    """Return question → split, as they are kept with the forum; nothing where they are not.

    Raises:
        DamagedForumError: the file cannot be read.
    """

    def parsed(stored: Any) -> dict[str, str]:
        found = dict(stored["parts"])
        if (stored["format"], stored["seed"]) != (_FORMAT, SPLIT_SEED) or not set(found.values()) <= set(SPLITS):
            raise ValueError(f"expected format {_FORMAT}, seed {SPLIT_SEED} and the splits {', '.join(SPLITS)}")
        return found

    return _read(ForumLayout(forum).parts, parsed, "delete it to split the duplicates anew")


def keep_splits(forum: Path, splits: Mapping[str, str]) -> None:
    """Keep the split of each question with the forum."""
    stored = {"format": _FORMAT, "seed": SPLIT_SEED, "parts": dict(sorted(splits.items()))}
    replace_whole(ForumLayout(forum).parts, json.dumps(stored, indent=1).encode())


def learned_questions(forum: Forum) -> frozenset[str]:
    """Return the questions whose links the model that answers now has learned, as far as they were kept.

    Raises:
        DamagedForumError: what was kept cannot be read.
    """
    folder = ForumLayout(forum.path).vectors
    state = read_current(folder)
    if state is None or not forum.vectors.model:
        return frozenset()
    return frozenset(_kept_learned(forum.path).get(parse_current(state, folder).fingerprint, ()))


def keep_learned(forum: Path, model: str, learned: Iterable[str], start: str) -> None:
    """Keep with the forum what a model has learned from, before it is taken; what the one before had learned stays.

    Args:
        model: its fingerprint.
        learned: ids of the questions whose links it has learned.
        start: fingerprint of the model that it went on from, or ""; what that had learned, it has learned too.

    Raises:
        DamagedForumError: what was kept before cannot be read.
    """
    before = _kept_learned(forum)
    if model in before:
        return
    present = own_model(ForumLayout(forum))
    models = {name: ids for name, ids in before.items() if present is not None and name == present.fingerprint}
    models[model] = sorted({*learned, *before.get(start, ())})
    replace_whole(ForumLayout(forum).learned, json.dumps({"format": _FORMAT, "models": models}).encode())


def _kept_learned(forum: Path) -> dict[str, list[str]]:
    def parsed(stored: Any) -> dict[str, list[str]]:
        if stored["format"] != _FORMAT:
            raise ValueError(f"format {stored['format']}, but expected {_FORMAT}")
        return {str(name): [str(one) for one in ids] for name, ids in stored["models"].items()}

    return _read(ForumLayout(forum).learned, parsed, "delete it: what was learned is then not known")


def _read(file: Path, parsed: Callable[[Any], dict[str, _Found]], instead: str) -> dict[str, _Found]:
    """Return the parsed file; nothing where there is none."""
    try:
        return parsed(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedForumError(f"{file} cannot be read: {error}", f"restore it from a backup, or {instead}") from error
