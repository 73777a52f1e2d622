"""Judgements and runs on disk, in the formats of TREC, SemEval Task 3 and the AskUbuntu set.

==========  ======================================================================================================
trec-qrels  ``query iteration document grade`` between white space; the iteration is not looked at. A grade > 0 is
            relevant; 0 and below are judged and not relevant.
trec-run    ``query Q0 document rank score tag`` between white space. The second column and the rank are not looked
            at: the score decides, and equal scores keep the order of the file until a protocol says otherwise.
semeval     query, document, rank, score and ``true`` or ``false``. In gold (``*.relevancy``) the rank is
            that of the search engine, which leaves gaps (4, 5, 10, …), the score is 1 / rank and the label is the
            truth. In predictions the score alone decides, and the label is the system's own yes or no.
askubuntu   query, ids of its positives (may be none), ids of its 20 candidates best first, and the search engine's
            score of each, between tabs; ids and scores between spaces.
==========  ======================================================================================================

Every reader raises ``InputError`` where there is no such file, and ``DamagedInputError``, which names file and line,
where a line is malformed or names a document twice for a query, or the file is empty. TREC's two are written too;
``EvaluationError`` says that an id is empty or holds white space, or that a query has nothing.

Source: the description of the format in the distribution of SemEval-2016 Task 3; Lei et al., "Semi-supervised Question
Retrieval with Gated Convolutions", NAACL 2016, and the data released with it.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from askalike.errors import DamagedInputError, EvaluationError, FormatError, InputError
from askalike.types import Qrels, Run

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
_RANK = re.compile(r"[1-9][0-9]{0,8}")
_LABELS = {"true": 1, "false": 0}
_LARGEST = 1e38
"""Scores beyond are written as this one, which is finite in single precision, as is what comes below it."""
_Read = TypeVar("_Read")


class _Line(NamedTuple):
    """A line of a file; 1 is the first."""

    path: Path
    number: int
    text: str

    def damaged(self, message: str, hint: str = "") -> DamagedInputError:
        return DamagedInputError(f"{self.path}, line {self.number}: {message}", hint)

    def score(self, text: str) -> float:
        try:
            score = float(text)
        except ValueError:
            raise self.damaged(f"the score is {text!r}; expected a number") from None
        if not isfinite(score):
            raise self.damaged(f"the score is {text}; expected a finite number", "find out why the ranker gave it")
        return score


def _lines(path: Path) -> Iterator[_Line]:
    """Yield the lines of a UTF-8 file that are not blank, unpacking ``.gz``; a byte order mark is left out."""
    if not path.is_file():
        raise InputError(f"there is no file {path}", "check the path")
    has_any = False
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        for number, raw in enumerate(_whole_lines(stream, path), start=1):
            try:
                line = _Line(path, number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n"))
            except UnicodeDecodeError as error:
                raise _Line(path, number, "").damaged(
                    f"byte {error.start + 1} is not UTF-8", "convert the file to UTF-8"
                ) from error
            if line.text.strip():
                has_any = True
                yield line
    if not has_any:
        raise DamagedInputError(f"{path} is empty; expected at least one line")


def _whole_lines(stream: Iterable[bytes], path: Path) -> Iterator[bytes]:
    try:
        yield from stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedInputError(f"{path} cannot be unpacked: {error}", "get the file again") from error


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _check_ids(ids: Iterable[str], layout: str) -> None:
    for name in ids:
        if name.split() != [name]:
            raise EvaluationError(
                f"the id {name!r} cannot be written as {layout}; expected ids without white space", "rename it"
            )


def read_trec_qrels(path: Path) -> Qrels:
    """Read judgements."""
    qrels: Qrels = {}
    for line in _lines(path):
        fields = line.text.split()
        if len(fields) != 4:
            raise line.damaged(f"expected 4 fields (query iteration document grade); fields: {len(fields)}")
        query, _, document, grade = fields
        if _WHOLE_NUMBER.fullmatch(grade) is None:
            raise line.damaged(f"the grade is {grade!r}; expected a whole number")
        judgements = qrels.setdefault(query, {})
        if document in judgements:
            raise line.damaged(f"document {document} is judged a second time for query {query}", "keep one line")
        judgements[document] = int(grade)
    return qrels


def write_trec_qrels(path: Path, qrels: Qrels) -> None:
    """Write judgements, in the order of the qrels; every query needs one."""
    lines: list[str] = []
    for query, judgements in qrels.items():
        if not judgements:
            raise EvaluationError(f"query {query} has no judgement; TREC qrels cannot say that", "leave the query out")
        _check_ids([query, *judgements], "TREC qrels")
        lines.extend(f"{query} 0 {document} {grade}" for document, grade in judgements.items())
    _write(path, lines)


def read_trec_run(path: Path) -> Run:
    """Read a run."""
    run: Run = {}
    seen: set[tuple[str, str]] = set()
    for line in _lines(path):
        fields = line.text.split()
        if len(fields) != 6:
            raise line.damaged(f"expected 6 fields (query Q0 document rank score tag); fields: {len(fields)}")
        query, _, document, _, score, _ = fields
        _note(seen, query, document, line)
        run.setdefault(query, []).append((document, line.score(score)))
    return run


def write_trec_run(path: Path, run: Run, tag: str = "askalike") -> None:
    """Write a run, in its order, with ranks by score, equal ones in the order given; every query needs a document.

    Scores fall strictly from rank to rank, so that trec_eval, which puts equal ones by id, keeps the order: one that
    does not fall in single precision, in which trec_eval reads it, is written as the next number below the one before.
    """
    _check_ids([tag], "the tag of a TREC run")
    lines: list[str] = []
    for query, entries in run.items():
        if not entries:
            raise EvaluationError(f"query {query} has no document; a TREC run cannot say that", "leave the query out")
        _check_ids([query, *(document for document, _ in entries)], "a TREC run")
        if wrong := [score for _, score in entries if not isfinite(score)]:
            raise EvaluationError(
                f"query {query} has a document with the score {wrong[0]}; expected a finite number",
                "find out why the ranker gave it",
            )
        places = sorted(range(len(entries)), key=lambda at: -entries[at][1])
        written: dict[int, tuple[int, float]] = {}
        least = np.float32(np.inf)
        for rank, place in enumerate(places, start=1):
            score = min(max(float(entries[place][1]), -_LARGEST), _LARGEST)
            single = np.float32(score)
            if single >= least:
                single = np.nextafter(least, np.float32(-np.inf))
                score = float(single)
            written[place], least = (rank, score), single
        for place, (document, _) in enumerate(entries):
            rank, score = written[place]
            lines.append(f"{query} Q0 {document} {rank} {score!r} {tag}")
    _write(path, lines)


class _SemEvalRow(NamedTuple):
    line: _Line
    query: str
    document: str
    rank: str
    score: float
    label: int


def _semeval_rows(path: Path) -> Iterator[_SemEvalRow]:
    seen: set[tuple[str, str]] = set()
    for line in _lines(path):
        fields = line.text.split()  # as the official scorer does: tabs in the released files, spaces in many others
        if len(fields) != 5:
            raise line.damaged(f"expected 5 columns (query, document, rank, score, label); columns: {len(fields)}")
        query, document, rank, score, label = fields
        if label.lower() not in _LABELS:
            raise line.damaged(f"the label is {label!r}; expected true or false")
        _note(seen, query, document, line)
        yield _SemEvalRow(line, query, document, rank, line.score(score), _LABELS[label.lower()])


def _note(seen: set[tuple[str, str]], query: str, document: str, line: _Line) -> None:
    if (query, document) in seen:
        raise line.damaged(f"document {document} comes a second time for query {query}", "keep one line of them")
    seen.add((query, document))


def read_semeval_gold(path: Path) -> tuple[Qrels, Run]:
    """Read gold: the judgements (true is 1, false is 0), and the search engine's order as a run of scores 1 / rank."""
    qrels: Qrels = {}
    run: Run = {}
    for row in _semeval_rows(path):
        if _RANK.fullmatch(row.rank) is None:
            raise row.line.damaged(
                f"the rank is {row.rank!r}; expected the search engine's rank, a whole number from 1 on",
                "a file of predictions is not gold",
            )
        qrels.setdefault(row.query, {})[row.document] = row.label
        run.setdefault(row.query, []).append((row.document, 1 / int(row.rank)))
    return qrels, run


