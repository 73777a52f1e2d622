"""How fast the bundled encoder and sentence transformers run, beside plain ONNX Runtime in the same run.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime``, with all-MiniLM-L6-v2 in ``ASKALIKE_MINILM``.
The first questions of Reddit, titles alone and whole, cut at 128 pieces, on one thread; rounds of the systems take
turns, and the best round of each counts, since the machine is shared. ``plain ONNX Runtime`` is what its own tool
makes of MiniLM (``quantize_dynamic``, 8 bits, a scale for each output), texts sorted by length, in batches of the size
that is fastest of ``BATCHES``. The cosine is that to MiniLM's vectors in float32.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
import tokenizers
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic
from recipes.folders import MINILM

from askalike.data import general_folder
from askalike.models.general import GeneralEncoder
from askalike.models.transformer import MASKED, Transformer
from askalike.models.transformer_folder import read_folder
from askalike.models.transformer_graph import serialized_graph
from benchmarks.record import option_parser, processor_s, reddit_rows, write

COMMAND: Final = "OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime"
WHOLES: Final = 256
TITLES: Final = 1_024
ROUNDS: Final = 3
PIECES: Final = 128
BATCHES: Final = (1, 8, 32)
ORACLE: Final = "askalike, MiniLM in float32"
PLAIN: Final = "plain ONNX Runtime, MiniLM in 8 bits"
BUNDLED: Final = "the bundled encoder"

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]


class PlainRuntime:
    """MiniLM by ONNX Runtime's own quantisation."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        with tempfile.TemporaryDirectory() as folder:
            whole, small = Path(folder) / "float32.onnx", Path(folder) / "int8.onnx"
            whole.write_bytes(serialized_graph(read_folder(MINILM), "float32"))
            quantize_dynamic(whole, small, weight_type=QuantType.QInt8, per_channel=True)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            self._session = onnxruntime.InferenceSession(small, options, providers=["CPUExecutionProvider"])
        self._tokenizer = tokenizers.Tokenizer.from_file(str(MINILM / "tokenizer.json"))
        self._tokenizer.enable_truncation(PIECES)
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts at length 1.  # (N, D)"""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors = np.empty((len(texts), 384), np.float32)
        for start in range(0, len(order), self._batch):
            places = order[start : start + self._batch]
            vectors[places] = self._encode_batch([texts[place] for place in places])
        return vectors

    def _encode_batch(self, texts: list[str]) -> Vectors:
        pieces: list[Any] = self._tokenizer.encode_batch(texts)
        width = max(len(text.ids) for text in pieces)
        ids = np.zeros((len(pieces), width), np.int64)
        mask = np.zeros((len(pieces), width), bool)
        for row, text in enumerate(pieces):
            ids[row, : len(text.ids)], mask[row, : len(text.ids)] = text.ids, True
        bias = np.where(mask, np.float32(0), MASKED)[:, None, None, :]
        [states] = self._session.run(None, {"ids": ids, "positions": np.arange(width), "bias": bias})
        means: Vectors = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        vectors: Vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors


def measure(systems: dict[str, Encode]) -> dict[str, dict[str, float]]:
    """Return how many titles and wholes a second each system reads, and how near its vectors are to the oracle's."""
    rows = list(reddit_rows(TITLES))
    texts = {
        "titles": [row["title"] for row in rows],
        "wholes": [f"{row['title']}\n{row['body']}" for row in rows[:WHOLES]],
    }
    expected = systems[ORACLE](texts["wholes"])
    measured: dict[str, dict[str, float]] = {}
    for name, encode in systems.items():
        cosines = np.einsum("nd,nd->n", encode(texts["wholes"]), expected)
        measured[name] = {"mean_cosine": round(float(cosines.mean()), 4)}
    for _ in range(ROUNDS):
        for name, encode in systems.items():
            for kind, of_kind in texts.items():
                rate = len(of_kind) / processor_s(lambda encode=encode, of_kind=of_kind: encode(of_kind))  # type: ignore[misc]
                key = f"{kind}_per_cpu_s"
                measured[name][key] = max(measured[name].get(key, 0.0), round(rate, 1))
    for kind in texts:
        key = f"{kind}_per_cpu_s"
        plain = max(row[key] for name, row in measured.items() if name.startswith(PLAIN))
        for row in measured.values():
            row[f"{kind}_times_plain"] = round(row[key] / plain, 2)
    return measured


def main() -> None:
    """Measure and write results/transformer-runtime.json."""
    option_parser(__doc__).parse_args()
    bundled = general_folder()
    assert bundled is not None, "the package carries no encoder"
    folder = replace(read_folder(MINILM), max_pieces=PIECES)
    systems: dict[str, Encode] = {
        ORACLE: Transformer(folder, threads=1).encode_document,
        **{f"{PLAIN}, batches of {size}": PlainRuntime(size).encode for size in BATCHES},
        BUNDLED: GeneralEncoder(bundled, threads=1).encode_document,
    }
    rows = measure(systems)
    for name, row in rows.items():
        print(name, row)
    load = round(os.getloadavg()[0], 1)
    write("transformer-runtime", COMMAND, {"one_thread": {"load": load, "systems": rows}})


if __name__ == "__main__":
    main()
