"""Damage test: every file of a forum is damaged in 30 ways, and what the forum answers then is compared.

Command: ``python -m benchmarks.damage``. A forum of Reddit questions is made with everything that a forum can have:
words, vectors of an own model, a learned ranker, pairs, judgements, keys. Then, for each of its files and each kind of
damage, in a fresh copy and a process of its own:

1. ``Forum.check`` looks at the damaged copy;
2. it is opened and searched, with every ranker and with filters; its pairs and counts are read;
3. ``Forum.repair`` mends it;
4. it is searched and checked again.

An answer that differs from that of the undamaged forum, and is no error with advice, must have been seen by
the check. Nothing may end in a traceback or a crash. Whatever is not the archive or learned must answer as before
after the repair. Numbers are compared to five digits.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import re
import shutil
import sqlite3
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import Any, Final

import numpy as np
from recipes.folders import WORK

from askalike import Filters, Forum, Model, Question
from askalike.errors import AskalikeError
from askalike.forum import ImportOptions
from askalike.forum.check import CheckReport
from askalike.models.encoders.settings import EncoderConfig, ModelSettings
from askalike.models.vocabulary import Vocabulary
from askalike.server.guards import Keys
from askalike.text.tokens import words
from benchmarks.record import option_parser, write, write_reddit

COMMAND = "python -m benchmarks.damage"
QUESTIONS: Final = 300
EDITED: Final = 20
WORDS: Final = 4000
SIZE: Final = 24
QUERIES: Final = 3
RANKERS: Final = ("probability", "words", "meaning")
SECONDS: Final = 120
MASTER: Final = WORK / "damage.forum"
ROUNDS: Final = WORK / "damage-rounds.jsonl"
"""The outcome of each round."""

LEARNED: Final = ("archive.sqlite", "keys.json")
"""Beginnings of the paths of what cannot be made anew."""

Damage = Callable[[Path, random.Random, Path], None]


# -- kinds of damage -----------------------------------------------------------------------------------------------


def overwrite(path: Path, content: bytes) -> None:
    """Write a file anew whose old content may be shared with other copies."""
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(content)
    path.chmod(mode)


def flip(where: Callable[[int, random.Random], int], count: int = 1) -> Damage:
    """Return a damage that changes bytes from a place on, each to another value."""

    def apply(path: Path, chance: random.Random, _: Path) -> None:
        content = bytearray(path.read_bytes() or b"\0")
        at = where(len(content), chance)
        for place in range(at, min(at + count, len(content))):
            content[place] ^= chance.randrange(1, 256)
        overwrite(path, bytes(content))

    return apply


def little(path: Path, chance: random.Random, _: Path) -> None:
    """Change a digit where the file is JSON, else a bit: the file still looks sound."""
    content = bytearray(path.read_bytes() or b"\0")
    digits = [match.start() for match in re.finditer(rb"\d", content)] if path.suffix == ".json" else []
    if digits:
        at = chance.choice(digits)
        content[at] = chance.choice([digit for digit in b"0123456789" if digit != content[at]])
    else:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    overwrite(path, bytes(content))


def cut(size: Callable[[int, random.Random], int]) -> Damage:
    """Return a damage that leaves only the beginning of a file."""

    def apply(path: Path, chance: random.Random, _: Path) -> None:
        content = path.read_bytes()
        overwrite(path, content[: size(len(content), chance)] if content else b"x")

    return apply


def zeros(path: Path, chance: random.Random, _: Path) -> None:
    """Fill a page of 4 kB with zeros, as some disks leave it."""
    content = bytearray(path.read_bytes() or b"x")
    at = 4096 * chance.randrange(max(1, len(content) // 4096))
    stop = min(at + 4096, len(content))
    content[at:stop] = bytes(stop - at)
    overwrite(path, bytes(content))


def other_file(path: Path, chance: random.Random, forum: Path) -> Path:
    """Return another file of the forum, one of the same kind where there is one."""
    others = [file for file in sorted(forum.rglob("*")) if file.is_file() and file != path and file.stat().st_size]
    if not path.relative_to(forum).as_posix().startswith(LEARNED):  # else it is their damage that is counted
        others = [file for file in others if not file.relative_to(forum).as_posix().startswith(LEARNED)]
    return chance.choice([file for file in others if file.suffix == path.suffix] or others)


def swapped(path: Path, chance: random.Random, forum: Path) -> None:
    """Exchange the contents of two files."""
    other = other_file(path, chance, forum)
    first, second = path.read_bytes(), other.read_bytes()
    overwrite(path, second)
    overwrite(other, first)


def replaced(path: Path, chance: random.Random, forum: Path) -> None:
    """Put a copy of another file in its place."""
    overwrite(path, other_file(path, chance, forum).read_bytes())


def folder(path: Path, _: random.Random, __: Path) -> None:
    """Put a folder in its place."""
    path.unlink()
    path.mkdir()


def dangling(path: Path, _: random.Random, __: Path) -> None:
    """Put a link to nothing in its place."""
    path.unlink()
    path.symlink_to(path.with_name("nothing"))


def forbidden(path: Path, _: random.Random, __: Path) -> None:
    """Take away all rights to read or write it."""
    overwrite(path, path.read_bytes())
    path.chmod(0)


DAMAGES: Final[Mapping[str, Damage]] = {
    "first byte": flip(lambda size, _: 0),
    "last byte": flip(lambda size, _: size - 1),
    **{f"byte {number}": flip(lambda size, chance: chance.randrange(size)) for number in range(1, 9)},
    **{f"digit or bit {number}": little for number in range(1, 4)},
    **{f"sixteen bytes {number}": flip(lambda size, chance: chance.randrange(size), 16) for number in range(1, 4)},
    "page of zeros 1": zeros,
    "page of zeros 2": zeros,
    "emptied": cut(lambda size, _: 0),
    "last byte cut off": cut(lambda size, _: size - 1),
    "half cut off": cut(lambda size, _: size // 2),
    "cut off somewhere": cut(lambda size, chance: chance.randrange(size)),
    "a byte more": lambda path, _, __: overwrite(path, path.read_bytes() + b"\0"),
    "hundred bytes more": lambda path, chance, _: overwrite(path, path.read_bytes() + chance.randbytes(100)),
    "deleted": lambda path, _, __: path.unlink(),
    "swapped": swapped,
    "replaced by another": replaced,
    "a folder in its place": folder,
    "a link to nothing": dangling,
    "forbidden": forbidden,
}


# -- the forum and its answers -------------------------------------------------------------------------------------


def build_master() -> None:
    """Build the forum that is damaged, with two commits in each index."""
    shutil.rmtree(MASTER, ignore_errors=True)
    lines = write_reddit(WORK / "damage.jsonl", QUESTIONS)
    with lines.open("a", encoding="utf-8") as file:
        file.write('{"id": "broken"\n')
    with Forum.create(MASTER) as forum:
        forum.load(lines, options=ImportOptions(format="jsonl", source="reddit"))
        questions = list(forum.questions())
        model(questions).save(WORK / "damage.model")
        forum.models.use_model(WORK / "damage.model")
        forum.encode()
        forum.edit([replace(question, title=f"{question.title} again") for question in questions[:EDITED]])
        forum.add([Question(f"new-{number}", f"How to fix printer number {number}?") for number in range(EDITED)])
        forum.delete([question.id for question in questions[EDITED : 2 * EDITED]])
        kept = questions[2 * EDITED :]
        for first, second in zip(kept[:8:2], kept[1:8:2], strict=True):
            forum.judge(first.id, second.id, "duplicate", "somebody")
        while forum.pairs.advance(60):
            pass
    Keys(MASTER).add("somebody", "read")


def model(questions: list[Question]) -> Model:
    """Return a small model: a text's vector is the mean of its words' directions, which are drawn."""
    texts = (f"{question.title} {question.body}".lower() for question in questions)
    counts = Counter(word for text in texts for word in words(text))
    known = [word for word, _ in counts.most_common(WORDS)]
    chance = np.random.default_rng(0)
    parameters = {"weight": np.eye(SIZE), "bias": np.zeros(SIZE)}
    vectors = chance.normal(size=(len(known) + 1, SIZE))
    vectors[0] = 0  # of unknown words
    seen = np.array([counts.total(), *(counts[word] for word in known)], np.int64)
    settings = ModelSettings(EncoderConfig("cnn", SIZE, SIZE, order=1, pooling="mean"), unknown="zero")
    return Model.build(settings, Vocabulary(known), vectors, parameters, counts=seen)


def answers(path: Path) -> dict[str, Any]:
    """Return what a forum answers, by parts."""
    with Forum.open(path) as forum:
        queries = list(islice(forum.questions(), 60, 60 + 40 * QUERIES, 40))
        parts: dict[str, Any] = {}
        for ranker in RANKERS:
            results = [forum.similar(query.title, query.body, 10, ranker=ranker) for query in queries]
            parts[ranker] = [
                [[hit.question.id, digits(hit.score), hit.question.title, hit.question.body] for hit in hits]
                for hits in results
            ]
        tags = Filters(tags=queries[0].tags[:1])
        parts["filtered"] = [[hit.question.id, digits(hit.score)] for hit in forum.similar("why", filters=tags)]
        while forum.pairs.advance(60):
            pass
        pairs, _ = forum.pairs.page(0.0, 1000)
        parts["pairs"] = sorted([pair.first, pair.second, digits(pair.score)] for pair in pairs)
        info = forum.info()
        parts["counts"] = [info.counts.questions, info.counts.answers, info.indexed, info.behind, info.vectors.entries]
        parts["judgements"] = sorted(
            [judgement.question_id, judgement.candidate_id, judgement.verdict] for judgement in forum.store.judgements()
        )
        return parts


def digits(score: float) -> float:
    """Return a score as it is compared."""
    return float(f"{score:.5g}")


# -- a round -------------------------------------------------------------------------------------------------------


def attempt(call: Callable[[], Any]) -> dict[str, Any]:
    """Return the value of a call, the error that it explains, or how it fails."""
    try:
        return {"value": call()}
    except AskalikeError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except (sqlite3.Error, OSError) as error:  # the command line explains these too
        return {"raw": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    except BaseException:  # noqa: BLE001  # a panic of Rust among them: whatever comes is what is counted
        return {"traceback": traceback.format_exc()}


def report_json(report: CheckReport) -> dict[str, Any]:
    """Return a report as JSON."""
    damage = [f"{finding.part}: {finding.path}: {finding.what}" for finding in report.findings if finding.is_damage]
    return {"is_sound": report.is_sound, "damage": damage[:20], "repaired": report.repaired}


def round_of(copy: Path) -> dict[str, Any]:
    """Check, ask, repair, ask and check a damaged copy."""
    give_up_root()
    steps = {
        "check": attempt(lambda: report_json(Forum.check(copy))),
        "answers": attempt(lambda: answers(copy)),
        "repair": attempt(lambda: report_json(Forum.repair(copy))),
    }
    repair = steps["repair"].get("value", {})
    if repair.get("is_sound") and not repair["repaired"]:  # opening it had mended it
        return {**steps, "answers_after": steps["answers"], "check_after": steps["repair"]}
    after = {
        "answers_after": attempt(lambda: answers(copy)),
        "check_after": attempt(lambda: report_json(Forum.check(copy))),
    }
    return steps | after


def give_up_root() -> None:
    """Make rights of files count for this process even where it is root's (Linux)."""
    if sys.platform == "linux" and os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        data = (ctypes.c_uint32 * 6)()
        ctypes.CDLL(None).capset(header, data)


