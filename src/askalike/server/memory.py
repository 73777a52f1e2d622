"""Keeps the memory of a worker from growing with its threads.

glibc gives nearly every thread an arena to allocate from. What the many short-lived threads of the word index's
writers free stays in theirs, and a service that is written to for hours grows though nothing is kept. With two arenas
it stays level (LOG.md).
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

ARENAS: Final = 2
VARIABLE: Final = "MALLOC_ARENA_MAX"
M_ARENA_MAX: Final = -8
"""The parameter's number in glibc's malloc.h."""


def few_arenas() -> None:
    """Let this process and those that it starts allocate from few arenas, unless the environment says how many.

    Nothing happens where the C library is not glibc.
    """
    if not sys.platform.startswith("linux") or VARIABLE in os.environ:
        return
    os.environ[VARIABLE] = str(ARENAS)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
