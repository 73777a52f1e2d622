"""Nearest vectors: the package's index beside exact search and three graphs, in one run.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.vector_search`` (needs the bench group). The vectors are those of all
Reddit questions by the bundled encoder, but for 200 that are queries. The second size are a million: these, and copies
with noise, by which a copy has a cosine of .8 with what it was made of. Graphs are built for the real ones only. All
times are processor time of one thread. Recall@10 is the share of the ten nearest by a product of float32 matrices.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Final

import faiss
import numpy as np
from numpy.typing import NDArray
from recipes.folders import WORK

from askalike.data import general_folder
from askalike.index.vectors import VectorIndex
from askalike.models.general import READ_CHARACTERS, general_encoder
from askalike.models.text_encoder import text_of
from benchmarks.record import option_parser, percentiles, processor_s, reddit_questions, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.vector_search"
LIMIT: Final = 10
QUERIES: Final = 200
EXHAUSTIVE: Final = 40
"""Queries of indexes that compare all vectors."""
MILLION: Final = 1_000_000
LIKENESS: Final = 0.8
LINKS, BREADTH = 16, 80
"""M, and efConstruction and efSearch, of every graph."""
BLOCK: Final = 8_192

Floats = NDArray[np.float32]
Search = Callable[[Floats], list[int]]


@dataclass(frozen=True, slots=True)
class Index:
    """Something that finds vectors.

    Args:
        build_s: what it took to make.
        path: where it lies on disk, one file or folder.
        load: reads it, and gives its search.
    """

    name: str
    build_s: float
    path: Path
    load: Callable[[], Search]
    queries: int = QUERIES


def encoded() -> Floats:
    """Return the vectors of the Reddit questions (N, D), made once."""
    kept = WORK / "reddit-vectors.npy"
    if not kept.exists():
        folder = general_folder()
        assert folder is not None, "the package carries no encoder"
        encoder, questions, parts = general_encoder(folder), reddit_questions(), []
        while part := list(islice(questions, 4096)):
            parts.append(encoder.encode_document([text_of(question, READ_CHARACTERS) for question in part]))
        WORK.mkdir(parents=True, exist_ok=True)
        np.save(kept, np.concatenate(parts))
    vectors: Floats = np.load(kept)
    return vectors


def with_copies(vectors: Floats, count: int) -> Floats:
    """Return the vectors and noisy copies of them, ``count`` in all."""
    rng, size = np.random.default_rng(0), vectors.shape[1]
    every = np.empty((count, size), np.float32)
    every[: len(vectors)] = vectors
    spread = (LIKENESS**-2 - 1) ** 0.5 / size**0.5
    for start in range(len(vectors), count, len(vectors)):
        part = vectors[: count - start]
        noisy = part + spread * rng.standard_normal(part.shape, np.float32)
        every[start : start + len(part)] = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    return every


def own_index(vectors: Floats, folder: Path) -> Iterator[Index]:
    """Yield the package's index: as it answers, and exactly."""

    def build() -> None:
        index = VectorIndex.create(folder, vectors.shape[1], applied=0, fingerprint="benchmark")
        with index.writing() as writer:
            for start in range(0, len(vectors), BLOCK):
                part = vectors[start : start + BLOCK]
                writer.put(np.arange(start, start + len(part)), part)
                writer.commit(replace(index.cursor, scanned=start))
            writer.commit(replace(index.cursor, scanned=0, is_complete=True))

    def load(method: str) -> Search:
        search = getattr(VectorIndex(folder), method)
        return lambda query: [number for number, _ in search(query[None], LIMIT)[0]]

    seconds = processor_s(build)
    yield Index("askalike: fast scan, best scored exactly", seconds, folder, partial(load, "search"))
    yield Index("askalike: all scored exactly, 16 bit", seconds, folder, partial(load, "search_exactly"), EXHAUSTIVE)


def in_numpy(vectors: Floats, folder: Path) -> Iterator[Index]:
    """Yield a product with a matrix of float32."""
    path = folder / "vectors.npy"
    np.save(path, vectors)

    def load() -> Search:
        matrix = np.load(path)

        def search(query: Floats) -> list[int]:
            scores = matrix @ query
            best = np.argpartition(scores, len(scores) - LIMIT)[-LIMIT:]
            return [int(place) for place in best[np.argsort(-scores[best])]]

        return search

    yield Index("NumPy, float32", 0.0, path, load, EXHAUSTIVE)


