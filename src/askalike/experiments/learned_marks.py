"""What a forum's own model has learned from: a score on the same marks says little.

::

    learned.json  {"format": 1, "models": {fingerprint: [ids of the questions whose marks were learned]}}

Enters: a forum's folder, a model's fingerprint, ids. Leaves: ids. May import: archive (its layout), forum, durable,
errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from askalike.archive import Layout
from askalike.durable import replace_whole
from askalike.errors import DamagedForumError
from askalike.forum import Forum
from askalike.forum.model_source import own_model
from askalike.forum.vector_set import parse_current, read_current

__all__ = ["keep_learned", "learned_marks"]

_FORMAT: Final = 1


def keep_learned(forum: Path, model: str, learned: Iterable[str], start: str) -> None:
    """Keep with the forum what a model has learned from, before it is taken; what the one before had learned stays.

    Args:
        model: its fingerprint.
        learned: ids of the questions whose marks it has learned.
        start: fingerprint of the model that it went on from, or ""; what that had learned, it has learned too.

    Raises:
        DamagedForumError: what was kept before cannot be read.
    """
    before = _kept(forum)
    if model in before:
        return
    present = own_model(Layout(forum))
    models = {name: ids for name, ids in before.items() if present is not None and name == present.fingerprint}
    models[model] = sorted({*learned, *before.get(start, ())})
    replace_whole(Layout(forum).learned, json.dumps({"format": _FORMAT, "models": models}).encode())


def learned_marks(forum: Forum) -> frozenset[str]:
    """Return the questions whose marks the model that answers now has learned, as far as they were kept.

    Raises:
        DamagedForumError: what was kept cannot be read.
    """
    folder = Layout(forum.path).vectors
    state = read_current(folder)
    if state is None or not forum.vectors.model:
        return frozenset()
    return frozenset(_kept(forum.path).get(parse_current(state, folder).fingerprint, ()))


def _kept(forum: Path) -> dict[str, list[str]]:
    file = Layout(forum).learned
    try:
        stored = json.loads(file.read_bytes())
        if stored["format"] != _FORMAT:
            raise ValueError(f"format {stored['format']}, but expected {_FORMAT}")
        return {str(name): [str(one) for one in ids] for name, ids in stored["models"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedForumError(
            f"{file} cannot be read: {error}", "take it from a copy, or delete it: what was learned is then not known"
        ) from error
