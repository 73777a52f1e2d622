"""A process that was started to help another one ends with it.

One that went on alone would hold a core for hours and write into a folder whose lock its parent held, where another
training may have begun since.

Enters: nothing. Leaves: nothing. May import: nothing of askalike.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.connection import wait

__all__ = ["end_with_parent"]


def end_with_parent() -> None:
    """End this process, at once, as soon as the one that started it through ``multiprocessing`` has ended.

    What it was writing is lost, so that it must write in ways that a kill cannot harm. In a process that no other one
    started, nothing is done.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), name="end with parent", daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