def copied(path: Path) -> None:
    """Copy the forum; what a round changes in place is copied, the rest is shared."""
    shutil.rmtree(path, ignore_errors=True)
    for origin in sorted(MASTER.rglob("*")):
        target = path / origin.relative_to(MASTER)
        if origin.is_dir():
            target.mkdir(parents=True)
        elif origin.suffix in (".sqlite", ".lock", ".json") or origin.name.startswith("."):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(origin, target)


def forked(name: str, kind: str, number: int) -> int:
    """Begin a round in a process of its own and return its number; it writes its outcome to a file."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    place = WORK / "damage" / str(number)
    try:
        place.mkdir(parents=True, exist_ok=True)
        copy = place / "forum"
        copied(copy)
        DAMAGES[kind](copy / name, random.Random(f"{name} {kind}"), copy)
        os.dup2(os.open(place / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        import signal

        signal.alarm(SECONDS)
        (place / "outcome").write_text(json.dumps(round_of(copy)), encoding="utf-8")
    finally:
        os._exit(0)


@dataclass
class Expected:
    """What a sound forum answers: as it was made, and with its indexes made anew."""

    before: dict[str, Any]
    anew: dict[str, Any]

    def wrong(self, step: Mapping[str, Any], otherwise: Sequence[str] = ()) -> list[str]:
        """Return the parts that differ in the answers of a step; ``otherwise`` where it gave none."""
        if "value" not in step:
            return list(otherwise)
        return [part for part in self.before if step["value"].get(part) not in (self.before[part], self.anew[part])]


def judged(expected: Expected, name: str, kind: str, number: int, status: int) -> dict[str, Any]:
    """Return the outcome of a round."""
    place = WORK / "damage" / str(number)
    printed = (place / "stderr").read_text(errors="replace") if (place / "stderr").exists() else ""
    result: dict[str, Any] = {"file": name, "damage": kind, "panic_shown": "panicked at" in printed}
    if status or not (place / "outcome").exists():
        return {**result, "crash": f"status {status}", "stderr": printed[-2000:]}
    steps = json.loads((place / "outcome").read_text(encoding="utf-8"))
    check, check_after = (steps[name].get("value") for name in ("check", "check_after"))
    after = steps["answers_after"]
    return {
        **result,
        "tracebacks": {
            name: step["traceback"] for name, step in steps.items() if "traceback" in step and "raw" not in step
        },
        "raw": {name: step["raw"] for name, step in steps.items() if "raw" in step},
        "seen": check is None or not check["is_sound"],
        "check": check["damage"][:3] if check else steps["check"].get("message"),
        "refused": steps["answers"].get("message", ""),
        "wrong": expected.wrong(steps["answers"]),
        "wrong_after": expected.wrong(after, [after.get("message", "raw error")]),
        "repair": steps["repair"].get("message", ""),
        "is_sound_after": bool(check_after and check_after["is_sound"]),
        "damage_after": check_after["damage"][:3] if check_after else [],
    }


def name_of(name: str) -> str:
    """Return a file's name without its random parts."""
    return re.sub(r"\d{8}-[0-9a-f]{8}|[0-9a-f]{32}(\.\d+)?|[0-9a-f]{16}", "…", name)


