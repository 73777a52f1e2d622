"""Nearest vectors: the forms in which they can be stored and searched, side by side in one run.

Command: ``OMP_NUM_THREADS=2 python -m benchmarks.vector_search`` (needs FAISS). 200,000 vectors in clusters, with 384
and 400 numbers, and new questions of the same clusters, asked one at a time. Recall@10 is the share of the ten nearest
by a product of float32 matrices that was found. Graphs are built for 384 numbers only: they take most of the time.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from askalike.index.vectors import GraphSettings, VectorIndex
from benchmarks.record import percentiles, write

COMMAND = "OMP_NUM_THREADS=2 python -m benchmarks.vector_search"
LIMIT = 10
QUERIES = 100
BLOCK = 512
INNER = faiss.METRIC_INNER_PRODUCT
Floats = NDArray[np.float32]
Search = Callable[[Floats], list[int]]
Made = tuple[str, float, float, Search]
"""Name, seconds to build, megabytes, and the search for one query (D,)."""


def drawn(count: int, dimensions: int) -> tuple[Floats, Floats]:
    """Return vectors (N, D) and queries (Q, D) of length 1, in clusters of about 50."""
    rng = np.random.default_rng(0)
    # as with trained encoders, a few directions hold most of the variance
    widths = (1 + np.arange(dimensions, dtype=np.float32)) ** -0.25
    centres = rng.standard_normal((count // 50, dimensions), np.float32)
    found = []
    for size in (count, QUERIES):
        array = centres[rng.integers(0, len(centres), size)] + rng.standard_normal((size, dimensions), np.float32)
        array *= widths
        found.append(array / np.linalg.norm(array, axis=1, keepdims=True))
    return found[0], found[1]


def blockwise(stored: NDArray[Any], query: Floats) -> Floats:
    """Return products (N,) of a compact matrix with a query, turned into float32 a block at a time."""
    scores, buffer = np.empty(len(stored), np.float32), np.empty((BLOCK, stored.shape[1]), np.float32)
    for start in range(0, len(stored), BLOCK):
        block = buffer[: len(stored[start : start + BLOCK])]
        np.copyto(block, stored[start : start + BLOCK])
        np.dot(block, query, out=scores[start : start + len(block)])
    return scores


def top(scores: Floats, limit: int) -> list[int]:
    """Return the positions of the greatest scores, best first."""
    near = np.argpartition(scores, len(scores) - limit)[len(scores) - limit :]
    return [int(at) for at in near[np.argsort(-scores[near])]]


def in_numpy(vectors: Floats) -> Iterator[Made]:
    """Give the compact types that were weighed against the one that is used."""
    started = time.perf_counter()
    half = vectors.astype(np.float16)
    yield (
        "float16, NumPy",
        time.perf_counter() - started,
        half.nbytes / 1e6,
        lambda query: top(blockwise(half, query), LIMIT),
    )
    started = time.perf_counter()
    scale = np.abs(vectors).max(axis=1) / 127
    small = np.rint(vectors / scale[:, None]).astype(np.int8)
    seconds = time.perf_counter() - started
    plain = lambda query: top(blockwise(small, query) * scale, LIMIT)  # noqa: E731
    yield "int8, NumPy", seconds, (small.nbytes + scale.nbytes) / 1e6, plain

    def scored_again(query: Floats) -> list[int]:
        near = np.array(top(blockwise(small, query) * scale, 4 * LIMIT))
        return [int(near[at]) for at in top(half[near].astype(np.float32) @ query, LIMIT)]

    yield "int8, 40 best again in float16, NumPy", seconds, (3 * small.nbytes + scale.nbytes) / 1e6, scored_again


def in_faiss(vectors: Floats, has_graphs: bool) -> Iterator[Made]:
    """Give FAISS's own indexes."""
    dimensions = vectors.shape[1]
    made: list[tuple[str, Any]] = [
        ("FAISS flat", faiss.IndexFlatIP(dimensions)),
        ("FAISS flat float16", faiss.IndexScalarQuantizer(dimensions, faiss.ScalarQuantizer.QT_fp16, INNER)),
    ]
    if has_graphs:
        made.append(("FAISS HNSW, M 16, 80 / 80", faiss.IndexHNSWFlat(dimensions, 16, INNER)))
        made[-1][1].hnsw.efConstruction = made[-1][1].hnsw.efSearch = 80
    while made:
        name, index = made.pop(0)
        started = time.perf_counter()
        if not index.is_trained:
            index.train(vectors[:1000])
        index.add(vectors)
        seconds = time.perf_counter() - started
        size = len(faiss.serialize_index(index)) / 1e6
        yield name, seconds, size, lambda query, index=index: index.search(query[None], LIMIT)[1][0].tolist()