def graphs(vectors: Floats, folder: Path) -> Iterator[Index]:
    """Yield the graphs of three libraries, each with the same links and breadths."""
    import hnswlib
    import usearch.index

    count, size = vectors.shape

    def build_faiss(path: Path) -> None:
        index = faiss.IndexHNSWFlat(size, LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = index.hnsw.efSearch = BREADTH
        index.add(vectors)
        faiss.write_index(index, str(path))

    def load_faiss(path: Path) -> Search:
        index = faiss.read_index(str(path))
        return lambda query: index.search(query[None], LIMIT)[1][0].tolist()

    def build_hnswlib(path: Path) -> None:
        index = hnswlib.Index("ip", size)
        index.init_index(count, M=LINKS, ef_construction=BREADTH, random_seed=0)
        index.add_items(vectors, num_threads=1)
        index.save_index(str(path))

    def load_hnswlib(path: Path) -> Search:
        index = hnswlib.Index("ip", size)
        index.load_index(str(path))
        index.set_ef(BREADTH)
        return lambda query: index.knn_query(query, LIMIT, num_threads=1)[0][0].tolist()

    def build_usearch(path: Path) -> None:
        index = usearch.index.Index(
            ndim=size, metric="ip", connectivity=LINKS, expansion_add=BREADTH, expansion_search=BREADTH
        )
        index.add(np.arange(count), vectors, threads=1)
        index.save(str(path))

    def load_usearch(path: Path) -> Search:
        index = usearch.index.Index.restore(str(path))
        index.expansion_search = BREADTH
        return lambda query: index.search(query, LIMIT, threads=1).keys.tolist()

    libraries: dict[str, tuple[Callable[[Path], None], Callable[[Path], Search]]] = {
        "FAISS HNSW": (build_faiss, load_faiss),
        "hnswlib": (build_hnswlib, load_hnswlib),
        "usearch": (build_usearch, load_usearch),
    }
    for name, (build, load) in libraries.items():
        path = folder / name
        yield Index(name, processor_s(partial(build, path)), path, partial(load, path))


def measured(index: Index, count: int, queries: Floats, nearest: list[set[int]]) -> dict[str, Any]:
    """Return one row of the table."""
    loaded: list[Search] = []
    open_s = processor_s(lambda: loaded.append(index.load()))
    (search,) = loaded
    search(queries[-1])  # reads what is read lazily
    seconds, shares = [], []
    for query, true in zip(queries[: index.queries], nearest, strict=False):
        seconds.append(processor_s(partial(search, query)))
        shares.append(len(set(search(query)) & true) / LIMIT)
    files = index.path.iterdir() if index.path.is_dir() else [index.path]
    row: dict[str, Any] = {
        "name": index.name,
        "recall_at_10": round(float(np.mean(shares)), 4),
        "build_s": round(index.build_s, 1),
        "bytes_a_vector": round(sum(file.stat().st_size for file in files) / count),
        "open_s": round(open_s, 3),
        **percentiles(seconds),
    }
    print(row, flush=True)
    return row


def one_size(vectors: Floats, queries: Floats, *, has_graphs: bool) -> dict[str, Any]:
    """Return the rows of one number of vectors."""
    products = np.concatenate([vectors[start : start + 65_536] @ queries.T for start in range(0, len(vectors), 65_536)])
    nearest = [set(np.argpartition(-column, LIMIT)[:LIMIT].tolist()) for column in products.T]
    del products
    with tempfile.TemporaryDirectory(dir=WORK) as work:
        makers = (own_index, in_numpy, graphs) if has_graphs else (own_index, in_numpy)
        rows = []
        for make in makers:
            folder = Path(work) / make.__name__
            if make is not own_index:
                folder.mkdir()
            rows += [measured(index, len(vectors), queries, nearest) for index in make(vectors, folder)]
    return {"vectors": len(vectors), "dimensions": vectors.shape[1], "rows": rows}


def main() -> None:
    """Measure and write results/vector-search.json."""
    parser = option_parser(__doc__)
    parser.add_argument("--count", type=int, help="of the real vectors; a trial, not recorded")
    count = parser.parse_args().count
    faiss.omp_set_num_threads(1)
    vectors = encoded()
    order = np.random.default_rng(2).permutation(len(vectors))
    queries, indexed = vectors[order[:QUERIES]], vectors[np.sort(order[QUERIES:])][:count]
    sizes = [one_size(indexed, queries, has_graphs=True)]
    if count is None:
        sizes.append(one_size(with_copies(indexed, MILLION), queries, has_graphs=False))
        versions = {name: version(name) for name in ("faiss-cpu", "hnswlib", "usearch")}
        load = round(os.getloadavg()[2], 2)
        write("vector-search", COMMAND, {"rivals": versions, "load_15_min_at_end": load, "sizes": sizes})


if __name__ == "__main__":
    main()
