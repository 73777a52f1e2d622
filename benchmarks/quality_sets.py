"""The real sets as tasks, by part: what tunes ("dev") and what is scored once ("test")."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from recipes.folders import MINILM, WORK, build_once, need_data
from recipes.scorer.pairs import ARCHIVES

from askalike.cli.messages import BarProgress
from askalike.evaluation.forum.links import duplicate_task, related_task
from askalike.evaluation.forum.tasks import RerankTask, forum_rerank_task, judged_task, questions_of
from askalike.forum import Forum
from askalike.models.encoder_settings import EncoderSettings
from askalike.readers.research.judged import read_judged
from askalike.types import Judged, Question
from benchmarks.labelled_pairs import read_labelled_pairs
from benchmarks.systems import PairTask, RetrievalTask, forum_retrieval_task, pair_task, title_alone

SEMEVAL_PARTS: Final = {"dev": ("dev",), "test": ("test2016", "test2017")}
ENCODERS: Final = {
    "general": None,
    "minilm": EncoderSettings("sentence-transformers", str(MINILM), precision="int8"),
}
"""Name → the encoder of a forum; None is the bundled one."""

Task = RerankTask | RetrievalTask | PairTask


def forum_of(name: str, encoder: str) -> Path:
    """Return the folder of a forum that holds a set, with the vectors of an encoder of ``ENCODERS``.

    It is built once; encoding by MiniLM may be stopped, and continues in the next run.
    """
    folder, settings = WORK / f"encoders-{name}-{encoder}.forum", ENCODERS[encoder]
    if settings is None:
        return build_once(folder, lambda folder: _build(name, folder))
    mark = folder.with_suffix(".complete")
    if not mark.exists():
        if not folder.exists():
            shutil.copytree(forum_of(name, "general"), folder)
        with BarProgress() as progress, Forum.open(folder, encoder=settings) as forum:
            forum.encode(progress=progress)
        mark.touch()
    return folder


def _build(name: str, folder: Path) -> None:
    with Forum.create(folder) as forum:
        if name in ARCHIVES:
            forum.load(need_data(ARCHIVES[name]))
        else:
            forum.add(_questions(name))
        forum.encode()


def _questions(name: str) -> list[Question]:
    """Return every question of SemEval or Quora, of all parts."""
    if name == "semeval":
        splits = ("train", *SEMEVAL_PARTS["dev"], *SEMEVAL_PARTS["test"])
        return [question for split in splits for question in questions_of(_semeval(split))]
    pairs = read_labelled_pairs(need_data("quora-pairs/dev.tsv.gz"))
    texts: Iterable[str] = (text for pair in pairs for text in (pair.first, pair.second))
    return [title_alone(text) for text in dict.fromkeys(texts)]


def _semeval(split: str) -> Judged:
    return read_judged(need_data("semeval-task3-b"), "semeval", split)


def semeval_tasks(_: Forum, part: str) -> dict[str, Task]:
    """Return SemEval's re-ranking; document frequencies come from the questions of training and dev."""
    known = [question for split in ("train", "dev") for question in questions_of(_semeval(split))]
    return {f"semeval {split}": judged_task(_semeval(split), "semeval", known) for split in SEMEVAL_PARTS[part]}


def travel_tasks(forum: Forum, part: str) -> dict[str, Task]:
    """Return the travel forum's duplicates: re-ranking of the lexical search's twenty, and full retrieval."""
    links = duplicate_task(forum, part)
    return {
        f"travel {part}, re-ranking": forum_rerank_task("travel", forum, links),
        f"travel {part}, retrieval": forum_retrieval_task("travel", forum, links),
    }


def quora_tasks(_: Forum, part: str) -> dict[str, Task]:
    """Return one half of the Quora pairs; halves share no question."""
    return {f"quora {part} half": pair_task("quora", read_labelled_pairs(need_data("quora-pairs/dev.tsv.gz")), part)}


def slicer_tasks(forum: Forum, part: str) -> dict[str, Task]:
    """Return one half of the Slicer forum's links as retrieval.

    Only links that were made in replies: a question that links to a topic mostly quotes its title.
    """
    rows = need_data("slicer-discourse/related_links.tsv").read_text(encoding="utf-8").splitlines()
    links = [(source, target) for source, target, where in (row.split("\t") for row in rows) if where == "reply"]
    task = related_task(forum, links, part)
    return {f"slicer {part} half": forum_retrieval_task("slicer", forum, task, main="recall@10")}


TASKS: Final[Mapping[str, Callable[[Forum, str], dict[str, Task]]]] = {
    "travel": travel_tasks,
    "slicer": slicer_tasks,
    "semeval": semeval_tasks,
    "quora": quora_tasks,
}
"""Set → its tasks, of the forum that holds it and a part."""
