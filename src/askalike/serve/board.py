"""Where the workers of one service tell each other what they have counted, so that any of them can tell all.

Enters: a folder, a worker's counts as text. Leaves: the other workers' texts. May import: nothing of askalike.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["Board"]

EVERY_S: Final = 1.0
GONE_S: Final = 30.0
"""A worker that has told nothing for so long is gone."""


class Board:
    """A file for each worker.

    Args:
        folder: "" where there is one worker, which tells nobody.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) if folder else None
        self._told_s = -EVERY_S

    def publish(self, text: Callable[[], str]) -> None:
        """Tell the others, where that was not done just now."""
        now = time.monotonic()
        if self._folder is None or now - self._told_s < EVERY_S:
            return
        self._told_s = now
        new = self._folder / f"{os.getpid()}.new"
        with contextlib.suppress(OSError):  # the folder goes when the service stops
            new.write_text(text(), encoding="utf-8")
            new.replace(new.with_suffix(".prom"))

    def others(self) -> list[str]:
        """Return what the others told last."""
        found: list[str] = []
        for path in sorted(self._folder.glob("*.prom")) if self._folder else []:
            with contextlib.suppress(OSError):
                if path.stem != str(os.getpid()) and time.time() - path.stat().st_mtime < GONE_S:
                    found.append(path.read_text(encoding="utf-8"))
        return found
