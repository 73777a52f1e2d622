"""How a command was called, for commands to copy, and what it says when Ctrl-C stops it."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer

from askalike.cli.display import messages

NAME: Final = "askalike"
_MODULE: Final = Path(__file__).parent.parent / "__main__.py"


def command(*words: object) -> str:
    """Return a command of askalike as a shell takes it, such as ``.venv/bin/askalike search my.forum``.

    ``python -m askalike`` stays that where a shell lacks the name. A program that is called in another way than by its
    script is named as after an ordinary installation.
    """
    called = sys.argv[0]
    if Path(called) == _MODULE and not shutil.which(NAME):
        interpreter = Path(sys.executable)
        known = shutil.which(interpreter.name)
        is_known = known is not None and Path(known).parent == interpreter.parent
        return shlex.join([interpreter.name if is_known else str(interpreter), "-m", NAME, *map(str, words)])
    is_script = Path(called).stem == NAME and Path(called).is_file()
    found = shutil.which(NAME)
    if not is_script or (found and Path(found).samefile(called)):
        called = NAME
    return shlex.join([called, *map(str, words)])


STOPPED: Final = 130
"""The exit code of a command that Ctrl-C stopped, as shells have it."""


@contextmanager
def telling_how_to_go_on(found: Callable[[], tuple[str, str]]) -> Iterator[None]:
    """Let Ctrl-C end the command with exit code 130.

    Args:
        found: asked then: what became of what was done, and the command that goes on.
    """
    try:
        yield
    except KeyboardInterrupt:
        kept, again = found()
        messages.say(f"stopped; {kept}. To go on:\n  {again}", "stopped")
        raise typer.Exit(STOPPED) from None


def same_again() -> str:
    """Return the command as it was given, but for ``--fresh``."""
    return command(*(word for word in sys.argv[1:] if word != "--fresh"))
