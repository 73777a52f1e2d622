"""Several vectors a question, of its title, of title and body, of parts of the body, in place of one: what they bring.

Commands: ``python -m benchmarks.encoders --build``, then ``OMP_NUM_THREADS=1 nice -n 19 python -m
benchmarks.several_vectors``, which writes results/several-vectors.json; ``--pools`` leaves travel out.

MiniLM in 8 bits. A question has the vectors of its title (t), of title and body (b), of which the encoder reads the
first 256 pieces, and of the title with each part of about 800 characters of the body (p). They are joined into one
vector when a question is encoded (their mean, which costs nothing in the index), or each is compared with the query's
(the greatest cosine, which needs an index several times as large).

Pools: as in ``benchmarks.encoders``, the judged candidates alone in the order of their cosines, nDCG@5; the query is
asked as the pool says, by one vector or by the same mean. Travel: the dev queries of the forum's own duplicate links
over all its questions, nDCG@10. Differences are to b alone, over the same queries, with a 95 % interval by the
bootstrap.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation.forum.links import duplicate_task
from askalike.forum import Forum, ForumSettings
from askalike.index.text_questions import TextQuestions
from askalike.index.vectors import VectorIndex
from askalike.store import ForumLayout
from askalike.text.markup import plain_text
from askalike.types import Question
from benchmarks.encoders import ENCODERS, FORUMS, asked, build, by_forum, difference, encoder_of, ndcg, read_pools
from benchmarks.record import write

PART_CHARACTERS = 800
CUT = 10
Array = NDArray[np.float32]
Parts = dict[str, Array]
"""t, b and p → vectors.  # (N, D) each"""

WORDS = ForumSettings(has_vectors=False)


def unit(vectors: Array) -> Array:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))


def parts_of(question: Question) -> list[str]:
    """Return the body in parts that end with a word."""
    words, parts, size = plain_text(question.body, question.markup).split(), [[]], 0  # type: ignore[var-annotated]
    for word in words:
        if size > PART_CHARACTERS:
            parts.append([])
            size = 0
        parts[-1].append(word)
        size += len(word) + 1
    return [" ".join(one) for one in parts if one]


def vectors_of(encoder: TextQuestions, questions: Sequence[Question]) -> list[Parts]:
    texts: list[str] = []
    for one in questions:
        texts += [one.title, f"{one.title}\n{plain_text(one.body, one.markup)}"]
        texts += [f"{one.title}\n{part}" for part in parts_of(one)]
    made = iter(encoder.embed(texts, is_query=False))
    found = []
    for one in questions:
        t, b = next(made), next(made)
        p = [next(made) for _ in parts_of(one)]
        found.append({"t": t[None], "b": b[None], "p": np.array(p) if p else t[None]})
    return found


def mean_of(parts: Parts, names: str) -> Array:
    return unit(np.concatenate([parts[name] for name in names]).sum(axis=0))


Score = Callable[[Parts, Parts], float]
"""Of a query's vectors and a document's."""

SYSTEMS: Mapping[str, Score] = {
    "b": lambda query, one: float(one["b"][0] @ query["b"][0]),
    "t": lambda query, one: float(one["t"][0] @ query["b"][0]),
    "mean of t, b": lambda query, one: float(mean_of(one, "tb") @ query["b"][0]),
    "mean of t, b, query too": lambda query, one: float(mean_of(one, "tb") @ mean_of(query, "tb")),
    "mean of t, p": lambda query, one: float(mean_of(one, "tp") @ query["b"][0]),
    "mean of b, p": lambda query, one: float(mean_of(one, "bp") @ query["b"][0]),
    "mean of p": lambda query, one: float(mean_of(one, "p") @ query["b"][0]),
    "greatest of t, b": lambda query, one: float(np.concatenate([one["t"], one["b"]]).dot(query["b"][0]).max()),
    "greatest of b, p": lambda query, one: float(np.concatenate([one["b"], one["p"]]).dot(query["b"][0]).max()),
    "greatest of p": lambda query, one: float((one["p"] @ query["b"][0]).max()),
    "greatest of t, b, p": lambda query, one: float(
        np.concatenate([one["t"], one["b"], one["p"]]).dot(query["b"][0]).max()
    ),
}


