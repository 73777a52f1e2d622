"""Students of MiniLM in whole forums, asked as ``askalike search`` asks: probability, words and vectors.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.forum_students``, after ``python -m benchmarks.encoders --build``,
whose forums are copied (of Reddit the pools and 10,000 others). Needs the extras ``minilm`` and ``train``. With
``--again`` the forums and students that are there are asked anew; what is not there in all four forums, and what was
trained, is kept from the run before, with the commit that it was asked at.

nDCG@5 of 105 queries of the judged pools, gain 2^grade - 1; a system ranks 1,000 questions, and the judged ones count
in its order. What rests on the probability is asked a second time by weights that were learned without the forum
(``benchmarks.scorer``). Each student is trained by ``askalike train --teacher minilm`` in its forum; no text of a
pool's query, or of travel's dev and test queries, is learned from. Of Slicer and Reddit 6,000 questions are read.
Calibration error is the mean distance of probability and share of grades of 2 or more, over ten equal groups of judged
candidates. The same error of the pools' candidates alone is that of the package's student, which needs no training, and
of the forums' own where they are there.

Students go on from the package's; in travel and DevOps one from the forum's text alone is trained beside it.

Travel's duplicates: nDCG@10 over the whole forum by vectors alone, titles, dev and test.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askalike.data import default_students
from askalike.evaluation.forum.links import duplicate_task
from askalike.evaluation.significance import Interval, bootstrap_difference, bootstrap_mean
from askalike.forum import Forum, ForumSettings
from askalike.forum.encoders import StudentQueries
from askalike.models.student import Student
from askalike.search.features import FEATURES, Floats
from askalike.search.scorer import SENTENCES, WORD_VECTORS, probability
from askalike.store import ForumLayout
from askalike.training import teaching
from askalike.training.teaching import TeachingOptions, TeachingResult, train_forum_student
from askalike.types import Filters, Query, Question
from benchmarks import encoders
from benchmarks.minilm import joined
from benchmarks.record import REPOSITORY, WORK, stamp, write
from benchmarks.scorer import FIELDS, calibration, left_out, ndcg, using
from benchmarks.scorer_sets import Pairs, Site, all_pairs, graded
from benchmarks.students import KeptTeacher

COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.forum_students"
EXACT = ForumSettings()
STATIC = "the package's student on both sides"
NAMES = ("travel", "devops", "slicer", "reddit")
LEARNED = 6_000
Ranked = Sequence[tuple[str, float]]
Rank = Callable[[Query], Ranked]


def copied(name: str, encoder: str, suffix: str) -> Path:
    """Return a fresh copy of a forum."""
    folder = WORK / f"forum-students-{name}-{suffix}.forum"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(encoders.build(name, encoder), folder)
    return folder


class Systems:
    """nDCG@5 by query and judged probabilities by forum, of each system.

    Args:
        left: the same by weights that were learned without each forum; of systems that have probabilities.
    """

    def __init__(self, pools: Sequence[Mapping[str, Any]], left: Systems | None = None) -> None:
        self.pools, self.left = pools, left
        self.outcomes: dict[str, dict[str, float]] = {}
        self.judged: dict[str, dict[str, list[tuple[float, bool]]]] = {}

    def add(self, system: str, name: str, forum: Forum, rank: Rank, ranker: str | None = None) -> None:
        """Ask a forum for its pools."""
        if self.left is not None and ranker is None:
            with using(left_out(name)):
                self.left.add(system, name, forum, rank)
        for pool in self.pools:
            if pool["forum"] == name:
                title, body, markup = encoders.asked(forum, pool)
                excluded = Filters(exclude_ids=frozenset({pool["query"]}))
                found = rank(Query(title, body, markup, encoders.LISTED, excluded, ranker))
                value = encoders.ndcg([one for one, _ in found], pool["grades"])
                self.outcomes.setdefault(system, {})[f"{name}/{pool['query']}"] = value
                listed = dict(found)
                of_forum = self.judged.setdefault(system, {}).setdefault(name, [])
                of_forum += [(listed.get(one, 0.0), grade >= 1.75) for one, grade in pool["grades"].items()]
        values = [value for key, value in self.outcomes[system].items() if key.startswith(f"{name}/")]
        print(name, system, round(100 * float(np.mean(values)), 1), flush=True, file=sys.stderr)

    def calibration(self, system: str) -> dict[str, float]:
        """Return the calibration error of each forum, in points."""
        found = {}
        for name, pairs in self.judged[system].items():
            likely, is_so = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
            groups = np.array_split(np.argsort(likely, kind="stable"), 10)
            found[name] = round(100 * float(np.mean([abs(likely[at].mean() - is_so[at].mean()) for at in groups])), 1)
        return found

    def row(self, system: str) -> dict[str, Any]:
        """Return what is written of a system."""
        values = 100 * np.array(list(self.outcomes[system].values()))
        mean = bootstrap_mean(values.tolist())
        return {
            **encoders.by_forum(self.outcomes[system]),
            "interval": [round(mean.low, 1), round(mean.high, 1)],
            **({} if "alone" in system or system == "words" else {"calibration error": self.calibration(system)}),
            **({"left out": self.left.row(system)} if self.left is not None and system in self.left.outcomes else {}),
            "queries": {key: round(value, 4) for key, value in self.outcomes[system].items()},
        }

    def difference(self, first: str, second: str) -> list[float]:
        """Return first less second with its interval, paired over queries."""
        keys = [key for key in self.outcomes[first] if key in self.outcomes[second]]
        one, other = ([100 * self.outcomes[name][key] for key in keys] for name in (first, second))
        found = bootstrap_difference(one, other)
        return [round(value, 1) for value in (found.low, found.mean, found.high)]


def on_pools() -> dict[str, Any]:
    """Return order and calibration of the judged candidates alone, by weights that were learned without the forum.

    The general encoder, MiniLM, and MiniLM's vectors of questions asked by the student that the package carries, and by
    the one that was trained in the forum.
    """
    sites, judged, _, _ = all_pairs()
    pools = [one for one in judged if one.kind == "pool"]
    weights = {name: left_out(name) for name in NAMES}
    systems = {"general": WORD_VECTORS, "minilm": SENTENCES, "the package's student": SENTENCES}
    students = {"the package's student": dict.fromkeys(NAMES, Student.load(default_students()[0]))}
    folders = {name: ForumLayout(encoders.taught_folder(name)).student for name in NAMES}
    if all(folder.exists() for folder in folders.values()):
        students["the forum's student"] = {name: Student.load(folder) for name, folder in folders.items()}
        systems["the forum's student"] = SENTENCES
    by_student: dict[tuple[str, int], Floats] = {}
    asked = (one for one in graded() if one[0] == "pool")
    for pool in pools:  # in the order of the grades, without queries that have no candidate in the forum
        of, query = next((of, it) for _, of, it, _, held in asked if held.keys() >= set(pool.ids))
        for system, by_forum in students.items():
            by_student[system, id(pool)] = _asked_by(by_forum[of], sites[of], pool, query)
    rows: dict[str, Any] = {}
    for system, version in systems.items():

        def logits(one: Pairs, system: str = system, version: str = version) -> Floats:
            seen = by_student[system, id(one)] if system in students else getattr(one, FIELDS[version])
            return weights[one.forum][version].logits(seen)

        found = [(one.forum, ndcg(logits(one), one)) for one in pools]
        values = {f"{name}/{number}": gain for number, (name, gain) in enumerate(found) if gain is not None}
        rows[system] = {
            **encoders.by_forum(values),
            "calibration error": calibration(pools, lambda one: probability(logits(one)), 1.75)["by forum"],
        }
    return rows


def _asked_by(student: Student, site: Site, pool: Pairs, query: str) -> Floats:
    """Return a pool's features by MiniLM's vectors of its candidates and the student's of its query."""
    assert site.minilm is not None
    assert site.usual is not None
    assert pool.sentences is not None
    one = site.forum.question(query)
    body = "" if pool.is_title else one.body
    vector = student.encode_query([joined(Question("", one.title, body, one.markup))])[0]
    near = site.minilm.encode([site.forum.question(it) for it in pool.ids]) @ vector
    features = pool.sentences.copy()
    features[:, FEATURES.index("cosine")] = site.usual.of(vector, near.astype(np.float64))
    if pool.is_title:
        same = features[:, FEATURES.index("same title")]
        cosine = features[:, FEATURES.index("cosine")]
        features[:, FEATURES.index("cosine")] = np.where(same > 0, np.maximum(cosine, same), cosine)
    return features


