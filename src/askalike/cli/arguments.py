"""Arguments and options that several commands share, the parsing of their values, and commands to copy."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from askalike.cli.messages import messages
from askalike.errors import SettingError
from askalike.records import FORMS, Form
from askalike.store import ForumLayout
from askalike.types import Markup


def forum_names(incomplete: str) -> Iterator[str]:
    """Yield the forums that a word on the command line may become, and the folders in which there may be some."""
    whole = Path(incomplete)
    folder = whole if incomplete.endswith("/") else whole.parent
    start = "" if incomplete.endswith("/") else whole.name
    for child in sorted(folder.glob("*/")) if folder.is_dir() else ():
        if child.name.startswith(start) and (start or not child.name.startswith(".")):
            name = str(child) if not incomplete.startswith("./") else f"./{child}"
            yield name if ForumLayout(child).is_forum() else f"{name}/"


ForumArgument = Annotated[
    Path, typer.Argument(metavar="FORUM", help="The forum's folder.", show_default=False, autocompletion=forum_names)
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="What finds the questions from now on: milvus://HOST, milvus:PATH.db, or local; by default as before.",
    ),
]
ColumnOption = Annotated[
    list[str] | None, typer.Option("--column", help="Column of a field, as title=subject; may be repeated.")
]
MarkupOption = Annotated[
    Markup | None, typer.Option("--markup", help="How bodies of a table are written.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
ParquetOption = Annotated[bool, typer.Option("--parquet", help="Write Parquet to standard output.")]


def form_of(as_json: bool, as_csv: bool, as_parquet: bool) -> Form | None:
    """Return the form that was asked for, None for a table to be read."""
    forms = [form for form, is_asked in zip(FORMS, (as_json, as_csv, as_parquet), strict=True) if is_asked]
    if len(forms) > 1:
        raise SettingError("--json, --csv and --parquet exclude each other", "give one of them")
    return forms[0] if forms else None


MAX_BODY_BYTES = 16 * 1024 * 1024


def body_text(text: str) -> str:
    """Return the body that an option gives; "-" reads it from standard input."""
    if text != "-":
        return text
    raw = sys.stdin.buffer.read(MAX_BODY_BYTES + 1)
    if len(raw) > MAX_BODY_BYTES:
        raise SettingError(f"the body is larger than {MAX_BODY_BYTES} bytes", "shorten it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingError(f"the body is not UTF-8: {error}", "convert it first") from error


def column_mapping(columns: list[str]) -> dict[str, str]:
    """Return field → column, as the options ``--column FIELD=COLUMN`` give them."""
    mapping: dict[str, str] = {}
    for column in columns:
        field, equals, name = column.partition("=")
        if not equals or not field:
            raise SettingError(
                f"--column is {column!r}", "expected FIELD=COLUMN, such as title=subject; FIELD= says there is none"
            )
        mapping[field] = name
    return mapping


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
    installed = shutil.which(NAME)
    if not is_script or (installed and Path(installed).samefile(called)):
        called = NAME
    return shlex.join([called, *map(str, words)])


STOPPED: Final = 130
"""The exit code of a command that Ctrl-C stopped, as shells have it."""


@contextmanager
def interruptible(state: Callable[[], tuple[str, str]]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the command with exit code 130.

    Args:
        state: asked then: what became of what was done, and the command that goes on.
    """
    has_signals = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if has_signals else None
    try:
        yield
    except KeyboardInterrupt:
        kept, again = state()
        messages.say(f"stopped; {kept}. To go on:\n  {again}", "stopped")
        raise typer.Exit(STOPPED) from None
    finally:
        if has_signals:
            signal.signal(signal.SIGTERM, before)


def same_again() -> str:
    """Return the command as it was given, but for ``--fresh``."""
    return command(*(word for word in sys.argv[1:] if word != "--fresh"))
