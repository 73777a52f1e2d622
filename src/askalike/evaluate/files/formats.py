"""The table of formats: how each is recognised, and what reads gold and runs from it.

Enters: a path. Leaves: a format's name; `Qrels` or `Run`. May import: askalike.types, askalike.errors, and the formats
beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from askalike.errors import FormatError
from askalike.evaluate.files.askubuntu import is_askubuntu, read_askubuntu
from askalike.evaluate.files.semeval import is_semeval, read_semeval_gold, read_semeval_run
from askalike.evaluate.files.text_lines import read_lines
from askalike.evaluate.files.trec_qrels import is_trec_qrels, read_trec_qrels
from askalike.evaluate.files.trec_run import is_trec_run, read_trec_run
from askalike.types import Qrels, Run

__all__ = ["FORMATS", "Format", "detect", "read_gold", "read_run"]


@dataclass(frozen=True, slots=True)
class Format:
    """One format of judgements or runs.

    Args:
        layout: one line of it in words, for messages.
        matches: tells whether a line is of this format.
        read_gold: reads judgements from it; None where it holds none.
        read_run: reads a run from it; None where it holds none.
    """

    layout: str
    matches: Callable[[str], bool]
    read_gold: Callable[[Path], Qrels] | None
    read_run: Callable[[Path], Run] | None


FORMATS: dict[str, Format] = {
    "semeval": Format(
        "query, document, rank, score, true or false",
        is_semeval,
        lambda path: read_semeval_gold(path)[0],
        read_semeval_run,
    ),
    "askubuntu": Format(
        "query, positives, candidates, scores, between tabs",
        is_askubuntu,
        lambda path: read_askubuntu(path)[0],
        lambda path: read_askubuntu(path)[1],
    ),
    "trec-run": Format("query Q0 document rank score tag", is_trec_run, None, read_trec_run),
    "trec-qrels": Format("query iteration document grade", is_trec_qrels, read_trec_qrels, None),
}


def detect(path: Path | str) -> str:
    """Return the name of a file's format, by its first line that is not blank; a key of `FORMATS`.

    The formats with tabs are tried first. A later line that does not fit is for the reader to name.

    Raises:
        InputError: there is no such file.
        DamagedInputError: it is empty or its first line is not UTF-8.
        FormatError: the line is of no format.
    """
    (file, number), line = next(read_lines(Path(path)))
    for name, form in FORMATS.items():
        if form.matches(line):
            return name
    layouts = "; ".join(f"{name} ({form.layout})" for name, form in FORMATS.items())
    raise FormatError(f"{file}, line {number} is {line[:80]!r}; expected one of: {layouts}")


def read_gold(path: Path | str, format_name: str | None = None) -> Qrels:
    """Read judgements from TREC qrels, SemEval gold or AskUbuntu lines.

    Args:
        format_name: a key of `FORMATS`, or None to detect it.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a line cannot be read; names file and line.
        FormatError: the format is unknown or holds no judgements.
    """
    name = _chosen(path, format_name)
    reader = FORMATS[name].read_gold
    if reader is None:
        raise FormatError(f"{path} is of format {name}, a run; expected judgements: {_that_hold('read_gold')}")
    return reader(Path(path))


def read_run(path: Path | str, format_name: str | None = None) -> Run:
    """Read a run from a TREC run, SemEval predictions or gold (the search engine's order), or AskUbuntu lines.

    Args:
        format_name: a key of `FORMATS`, or None to detect it.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a line cannot be read; names file and line.
        FormatError: the format is unknown or holds no run.
    """
    name = _chosen(path, format_name)
    reader = FORMATS[name].read_run
    if reader is None:
        raise FormatError(f"{path} is of format {name}, judgements; expected a run: {_that_hold('read_run')}")
    return reader(Path(path))


def _chosen(path: Path | str, format_name: str | None) -> str:
    if format_name is None:
        return detect(path)
    if format_name not in FORMATS:
        raise FormatError(f"there is no format {format_name!r}; expected one of {', '.join(FORMATS)}")
    return format_name


def _that_hold(attribute: str) -> str:
    return ", ".join(name for name, form in FORMATS.items() if getattr(form, attribute) is not None)
