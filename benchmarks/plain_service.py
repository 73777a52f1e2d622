"""The service beside what one would write in an afternoon: FastAPI, MiniLM through sentence-transformers, FAISS.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.plain_service`` (needs the bench group).
Both answer titles of the forum's questions over so many connections that ask again at once, each
with two workers, one after the other in turns; the client shares their cores.

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
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from recipes.folders import WORK

from askalike import Forum
from benchmarks.record import option_parser, write
from benchmarks.serve_load import copied, measure, requests, row
from benchmarks.serving import Running, memory_mb, serving

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.plain_service"
CONNECTIONS = (1, 16)
SECONDS = 8.0
TURNS = 3
WORKERS = 2
DIMENSIONS = 384
K = 10
SHOWN = 300
FOLDER = "ASKALIKE_PLAIN_SERVICE"
LONGEST_START_S = 240.0


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

    def similar(asked: dict[str, Any]) -> dict[str, Any]:
        vector = model.encode([asked["title"]], normalize_embeddings=True, show_progress_bar=False)
        scores, numbers = index.search(vector, int(asked["k"]))
        found = zip(scores[0].tolist(), numbers[0].tolist(), strict=True)
        return {"hits": [{"score": score, **questions[number]} for score, number in found]}

    made = FastAPI()
    made.add_api_route("/readyz", ready)
    made.add_api_route("/v1/similar", similar, methods=["POST"])
    return made


def laid_out(forum: Forum) -> Path:
    """Return a folder with the forum's questions, and vectors of them that are drawn by chance."""
    folder = WORK / "plain-service"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    held = [{"id": one.id, "title": one.title, "body": one.body[:SHOWN]} for one in forum.questions()]
    (folder / "questions.json").write_text(json.dumps(held), encoding="utf-8")
    vectors = np.random.default_rng(0).standard_normal((len(held), DIMENSIONS), dtype=np.float32)
    np.save(folder / "vectors.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return folder


@contextmanager
def plain(folder: Path) -> Iterator[Running]:
    """Serve it on a free port; it is ready when this gives it, and stopped at the end."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--factory", "benchmarks.plain_service:app", "--port", str(port)]
    told = {**os.environ, FOLDER: str(folder), "HF_HUB_OFFLINE": "1"}
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--workers", str(WORKERS), "--no-access-log"],
            env=told,
            stderr=log,
            stdout=log,
            start_new_session=True,
        )
        try:
            end = time.monotonic() + LONGEST_START_S
            while True:
                with suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
                    break
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"the plain service did not start: {folder / 'service.log'}")
                time.sleep(0.2)
            yield Running(process, port)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def main() -> None:
    """Measure both in turns and write results/plain-service.json."""
    option_parser(__doc__).parse_args()
    folder = copied()
    with Forum.open(folder) as forum:
        bodies, held, rival = requests(forum, "title"), len(forum), laid_out(forum)
    rows: dict[str, dict[str, list[Any]]] = {}
    memory: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name, serve in (("askalike", serving(folder, "--workers", str(WORKERS))), ("plain", plain(rival))):
            with serve as running:
                asyncio.run(measure(running, bodies, 8, 0, 3.0))  # caches, lazily read files
                for connections in CONNECTIONS:
                    found = row(asyncio.run(measure(running, bodies, connections, 0, SECONDS)), SECONDS)
                    rows.setdefault(name, {}).setdefault(str(connections), []).append(found)
                    print(name, connections, found, flush=True)
                memory[name] = list(memory_mb(running.process.pid))
    ratios = {
        connections: [
            round(ours["per_s"] / theirs["per_s"], 2)
            for ours, theirs in zip(rows["askalike"][connections], rows["plain"][connections], strict=True)
        ]
        for connections in rows["plain"]
    }
    body = {
        "questions": held,
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
