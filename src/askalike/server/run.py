"""Starts the service: one process, or several over one forum, until it is told to stop."""

from __future__ import annotations

import os
from collections.abc import Callable

from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.server.keys import Keys
from askalike.server.logs import set_up_logs
from askalike.server.memory import few_arenas
from askalike.server.multiprocess_metrics import MultiprocessMetrics
from askalike.server.server import listen
from askalike.server.settings import ServeSettings, is_loopback
from askalike.server.workers import answer, work


def run(settings: ServeSettings, tell: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT; then finish what is under way.

    Args:
        tell: called when nothing was found that speaks against it.

    Raises:
        SettingError: it would be open to others without a key, or nobody can listen at the address.
        ForumError: the forum cannot be opened.
    """
    check_open(settings)
    Forum.open(settings.folder).close()  # refused here, with a message, rather than in a worker
    listening = listen(settings.host, settings.port)
    tell()
    few_arenas()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    set_up_logs()
    if settings.workers == 1:
        answer(settings, listening, MultiprocessMetrics(1))
    else:
        work(settings, listening)


def check_open(settings: ServeSettings) -> None:
    """Refuse to serve others than this machine's users without a key, unless that is said to be wanted.

    Where reading is open, no key is needed to begin with: until there is one, nobody changes the forum over HTTP.

    Raises:
        SettingError: there is no key.
    """
    if settings.needs_keys and not settings.is_read_open and not Keys(settings.folder).all():
        where = settings.host if not is_loopback(settings.host) else ", ".join(settings.allow_hosts)
        raise SettingError(
            f"refusing to listen on {where} without an API key",
            f'create one with "askalike keys {settings.folder} --add write", or say --open-read if everyone may '
            "read, or --insecure if everyone may read and change the forum",
        )
