"""The commands as typer runs them; a command's module is loaded when it is called."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import typer
import typer.core

from askalike.cli.commands import ABOUT, MODULES
from askalike.errors import SettingError


class _Commands(Mapping[str, Any]):
    """Every command by its name; its module is imported when it is called, since most need NumPy and the indexes."""

    def __getitem__(self, name: str) -> Any:
        gc.disable()  # what imports make stays: looking through it took a twentieth of a search
        try:
            module = importlib.import_module(f"askalike.cli.{MODULES[name]}")
        finally:
            gc.freeze()
            gc.enable()
        command = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        command.command(name)(getattr(module, name))
        return typer.main.get_command(command)

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


COMMANDS: Final[Mapping[str, Any]] = _Commands()


class _Group(typer.core.TyperGroup):
    """The commands under their headings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast(Any, COMMANDS)


app = typer.Typer(
    name="askalike",
    cls=_Group,
    help=ABOUT,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    """Make a group of the commands; ``main`` has taken the options that all of them have."""


_UsageError: type[Any] = typer.BadParameter.__bases__[0]
"""A command that cannot be called so; typer does not name it."""


def run_for_programs(words: list[str]) -> int:
    """Run one command whose output a program reads, and return the exit code."""
    try:
        return app(args=words, standalone_mode=False) or 0
    except _UsageError as error:
        raise SettingError(error.format_message(), "-h after a command shows what it takes") from None
    except typer.Abort:
        return 1
