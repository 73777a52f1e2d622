"""Damage test: every file of a forum is damaged in 30 ways, and what the forum answers then is compared.

Command: ``python -m benchmarks.damage``. A forum of Reddit questions is made with everything that a forum can have:
words, vectors of an own model, a learned ranker, pairs, judgements, keys. Then, for each of its files and each kind of
damage, in a fresh copy and a process of its own:

1. ``Forum.check`` looks at the damaged copy;
2. it is opened and asked, with every ranker, with filters, for its pairs and for what it holds;
3. ``Forum.repair`` mends it;
4. it is asked again, and checked again.

An answer that differs from that of the undamaged forum, and is no error that says what to do, must have been seen by
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
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
"""What came of each round, for who looks into one."""

LEARNED: Final = ("archive.sqlite", "keys.json")
"""What cannot be made anew: paths that begin so."""

Damage = Callable[[Path, random.Random, Path], None]


# -- kinds of damage -----------------------------------------------------------------------------------------------


def changed(path: Path, content: bytes) -> None:
    """Put other bytes at a path whose file may be shared with other copies."""
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(content)
    path.chmod(mode)


def flip(where: Callable[[int, random.Random], int], count: int = 1) -> Damage:
    """Return what changes bytes from a place on, each to another value."""

    def apply(path: Path, chance: random.Random, _: Path) -> None:
        content = bytearray(path.read_bytes() or b"\0")
        at = where(len(content), chance)
        for place in range(at, min(at + count, len(content))):
            content[place] ^= chance.randrange(1, 256)
        changed(path, bytes(content))

    return apply


def little(path: Path, chance: random.Random, _: Path) -> None:
    """Change a digit to another where the file is a text, else a bit: what still looks like what it was."""
    content = bytearray(path.read_bytes() or b"\0")
    digits = [match.start() for match in re.finditer(rb"\d", content)] if path.suffix == ".json" else []
    if digits:
        at = chance.choice(digits)
        content[at] = chance.choice([one for one in b"0123456789" if one != content[at]])
    else:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    changed(path, bytes(content))


def cut(size: Callable[[int, random.Random], int]) -> Damage:
    """Return what leaves only the beginning of a file."""

    def apply(path: Path, chance: random.Random, _: Path) -> None:
        content = path.read_bytes()
        changed(path, content[: size(len(content), chance)] if content else b"x")

    return apply


def zeros(path: Path, chance: random.Random, _: Path) -> None:
    """Let a page of 4 kB be zeros, as some disks leave it."""
    content = bytearray(path.read_bytes() or b"x")
    at = 4096 * chance.randrange(max(1, len(content) // 4096))
    stop = min(at + 4096, len(content))
    content[at:stop] = bytes(stop - at)
    changed(path, bytes(content))


def other_file(path: Path, chance: random.Random, forum: Path) -> Path:
    """Return another file of the forum, one of the same kind where there is one."""
    others = [one for one in sorted(forum.rglob("*")) if one.is_file() and one != path and one.stat().st_size]
    if not path.relative_to(forum).as_posix().startswith(LEARNED):  # else it is their damage that is counted
        others = [one for one in others if not one.relative_to(forum).as_posix().startswith(LEARNED)]
    return chance.choice([one for one in others if one.suffix == path.suffix] or others)


def swapped(path: Path, chance: random.Random, forum: Path) -> None:
    """Let a file and another stand at each other's places."""
    other = other_file(path, chance, forum)
    one, two = path.read_bytes(), other.read_bytes()
    changed(path, two)
    changed(other, one)


def replaced(path: Path, chance: random.Random, forum: Path) -> None:
    """Put a copy of another file there."""
    changed(path, other_file(path, chance, forum).read_bytes())


def folder(path: Path, _: random.Random, __: Path) -> None:
    """Put a folder there."""
    path.unlink()
    path.mkdir()


def dangling(path: Path, _: random.Random, __: Path) -> None:
    """Put a link to nothing there."""
    path.unlink()
    path.symlink_to(path.with_name("nothing"))


def forbidden(path: Path, _: random.Random, __: Path) -> None:
    """Let nobody read or write it."""
    changed(path, path.read_bytes())
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
    "a byte more": lambda path, _, __: changed(path, path.read_bytes() + b"\0"),
    "hundred bytes more": lambda path, chance, _: changed(path, path.read_bytes() + chance.randbytes(100)),
    "deleted": lambda path, _, __: path.unlink(),
    "swapped": swapped,
    "replaced by another": replaced,
    "a folder in its place": folder,
    "a link to nothing": dangling,
    "forbidden": forbidden,
}