def read_semeval_run(path: Path) -> Run:
    """Read predictions, scores of the fourth column in the file's order; of gold, the search engine's order."""
    run: Run = {}
    for row in _semeval_rows(path):
        run.setdefault(row.query, []).append((row.document, row.score))
    return run


def read_askubuntu(path: Path) -> tuple[Qrels, Run]:
    """Read judgements and the search engine's run.

    All candidates are judged, positives 1 and the others 0, in the order of the candidates. A positive that is not a
    candidate (there is none in the released files) is kept as judged 1, after them: the protocol "askubuntu" counts
    only what a run ranks and so passes over it, "trec" counts it as not found.
    """
    qrels: Qrels = {}
    run: Run = {}
    for line in _lines(path):
        fields = line.text.split("\t")
        if len(fields) != 4:
            raise line.damaged(
                f"expected 4 columns between tabs (query, positives, candidates, scores); columns: {len(fields)}"
            )
        query, positives, candidates, scores = fields[0].strip(), *(field.split() for field in fields[1:])
        if not query or query in qrels:
            raise line.damaged(f"query {query} comes a second time" if query else "the query has no id")
        _check_candidates(candidates, scores, line)
        relevant = set(positives)
        qrels[query] = {candidate: int(candidate in relevant) for candidate in candidates}
        qrels[query].update((positive, 1) for positive in positives)
        run[query] = [(candidate, line.score(score)) for candidate, score in zip(candidates, scores, strict=True)]
    return qrels, run


