"""A service on a thread, for the screenshots and the browser tests.

Enters: an ASGI application. Leaves: its address, for as long as the context lasts.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

__all__ = ["serving"]


@contextmanager
def serving(application: Any) -> Iterator[str]:
    """Serve an ASGI application on a free port of the loopback; yield its address, and stop it afterwards."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="on"))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=partial(server.run, sockets=[bound]))
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise RuntimeError("the service did not start")
                time.sleep(0.01)
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
