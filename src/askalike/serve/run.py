"""Starts the service: one process, or several over one forum, until it is told to stop.

Enters: ``ServeSettings``. Leaves: when the service has stopped. May import: archive, errors, its own folder.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import replace

import uvicorn

from askalike.errors import SettingError
from askalike.forum import Forum
from askalike.serve.http import SETTINGS_VARIABLE, build
from askalike.serve.keys import Keys
from askalike.serve.logs import set_up_logs
from askalike.serve.memory import few_arenas
from askalike.serve.settings import ServeSettings, is_loopback

__all__ = ["check_address", "check_open", "run"]

GRACE_S = 10
"""What is under way may take so long to finish when the service is told to stop."""


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
    check_address(settings)
    tell()
    few_arenas()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    common = {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": GRACE_S,
        "timeout_keep_alive": 30,
        "h11_max_incomplete_event_size": 65_536,
        "http": "h11",
        "ws": "none",
        "loop": "asyncio",
    }
    set_up_logs()
    if settings.workers == 1:
        uvicorn.Server(uvicorn.Config(build(settings), **common)).run()  # type: ignore[arg-type]
        return
    with tempfile.TemporaryDirectory(prefix="askalike-serve-") as board:
        os.environ[SETTINGS_VARIABLE] = replace(settings, board=board).to_json()
        uvicorn.run("askalike.serve.http:build_worker", factory=True, workers=settings.workers, **common)  # type: ignore[arg-type]


def check_address(settings: ServeSettings) -> None:
    """Refuse an address that cannot be listened at.

    Raises:
        SettingError: it is taken, or not of this machine.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((settings.host, settings.port))
        except OSError as error:
            raise SettingError(
                f"nobody can listen at {settings.host}, port {settings.port}: {error.strerror or error}",
                "stop what is there, or name another with --port or --host",
            ) from error


def check_open(settings: ServeSettings) -> None:
    """Refuse to serve others than this machine's users without a key, unless that is said to be wanted.

    Where reading is open, no key is needed to begin with: until there is one, nobody changes the forum over HTTP.

    Raises:
        SettingError: there is no key.
    """
    if settings.needs_keys and not settings.is_read_open and not Keys(settings.folder).all():
        where = settings.host if not is_loopback(settings.host) else ", ".join(settings.allow_hosts)
        raise SettingError(
            f"the service would be reached from elsewhere, as {where}, and there is no key",
            f'make one with "askalike keys {settings.folder} --add write", or say --open-read if everyone may '
            "read, or --insecure if everyone may read and change the forum",
        )