def _check_candidates(candidates: list[str], scores: list[str], line: _Line) -> None:
    if not candidates:
        raise line.damaged("there is no candidate; expected at least one")
    if len(candidates) != len(scores):
        raise line.damaged(f"{len(candidates)} candidates but {len(scores)} scores; expected one for each")
    if len(set(candidates)) != len(candidates):
        twice = next(name for at, name in enumerate(candidates) if name in candidates[:at])
        raise line.damaged(f"candidate {twice} comes a second time", "keep one of them")


def _is_semeval(line: str) -> bool:
    fields = line.split()
    return len(fields) == 5 and fields[4].lower() in _LABELS


def _is_askubuntu(line: str) -> bool:
    """Return whether there are as many scores as candidates, ≥ 2: with one it could be TREC qrels that use tabs."""
    fields = line.split("\t")
    return len(fields) == 4 and len(fields[2].split()) == len(fields[3].split()) >= 2


def _is_trec_run(line: str) -> bool:
    fields = line.split()
    return len(fields) == 6 and (fields[1].upper() == "Q0" or fields[1].isdecimal())


def _is_trec_qrels(line: str) -> bool:
    fields = line.split()
    return len(fields) == 4 and _WHOLE_NUMBER.fullmatch(fields[3]) is not None


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
        _is_semeval,
        lambda path: read_semeval_gold(path)[0],
        read_semeval_run,
    ),
    "askubuntu": Format(
        "query, positives, candidates, scores, between tabs",
        _is_askubuntu,
        lambda path: read_askubuntu(path)[0],
        lambda path: read_askubuntu(path)[1],
    ),
    "trec-run": Format("query Q0 document rank score tag", _is_trec_run, None, read_trec_run),
    "trec-qrels": Format("query iteration document grade", _is_trec_qrels, read_trec_qrels, None),
}


def format_of(path: Path | str) -> str:
    """Return the name of a file's format, by its first line that is not blank; a key of `FORMATS`.

    The formats with tabs are tried first. A later line that does not match is for the reader to name.

    Raises:
        FormatError: the line is of no format.
    """
    line = next(_lines(Path(path)))
    for name, form in FORMATS.items():
        if form.matches(line.text):
            return name
    layouts = "; ".join(f"{name} ({form.layout})" for name, form in FORMATS.items())
    raise FormatError(f"{line.path}, line {line.number} is {line.text[:80]!r}; expected one of: {layouts}")


def read_gold(path: Path | str) -> Qrels:
    """Read judgements from TREC qrels, SemEval gold or AskUbuntu lines.

    Raises:
        FormatError: the format is unknown or holds no judgements.
    """
    return _read(Path(path), lambda form: form.read_gold, "judgements")


def read_run(path: Path | str) -> Run:
    """Read a run from a TREC run, SemEval predictions or gold (the search engine's order), or AskUbuntu lines.

    Raises:
        FormatError: the format is unknown or holds no run.
    """
    return _read(Path(path), lambda form: form.read_run, "a run")


def _read(path: Path, reader_of: Callable[[Format], Callable[[Path], _Read] | None], wanted: str) -> _Read:
    name = format_of(path)
    if (reader := reader_of(FORMATS[name])) is None:
        readable = ", ".join(other for other, form in FORMATS.items() if reader_of(form) is not None)
        raise FormatError(f"{path} is of format {name}, expected {wanted}: {readable}")
    return reader(path)
