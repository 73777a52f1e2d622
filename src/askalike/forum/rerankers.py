"""The rankers that a forum has learned: read when they are first asked for, and again when they were trained anew."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from askalike.archive import Layout
from askalike.errors import DamagedModelError, SettingError
from askalike.forum.likelihood import LikelihoodReranker
from askalike.forum.siamese_vectors import ModelVectors
from askalike.forum.states import ModelStates
from askalike.models.encoders.folder import OWNED, ModelLayout
from askalike.models.encoders.model import Model
from askalike.models.language.kinds import KINDS
from askalike.models.language.model import LanguageModel
from askalike.models.siamese.config import SIAMESE_KINDS
from askalike.models.siamese.model import SiameseModel
from askalike.rank import Reranker, learned_as
from askalike.rank.ramn import RamnReranker
from askalike.rank.settings import SearchSettings
from askalike.rank.siamese import SiameseReranker
from askalike.removal import remove_owned
from askalike.types import Answer

Answers = Callable[[str], Sequence[Answer]]
"""A question's id → its answers, best first."""


class _Saved(Protocol):
    """What a ranker has learned."""

    def save(self, path: Path | str) -> None:
        """Write its folder."""


def _language_model(kind: str, folder: Path) -> LanguageModel:
    model = LanguageModel.load(folder)
    if model.settings.kind != kind:
        raise DamagedModelError(
            f"{folder} holds the language model {model.settings.kind!r}, but expected {kind!r}",
            f'train it with "askalike train FORUM --recipe {kind}"',
        )
    return model


def _siamese_model(kind: str, folder: Path) -> SiameseModel:
    model = SiameseModel.load(folder)
    if model.settings.network.is_shared != SIAMESE_KINDS[kind]:
        shared = "nothing" if SIAMESE_KINDS[kind] else "their parameters"
        raise DamagedModelError(
            f"{folder} holds a siamese model whose sides share {shared}, but expected one of {kind!r}",
            f'train it with "askalike train FORUM --recipe {kind}"',
        )
    return model


def _likelihood(kind: str, folder: Path, settings: SearchSettings, answers: Answers) -> Mapping[str, Reranker]:
    return {kind: LikelihoodReranker(_language_model(kind, folder), answers)}


def _ramn(folder: Path, settings: SearchSettings, answers: Answers) -> Mapping[str, Reranker]:
    return {"ramn": RamnReranker(ModelStates(Model.load(folder)), settings.ramn)}


def _siamese(kind: str, folder: Path, settings: SearchSettings, answers: Answers) -> Mapping[str, Reranker]:
    source = ModelVectors(_siamese_model(kind, folder))
    return {kind: SiameseReranker(source), f"t-{kind}": SiameseReranker(source, settings.textual)}


MAKERS: Final[Mapping[str, Callable[[Path, SearchSettings, Answers], Mapping[str, Reranker]]]] = {
    "ramn": _ramn,
    **{kind: partial(_likelihood, kind) for kind in KINDS},
    **{kind: partial(_siamese, kind) for kind in SIAMESE_KINDS},
}
"""Name of a folder → what makes of it the rankers that use it; together those of ``rank.RERANKERS``."""

_LOADERS: Final[Mapping[str, Callable[[Path], _Saved]]] = {
    "ramn": Model.load,
    **{kind: partial(_language_model, kind) for kind in KINDS},
    **{kind: partial(_siamese_model, kind) for kind in SIAMESE_KINDS},
}


def load_learned(name: str, folder: Path) -> _Saved:
    """Return what a ranker of ``MAKERS`` has learned; every file of the folder is checked.

    Raises:
        ModelError: it cannot be read, or is another ranker's.
    """
    return _LOADERS[name](folder)


def take_ranker(name: str, folder: Path, layout: Layout) -> None:
    """Put a copy of what a ranker has learned where the forum finds it.

    Raises:
        SettingError: there is no ranker of this name that learns.
        ModelError: it cannot be read, or is another ranker's; what was there stays.
    """
    if name not in _LOADERS:
        raise SettingError(f"there is no ranker {name!r} that learns", f"expected one of {', '.join(_LOADERS)}")
    model, place = _LOADERS[name](folder), layout.ranker(name)
    if place.is_dir() and not ModelLayout(place).manifest.exists():
        remove_owned(place, OWNED)  # what is left of one that was damaged
    elif place.is_file():
        place.unlink()
    model.save(place)


class Rerankers:
    """A forum's learned rankers by name.

    Args:
        answers: of the forum's questions.
    """

    def __init__(self, layout: Layout, settings: SearchSettings, answers: Answers) -> None:
        self._layout = layout
        self._settings = settings
        self._answers = answers
        self._guard = threading.Lock()
        self._read: dict[str, tuple[bytes, Mapping[str, Reranker]]] = {}

    def get(self, name: str) -> Reranker | None:
        """Return a ranker as it is on disk now, None where the forum has not learned it.

        Raises:
            ModelError: its model cannot be read.
        """
        learned = learned_as(name)
        folder = self._layout.ranker(learned)
        state = _state(ModelLayout(folder))
        if state is None:
            if folder.exists() and (folder.is_file() or any(folder.iterdir())):
                with self._telling_how_to_mend(learned):
                    raise DamagedModelError(f"{folder} holds no manifest.json")
            return None
        with self._guard:
            held = self._read.get(learned)
            if held is None or held[0] != state:
                with self._telling_how_to_mend(learned):
                    held = self._read[learned] = (state, MAKERS[learned](folder, self._settings, self._answers))
            return held[1][name]

    @contextlib.contextmanager
    def _telling_how_to_mend(self, name: str) -> Iterator[None]:
        try:
            yield
        except DamagedModelError as error:
            forum = self._layout.folder
            hint = f'train it again with "askalike train {forum} --recipe {name}"'
            raise DamagedModelError(error.message, hint) from error


def _state(layout: ModelLayout) -> bytes | None:
    """Return the manifest of a folder, None where there is none; one that is just being replaced stands beside it."""
    for place in (layout, ModelLayout(layout.replaced), layout):  # it may have come while the one before was looked for
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return place.manifest.read_bytes()
    return None