# -- the forum and its answers -------------------------------------------------------------------------------------


def made() -> Path:
    """Make the forum that is damaged, with two commits in each index."""
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
        forum.edit([Question(one.id, one.title + " again", one.body, tags=one.tags) for one in questions[:EDITED]])
        forum.add([Question(f"new-{number}", f"How to fix printer number {number}?") for number in range(EDITED)])
        forum.delete([one.id for one in questions[EDITED : 2 * EDITED]])
        kept = questions[2 * EDITED :]
        for one, other in zip(kept[:8:2], kept[1:8:2], strict=True):
            forum.judge(one.id, other.id, "duplicate", "somebody")
        while forum.pairs.advance(60):
            pass
    Keys(MASTER).add("somebody", "read")
    return MASTER


def model(questions: list[Question]) -> Model:
    """Return a small model: a text's vector is the mean of its words' directions, which are drawn."""
    counts = Counter(word for one in questions for word in words(f"{one.title} {one.body}".lower()))
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
        asked = list(islice(forum.questions(), 60, 60 + 40 * QUERIES, 40))
        found: dict[str, Any] = {}
        for ranker in RANKERS:
            hits = [forum.similar(one.title, one.body, 10, ranker=ranker) for one in asked]
            found[ranker] = [
                [[hit.question.id, digits(hit.score), hit.question.title, hit.question.body] for hit in some]
                for some in hits
            ]
        tags = Filters(tags=asked[0].tags[:1])
        found["filtered"] = [[hit.question.id, digits(hit.score)] for hit in forum.similar("why", filters=tags)]
        while forum.pairs.advance(60):
            pass
        pairs, _ = forum.pairs.page(0.0, 1000)
        found["pairs"] = sorted([one.first, one.second, digits(one.score)] for one in pairs)
        info = forum.info()
        found["held"] = [info.counts.questions, info.counts.answers, info.indexed, info.behind, info.vectors.entries]
        found["judged"] = sorted([one.question_id, one.candidate_id, one.verdict] for one in forum.store.judgements())
        return found


def digits(score: float) -> float:
    """Return a score as it is compared."""
    return float(f"{score:.5g}")


# -- a round -------------------------------------------------------------------------------------------------------


