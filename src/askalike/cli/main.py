"""The command line's composition root and its outermost door: commands in, exit codes out.

Exit codes: 0 done, 1 an error that askalike explains, 2 the command was used wrongly.
May import: everything of the package but serve.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from askalike._version import __version__
from askalike.cli import change, demo, evaluate, index, info, score, search
from askalike.cli.display import errors, print_json, safe
from askalike.errors import AskalikeError, SettingError

__all__ = ["app", "main"]

app = typer.Typer(
    name="askalike",
    help="Finds the questions in a community forum that ask the same thing, so that good answers are reused.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo")(demo.demo)
app.command("index")(index.index)
app.command("reindex")(index.reindex)
app.command("search")(search.search)
app.command("info")(info.info)
app.command("add")(change.add)
app.command("edit")(change.edit)
app.command("delete")(change.delete)
app.command("score")(score.score)
app.command("evaluate")(evaluate.evaluate)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"askalike {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that belong to no command."""


EXIT_CODES: tuple[tuple[type[AskalikeError], int], ...] = ((SettingError, 2), (AskalikeError, 1))
"""From an error to an exit code; the first fitting row counts."""


def main() -> None:
    """Run the command line; every error that askalike explains becomes two lines and an exit code."""
    try:
        app()
    except AskalikeError as error:
        if "--json" in sys.argv:
            print_json({"error": error.message, "hint": error.hint})
        errors.print(f"error: {safe(error.message)}", markup=False, style="red")
        if error.hint:
            errors.print(f"hint: {safe(error.hint)}", markup=False)
        raise SystemExit(next(code for kind, code in EXIT_CODES if isinstance(error, kind))) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
