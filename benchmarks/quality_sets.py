"""The real sets as tasks, by part: what tunes ("dev") and what is scored once ("test")."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from recipes.folders import WORK, need_data

from askalike.evaluation.forum.links import duplicate_task, related_task
from askalike.evaluation.forum.tasks import RerankTask, forum_rerank_task, judged_task, questions_of
from askalike.forum import Forum, ForumSettings
from askalike.readers.research.judged import read_judged
from askalike.types import Judged, Question
from benchmarks.labelled_pairs import read_labelled_pairs
from benchmarks.systems import PairTask, RetrievalTask, forum_retrieval_task, pair_task, title_alone

ARCHIVES = {"travel": "travel-stackexchange", "slicer": "slicer-discourse/topics.jsonl.gz"}
SEMEVAL_PARTS = {"dev": ("dev",), "test": ("test2016", "test2017")}

WORDS_ALONE = ForumSettings(has_vectors=False)
"""The forums are read and their candidates come from words; what is measured encodes for itself."""

Task = RerankTask | RetrievalTask | PairTask


def forum_folder(name: str) -> Path:
    """Return the folder of a forum that holds a set, built when it is not there."""
    folder, mark = WORK / f"quality-{name}.forum", WORK / f"quality-{name}.complete"
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with Forum.create(folder, settings=WORDS_ALONE) as forum:
            forum.load(need_data(ARCHIVES[name]))
        mark.touch()
    return folder


def semeval_tasks(part: str) -> dict[str, Task]:
    """Return SemEval's re-ranking; document frequencies come from the questions of training and dev."""
    return {f"semeval {split}": semeval_task(split) for split in SEMEVAL_PARTS[part]}


def semeval_task(split: str) -> RerankTask:
    """Return one file of SemEval, "train", "dev", "test2016" or "test2017"."""
    known = [question for split in ("train", "dev") for question in questions_of(_semeval(split))]
    return judged_task(_semeval(split), "semeval", known)


def travel_tasks(part: str) -> dict[str, Task]:
    """Return the travel forum's duplicates: re-ranking of the lexical search's twenty, and full retrieval."""
    with Forum.open(forum_folder("travel"), settings=WORDS_ALONE) as forum:
        return travel_tasks_in(forum, part)


def travel_tasks_in(forum: Forum, part: str) -> dict[str, Task]:
    """Return the same of a forum that was opened."""
    marks = duplicate_task(forum, part)
    return {
        f"travel {part}, re-ranking": forum_rerank_task("travel", forum, marks),
        f"travel {part}, retrieval": forum_retrieval_task("travel", forum, marks),
    }


def quora_tasks(part: str) -> dict[str, Task]:
    """Return one half of the Quora pairs; halves share no question."""
    return {f"quora {part} half": pair_task("quora", read_labelled_pairs(need_data("quora-pairs/dev.tsv.gz")), part)}


def slicer_tasks(part: str) -> dict[str, Task]:
    """Return one half of the Slicer forum's links as retrieval."""
    with Forum.open(forum_folder("slicer"), settings=WORDS_ALONE) as forum:
        return slicer_tasks_in(forum, part)


def slicer_tasks_in(forum: Forum, part: str) -> dict[str, Task]:
    """Return the same of a forum that was opened.

    Only links that were made in replies: a question that links to a topic mostly quotes its title.
    """
    rows = need_data("slicer-discourse/related_links.tsv").read_text(encoding="utf-8").splitlines()
    links = [(source, target) for source, target, where in (row.split("\t") for row in rows) if where == "reply"]
    marks = related_task(forum, links, part)
    return {f"slicer {part} half": forum_retrieval_task("slicer", forum, marks, main="recall@10")}


def questions_in(name: str) -> list[Question]:
    """Return every question of a set, of all its parts, for encoding them ahead."""
    if name in ARCHIVES:
        with Forum.open(forum_folder(name), settings=WORDS_ALONE) as forum:
            return list(forum.questions())
    if name == "semeval":
        splits = ("train", *SEMEVAL_PARTS["dev"], *SEMEVAL_PARTS["test"])
        return [question for split in splits for question in questions_of(_semeval(split))]
    pairs = read_labelled_pairs(need_data("quora-pairs/dev.tsv.gz"))
    texts: Iterable[str] = (text for pair in pairs for text in (pair.first, pair.second))
    return [title_alone(text) for text in dict.fromkeys(texts)]


def _semeval(split: str) -> Judged:
    return read_judged(need_data("semeval-task3-b"), "semeval", split)
