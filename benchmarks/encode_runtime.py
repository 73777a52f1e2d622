"""How fast encoders run without torch: questions a second, and the latency of one query, on Reddit questions.

Command: ``python -m benchmarks.encode_runtime [--model FOLDER]``. Each kind has random weights of the sizes named:
speed does not depend on their values. Words are real, since a batch multiplies each distinct word once. The number of
threads is that of the process: set ``OMP_NUM_THREADS`` (and ``OMP_WAIT_POLICY=PASSIVE``). Each figure is the best of
several runs; latencies are percentiles. The model is the package's own unless one is named.

The rival, all-MiniLM-L6-v2 through sentence-transformers with two threads, encodes the first of the same questions,
turn by turn with the model in NumPy and in torch (two threads too), so that what else the machine does falls on all;
``--no-rival`` leaves it out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from askalike.data import default_model
from askalike.models.encoders.model import Model
from askalike.models.encoders.networks.encoder import from_arrays
from askalike.models.encoders.runtime import Runtime
from askalike.models.encoders.settings import EncoderConfig, Kind, ModelSettings
from askalike.models.vocabulary import QuestionReader, Vocabulary
from askalike.text.markup import plain_text
from askalike.text.tokens import words
from askalike.training.corpus import WordList
from askalike.training.objectives import TextNetwork
from askalike.types import Question
from benchmarks.minilm import MiniLM
from benchmarks.record import need_data, percentiles, write

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.encode_runtime"
INPUT, HIDDEN, ORDER = 200, 400, 2
TEXTS, WORDS = 256, 100
QUESTIONS = 2_000
QUERIES = 200
RIVAL_QUESTIONS = 512
RIVAL_THREADS = 2
ROUNDS = 3
KINDS: tuple[Kind, ...] = ("rcnn", "lstm", "gru", "cnn")


def read_questions(count: int) -> list[Question]:
    """Return the first questions of the Reddit set."""
    with gzip.open(need_data("reddit/questions.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = map(json.loads, islice(lines, count))
        return [Question(row["id"], row["title"], row["body"], "markdown") for row in rows]


def random_model(kind: Kind, vocabulary: Vocabulary) -> Model:
    """Return a model of the sizes above with random numbers."""
    encoder = EncoderConfig(kind, INPUT, HIDDEN, ORDER)
    chance = np.random.default_rng(0)
    embedding = chance.standard_normal((len(vocabulary), INPUT), dtype=np.float32)
    shapes = encoder.shapes()
    parameters = {name: 0.05 * chance.standard_normal(shapes[name], dtype=np.float32) for name in shapes}
    return Model.build(ModelSettings(encoder, embedding_precision="int8"), vocabulary, embedding, parameters)


def best_s(run: Callable[[], object], times: int = 3) -> float:
    """Return the shortest of several runs in seconds, after one that is not counted."""
    run()
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return min(found)


def forward(model: Model, texts: list[list[str]]) -> dict[str, float]:
    """Return the seconds of one batch of full texts, from the vectors of its distinct words as a model does."""
    runtime = Runtime(model.settings.encoder, model.parameters())
    ids = np.array([model.vocabulary.ids(text) for text in texts]).T  # (T, B)
    lengths = np.full(TEXTS, WORDS)
    distinct, places = np.unique(ids, return_inverse=True)
    places = places.reshape(ids.shape)
    table = model.embedding()[distinct]
    return {
        "words_s": round(best_s(lambda: runtime.pooled(table, places, lengths)), 3),
        "distinct_words": len(distinct),
    }


def latencies(encode: Callable[[str], object], queries: list[str]) -> dict[str, float]:
    """Return the latencies of single queries, after a short warm-up."""
    seconds: list[float] = []
    for query in (*queries[:20], *queries):
        began = time.perf_counter()
        encode(query)
        seconds.append(time.perf_counter() - began)
    return percentiles(seconds[20:])


def beside_rival(model: Model, sample: list[Question], queries: list[str]) -> dict[str, Any]:
    """Return what the rival and one of our models reach on the same questions, turn by turn."""
    rival = MiniLM(RIVAL_THREADS, cache=None)
    few = sample[:RIVAL_QUESTIONS]
    rival.encode(few[:32])
    systems = {"askalike": model.encode, "askalike, torch": in_torch(model), "minilm": rival.encode}
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for encode in systems.values():
        encode(few[:32])
    for _ in range(ROUNDS):
        for name, encode in systems.items():
            began = time.perf_counter()
            encode(few)
            seconds[name].append(time.perf_counter() - began)
    rates = {name: round(len(few) / min(found), 1) for name, found in seconds.items()}
    return {
        "rival": "all-MiniLM-L6-v2",
        "rival_threads": RIVAL_THREADS,
        "questions": len(few),
        "questions_per_s": rates,
        "times_as_fast": {name: round(min(seconds["minilm"]) / min(found), 1) for name, found in seconds.items()},
        "times_as_fast_by_round": {
            name: [round(theirs / ours, 1) for ours, theirs in zip(found, seconds["minilm"], strict=True)]
            for name, found in seconds.items()
        },
        f"rival: query of {WORDS} words": latencies(lambda query: rival.encode([Question("", query)]), queries[:50]),
    }


def in_torch(model: Model) -> Callable[[list[Question]], NDArray[np.float32]]:
    """Return what encodes questions by the model's network in torch, from text."""
    torch.set_num_threads(RIVAL_THREADS)
    encoder = from_arrays(model.settings.encoder, model.parameters())
    network = TextNetwork(encoder, torch.from_numpy(model.embedding()))
    reader = QuestionReader(model.settings.reads, model.settings.word_limit, model.settings.stems)

    def encode(questions: list[Question]) -> NDArray[np.float32]:
        read = WordList(part for question in questions for part in (reader.title(question), reader.body(question)))
        vectors = network.all_questions(read.over(model.vocabulary))
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))

    few = read_questions(20)
    assert np.allclose(encode(few), model.encode(few), atol=1e-4), "torch and NumPy differ"
    return encode


