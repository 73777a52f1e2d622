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

from askalike.evaluation.significance import bootstrap_difference, bootstrap_mean, randomisation_test
from askalike.models.general import MANIFEST_FILE, GeneralEncoder
from askalike.models.text_encoder import text_of
from askalike.models.transformer import Transformer
from askalike.models.transformer_folder import Array, read_folder
from askalike.types import Question
from recipes.encoder.export import read_student
from recipes.scorer.pairs import graded, open_forum

KINDS: Final = ("pool", "drawn")
CHARACTERS: Final = 2_000
PIECES: Final = 128

Encode = Callable[[Sequence[str]], Array]


class JudgedQuery(NamedTuple):
    """A query with its candidates, as texts, and their grades."""

    kind: str
    text: str
    candidates: Sequence[str]
    grades: Sequence[float]


def judged_queries(forums: Sequence[str] = ()) -> list[JudgedQuery]:
    """Return the queries of ``KINDS``, of these forums or of all."""
    queries: list[JudgedQuery] = []
    rows = [row for row in graded() if row[0] in KINDS and any(row[4].values())]
    for name in forums or sorted({forum for _, forum, *_ in rows}):
        with open_forum(name) as forum:
            for kind, _, identifier, form, grades in (row for row in rows if row[1] == name):
                numbers = forum.store.nums_by_id([identifier, *grades])
                questions = forum.store.questions_by_num(list(numbers.values()))
                query = questions[numbers[identifier]]
                asked = Question("", query.title) if form == "title" else query
                ids = [key for key in grades if key in numbers]
                texts = [text_of(questions[numbers[key]], CHARACTERS) for key in ids]
                queries.append(JudgedQuery(kind, text_of(asked, CHARACTERS), texts, [grades[key] for key in ids]))
    return queries


def encoder_of(base: Path, source: Path) -> Encode:
    """Return what encodes texts: an exported folder, a folder of sentence-transformers, or a state of the student."""
    if (source / MANIFEST_FILE).exists():
        return GeneralEncoder(source).encode_document
    if source.is_dir():
        folder = read_folder(source)
        return Transformer(replace(folder, max_pieces=min(folder.max_pieces, PIECES))).encode_document
    return Transformer(read_student(base, source)[0]).encode_document


def graded_ndcg(scores: Array, grades: Sequence[float]) -> float:
    """Return nDCG@5 with gains 2^grade - 1 of candidates in the order of scores.

    >>> round(graded_ndcg(np.array([0.1, 0.9], np.float32), [3.0, 0.0]), 4)
    0.6309
    """
    gains = 2.0 ** np.array(grades) - 1
    ranked, ideal = gains[np.argsort(-scores, kind="stable")][:5], np.sort(gains)[::-1][:5]
    discounts = 1 / np.log2(np.arange(2, 2 + len(ideal)))
    return float(ranked @ discounts / (ideal @ discounts))


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
            mean, gain = bootstrap_mean(of_kinds), bootstrap_difference(of_kinds, of_first)
            row[" and ".join(kinds)] = {
                "queries": len(chosen),
                "ndcg@5": [round(100 * part, 2) for part in (mean.mean, mean.low, mean.high)],
                "more than the first": [round(100 * part, 2) for part in (gain.mean, gain.low, gain.high)],
                "p": round(randomisation_test(of_kinds, of_first).p_value, 4),
            }
        rows[name] = row
        print(name, {kinds: part["ndcg@5"] for kinds, part in row.items()}, flush=True)
    return {"encoders": rows}