def attempt(do: Callable[[], Any]) -> dict[str, Any]:
    """Return what something gives, the error that it explains, or how it fails."""
    try:
        return {"found": do()}
    except AskalikeError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except (sqlite3.Error, OSError) as error:  # the command line explains these too
        return {"raw": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    except BaseException:  # noqa: BLE001  # a panic of Rust among them: whatever comes is what is counted
        return {"traceback": traceback.format_exc()}


def told(report: CheckReport) -> dict[str, Any]:
    """Return a report as JSON."""
    damage = [f"{one.part}: {one.path}: {one.what}" for one in report.findings if one.is_damage]
    return {"is_sound": report.is_sound, "damage": damage[:20], "repaired": report.repaired}


def round_of(copy: Path) -> dict[str, Any]:
    """Check, ask, repair, ask and check a damaged copy."""
    give_up_root()
    found = {
        "check": attempt(lambda: told(Forum.check(copy))),
        "answers": attempt(lambda: answers(copy)),
        "repair": attempt(lambda: told(Forum.repair(copy))),
    }
    if found["repair"].get("found", {}).get("is_sound") and not found["repair"]["found"]["repaired"]:
        after = {"answers_after": found["answers"], "check_after": found["repair"]}  # opening it had mended it
    else:
        after = {
            "answers_after": attempt(lambda: answers(copy)),
            "check_after": attempt(lambda: told(Forum.check(copy))),
        }
    return found | after


def give_up_root() -> None:
    """Let rights of files count for this process, also where it is root's (Linux)."""
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
    """Begin a round in a process of its own and return its number; it writes what it found to a file."""
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
        (place / "found").write_text(json.dumps(round_of(copy)), encoding="utf-8")
    finally:
        os._exit(0)


@dataclass
class Expected:
    """What a sound forum answers: as it was made, and with its indexes made anew."""

    before: dict[str, Any]
    anew: dict[str, Any]

    def wrong(self, found: Mapping[str, Any]) -> list[str]:
        """Return the parts of an answer that differ."""
        return [part for part in self.before if found.get(part) not in (self.before[part], self.anew[part])]


def judged(expected: Expected, name: str, kind: str, number: int, status: int) -> dict[str, Any]:
    """Return what came of a round."""
    place = WORK / "damage" / str(number)
    told_on_stderr = (place / "stderr").read_text(errors="replace") if (place / "stderr").exists() else ""
    result: dict[str, Any] = {"file": name, "damage": kind, "panic_shown": "panicked at" in told_on_stderr}
    if status or not (place / "found").exists():
        return {**result, "crash": f"status {status}", "stderr": told_on_stderr[-2000:]}
    found = json.loads((place / "found").read_text(encoding="utf-8"))
    steps = {step: found[step] for step in found}
    result["tracebacks"] = {
        step: one["traceback"] for step, one in steps.items() if "traceback" in one and "raw" not in one
    }
    result["raw"] = {step: one["raw"] for step, one in steps.items() if "raw" in one}
    check, check_after = found["check"].get("found"), found["check_after"].get("found")
    result["seen"] = check is None or not check["is_sound"]
    result["check"] = check["damage"][:3] if check else found["check"].get("message")
    result["refused"] = found["answers"].get("message", "")
    result["wrong"] = expected.wrong(found["answers"]["found"]) if "found" in found["answers"] else []
    result["wrong_after"] = (
        expected.wrong(found["answers_after"]["found"])
        if "found" in found["answers_after"]
        else [found["answers_after"].get("message", "raw error")]
    )
    result["repair"] = found["repair"].get("message", "")
    result["is_sound_after"] = bool(check_after and check_after["is_sound"])
    result["damage_after"] = check_after["damage"][:3] if check_after else []
    return result


def name_of(name: str) -> str:
    """Return a file's name without what is drawn anew each time."""
    return re.sub(r"\d{8}-[0-9a-f]{8}|[0-9a-f]{32}(\.\d+)?|[0-9a-f]{16}", "…", name)


def main() -> None:
    """Damage every file in every way and write what came of it."""
    parser = option_parser(__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="files whose path holds this")
    chosen = parser.parse_args()
    made()
    before = answers(MASTER)
    if not Forum.check(MASTER).is_sound:
        sys.exit(f"the undamaged forum is not sound: {Forum.check(MASTER).findings}")
    copied(WORK / "damage-anew")
    Forum.reindex(WORK / "damage-anew").close()
    for leftover in (WORK / "damage-anew").glob("pairs.sqlite*"):
        leftover.unlink()
    expected = Expected(*(json.loads(json.dumps(one)) for one in (before, answers(WORK / "damage-anew"))))
    shutil.rmtree(WORK / "damage", ignore_errors=True)
    names = [one.relative_to(MASTER).as_posix() for one in sorted(MASTER.rglob("*")) if one.is_file()]
    names = [name for name in names if chosen.only in name and not name.endswith(("-wal", "-shm"))]
    waiting = [(name, kind, number) for number, (name, kind) in enumerate((a, b) for a in names for b in DAMAGES)]
    ROUNDS.unlink(missing_ok=True)
    running: dict[int, tuple[str, str, int]] = {}
    rounds: list[dict[str, Any]] = []
    while waiting or running:
        while waiting and len(running) < chosen.jobs:
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
    if not chosen.only:
        write("damage", COMMAND, {"questions": QUESTIONS, "damages": list(DAMAGES), **report})


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts over all rounds, and by file."""
    files: dict[str, Counter[str]] = {}
    for one in rounds:
        count = files.setdefault(name_of(one["file"]), Counter())
        for key, is_so in classified(one).items():
            count[key] += is_so
    total: Counter[str] = Counter()
    for count in files.values():
        total.update(count)
    return {"rounds": len(rounds), "total": dict(total), "files": {name: dict(count) for name, count in files.items()}}


def classified(one: Mapping[str, Any]) -> dict[str, bool]:
    """Return what a round counts as."""
    is_crash = "crash" in one
    can_be_mended = not one["file"].startswith(LEARNED)
    is_mended = not is_crash and not one["wrong_after"] and one["is_sound_after"]
    return {
        "rounds": True,
        "seen_by_check": not is_crash and one["seen"],
        "refused": not is_crash and bool(one["refused"]),
        "wrong_answers": not is_crash and bool(one["wrong"]),
        "wrong_and_unseen": not is_crash and bool(one["wrong"]) and not one["seen"],
        "tracebacks": is_crash or bool(one["tracebacks"]),
        "raw_errors": not is_crash and bool(one["raw"]),
        "panic_shown": one["panic_shown"],
        "can_be_mended": can_be_mended,
        "mended": is_mended and can_be_mended,
    }


if __name__ == "__main__":
    main()
