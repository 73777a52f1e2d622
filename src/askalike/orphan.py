"""A process that was started to help another one ends with it.

One that went on alone would hold a core for hours and write into a folder whose lock its parent held, where another
training may have begun since; or hold a service's port, so that no other can be started.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from multiprocessing.connection import wait


def end_with_parent(end: Callable[[], None] = lambda: os._exit(1)) -> None:
    """End this process as soon as the one that started it through ``multiprocessing`` has ended.

    In a process that no other one started, nothing is done.

    Args:
        end: how. Unless told otherwise at once: what it was writing is lost, so that it must write in ways that a kill
            cannot harm.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        arguments = (parent.sentinel, end)
        threading.Thread(target=_end_after, args=arguments, name="end with parent", daemon=True).start()


def _end_after(sentinel: int, end: Callable[[], None]) -> None:
    wait([sentinel])
    end()
