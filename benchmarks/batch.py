"""Batches of Reddit's questions: Ray beside a plain pool, killed and gone on with, and beside the forum's own pairs.

Command: ``python -m benchmarks.batch [throughput|kill|pairs …]``; those that are not
named are kept as they were.

throughput: 100,000 questions in parts of 5,000, two at a time, which a pool of two processes and two workers of Ray
encode in turn, first one and then the other; a ratio of seconds, since both have the same machine at the same time.
kill: the command that encodes them is killed (SIGKILL) with its workers after three parts, or by Ray with one of Ray's
workers; the same command then makes what is missing.
pairs: 20,000 questions as a forum compares them and as a batch does: recall of the forum's pairs, processor time of the
batch with its workers, and the groups, of both kinds of workers and of the forum.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.ray_server import ray_environment

from askalike import Forum, batch
from askalike.batch.clusters import Cluster, LocalCluster, RayCluster
from askalike.batch.tasks import Folder, Order
from benchmarks.record import RESULTS, WORK, processor_total_s, reddit_rows, write, write_reddit

COMMAND: Final = "python -m benchmarks.batch"
QUESTIONS, PART, COMPARED, WORKERS, KILLED_AFTER = 100_000, 5_000, 20_000, 2, 3
FOLDER: Final = WORK / "batch"


def parts() -> list[Path]:
    """Return the questions as Parquet files."""
    import pyarrow
    from pyarrow import parquet

    folder = FOLDER / "questions"
    if not folder.exists():
        folder.mkdir(parents=True)
        rows = [{name: row[name] for name in ("id", "title", "body")} for row in reddit_rows(QUESTIONS)]
        for start in range(0, QUESTIONS, PART):
            table = pyarrow.Table.from_pylist(rows[start : start + PART])
            parquet.write_table(table, folder / f"part-{start // PART:05d}.parquet")
    return sorted(folder.iterdir())


def throughput() -> dict[str, Any]:
    """Return the seconds of both, in turn, and the ratio of questions a second."""
    listed = parts()
    seconds: dict[str, list[float]] = {"pool": [], "ray": []}
    clusters: dict[str, Cluster] = {"pool": LocalCluster(WORKERS), "ray": RayCluster("ray", WORKERS)}
    try:
        for name, cluster in clusters.items():
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            batch.encode(listed[:WORKERS], FOLDER / name / "warm", cluster=cluster, workers=WORKERS)
        for start in range(0, len(listed), WORKERS):
            for name, cluster in sorted(clusters.items(), reverse=start % (2 * WORKERS) > 0):
                orders = [
                    Order("encode", str(FOLDER / name / "warm"), place + len(listed), str(listed[place]))
                    for place in range(start, start + WORKERS)
                ]
                began = time.perf_counter()
                answers = list(cluster.answers(list(map(msgspec.msgpack.encode, orders))))
                seconds[name].append(round(time.perf_counter() - began, 3))
                assert len(answers) == WORKERS
            print({name: one[-1] for name, one in seconds.items()}, flush=True)
    finally:
        for cluster in clusters.values():
            cluster.close()
    total = {name: round(sum(one), 1) for name, one in seconds.items()}
    share = round(total["pool"] / total["ray"], 3)
    return {"questions": QUESTIONS, "seconds": total, "rounds": seconds, "share_of_pool": share}


def killed(cluster: str) -> dict[str, Any]:
    """Return what was there after the kill, what was made again, and how many questions there are then."""
    from pyarrow import parquet

    out = FOLDER / f"killed-{cluster}"
    shutil.rmtree(out, ignore_errors=True)
    words = ["batch", "encode", str(FOLDER / "questions"), "--into", str(out), "--cluster", cluster]
    command = [sys.executable, "-m", "askalike", *words, "--workers", str(WORKERS), "--json"]
    parts()
    driver = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    made = out / "vectors"
    while driver.poll() is None and len(list(made.glob("part-*"))) < KILLED_AFTER:
        time.sleep(0.05)
    workers = _workers_of_ray() if cluster == "ray" else []
    for pid in workers[:1]:
        os.kill(pid, signal.SIGKILL)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    time.sleep(1)
    kept = {path.name: path.stat().st_mtime_ns for path in made.glob("part-*")}
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    done = json.loads(again.stdout)
    touched = sum(path.stat().st_mtime_ns != kept.get(path.name) for path in made.glob("part-*"))
    ids = [one for path in sorted(made.glob("part-*")) for one in parquet.read_table(path)["id"].to_pylist()]
    found = {
        "parts": done["parts"],
        "there_after_kill": len(kept),
        "made_again": touched,
        "rows": len(ids),
        "distinct": len(set(ids)),
    }
    print(cluster, found, flush=True)
    return found


def _workers_of_ray() -> list[int]:
    """Return the processes that are at a task of a batch."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if (path / "cmdline").read_bytes().startswith(b"ray::answer"):
                    found.append(int(path.name))
            except OSError:
                continue
    return found


