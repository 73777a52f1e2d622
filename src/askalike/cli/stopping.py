"""What a command says when Ctrl-C stops it: what stays, and how to go on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import typer

from askalike.cli.calling import command
from askalike.cli.display import errors, print_whole

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
        print_whole(f"stopped; {kept}. To go on:\n  {again}", errors)
        raise typer.Exit(STOPPED) from None


def same_again() -> str:
    """Return the command as it was given, but for ``--fresh``."""
    return command(*(word for word in sys.argv[1:] if word != "--fresh"))