def taught(folder: Path, name: str, held: frozenset[str], teacher: KeptTeacher, start: str) -> TeachingResult:
    """Train a forum's student."""
    teaching.MOST_QUESTIONS = LEARNED  # type: ignore[misc]
    with Forum.open(folder, settings=EXACT, encoder=encoders.ENCODERS["minilm"]) as forum:
        forum.encode()
        vectors = forum.answering_vectors()
        assert vectors is not None
        vectors.texts.encoder = teacher  # the same, each text once ever
        options = TeachingOptions(is_test_held_out=True, threads=1, is_kept=True, start=start, excluded=held)
        found = train_forum_student(forum, None, options)
    print(name, start or "goes on", found, flush=True, file=sys.stderr)
    return found


def travel_figures(folder: Path) -> dict[str, Any]:
    """Return nDCG@10 of titles by vectors alone, of the teacher and of its student."""
    found: dict[str, Any] = {}
    values: dict[str, list[float]] = {"teacher": [], "student": []}
    with Forum.open(folder, settings=EXACT) as forum:
        vectors = forum.answering_vectors()
        assert vectors is not None
        student = StudentQueries(Student.load(ForumLayout(folder).student), vectors)
        for split in ("dev", "test"):
            task = duplicate_task(forum, split)
            titles = [Question("", one.title) for one in task.queries.values()]
            exact = vectors.texts.encode_queries(titles)
            for by, queries in (("teacher", exact), ("student", student.encode(titles))):
                part = [
                    ranked_gain(vectors.index.search(row[None], 11)[0], forum, name, task.qrels[name])
                    for row, name in zip(queries, task.queries, strict=True)
                ]
                values[by] += part
                found[f"{split}, {by}"] = round(float(np.mean(part)), 4)
    less = bootstrap_difference(values["student"], values["teacher"])
    found["student less teacher"] = [round(one, 4) for one in (less.low, less.mean, less.high)]
    return found | {by: round(float(np.mean(one)), 4) for by, one in values.items()}