def compared() -> dict[str, Any]:
    """Return how a batch's pairs and groups agree with the forum's."""
    from pyarrow import parquet

    source = FOLDER / "forum"
    with Forum.open(source) if source.exists() else Forum.create(source) as forum:
        if not len(forum):
            forum.load(write_reddit(FOLDER / "questions.jsonl", COMPARED))
        forum.compare()
        known = {frozenset((one.question.id, one.candidate.id)): one.score for one in forum.duplicates(0.1)}
        own = {frozenset(group.members) for group in forum.groups()}
    before = processor_total_s()
    for name in ("local", "ray"):
        shutil.rmtree(FOLDER / f"compared-{name}", ignore_errors=True)
    began = time.perf_counter()
    done = batch.groups(source, FOLDER / "compared-local", workers=WORKERS)
    wall_s, processor_s = time.perf_counter() - began, processor_total_s() - before
    batch.groups(source, FOLDER / "compared-ray", cluster="ray", workers=WORKERS)
    rows = parquet.read_table(FOLDER / "compared-local" / "pairs.parquet").to_pylist()
    found = {frozenset((row["id"], row["original_id"])): row["probability"] for row in rows}
    grouped = [_groups(Folder(FOLDER / f"compared-{name}").groups) for name in ("local", "ray")]
    recall = {}
    for least in (0.1, 0.3, 0.5, 0.8):
        wanted = {ends for ends, score in known.items() if score >= least}
        recall[str(least)] = {"pairs": len(wanted), "recall": round(len(wanted & found.keys()) / len(wanted), 4)}
    result = {
        "questions": done.questions,
        "recall": recall,
        "processor_ms": round(1000 * processor_s / done.questions, 2),
        "seconds": round(wall_s, 1),
        "groups": {
            "forum": len(own),
            "local": len(grouped[0]),
            "same_as_forum": len(own & grouped[0]),
            "same_as_ray": len(grouped[0] & grouped[1]),
        },
    }
    print(result, flush=True)
    return result


def _groups(path: Path) -> set[frozenset[str]]:
    from pyarrow import parquet

    found: dict[int, list[str]] = defaultdict(list)
    for row in parquet.read_table(path).to_pylist():
        found[row["group"]].append(row["id"])
    return set(map(frozenset, found.values()))


def main(wanted: Sequence[str]) -> None:
    """Measure and write results/batch.json."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "batch.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    body = {name: kept[name] for name in ("throughput", "kill", "pairs") if name in kept}
    with ray_environment() as joined:
        os.environ.update(joined)  # before ray is imported
        if "throughput" in wanted:
            body["throughput"] = throughput()
        if "kill" in wanted:
            body["kill"] = {cluster: killed(cluster) for cluster in ("local", "ray")}
        if "pairs" in wanted:
            body["pairs"] = compared()
    write("batch", COMMAND, {"load_average": os.getloadavg(), **body})


if __name__ == "__main__":
    main(sys.argv[1:] or ("throughput", "kill", "pairs"))
