"""The rankers that a forum has learned: read when they are first asked for, and again when they were trained anew.

Enters: a forum's layout. Leaves: ``rank.Reranker``. May import: archive, encode, rank, its own folder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from askalike.archive import Layout
from askalike.encode.layout import Layout as ModelLayout
from askalike.encode.model import Model
from askalike.forum.states import ModelStates
from askalike.rank import Reranker
from askalike.rank.ramn import RamnReranker
from askalike.rank.settings import SearchSettings

__all__ = ["Rerankers"]


def _ramn(folder: Path, settings: SearchSettings) -> Reranker:
    return RamnReranker(ModelStates(Model.load(folder)), settings.ramn)


MAKERS: Mapping[str, Callable[[Path, SearchSettings], Reranker]] = {"ramn": _ramn}
"""Name → what reads its folder; one for each of ``rank.RERANKERS``."""


class Rerankers:
    """A forum's learned rankers by name."""

    def __init__(self, layout: Layout, settings: SearchSettings) -> None:
        self._layout = layout
        self._settings = settings
        self._guard = threading.Lock()
        self._read: dict[str, tuple[bytes, Reranker]] = {}

    def get(self, name: str) -> Reranker | None:
        """Return a ranker as it is on disk now, None where the forum has not learned it.

        Raises:
            ModelError: its model cannot be read.
        """
        folder = self._layout.ranker(name)
        try:
            state = ModelLayout(folder).manifest.read_bytes()
        except FileNotFoundError:
            return None
        with self._guard:
            held = self._read.get(name)
            if held is None or held[0] != state:
                held = self._read[name] = (state, MAKERS[name](folder, self._settings))
            return held[1]
