"""The lines of the AskUbuntu set's dev and test files: query, positives, candidates and their scores.

Enters: a path. Leaves: `Qrels` and `Run`; and the way back. May import: askalike.types, askalike.errors.

Four columns between tabs: the query's id, the ids of its positives (the column may be empty), the ids of its 20
candidates best first, and the search engine's score of each; ids and scores are separated by spaces.

Source: Lei et al., "Semi-supervised Question Retrieval with Gated Convolutions", NAACL 2016, and the data released
with it.
"""

from __future__ import annotations

from pathlib import Path

from askalike.errors import EvaluationError
from askalike.evaluation.files.text_lines import Place, check_ids, damaged, parse_score, read_lines, write_lines
from askalike.types import Qrels, Run

__all__ = ["is_askubuntu", "read_askubuntu", "write_askubuntu"]


def is_askubuntu(line: str) -> bool:
    """Tell whether a line has four columns between tabs, with as many scores as candidates, and at least two.

    With one candidate it could be a line of TREC qrels that uses tabs.
    """
    fields = line.split("\t")
    return len(fields) == 4 and len(fields[2].split()) == len(fields[3].split()) >= 2


def read_askubuntu(path: Path) -> tuple[Qrels, Run]:
    """Read judgements and the search engine's run.

    All candidates are judged, positives 1 and the others 0, in the order of the candidates. A positive that is not a
    candidate (there is none in the released files) is kept as judged 1, after them: the protocol "askubuntu" counts
    only what a run ranks and so passes over it, "trec" counts it as not found.

    Raises:
        InputError: there is no such file.
        DamagedInputError: a line without four columns, without candidates, with other than one score for each, with an
            id or score that cannot be used, a query or candidate that comes twice, or an empty file; names file and
            line.
    """
    qrels: Qrels = {}
    run: Run = {}
    for place, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 4:
            raise damaged(
                place, f"{len(fields)} columns between tabs; expected 4: query, positives, candidates, scores"
            )
        query, positives, candidates, scores = fields[0].strip(), *(field.split() for field in fields[1:])
        if not query or query in qrels:
            raise damaged(place, f"query {query} comes a second time" if query else "the query has no id")
        _check_candidates(candidates, scores, place)
        relevant = set(positives)
        qrels[query] = {candidate: int(candidate in relevant) for candidate in candidates}
        qrels[query].update((positive, 1) for positive in positives)
        run[query] = [
            (candidate, parse_score(score, place)) for candidate, score in zip(candidates, scores, strict=True)
        ]
    return qrels, run


def write_askubuntu(path: Path, qrels: Qrels, run: Run) -> None:
    """Write judgements and a run, a line for each query of the run, candidates in its order.

    Raises:
        EvaluationError: qrels and run do not hold the same queries, a query has no candidate, a judged document with
            grade 0 is not a candidate (this layout cannot say that), or an id is empty or holds white space.
    """
    if set(qrels) != set(run):
        raise EvaluationError("judgements and run do not hold the same queries", "give both for the same queries")
    lines = []
    for query, entries in run.items():
        judgements = qrels[query]
        candidates = [document for document, _ in entries]
        lost = [document for document, grade in judgements.items() if grade <= 0 and document not in set(candidates)]
        if lost or not candidates:
            raise EvaluationError(
                f"query {query}: {lost[0]} is judged not relevant but no candidate; AskUbuntu lines cannot say that"
                if lost
                else f"query {query} has no candidate; AskUbuntu lines need at least one"
            )
        check_ids([query, *candidates, *judgements], "AskUbuntu lines")
        positives = [document for document, grade in judgements.items() if grade > 0]
        scores = [repr(float(score)) for _, score in entries]
        lines.append("\t".join([query, " ".join(positives), " ".join(candidates), " ".join(scores)]))
    write_lines(path, lines)


def _check_candidates(candidates: list[str], scores: list[str], place: Place) -> None:
    if not candidates:
        raise damaged(place, "there is no candidate; expected at least one")
    if len(candidates) != len(scores):
        raise damaged(place, f"{len(candidates)} candidates but {len(scores)} scores; expected one for each")
    if len(set(candidates)) != len(candidates):
        twice = next(name for at, name in enumerate(candidates) if name in candidates[:at])
        raise damaged(place, f"candidate {twice} comes a second time", "keep one of them")
