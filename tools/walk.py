"""Counts the functions of the package that a request passes, from the bytes of its socket to those of its answer.

Command: ``python -m tools.walk [--all]``. The bundled forum is served in this process; what is counted are the distinct
functions that one search and one write enter, over an open connection and after two others. Comprehensions and lambdas
count to what holds them; what the maintenance worker does meanwhile does not count.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import askalike
from askalike import Forum
from askalike.data import bundled_forum
from askalike.server.app import build
from askalike.server.server import Server, listen
from askalike.server.settings import ServeSettings

PACKAGE: Final = Path(askalike.__file__).parent
PATIENCE_S: Final = 60.0
SEARCH: Final = {"title": "My earphones are muffled in Skype", "body": "since the update"}
WRITE: Final = {"title": "Wifi drops every evening", "body": "All lights of the router are on."}


class Walk(logging.Handler):
    """Notes the functions of the package that are entered between the request's bytes and its line in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: set[str] = set()
        self._is_on = False
        self._is_answered = threading.Event()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; set as each thread's profile function."""
        code = frame.f_code
        if not self._is_on or event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        if not code.co_name.startswith("<") and threading.current_thread().name != "maintenance":
            name = Path(code.co_filename).relative_to(PACKAGE).with_suffix("").as_posix()
            self.functions.add(f"{name}.{code.co_qualname}")

    def emit(self, record: logging.LogRecord) -> None:
        """Take note that a request was answered: its line in the log is the last thing that is done for it."""
        self._is_answered.set()

    def of(self, connection: http.client.HTTPConnection, method: str, path: str, body: dict[str, str]) -> set[str]:
        """Return the functions that a request passes."""
        self.functions = set()
        self._is_answered.clear()
        self._is_on = True
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200 or not self._is_answered.wait(PATIENCE_S):
            raise RuntimeError(f"{method} {path} was answered with {answer.status}: {content[:200]!r}")
        self._is_on = False
        return self.functions


@contextmanager
def walking(folder: Path) -> Iterator[tuple[Walk, http.client.HTTPConnection]]:
    """Serve a forum on a thread of its own; give what counts, and an open connection."""
    walk, log = Walk(), logging.getLogger("askalike.server.requests")
    settings = ServeSettings(str(folder))
    level = log.level
    log.addHandler(walk)
    log.setLevel(logging.INFO)
    threading.setprofile(walk.note)
    server = Server(build(settings), settings.limits)
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=(listening,))
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", listening[0].getsockname()[1], timeout=PATIENCE_S)
    try:
        yield walk, connection
    finally:
        connection.close()
        server.should_exit = True
        thread.join()
        threading.setprofile(None)  # type: ignore[arg-type]  # as its documentation says
        log.setLevel(level)
        log.removeHandler(walk)


def walks(folder: Path) -> dict[str, set[str]]:
    """Return the functions that a search and a write pass, each asked for the third time over one connection."""
    with walking(folder) as (walk, connection):
        for number in range(3):
            search = walk.of(connection, "POST", "/v1/similar", SEARCH)
            write = walk.of(connection, "PUT", f"/v1/questions/new-{number}", WRITE)
    return {"search": search, "write": write}


def part(name: str) -> str:
    """Return the folder of the package that a function is in, or its module.

    >>> part("server/engine.Engine.similar"), part("types.Filters.admits")
    ('server', 'types')
    """
    return name.partition("/")[0] if "/" in name else name.partition(".")[0]


def main() -> None:
    """Print how many functions a search and a write pass, by folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="name each function")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "walk.forum"
        with Forum.create(folder) as forum:
            forum.load(bundled_forum())
        for kind, functions in walks(folder).items():
            parts = Counter(map(part, functions))
            print(f"{kind}: {len(functions)}  {', '.join(f'{name} {count}' for name, count in parts.most_common())}")
            if options.all:
                print("\n".join(f"  {name}" for name in sorted(functions)))


if __name__ == "__main__":
    main()
