"""Nearest vectors: the package's index beside exact search and three graphs, in one run.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.vector_search`` (needs the bench group). The vectors are those of all
Reddit questions by the general encoder, but for 200 that are asked. The second size are a million: these, and copies
with noise, by which a copy has a cosine of .8 with what it was made of. Graphs are built for the real ones only. All
times are processor time of one thread. Recall@10 is the share of the ten nearest by a product of float32 matrices.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import faiss
import hnswlib
import numpy as np
import usearch.index
from numpy.typing import NDArray

from askalike.data import default_model
from askalike.index.vectors import VectorIndex
from askalike.models.encoders.model import Model
from benchmarks.record import WORK, percentiles, reddit_questions, write

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.vector_search"
LIMIT = 10
QUERIES = 200
SLOW = 40
"""Queries that are asked of what looks at all vectors."""
MILLION = 1_000_000
LIKENESS = 0.8
LINKS, BREADTH = 16, 80
"""M, and efConstruction and efSearch, of every graph."""
Floats = NDArray[np.float32]
Search = Callable[[Floats], list[int]]


@dataclass(frozen=True)
class Made:
    """Something that finds vectors.

    Args:
        again: opens what is on disk; where it is, one file or folder.
    """

    name: str
    build_s: float
    path: Path
    again: Callable[[], Search]
    queries: int = QUERIES


def encoded() -> Floats:
    """Return the vectors of the Reddit questions (N, D), made once."""
    kept = WORK / "reddit-vectors.npy"
    if not kept.exists():
        folder = default_model()
        assert folder is not None, "the package carries no general model"
        model = Model.load(folder)
        found, questions = [], reddit_questions()
        while part := list(islice(questions, 4096)):
            found.append(model.encode(part))
        WORK.mkdir(parents=True, exist_ok=True)
        np.save(kept, np.concatenate(found))
    vectors: Floats = np.load(kept)
    return vectors


def copied(vectors: Floats, count: int) -> Floats:
    """Return the vectors and noisy copies of them, ``count`` in all."""
    rng = np.random.default_rng(0)
    found = np.empty((count, vectors.shape[1]), np.float32)
    found[: len(vectors)] = vectors
    spread = (LIKENESS**-2 - 1) ** 0.5 / vectors.shape[1] ** 0.5
    for start in range(len(vectors), count, len(vectors)):
        part = vectors[: count - start]
        noisy = part + spread * rng.standard_normal(part.shape, np.float32)
        found[start : start + len(part)] = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    return found


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of some work, and what it gave."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def ours(vectors: Floats, folder: Path) -> Iterator[Made]:
    """Give the package's index: as it answers, and exactly."""

    def build() -> None:
        index = VectorIndex.create(folder, vectors.shape[1], applied=0, fingerprint="benchmark")
        with index.writing() as writer:
            for start in range(0, len(vectors), 8_192):
                part = vectors[start : start + 8_192]
                writer.put(np.arange(start, start + len(part)), part)
                writer.commit(replace(index.cursor, scanned=start))
            writer.commit(replace(index.cursor, scanned=0, is_complete=True))

    seconds, _ = spent(build)

    def near() -> Search:
        index = VectorIndex(folder)
        return lambda query: [num for num, _ in index.search(query[None], LIMIT)[0]]

    def exactly() -> Search:
        index = VectorIndex(folder)
        return lambda query: [num for num, _ in index.search_exactly(query[None], LIMIT)[0]]

    yield Made("askalike: fast scan, best scored exactly", seconds, folder, near)
    yield Made("askalike: all scored exactly, 16 bit", seconds, folder, exactly, SLOW)


def in_numpy(vectors: Floats, folder: Path) -> Iterator[Made]:
    """Give a product with a matrix of float32."""
    path = folder / "vectors.npy"
    np.save(path, vectors)

    def opened() -> Search:
        held = np.load(path)

        def search(query: Floats) -> list[int]:
            scores = held @ query
            best = np.argpartition(scores, len(scores) - LIMIT)[-LIMIT:]
            return [int(at) for at in best[np.argsort(-scores[best])]]

        return search

    yield Made("NumPy, float32", 0.0, path, opened, SLOW)