def bounds(interval: Interval) -> list[float]:
    return [round(one, 3) for one in (interval.low, interval.mean, interval.high)]


def ranked_gain(near: Sequence[tuple[int, float]], forum: Forum, own: str, grades: Mapping[str, int]) -> float:
    """Return nDCG@10 of neighbours, the query itself left out."""
    held = forum.questions_by_number([num for num, _ in near])
    order = [held[num].id for num, _ in near if num in held and held[num].id != own][:10]
    relevant = {name for name, grade in grades.items() if grade}
    best = sum(1 / np.log2(place + 2) for place in range(min(10, len(relevant))))
    return float(sum(1 / np.log2(at + 2) for at, name in enumerate(order) if name in relevant) / best)


def query_times(folder: Path, texts: Sequence[str]) -> dict[str, float]:
    """Return how long a student takes for a query, in ms."""
    student = Student.load(ForumLayout(folder).student)
    spent = []
    for text in [*texts[:5], *texts]:
        began = time.perf_counter()
        student.encode_query([text])
        spent.append(1000 * (time.perf_counter() - began))
    return {name: round(float(np.percentile(spent[5:], at)), 3) for name, at in (("p50_ms", 50), ("p95_ms", 95))}


class Static:
    """A student that encodes documents too."""

    def __init__(self, student: Student) -> None:
        self.name, self.dimensions = student.name, student.dimensions
        self.encode_query = self.encode_document = student.encode_query


