"""The command line's composition root and its outermost door: commands in, exit codes out.

Exit codes: 0 done, 1 an error that askalike explains, 2 the command was used wrongly.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from askalike._version import __version__
from askalike.cli import (
    attach,
    batch,
    demo,
    duplicates,
    encode,
    evaluate,
    export,
    follow,
    index,
    info,
    judge,
    keys,
    reproduce,
    search,
    serve,
    show,
    train,
)
from askalike.cli.display import messages, print_json, safe
from askalike.errors import AskalikeError, SettingError

app = typer.Typer(
    name="askalike",
    help="Finds the questions in a community forum that ask the same thing, so that good answers are reused.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("index")(index.index)
app.command("search")(search.search)
app.command("similar")(search.similar)
app.command("show")(show.show)
app.command("duplicates")(duplicates.duplicates)
app.command("judge")(judge.judge)
app.command("serve")(serve.serve)
app.command("info")(info.info)
app.command("export")(export.export)
app.command("backup")(export.backup)
app.command("demo")(demo.demo)
app.command("encode")(encode.encode)
app.command("train")(train.train)
app.command("threshold")(judge.threshold)
app.command("reindex")(index.reindex)
app.command("check")(info.check)
app.command("attach")(attach.attach)
app.command("follow")(follow.follow)
app.command("writeback")(follow.writeback)
app.command("keys")(keys.keys)
app.command("batch")(batch.batch)
app.command("score")(evaluate.score)
app.command("evaluate")(evaluate.evaluate)
app.command("reproduce")(reproduce.reproduce)


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
        found = " ".join(str(error).split())[:200]
        short = AskalikeError(
            f"there is not enough memory{': ' if found else ''}{found}", "choose smaller sizes, or end other programs"
        )
        raise SystemExit(_explain(short)) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "standard output: " if _is_output_lost() else ""
        refused = AskalikeError(f"{where}{error.strerror or error}", "check the path, its rights and the free space")
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