def graphs(vectors: Floats, folder: Path) -> Iterator[Made]:
    """Give the graphs of three libraries, each with the same links and breadths."""
    count, dimensions = vectors.shape

    def by_faiss() -> Any:
        index = faiss.IndexHNSWFlat(dimensions, LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = index.hnsw.efSearch = BREADTH
        index.add(vectors)
        return index

    path = folder / "faiss"
    seconds, made = spent(by_faiss)
    faiss.write_index(made, str(path))
    del made

    def of_faiss() -> Search:
        index = faiss.read_index(str(path))
        return lambda query: index.search(query[None], LIMIT)[1][0].tolist()

    yield Made("FAISS HNSW", seconds, path, of_faiss)

    def by_hnswlib() -> Any:
        index = hnswlib.Index("ip", dimensions)
        index.init_index(count, M=LINKS, ef_construction=BREADTH, random_seed=0)
        index.add_items(vectors, num_threads=1)
        return index

    other = folder / "hnswlib"
    seconds, made = spent(by_hnswlib)
    made.save_index(str(other))
    del made

    def of_hnswlib() -> Search:
        index = hnswlib.Index("ip", dimensions)
        index.load_index(str(other))
        index.set_ef(BREADTH)
        return lambda query: index.knn_query(query, LIMIT, num_threads=1)[0][0].tolist()

    yield Made("hnswlib", seconds, other, of_hnswlib)

    def by_usearch() -> Any:
        index = usearch.index.Index(
            ndim=dimensions, metric="ip", connectivity=LINKS, expansion_add=BREADTH, expansion_search=BREADTH
        )
        index.add(np.arange(count), vectors, threads=1)
        return index

    third = folder / "usearch"
    seconds, made = spent(by_usearch)
    made.save(str(third))
    del made

    def of_usearch() -> Search:
        index = usearch.index.Index.restore(str(third))
        index.expansion_search = BREADTH
        return lambda query: index.search(query, LIMIT, threads=1).keys.tolist()

    yield Made("usearch", seconds, third, of_usearch)


def size_of(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files)


def measured(made: Made, count: int, queries: Floats, nearest: list[set[int]]) -> dict[str, Any]:
    """Return one row of the table."""
    open_s, search = spent(made.again)
    first_s, _ = spent(lambda: search(queries[-1]))
    runs = [spent(lambda query=query: search(query)) for query in queries[: made.queries]]  # type: ignore[misc]
    recall = np.mean([len(set(found) & true) / LIMIT for (_, found), true in zip(runs, nearest, strict=False)])
    row: dict[str, Any] = {
        "name": made.name,
        "recall_at_10": round(float(recall), 4),
        "build_s": round(made.build_s, 1),
        "bytes_a_vector": round(size_of(made.path) / count),
        "open_s": round(open_s, 3),
        "first_search_s": round(first_s, 3),
    }
    row |= percentiles([seconds for seconds, _ in runs])
    print(row, flush=True)
    return row


def changes(folder: Path, queries: Floats) -> dict[str, Any]:
    """Measure what else is done with an index that was filled: one addition until it is seen, filters, batches."""
    index, reader = VectorIndex(folder), VectorIndex(folder)
    count = index.entries

    def added(step: int) -> None:
        with index.writing() as writer:
            writer.put([count + step], queries[step : step + 1])
            writer.remove([step])
            writer.commit(index.cursor)
        reader.refresh()
        assert reader.search(queries[step : step + 1], 1)[0][0][0] == count + step

    seconds = [spent(lambda step=step: added(step))[0] for step in range(50)]  # type: ignore[misc]
    body: dict[str, Any] = {"add one until it is found": percentiles(seconds)}
    rng = np.random.default_rng(1)
    for share in (0.001, 0.01, 0.1, 0.5):
        allowed = np.flatnonzero(rng.random(count) < share)
        asked = partial(reader.search, limit=LIMIT, allowed=allowed)
        runs = [spent(lambda query=query, asked=asked: asked(query[None])[0]) for query in queries[:SLOW]]  # type: ignore[misc]
        exact = reader.search_exactly(queries[:SLOW], LIMIT, allowed)
        shared = [len(dict(one).keys() & dict(other).keys()) for (_, one), other in zip(runs, exact, strict=True)]
        body[f"{share:.1%} allowed"] = percentiles([seconds for seconds, _ in runs]) | {
            "recall_at_10": round(float(np.mean(shared)) / LIMIT, 4)
        }
    body["200 queries at once, ms each"] = round(1000 * spent(lambda: reader.search(queries, LIMIT))[0] / QUERIES, 2)
    codes = sum(file.stat().st_size for file in folder.glob("*.codes"))
    body["bytes of codes a vector"] = round(codes / count, 1)
    return body


def one_size(vectors: Floats, queries: Floats, *, has_graphs: bool) -> dict[str, Any]:
    products = np.concatenate([vectors[start : start + 65_536] @ queries.T for start in range(0, len(vectors), 65_536)])
    nearest = [set(np.argpartition(-column, LIMIT)[:LIMIT].tolist()) for column in products.T]
    del products
    with tempfile.TemporaryDirectory(dir=WORK) as place:
        folder = Path(place)
        rows = [measured(made, len(vectors), queries, nearest) for made in ours(vectors, folder / "index")]
        extra = changes(folder / "index", queries)
        print(extra, flush=True)
        rows += [measured(made, len(vectors), queries, nearest) for made in in_numpy(vectors, folder)]
        if has_graphs:
            rows += [measured(made, len(vectors), queries, nearest) for made in graphs(vectors, folder)]
    return {"vectors": len(vectors), "dimensions": vectors.shape[1], "rows": rows, "ours": extra}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, help="of the real vectors; a trial, not recorded")
    count = parser.parse_args().count
    faiss.omp_set_num_threads(1)
    vectors = encoded()
    order = np.random.default_rng(2).permutation(len(vectors))
    queries, held = vectors[order[:QUERIES]], vectors[np.sort(order[QUERIES:])][:count]
    sizes = [one_size(held, queries, has_graphs=True)]
    if count is None:
        sizes.append(one_size(copied(held, MILLION), queries, has_graphs=False))
        versions = {name: version(name) for name in ("faiss-cpu", "hnswlib", "usearch")}
        load = round(os.getloadavg()[2], 2)
        write("vector-search", COMMAND, {"rivals": versions, "load_15_min_at_end": load, "sizes": sizes})


if __name__ == "__main__":
    main()
