"""A service on a thread, for the screenshots and the browser tests.

Enters: an ASGI application. Leaves: its address, for as long as the context lasts.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.request import urlopen

__all__ = ["serving", "wait_for_pairs"]

PATIENCE_S = 120.0


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


def wait_for_pairs(address: str) -> None:
    """Return when the archive has been looked through for duplicates, so that each time the same are shown.

    Raises:
        TimeoutError: it takes longer than ``PATIENCE_S``.
    """
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with urlopen(f"{address}/v1/status") as answer:
            progress = json.load(answer)["duplicates"]
        if progress["done"] >= progress["questions"]:
            return
        time.sleep(0.2)
    raise TimeoutError(f"the questions of {address} are not compared after {PATIENCE_S:.0f} s: {progress}")
