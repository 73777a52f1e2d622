"""What a check found is made anew from the archive, where it can be; the archive itself is never written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import filelock

from askalike.errors import BusyForumError, ForumError, ModelError
from askalike.files import foreign_in, held, remove_file, remove_owned, sync_folder, writing_whole
from askalike.forum.check import CheckReport, unusable_locks
from askalike.forum.indexes import LOCK_TIMEOUT_S, remove_indexes
from askalike.forum.settings import ForumSettings
from askalike.index.model_source import fingerprint
from askalike.index.vector_set import has_its_model, parse_current, read_current
from askalike.models.encoders.folder import OWNED, ModelLayout
from askalike.models.encoders.model import Model
from askalike.store import ForumLayout

_PAIRS: Final = ("pairs.sqlite", "pairs.sqlite-wal", "pairs.sqlite-shm", "pairs.sqlite-journal")


def clear_damage(layout: ForumLayout, report: CheckReport, settings: ForumSettings) -> tuple[str, ...]:
    """Take away what is damaged and will be made anew when the forum is opened and encoded; return what that is.

    Raises:
        BusyForumError: another process is indexing, encoding or comparing.
        ForumError: something that is not askalike's is in the way.
    """
    done: list[str] = []
    for path in unusable_locks(layout):
        with contextlib.suppress(OSError):  # a folder that holds something: the report still names it
            remove_file(path)
            done.append(f"lock {path.name}")
    if report.damaged("model") and _restore_model(layout):
        done.append("model")
    is_model_whole = not report.damaged("model") or "model" in done
    has_vectors = bool(report.damaged("vectors")) and settings.has_vectors and is_model_whole
    if report.damaged("words") or has_vectors:
        remove_indexes(layout, replace(settings, has_vectors=has_vectors))
        done.extend(["words", "vectors"] if has_vectors else ["words"])
    if report.damaged("pairs"):
        _remove_pairs(layout)
        done.append("pairs")
    return tuple(done)


def _restore_model(layout: ForumLayout) -> bool:
    """Put back the forum's own model from the copy that its vectors were made by; return whether that was possible."""
    own = ModelLayout(layout.model)
    copy = next((place / "model" for place in _sets_of_own(layout) if _is_whole(place)), None)
    if copy is None or (own.folder.is_dir() and foreign_in(own.folder, OWNED)):
        return False
    if not own.folder.is_dir():
        remove_file(own.folder)
    remove_owned(own.replaced, OWNED)
    own.replaced.mkdir()
    for origin in sorted(copy.iterdir()):
        with writing_whole(own.replaced / origin.name) as file:
            file.write(origin.read_bytes())
    sync_folder(own.replaced)
    remove_owned(own.folder, OWNED)  # who stops here leaves the other, which is read in its place
    own.replaced.rename(own.folder)
    sync_folder(layout.folder)
    return True


def _sets_of_own(layout: ForumLayout) -> Iterator[Path]:
    """Yield the set of the model that the manifest names, then the one that answers, if its model was the own one."""
    with contextlib.suppress(ModelError):
        yield layout.vectors / fingerprint(layout.model)
    with contextlib.suppress(ForumError):
        state = read_current(layout.vectors)
        current = None if state is None else parse_current(state, layout.vectors)
        if current is not None and current.model == "own":
            yield layout.vectors / current.fingerprint


def _is_whole(place: Path) -> bool:
    """Return whether a set has its model, undamaged."""
    try:
        Model.load(place / "model")
    except ModelError:
        return False
    return has_its_model(place)


def _remove_pairs(layout: ForumLayout) -> None:
    try:
        with held(filelock.FileLock(layout.pairs_lock, thread_local=False), LOCK_TIMEOUT_S):
            for name in _PAIRS:
                remove_file(layout.folder / name)
    except filelock.Timeout as error:
        raise BusyForumError(
            f"another process is comparing the questions of {layout.folder}", "wait until it has finished"
        ) from error
