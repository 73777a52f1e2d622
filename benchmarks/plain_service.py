"""The service beside what one would write in an afternoon: FastAPI, MiniLM through sentence-transformers, FAISS.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.plain_service`` (needs the bench group).
Both answer titles of the forum's questions over connections that ask again at once, each with two workers, in turns;
the client shares their cores.

The plain service (``app``) holds the forum's questions in memory, encodes a title, compares it with all vectors
(``IndexFlatIP``, exact) and returns the ten best with the beginnings of their bodies. It has no words, no probability,
no highlights, no answers, no writes, no limits. Its vectors are drawn by chance in place of MiniLM's of the forum,
which would take an hour to make: what a search costs does not depend on them, and what it finds is not looked at.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from recipes.folders import WORK

from askalike import Forum
from benchmarks.record import option_parser, write
from benchmarks.serve_load import copied, measure, requests, row
from benchmarks.serving import Running, memory_mb, running, serving

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.plain_service"
CONNECTIONS = (1, 16)
SECONDS = 8.0
TURNS = 3
WORKERS = 2
DIMENSIONS = 384
K = 10
SHOWN = 300
FOLDER = "ASKALIKE_PLAIN_SERVICE"


def app() -> Any:
    """Return the plain service, as uvicorn asks for it."""
    import faiss
    import torch
    from fastapi import FastAPI
    from recipes.folders import MINILM
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    folder = Path(os.environ[FOLDER])
    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(np.load(folder / "vectors.npy"))
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    model = SentenceTransformer(str(MINILM), device="cpu")

    def ready() -> dict[str, str]:
        return {"status": "ready"}

    def similar(query: dict[str, Any]) -> dict[str, Any]:
        vector = model.encode([query["title"]], normalize_embeddings=True, show_progress_bar=False)
        scores, numbers = index.search(vector, int(query["k"]))
        hits = zip(scores[0].tolist(), numbers[0].tolist(), strict=True)
        return {"hits": [{"score": score, **questions[number]} for score, number in hits]}

    service = FastAPI()
    service.add_api_route("/readyz", ready)
    service.add_api_route("/v1/similar", similar, methods=["POST"])
    return service


def write_plain(forum: Forum) -> Path:
    """Return the plain service's folder: the forum's questions, and vectors that are drawn by chance."""
    folder = WORK / "plain-service"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows = [
        {"id": question.id, "title": question.title, "body": question.body[:SHOWN]} for question in forum.questions()
    ]
    (folder / "questions.json").write_text(json.dumps(rows), encoding="utf-8")
    vectors = np.random.default_rng(0).standard_normal((len(rows), DIMENSIONS), dtype=np.float32)
    np.save(folder / "vectors.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return folder


def plain(folder: Path) -> AbstractContextManager[Running]:
    """Return a context in which the plain service runs."""
    command = ["uvicorn", "--factory", "benchmarks.plain_service:app", "--workers", str(WORKERS), "--no-access-log"]
    return running(command, folder / "service.log", {FOLDER: str(folder), "HF_HUB_OFFLINE": "1"})


def main() -> None:
    """Measure both in turns and write results/plain-service.json."""
    option_parser(__doc__).parse_args()
    folder = copied()
    with Forum.open(folder) as forum:
        bodies, size, rival = requests(forum, "title"), len(forum), write_plain(forum)
    rows: dict[str, dict[str, list[Any]]] = {}
    memory: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name, serve in (("askalike", serving(folder, "--workers", str(WORKERS))), ("plain", plain(rival))):
            with serve as service:
                asyncio.run(measure(service, bodies, 8, 0, 3.0))  # caches, lazily read files
                for connections in CONNECTIONS:
                    turn = row(asyncio.run(measure(service, bodies, connections, 0, SECONDS)), SECONDS)
                    rows.setdefault(name, {}).setdefault(str(connections), []).append(turn)
                    print(name, connections, turn, flush=True)
                memory[name] = list(memory_mb(service.process.pid))
    ratios = {
        connections: [
            round(ours["per_s"] / theirs["per_s"], 2)
            for ours, theirs in zip(rows["askalike"][connections], rows["plain"][connections], strict=True)
        ]
        for connections in rows["plain"]
    }
    body = {
        "questions": size,
        "workers": WORKERS,
        "seconds each": SECONDS,
        "services": rows,
        "answers a second, askalike by plain": ratios,
        "memory of all workers, MB: own, mapped": memory,
        "load_1_min_at_end": round(os.getloadavg()[0], 2),
    }
    print(ratios, memory)
    write("plain-service", COMMAND, body)


if __name__ == "__main__":
    main()
