"""Runs as TREC writes them: ``query Q0 document rank score tag``, separated by white space.

Enters: a path. Leaves: a `Run`; and the way back. May import: askalike.types, askalike.errors.

The rank and the second column are not looked at: the score decides, and equal scores keep the order of the file until
a protocol says otherwise.
"""

from __future__ import annotations

from pathlib import Path

from askalike.errors import EvaluationError
from askalike.evaluation.files.text_lines import check_ids, damaged, parse_score, read_lines, write_lines
from askalike.evaluation.order import ranks_by_score
from askalike.types import Run

__all__ = ["is_trec_run", "read_trec_run", "write_trec_run"]


def is_trec_run(line: str) -> bool:
    """Tell whether a line has six fields, the second of them ``Q0`` in any case or a number."""
    fields = line.split()
    return len(fields) == 6 and (fields[1].upper() == "Q0" or fields[1].isdecimal())


def read_trec_run(path: Path) -> Run:
    """Read a run file.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a line without six fields, a score that is no finite number, a document twice in a query, or
            an empty file; names file and line.
    """
    run: Run = {}
    seen: set[tuple[str, str]] = set()
    for place, line in read_lines(path):
        fields = line.split()
        if len(fields) != 6:
            raise damaged(place, f"{len(fields)} fields; expected 6: query Q0 document rank score tag")
        query, _, document, _, score, _ = fields
        if (query, document) in seen:
            raise damaged(place, f"document {document} comes a second time for query {query}", "keep one line of them")
        seen.add((query, document))
        run.setdefault(query, []).append((document, parse_score(score, place)))
    return run


def write_trec_run(path: Path, run: Run, tag: str = "askalike") -> None:
    """Write a run file, in the order of the run, ranks by score; scores are written so that they read back the same.

    Raises:
        EvaluationError: an id or the tag is empty or holds white space, or a query has no document, which this layout
            cannot say.
    """
    check_ids([tag], "the tag of a TREC run")
    lines = []
    for query, entries in run.items():
        if not entries:
            raise EvaluationError(f"query {query} has no document; a TREC run cannot say that", "leave the query out")
        check_ids([query, *(document for document, _ in entries)], "a TREC run")
        for (document, score), rank in zip(entries, ranks_by_score(entries), strict=True):
            lines.append(f"{query} Q0 {document} {rank} {float(score)!r} {tag}")
    write_lines(path, lines)
