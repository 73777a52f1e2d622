"""The command line's composition root and its outermost door: commands in, exit codes out.

Exit codes: 0 done, 1 an error that askalike explains, 2 the command was used wrongly.
"""

from __future__ import annotations

import errno
import gc
import importlib
import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
import typer.core

from askalike._version import __version__
from askalike.cli.messages import messages, print_json, safe
from askalike.errors import AskalikeError, SettingError

GROUPS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Commands": {
        "index": ("index", "Read an archive into a forum, or read it again."),
        "search": ("search", "Find the earlier questions most similar to a new one."),
        "similar": ("search", "Find the questions most similar to one of the forum."),
        "show": ("show", "Show a question with its answers, links and judgements."),
        "duplicates": ("duplicates", "List pairs of the forum's questions that may be duplicates."),
        "deduplicate": ("deduplicate", "Remove repeated questions from a table."),
        "judge": ("judge", "Store whether two questions are duplicates."),
        "serve": ("serve", "Serve a forum over HTTP, with a page and a widget."),
        "info": ("info", "Show what a forum holds and whether its indexes are in step."),
    },
    "Making a forum better": {
        "encode": ("encode", "Encode the questions that are not encoded yet."),
        "train": ("train", "Train a model on a forum's own questions and answers."),
        "threshold": ("judge", "Find the least probability that keeps a promise."),
        "evaluate": ("evaluate", "Measure how well a forum's known duplicates are found."),
    },
    "Running a forum": {
        "follow": ("follow", "Keep a forum in step with a site, from its first question on."),
        "keys": ("keys", "Make, list and revoke the keys of a forum's service."),
        "export": ("export", "Write all records and judgements to files."),
        "backup": ("export", "Write the archive of a forum to a new file."),
        "check": ("info", "Look for damage in a forum's files, and repair it."),
        "reindex": ("index", "Rebuild a forum's indexes from its archive."),
        "attach": ("attach", "Make or join a forum in a PostgreSQL database."),
        "batch": ("batch", "Encode or compare a whole archive, also on a cluster."),
    },
    "Research": {
        "demo": ("demo", "Index the bundled forum and answer three questions."),
        "score": ("evaluate", "Score a run against relevance judgements."),
        "reproduce": ("reproduce", "Reproduce a paper's tables beside the figures it reports."),
    },
}
"""Heading of the help → command → the module that holds its function, which has its name, and what it does."""

MODULES: Final = {name: module for commands in GROUPS.values() for name, (module, _) in commands.items()}


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


class _Group(typer.core.TyperGroup):
    """The commands under their headings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast(Any, _Commands())

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with what it does."""
        width = max(map(len, MODULES))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), about) for name, (_, about) in commands.items()])


app = typer.Typer(
    name="askalike",
    cls=_Group,
    help="Finds the questions in a community forum that ask the same thing, so that good answers are reused.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


MESSAGES = {"is_quiet": "--quiet", "is_verbose": "--verbose", "is_json": "--log-json"}


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"askalike {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Before or after a command: errors only, no notes.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Before or after a command: the time of each phase, traces of errors.")
    ] = False,
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Before or after a command: notes and progress as JSON, one a line.")
    ] = False,
) -> None:
    """Take the options that belong to no command; ``main`` has taken those of messages before."""


EXIT_CODES: tuple[tuple[type[AskalikeError], int], ...] = ((SettingError, 2), (AskalikeError, 1))
"""From an error to an exit code; the first fitting row counts."""


_UsageError: type[Any] = typer.BadParameter.__bases__[0]
"""A command that cannot be called so; typer does not name it."""

_TORCH_SHORTAGES = ("can't allocate memory", "out of memory")
"""How torch, which raises RuntimeError, says that memory is short."""


def main() -> None:
    """Run the command line; every error that askalike explains becomes two lines and an exit code."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that the terminal's encoding lacks is written as an escape
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:]
    try:
        _run(_taken(words))
    except AskalikeError as error:
        if messages.is_verbose:
            traceback.print_exception(error)
        raise SystemExit(_explain(error)) from None
    except BrokenPipeError:
        _is_output_lost()
        raise SystemExit(1) from None
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in _TORCH_SHORTAGES):
            raise
        reason = " ".join(str(error).split())[:200]
        short = AskalikeError(
            f"there is not enough memory{': ' if reason else ''}{reason}", "choose smaller sizes, or end other programs"
        )
        raise SystemExit(_explain(short)) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "standard output: " if _is_output_lost() else ""
        is_short = error.errno in (errno.EMFILE, errno.ENFILE)
        hint = 'allow more open files ("ulimit -n")' if is_short else "check the path, its rights and the free space"
        refused = AskalikeError(f"{where}{error.strerror or error}", hint)
        raise SystemExit(_explain(refused)) from None


def _run(words: list[str]) -> None:
    """Run one command; where a program reads what comes of it, a wrong call is an error as any other."""
    if not messages.is_json and "--json" not in words:
        app(args=words)
    try:
        raise SystemExit(app(args=words, standalone_mode=False) or 0)
    except _UsageError as error:
        raise SettingError(error.format_message(), "-h after a command shows what it takes") from None
    except typer.Abort:
        raise SystemExit(1) from None


def _taken(words: list[str]) -> list[str]:
    """Return the command line without the options that every command has, which are taken note of."""
    end = words.index("--") if "--" in words else len(words)
    for name, option in MESSAGES.items():
        setattr(messages, name, option in words[:end])
    return [word for place, word in enumerate(words) if place >= end or word not in MESSAGES.values()]


def _open_closed_streams() -> None:
    """Give a program that was started with a closed stream (``>&-``) one that holds and takes nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _is_output_lost() -> bool:
    """Return whether standard output takes no more; it is then given up, so that nothing fails at the end."""
    try:
        sys.stdout.write("\n")  # what was refused is not kept, so that only something new shows it
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _explain(error: AskalikeError) -> int:
    """Say what went wrong and what to do, for programs too when they asked for JSON; return the exit code."""
    if "--json" in sys.argv:
        print_json({"error": error.message, "hint": error.hint})
    if messages.is_json:
        messages.say(error.message, "error", hint=error.hint)
    else:
        messages.say(f"error: {safe(error.message)}", "error")
        if error.hint:
            messages.say(f"hint: {safe(error.hint)}", "hint")
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


if __name__ == "__main__":
    main()