def pools(encoder: TextQuestions) -> dict[str, dict[str, float]]:
    """Return system → forum/query → nDCG@5."""
    found: dict[str, dict[str, float]] = {name: {} for name in SYSTEMS}
    for forum_name in FORUMS:
        of_forum = [one for one in read_pools() if one["forum"] == forum_name]
        with Forum.open(build(forum_name, "general"), settings=WORDS) as forum:
            ids = sorted({it for one in of_forum for it in one["grades"]})
            documents = dict(zip(ids, vectors_of(encoder, [forum.question(it) for it in ids]), strict=True))
            queries = vectors_of(encoder, [Question("", *asked(forum, one)) for one in of_forum])
        for one, query in zip(of_forum, queries, strict=True):
            for name, score in SYSTEMS.items():
                order = sorted(one["grades"], key=lambda it: (-score(query, documents[it]), it))
                found[name][f"{forum_name}/{one['query']}"] = ndcg(order, one["grades"])
        print(forum_name, len(ids), flush=True)
    return found


def travel(encoder: TextQuestions) -> dict[str, dict[str, float]]:
    """Return system → dev query → nDCG@10, by title and by title and body."""
    folder = build("travel", "minilm")
    with Forum.open(folder) as forum:
        task = duplicate_task(forum, "dev")
        ids = list(task.collection)
        numbers = forum.numbers(ids)
    (place,) = ForumLayout(folder).vectors.glob("*/index")
    held, rows = VectorIndex(place).vectors([numbers[one] for one in ids])
    at = {int(number): row for row, number in enumerate(held)}
    b = rows[[at[numbers[one]] for one in ids]]
    t = encoder.embed([one.title for one in task.collection.values()], is_query=False)
    print("travel", len(ids), len(task.queries), flush=True)
    documents = {"b": [b], "t": [t], "mean of t, b": [unit(t + b)], "greatest of t, b": [t, b]}
    found: dict[str, dict[str, float]] = {}
    for kind in ("title", "title and body"):
        asked_for = [one.title if kind == "title" else whole(one) for one in task.queries.values()]
        queries = encoder.embed(asked_for, is_query=True)
        for name, sets in documents.items():
            scores = np.max([queries @ one.T for one in sets], axis=0)
            found[f"{name}, by {kind}"] = {
                query: ndcg_of(row, ids, query, task.qrels[query])
                for query, row in zip(task.queries, scores, strict=True)
            }
    return found


def whole(question: Question) -> str:
    return f"{question.title}\n{plain_text(question.body, question.markup)}"


def ndcg_of(row: Array, ids: Sequence[str], query: str, qrels: Mapping[str, int]) -> float:
    order = [ids[place] for place in np.argsort(-row, kind="stable")[: CUT + 1] if ids[place] != query][:CUT]
    relevant = {one for one, grade in qrels.items() if grade > 0}
    best = sum(1 / np.log2(place + 2) for place in range(min(CUT, len(relevant))))
    return float(sum(1 / np.log2(place + 2) for place, one in enumerate(order) if one in relevant) / best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", action="store_true")
    given = parser.parse_args()
    settings = ENCODERS["minilm"]
    assert settings is not None
    encoder = encoder_of(settings)
    of_pools = pools(encoder)
    body: dict[str, Any] = {
        "queries": len(of_pools["b"]),
        "ndcg_at_5": {name: by_forum(one) for name, one in of_pools.items()},
        "differences_to_b": {name: difference(of_pools["b"], one) for name, one in of_pools.items() if name != "b"},
    }
    if not given.pools:
        of_travel = travel(encoder)
        body |= {
            "travel_dev_queries": len(of_travel["b, by title"]),
            "travel_dev_ndcg_at_10": {
                name: round(100 * statistics.fmean(one.values()), 1) for name, one in of_travel.items()
            },
            "travel_dev_differences_to_b": {
                name: difference(of_travel[f"b, by {name.partition(', by ')[2]}"], one)
                for name, one in of_travel.items()
                if not name.startswith("b, ")
            },
        }
    write("several-vectors", "OMP_NUM_THREADS=1 nice -n 19 python -m benchmarks.several_vectors", body)


if __name__ == "__main__":
    main()