def measured(model: Model, sample: list[Question], long: list[list[str]]) -> dict[str, Any]:
    """Return everything that is measured of one model alone."""
    queries = [" ".join(text) for text in long[:QUERIES]]
    seconds = best_s(lambda: model.encode(sample), 2)
    return {
        "parameters": model.settings.encoder.parameter_count(),
        f"batch of {TEXTS} texts of {WORDS} words": forward(model, long),
        "questions_per_s (title + body, from text)": round(len(sample) / seconds),
        f"query of {WORDS} words": latencies(lambda query: model.encode_text([query]), queries),
    }


def main() -> None:
    """Measure every kind, or a model, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=default_model(), help="a model's folder")
    parser.add_argument("--no-rival", action="store_true", help="leave MiniLM out")
    given = parser.parse_args()
    questions = read_questions(20_000)
    texts = [f"{question.title}\n{plain_text(question.body, question.markup)}" for question in questions]
    vocabulary = Vocabulary.build(texts, min_count=3, max_size=60_000)
    long = [found[:WORDS] for text in texts if len(found := words(text)) >= WORDS][:TEXTS]
    sample = questions[:QUESTIONS]
    kinds: dict[str, Any] = {}
    for kind in KINDS:
        kinds[kind] = measured(random_model(kind, vocabulary), sample, long)
        print(kind, kinds[kind], flush=True)
    body: dict[str, Any] = {
        "sizes": [INPUT, HIDDEN, ORDER],
        "threads": {name: os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY")},
        "kinds": kinds,
    }
    model = Model.load(given.model)
    body["model"] = {"encoder": model.settings.encoder.to_json(), **measured(model, sample, long)}
    print("model", body["model"], flush=True)
    if not given.no_rival:
        body["beside_rival"] = beside_rival(model, sample, [" ".join(text) for text in long])
        print("beside the rival", body["beside_rival"], flush=True)
    write("encode-runtime", COMMAND, body)


if __name__ == "__main__":
    main()
