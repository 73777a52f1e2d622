"""What following would do, without doing it: everything is read, compared, and forgotten."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from askalike.follow.follower import Follower
from askalike.follow.pace import Pace
from askalike.follow.settings import FollowSettings, open_source
from askalike.follow.state import State
from askalike.forum import Forum
from askalike.store import ForumLayout, LoadReport
from askalike.types import Source, Thread


class _Trial:
    """A forum in which nothing is changed, though everything seems to be."""

    def __init__(self, forum: Forum) -> None:
        self._forum = forum
        self.done = LoadReport()
        self.behind = 0
        self.vectors = forum.vectors

    def replace_threads(self, threads: Sequence[Thread], gone: Sequence[str], source: Source) -> LoadReport:
        found = self._forum.replace_threads(threads, gone, source, is_trial=True)
        for name in ("questions", "answers", "links"):
            counts, more = getattr(self.done, name), getattr(found, name)
            for what in ("added", "edited", "deleted", "unchanged"):
                setattr(counts, what, getattr(counts, what) + getattr(more, what))
        return found

    def ids_of(self, source: str) -> list[str]:
        return self._forum.ids_of(source)

    def catch_up(self, *, is_waiting: bool = True) -> None:
        """Do nothing: nothing was changed."""

    def encode(self) -> None:
        """Do nothing."""


def preview(
    forum: Forum, settings: FollowSettings, pause: Callable[[float], None], is_stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Return what one comparison with what is followed would change.

    Raises:
        SourceError: it refuses, or seems to have lost half of its threads.
    """
    trial: Any = _Trial(forum)
    with tempfile.TemporaryDirectory(prefix="askalike-") as folder, State.create(ForumLayout(Path(folder))) as state:
        pace = Pace(settings.rate if "://" in settings.address else 0, state, pause=pause)
        source = open_source(settings, pace)
        follower = Follower(trial, source, state, settings.origin, is_stopped=is_stopped, pause=pause)
        is_whole = follower.once()
        rejected, newest = state.rejects()
        return {
            "address": settings.address,
            "is_dry_run": True,
            "is_whole": is_whole,
            **{
                f"{name}_{what}": getattr(getattr(trial.done, name), what)
                for name in ("questions", "answers", "links")
                for what in ("added", "edited", "deleted")
            },
            "requests": state.value("requests") or 0,
            "rejected": rejected,
            "first_rejects": [{"id": one, "reason": reason} for one, reason in newest],
        }