def ours(vectors: Floats, folder: Path, has_graphs: bool) -> Iterator[Made]:
    """Give the index of the package: exact, and through its graph."""
    started = time.perf_counter()
    index = VectorIndex.create(folder, vectors.shape[1], applied=0, fingerprint="benchmark")
    with index.writing() as writer:
        for start in range(0, len(vectors), 50_000):
            part = vectors[start : start + 50_000]
            writer.put(np.arange(start, start + len(part)), part)
            writer.commit(replace(index.cursor, scanned=start))
    seconds = time.perf_counter() - started
    yield (
        "askalike exact, 16 bit",
        seconds,
        megabytes(folder),
        lambda query: [num for num, _ in index.search(query[None], LIMIT)[0]],
    )
    if has_graphs:
        started = time.perf_counter()
        index.build_graph(GraphSettings())
        seconds += time.perf_counter() - started
        index.search_graph(vectors[:1], 1)
        name = "askalike graph, 8 bit, 40 best again exactly"
        yield (
            name,
            seconds,
            megabytes(folder),
            lambda query: [num for num, _ in index.search_graph(query[None], LIMIT)[0]],
        )


def changes(folder: Path, queries: Floats) -> dict[str, Any]:
    """Measure opening, single changes, and searches under filters of an index that was filled."""
    started = time.perf_counter()
    index = VectorIndex(folder)
    body: dict[str, Any] = {"open_ms": round(1000 * (time.perf_counter() - started), 2), "entries": index.entries}
    count = index.entries
    seconds = []
    for step in range(50):
        started = time.perf_counter()
        with index.writing() as writer:
            writer.put([count + step], queries[step : step + 1])
            writer.remove([step])
            writer.commit(index.cursor)
        seconds.append(time.perf_counter() - started)
    body["put one, remove one, commit"] = percentiles(seconds)
    for share in (0.01, 0.1, 0.5):
        allowed = np.arange(0, count, round(1 / share))
        filtered = partial(searched, index, allowed)
        body[f"exact, {share:.0%} allowed"] = percentiles([timed(filtered, query)[0] for query in queries[:20]])
    started = time.perf_counter()
    index.search(queries, LIMIT)
    body["exact, 100 queries at once, ms each"] = round(1000 * (time.perf_counter() - started) / len(queries), 2)
    return body


def searched(index: VectorIndex, allowed: NDArray[np.int64], query: Floats) -> list[int]:
    return [num for num, _ in index.search(query[None], LIMIT, allowed)[0]]


def timed(search: Callable[[Floats], Any], query: Floats) -> tuple[float, Any]:
    started = time.perf_counter()
    found = search(query)
    return time.perf_counter() - started, found


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def measured(made: Made, queries: Floats, nearest: list[set[int]]) -> dict[str, Any]:
    """Return one row of the table."""
    name, build_s, size_mb, search = made
    for query in queries[:3]:
        search(query)
    runs = [timed(search, query) for query in queries]
    recall = np.mean([len(set(found) & true) / LIMIT for (_, found), true in zip(runs, nearest, strict=True)])
    row = {
        "name": name,
        "build_s": round(build_s, 1),
        "size_mb": round(size_mb),
        "recall_at_10": round(float(recall), 4),
    }
    row |= percentiles([seconds for seconds, _ in runs])
    print(row, flush=True)
    return row


def one_size(count: int, dimensions: int, has_graphs: bool) -> dict[str, Any]:
    vectors, queries = drawn(count, dimensions)
    nearest = [set(top(vectors @ query, LIMIT)) for query in queries]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "vectors"
        rows = [measured(made, queries, nearest) for made in ours(vectors, folder, has_graphs)]
        rows += [measured(made, queries, nearest) for made in in_numpy(vectors)]
        rows += [measured(made, queries, nearest) for made in in_faiss(vectors, has_graphs)]
        extra = changes(folder, queries)
    return {"vectors": count, "dimensions": dimensions, "queries": len(queries), "rows": rows, "changes": extra}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000, help="vectors; a smaller number is a trial, not recorded")
    count = parser.parse_args().count
    threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    faiss.omp_set_num_threads(threads)
    sizes = [one_size(count, dimensions, dimensions == 384) for dimensions in (384, 400)]
    if count == 200_000:
        body = {
            "threads": threads,
            "faiss": faiss.__version__,
            "load_15_min_at_end": round(os.getloadavg()[2], 2),
            "sizes": sizes,
        }
        write("vector-search", COMMAND, body)


if __name__ == "__main__":
    main()