def again() -> None:
    """Ask the forums that are there, and write what they answer into the results of the run before."""
    pools = encoders.read_pools()
    systems = Systems(pools, Systems(pools))
    taught = {name: encoders.taught_folder(name) for name in NAMES}
    has_students = all(folder.exists() for folder in taught.values())
    has_minilm = has_students or all(encoders.is_built(name, "minilm") for name in NAMES)
    for name in NAMES:
        with Forum.open(encoders.build(name, "general"), settings=EXACT) as forum:
            systems.add("words", name, forum, forum.ranking, "lexical")
            systems.add("general", name, forum, forum.ranking)
        if not has_minilm:
            continue
        with Forum.open(taught[name] if has_students else encoders.build(name, "minilm"), settings=EXACT) as forum:
            if has_students:
                forum.use_queries("teacher")
            systems.add("minilm alone", name, forum, forum.ranking, "vector")
            systems.add("minilm", name, forum, forum.ranking)
            if has_students:
                forum.use_queries("student")
                systems.add("student", name, forum, forum.ranking)
                systems.add("student, vectors alone", name, forum, forum.ranking, "vector")
    held = json.loads((REPOSITORY / "results" / "forum-students.json").read_text(encoding="utf-8"))
    body = {key: value for key, value in held.items() if key not in {"name", "command", *stamp()}}
    kept = {name: {"commit": held["commit"], **row} for name, row in held["rows"].items()}
    body["rows"] = kept | {system: systems.row(system) for system in systems.outcomes}
    for system in kept.keys() - systems.outcomes.keys():
        systems.outcomes[system] = kept[system]["queries"]
    body["pools alone, left out"] = on_pools()
    if kept.keys() - systems.outcomes.keys() - {STATIC}:
        body["weights"] = ""  # what was not asked may rest on others
    body["differences"] = {pair: systems.difference(*pair.split(" less ")) for pair in body["differences"]}
    write("forum-students", f"{COMMAND} --again", body)


def main() -> None:
    """Measure and write results/forum-students.json."""
    if "--again" in sys.argv[1:]:
        again()
        return
    torch.set_num_threads(1)
    pools, teacher = encoders.read_pools(), KeptTeacher("int8")
    systems = Systems(pools, Systems(pools))
    every = encoders.read_pools(is_complete=True)
    trainings: dict[str, Any] = {}
    more: dict[str, Any] = {}
    general = [Student.load(path) for path in default_students()]
    for name in NAMES:
        with Forum.open(encoders.build(name, "general"), settings=EXACT) as forum:
            systems.add("words", name, forum, forum.ranking, "lexical")
            systems.add("general", name, forum, forum.ranking)
        held = frozenset(one["query"] for one in every if one["forum"] == name)
        folder = copied(name, "minilm", "taught")
        with Forum.open(folder, settings=EXACT) as forum:
            systems.add("minilm alone", name, forum, forum.ranking, "vector")
            systems.add("minilm", name, forum, forum.ranking)
            if name == "travel":
                held |= duplicate_task(forum, "dev").queries.keys() | duplicate_task(forum, "test").queries.keys()
        for start in ("nothing", "") if general and name in ("travel", "devops") else ("",):
            system = "student" if not start else "student from the forum's text alone"
            found = taught(folder, name, held, teacher, start)
            trainings[f"{name}, {system}"] = {
                "texts": found.texts,
                "agreement": [
                    round(one, 3) for one in (found.agreement.low, found.agreement.mean, found.agreement.high)
                ],
                "gain": [round(one, 3) for one in (found.gain.low, found.gain.mean, found.gain.high)],
                "seconds": found.seconds,
            }
            if not start:
                with Forum.open(folder, settings=EXACT) as forum:
                    forum.use_queries("student")
                    systems.add(system, name, forum, forum.ranking)
                    systems.add(f"{system}, vectors alone", name, forum, forum.ranking, "vector")
            if name == "travel":
                more[f"travel, {system}"] = travel_figures(folder)
                print(more[f"travel, {system}"], flush=True, file=sys.stderr)
                titles = [pool["query"] for pool in pools if pool["forum"] == name]
                with Forum.open(folder, settings=EXACT) as forum:
                    asked = [forum.question(one) for one in titles]
                more[f"query, {system}"] = query_times(folder, [one.title for one in asked])
        if general:
            static = copied(name, "general", "static")
            with Forum.open(static, settings=EXACT, encoder=Static(general[0])) as forum:
                forum.encode()
                systems.add(STATIC, name, forum, forum.ranking)
        (WORK / "forum-students.json").write_text(json.dumps([systems.outcomes, trainings, more]), encoding="utf-8")
    pairs = [("student", "general"), ("student", "minilm"), ("minilm", "minilm alone"), ("minilm", "general")]
    pairs += [(STATIC, "general")] if general else []
    body = {
        "rows": {system: systems.row(system) for system in systems.outcomes},
        "differences": {f"{one} less {other}": systems.difference(one, other) for one, other in pairs},
        "trainings": trainings,
        "pools alone, left out": on_pools(),
        **more,
    }
    write("forum-students", COMMAND, body)


if __name__ == "__main__":
    main()
