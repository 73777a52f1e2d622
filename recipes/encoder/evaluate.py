"""Encoders judged by the order that their cosine gives to judged candidates: graded nDCG@5, paired over queries.

Queries are those of the open half of ``judged-pools`` and those that were drawn by chance from eight forums; of both,
those with a candidate above grade 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from benchmarks.record import compare, hundredths

from askalike.evaluation.significance import bootstrap_mean
from askalike.models.general import MANIFEST_FILE, GeneralEncoder
from askalike.models.text_encoder import text_of
from askalike.models.transformer import Transformer
from askalike.models.transformer_folder import Array, read_folder
from askalike.search.engine import Floats
from askalike.types import Question
from recipes.encoder.export import MAX_PIECES, read_student
from recipes.scorer.pairs import graded, graded_ndcg, open_forum

KINDS: Final = ("pool", "drawn")
CHARACTERS: Final = 2_000

Encode = Callable[[Sequence[str]], Array]


class JudgedQuery(NamedTuple):
    """A query with its candidates, as texts, and their grades."""

    kind: str
    text: str
    candidates: Sequence[str]
    grades: Floats


def judged_queries(forums: Sequence[str] = ()) -> list[JudgedQuery]:
    """Return the queries of ``KINDS``, of these forums or of all."""
    queries: list[JudgedQuery] = []
    rows = [row for row in graded() if row[0] in KINDS and any(row[4].values())]
    for name in forums or sorted({forum for _, forum, *_ in rows}):
        with open_forum(name) as forum:
            for kind, _, identifier, form, grades in (row for row in rows if row[1] == name):
                questions = forum.store.questions_by_id([identifier, *grades])
                query = questions[identifier]
                if form == "title":
                    query = Question("", query.title)
                ids = [key for key in grades if key in questions]
                texts = [text_of(questions[key], CHARACTERS) for key in ids]
                known = np.array([grades[key] for key in ids])
                queries.append(JudgedQuery(kind, text_of(query, CHARACTERS), texts, known))
    return queries


def encoder_of(base: Path, source: Path) -> Encode:
    """Return what encodes texts: an exported folder, a folder of sentence-transformers, or a state of the student."""
    if (source / MANIFEST_FILE).exists():
        return GeneralEncoder(source).encode_document
    if source.is_dir():
        return read_transformer(source).encode_document
    return Transformer(read_student(base, source)[0]).encode_document


def read_transformer(folder: Path) -> Transformer:
    """Return an encoder of sentence-transformers' folder that reads as much of a text as the bundled one."""
    shape = read_folder(folder)
    return Transformer(replace(shape, max_pieces=min(shape.max_pieces, MAX_PIECES)))


def measure(encode: Encode, queries: Sequence[JudgedQuery]) -> list[float]:
    """Return nDCG@5 of each query by the cosine."""
    texts = list(dict.fromkeys(text for query in queries for text in (query.text, *query.candidates)))
    row_of = {text: row for row, text in enumerate(texts)}
    vectors = encode(texts)
    return [
        graded_ndcg(vectors[[row_of[text] for text in query.candidates]] @ vectors[row_of[query.text]], query.grades)
        for query in queries
    ]


def evaluate(base: Path, encoders: Mapping[str, Path]) -> dict[str, Any]:
    """Return what the result file holds; each encoder is compared with the first."""
    queries = judged_queries()
    values = {name: measure(encoder_of(base, source), queries) for name, source in encoders.items()}
    first = next(iter(values.values()))
    rows: dict[str, Any] = {}
    for name, own in values.items():
        row: dict[str, Any] = {}
        for kinds in (*((kind,) for kind in KINDS), KINDS):
            chosen = [place for place, query in enumerate(queries) if query.kind in kinds]
            of_kinds, of_first = ([outcomes[place] for place in chosen] for outcomes in (own, first))
            difference = compare(of_kinds, of_first)
            row[" and ".join(kinds)] = {
                "queries": len(chosen),
                "ndcg@5": hundredths(bootstrap_mean(of_kinds)),
                "more than the first": difference["more"],
                "p": difference["p"],
            }
        rows[name] = row
        print(name, {kinds: part["ndcg@5"] for kinds, part in row.items()}, flush=True)
    return {"encoders": rows}
