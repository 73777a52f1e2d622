"""Judgements as TREC writes them: ``query iteration document grade``, separated by white space.

Enters: a path. Leaves: `Qrels`; and the way back. May import: askalike.types, askalike.errors.

The iteration is not looked at. A grade > 0 is relevant; 0 and below are judged and not relevant.
"""

from __future__ import annotations

import re
from pathlib import Path

from askalike.errors import EvaluationError
from askalike.evaluation.files.text_lines import check_ids, damaged, read_lines, write_lines
from askalike.types import Qrels

__all__ = ["is_trec_qrels", "read_trec_qrels", "write_trec_qrels"]

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")


def is_trec_qrels(line: str) -> bool:
    """Tell whether a line has four fields, the last of them a whole number."""
    fields = line.split()
    return len(fields) == 4 and _WHOLE_NUMBER.fullmatch(fields[3]) is not None


def read_trec_qrels(path: Path) -> Qrels:
    """Read a file of judgements.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a line without four fields, a grade that is no whole number, a document judged twice for a
            query, or an empty file; names file and line.
    """
    qrels: Qrels = {}
    for place, line in read_lines(path):
        fields = line.split()
        if len(fields) != 4:
            raise damaged(place, f"{len(fields)} fields; expected 4: query iteration document grade")
        query, _, document, grade = fields
        if _WHOLE_NUMBER.fullmatch(grade) is None:
            raise damaged(place, f"the grade is {grade!r}; expected a whole number")
        judgements = qrels.setdefault(query, {})
        if document in judgements:
            raise damaged(place, f"document {document} is judged a second time for query {query}", "keep one line")
        judgements[document] = int(grade)
    return qrels


def write_trec_qrels(path: Path, qrels: Qrels) -> None:
    """Write a file of judgements, in the order of the qrels.

    Raises:
        EvaluationError: an id is empty or holds white space, or a query has no judgement, which this layout cannot say.
    """
    lines: list[str] = []
    for query, judgements in qrels.items():
        if not judgements:
            raise EvaluationError(f"query {query} has no judgement; TREC qrels cannot say that", "leave the query out")
        check_ids([query, *judgements], "TREC qrels")
        lines.extend(f"{query} 0 {document} {grade}" for document, grade in judgements.items())
    write_lines(path, lines)
