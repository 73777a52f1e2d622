"""The five columns of SemEval Task 3: query, document, rank, score and ``true`` or ``false``, between white space.

Enters: a path. Leaves: `Qrels` and `Run`; and the way back. May import: askalike.types, askalike.errors.

Gold (``*.relevancy``) and predictions share the layout. In gold, the rank is that of the search engine, which leaves
gaps (4, 5, 10, …), the score is 1 / rank, and the label is the truth. In predictions the score alone decides, the rank
is not looked at, and the label is the system's own yes or no.

Source: the description of the format in the distribution of SemEval-2016 Task 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import NamedTuple

from askalike.errors import EvaluationError
from askalike.evaluate.files.text_lines import Place, check_ids, damaged, parse_score, read_lines, write_lines
from askalike.evaluate.order import ranks_by_score
from askalike.types import Qrels, Run

__all__ = ["is_semeval", "read_semeval_gold", "read_semeval_run", "write_semeval_gold", "write_semeval_run"]

_LABELS = {"true": 1, "false": 0}
_RANK = re.compile(r"[1-9][0-9]{0,8}")


class _Row(NamedTuple):
    query: str
    document: str
    rank: str
    score: float
    label: int
    place: Place


def is_semeval(line: str) -> bool:
    """Tell whether a line has five columns between white space, the last of them true or false."""
    fields = line.split()
    return len(fields) == 5 and fields[4].lower() in _LABELS


def read_semeval_gold(path: Path) -> tuple[Qrels, Run]:
    """Read gold: the judgements (true is 1, false is 0), and the search engine's order as a run of scores 1 / rank.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a malformed line, a document twice in a query, a rank that is not 1, 2, 3, …, or an empty
            file; names file and line.
    """
    qrels: Qrels = {}
    run: Run = {}
    for row in _rows(path):
        if _RANK.fullmatch(row.rank) is None:
            raise damaged(
                row.place,
                f"the rank is {row.rank!r}; expected the search engine's rank, a whole number from 1 on",
                "a file of predictions is not gold",
            )
        qrels.setdefault(row.query, {})[row.document] = row.label
        run.setdefault(row.query, []).append((row.document, 1 / int(row.rank)))
    return qrels, run


def read_semeval_run(path: Path) -> Run:
    """Read predictions: the scores of the fourth column, in the file's order.

    From a gold file this is the search engine's order.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a malformed line, a document twice in a query, or an empty file; names file and line.
    """
    run: Run = {}
    for row in _rows(path):
        run.setdefault(row.query, []).append((row.document, row.score))
    return run


def write_semeval_gold(path: Path, qrels: Qrels, run: Run) -> None:
    """Write gold: a line for each document of the run, labelled true where its grade is > 0.

    Raises:
        EvaluationError: a score of the run is not 1 / rank, qrels and run do not hold the same documents, or an id is
            empty or holds white space.
    """
    if {query: set(judgements) for query, judgements in qrels.items()} != {
        query: {document for document, _ in entries} for query, entries in run.items()
    }:
        raise EvaluationError(
            "judgements and the search engine's run do not hold the same documents",
            "give a run of exactly those judged",
        )
    lines = []
    for query, entries in run.items():
        check_ids([query, *(document for document, _ in entries)], "SemEval lines")
        for document, score in entries:
            rank = round(1 / score) if score > 0 else 0
            if rank < 1 or not isclose(score * rank, 1.0, rel_tol=1e-9):
                raise EvaluationError(
                    f"query {query}: document {document} has the score {score}; expected 1 / rank",
                    "write other scores with write_semeval_run",
                )
            lines.append(_line(query, document, rank, score, qrels[query][document] > 0))
    write_lines(path, lines)


def write_semeval_run(path: Path, run: Run, threshold: float = 0.5) -> None:
    """Write predictions, in the order of the run; scores are written so that they read back the same.

    Args:
        threshold: a score over it is labelled true. The ranking measures do not look at the label.

    Raises:
        EvaluationError: an id is empty or holds white space, or a query has no document, which this layout cannot say.
    """
    lines = []
    for query, entries in run.items():
        if not entries:
            raise EvaluationError(
                f"query {query} has no document; SemEval lines cannot say that", "rank its candidates"
            )
        check_ids([query, *(document for document, _ in entries)], "SemEval lines")
        for (document, score), rank in zip(entries, ranks_by_score(entries), strict=True):
            lines.append(_line(query, document, rank, score, score > threshold))
    write_lines(path, lines)


def _line(query: str, document: str, rank: int, score: float, is_true: bool) -> str:
    return f"{query}\t{document}\t{rank}\t{float(score)!r}\t{'true' if is_true else 'false'}"


def _rows(path: Path) -> Iterator[_Row]:
    seen: set[tuple[str, str]] = set()
    for place, line in read_lines(path):
        fields = line.split()  # as the official scorer does: tabs in the released files, spaces in many submissions
        if len(fields) != 5:
            raise damaged(place, f"{len(fields)} columns; expected 5: query, document, rank, score, label")
        query, document, rank, score, label = fields
        if label.lower() not in _LABELS:
            raise damaged(place, f"the label is {label!r}; expected true or false")
        if (query, document) in seen:
            raise damaged(place, f"document {document} comes a second time for query {query}", "keep one line of them")
        seen.add((query, document))
        yield _Row(query, document, rank, parse_score(score, place), _LABELS[label.lower()], place)