def main() -> None:
    """Damage every file in every way and write the outcome."""
    parser = option_parser(__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="files whose path holds this")
    options = parser.parse_args()
    build_master()
    before = answers(MASTER)
    if not Forum.check(MASTER).is_sound:
        sys.exit(f"the undamaged forum is not sound: {Forum.check(MASTER).findings}")
    copied(WORK / "damage-anew")
    Forum.reindex(WORK / "damage-anew").close()
    for leftover in (WORK / "damage-anew").glob("pairs.sqlite*"):
        leftover.unlink()
    expected = Expected(*(json.loads(json.dumps(parts)) for parts in (before, answers(WORK / "damage-anew"))))
    shutil.rmtree(WORK / "damage", ignore_errors=True)
    names = [path.relative_to(MASTER).as_posix() for path in sorted(MASTER.rglob("*")) if path.is_file()]
    names = [name for name in names if options.only in name and not name.endswith(("-wal", "-shm"))]
    waiting = [(name, kind, number) for number, (name, kind) in enumerate(product(names, DAMAGES))]
    ROUNDS.unlink(missing_ok=True)
    running: dict[int, tuple[str, str, int]] = {}
    rounds: list[dict[str, Any]] = []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            task = waiting.pop(0)
            running[forked(*task)] = task
        child, status = os.wait()
        name, kind, number = running.pop(child)
        rounds.append(judged(expected, name, kind, number, status))
        with ROUNDS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(rounds[-1]) + "\n")
        shutil.rmtree(WORK / "damage" / str(number), ignore_errors=True)
        if len(rounds) % 50 == 0:
            print(f"{len(rounds)} rounds, {len(waiting)} to go", flush=True)
    report = summary(rounds)
    print(json.dumps(report, indent=1))
    if not options.only:
        write("damage", COMMAND, {"questions": QUESTIONS, "damages": list(DAMAGES), **report})


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts over all rounds, and by file."""
    files: dict[str, Counter[str]] = {}
    for outcome in rounds:
        count = files.setdefault(name_of(outcome["file"]), Counter())
        for key, is_so in classified(outcome).items():
            count[key] += is_so
    total: Counter[str] = Counter()
    for count in files.values():
        total.update(count)
    return {"rounds": len(rounds), "total": dict(total), "files": {name: dict(count) for name, count in files.items()}}


def classified(outcome: Mapping[str, Any]) -> dict[str, bool]:
    """Return what a round counts as."""
    is_crash = "crash" in outcome
    can_be_mended = not outcome["file"].startswith(LEARNED)
    is_mended = not is_crash and not outcome["wrong_after"] and outcome["is_sound_after"]
    return {
        "rounds": True,
        "seen_by_check": not is_crash and outcome["seen"],
        "refused": not is_crash and bool(outcome["refused"]),
        "wrong_answers": not is_crash and bool(outcome["wrong"]),
        "wrong_and_unseen": not is_crash and bool(outcome["wrong"]) and not outcome["seen"],
        "tracebacks": is_crash or bool(outcome["tracebacks"]),
        "raw_errors": not is_crash and bool(outcome["raw"]),
        "panic_shown": outcome["panic_shown"],
        "can_be_mended": can_be_mended,
        "mended": is_mended and can_be_mended,
    }


if __name__ == "__main__":
    main()
