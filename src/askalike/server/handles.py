"""File handles: how many this process may have, and for how many connections and open forums they suffice.

Connections come first. What they leave is for forums, which are closed and opened again where they are many.
"""

from __future__ import annotations

import contextlib
from typing import Final

from askalike.server.settings import Limits

UNLIMITED: Final = 1_000_000
"""Stands for as many as there are."""
MACOS: Final = 10_240
"""That macOS lets a process have which it says may have any number."""
KEPT: Final = 256
"""That a worker needs for what it answers with; connections get the others."""
OWN: Final = 64
"""Of these, the ones that belong to no forum."""
FEWEST: Final = 16
"""Connections, however few handles there are."""
OF_FORUM: Final = 50
"""Of an open forum, most of them of its writers' connections to the archive; far fewer while it is hardly asked."""
OF_THREAD: Final = 4
"""More of it for each thread that searches: connections to the archive and to the pairs."""


def raise_limit() -> None:
    """Let this process, and those that it starts, have as many file handles as the system lets it have."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        wanted = max(soft, MACOS) if hard == resource.RLIM_INFINITY else hard
        with contextlib.suppress(ValueError, OSError):  # the system may allow fewer than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections(limits: Limits) -> int:
    """Return how many connections this process keeps open at once."""
    return min(limits.connections, max(FEWEST, _limit() - KEPT))


def most_forums(limits: Limits) -> int:
    """Return how many forums of a folder this process keeps open at once."""
    left = _limit() - OWN - most_connections(limits)
    return max(1, min(limits.open_forums, left // (OF_FORUM + OF_THREAD * limits.threads)))


def _limit() -> int:
    try:
        import resource
    except ImportError:  # not on Windows, where sockets are no file handles
        return UNLIMITED
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
