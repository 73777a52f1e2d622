"""The command line's outermost door: commands in, exit codes out.

Exit codes: 0 done, 1 an error that askalike explains, 2 the command was used wrongly.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from pathlib import Path

from askalike._version import __version__
from askalike.cli.commands import help_lines
from askalike.cli.messages import messages, print_json, safe
from askalike.errors import AskalikeError, SettingError

COMPLETION = "_ASKALIKE_COMPLETE"
"""Is set by the shell that asks how a command goes on."""

MESSAGES = {"is_quiet": "--quiet", "is_verbose": "--verbose", "is_json": "--log-json"}

USED_WRONGLY = 2
EXIT_CODES: tuple[tuple[type[AskalikeError], int], ...] = ((SettingError, USED_WRONGLY), (AskalikeError, 1))
"""From an error to an exit code; the first fitting row counts."""

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
        _run(_without_message_options(words))
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
    is_completing = COMPLETION in os.environ
    if words == ["--version"]:
        print(f"askalike {__version__}")
    elif words[:1] in ([], ["-h"], ["--help"]) and not is_completing:
        print("\n".join(help_lines("askalike")))
        raise SystemExit(0 if words else USED_WRONGLY)
    elif messages.is_json or "--json" in words:
        from askalike.cli.application import run_for_programs

        raise SystemExit(run_for_programs(words))
    else:
        from askalike.cli.application import app

        app(args=words)


def _without_message_options(words: list[str]) -> list[str]:
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
