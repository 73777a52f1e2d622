"""The texts and marks that the general encoder learns from, and the dev sets that it is chosen by.

Enters: the folder of the data sets. Leaves: ``TrainingData``. Nothing of a dev or test split is learned from but the
questions' own texts, which are no labels.

- texts: Reddit, 3D Slicer, travel, DevOps, four Stack Exchange sites, Yahoo! Answers;
- labelled pairs: the train part of the travel duplicates (split by connected component, seed 0), travel questions that
  are linked and of which neither is in a component of the dev or test split, and the links of the Stack Exchange sites;
- answers: Reddit, Slicer, DevOps, Stack Exchange, Yahoo!.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from askalike.evaluation import CandidateTask, split_components
from askalike.evaluation.forum.links import SPLIT_SEED, SPLITS, duplicate_task
from askalike.evaluation.forum.tasks import bm25_task, candidate_task, forum_rerank_task, questions_of
from askalike.forum import Forum
from askalike.readers.detection import choose
from askalike.readers.frame import ReadContext, ReadOptions, Rejects
from askalike.readers.research.judged import read_judged
from askalike.training.corpus import TrainingData
from askalike.types import Answer, Link, Question, Record

__all__ = ["TEXTS", "dev_tasks", "general_data", "records", "travel_parts"]

TEXTS = (
    "reddit/questions.jsonl.gz",
    "reddit/question-answers.jsonl.gz",
    "slicer-discourse/topics.jsonl.gz",
    "travel-stackexchange",
    "devops-stackexchange/posts.csv.gz",
    "stackexchange-dumps/cardano-2021",
    "stackexchange-dumps/matheducators-2014",
    "stackexchange-dumps/quantumcomputing-2018",
    "stackexchange-dumps/scicomp-meta",
    "yahoo/liveqa-5k.gz",
    "yahoo/threads-dataset.csv.gz",
    "yahoo/threads-dataset2.csv.gz",
)
TRAVEL = "travel-stackexchange"


def records(path: Path) -> Iterator[Record]:
    """Yield what a source holds."""

    def unheard(_: object) -> None:
        """Tell nobody."""

    context = ReadContext(ReadOptions(), Rejects(), unheard, unheard)
    yield from choose(path).read(path, context)


def travel_parts(folder: Path, seed: int = SPLIT_SEED) -> dict[str, set[str]]:
    """Return part → ids of the questions in its duplicate components, as the duplicate task splits them."""
    pairs = [
        (record.source_id, record.target_id)
        for record in records(folder / TRAVEL)
        if isinstance(record, Link) and record.kind == "duplicate"
    ]
    return {part: set(members) for part, members in split_components(pairs, SPLITS, seed).items()}


def general_data(folder: Path) -> TrainingData:
    """Return everything, ids made unique by the name of their source."""
    held = set.union(*(ids for part, ids in travel_parts(folder).items() if part != "train"))

    def is_held_out(name: str, link: Link) -> bool:
        """Return whether a link is tested by, or is no mark of a duplicate."""
        ends = {link.source_id, link.target_id}
        return name == "slicer-discourse/topics.jsonl.gz" or (name == TRAVEL and not held.isdisjoint(ends))

    questions: dict[str, Question] = {}
    answers: list[Answer] = []
    pairs: list[tuple[str, str]] = []
    for name in TEXTS:
        for record in records(folder / name):
            if isinstance(record, Question):
                tags = record.tags if name.startswith("reddit") else (name, *record.tags)
                questions.setdefault(f"{name}/{record.id}", replace(record, id=f"{name}/{record.id}", tags=tags))
            elif isinstance(record, Answer):
                answers.append(replace(record, question_id=f"{name}/{record.question_id}"))
            elif isinstance(record, Link) and not is_held_out(name, record):
                pairs.append((f"{name}/{record.source_id}", f"{name}/{record.target_id}"))
    return TrainingData(
        list(questions.values()),
        [pair for pair in pairs if pair[0] in questions and pair[1] in questions],
        [answer for answer in answers if answer.question_id in questions],
    )


def dev_tasks(folder: Path, work: Path) -> dict[str, CandidateTask]:
    """Return what the encoder is chosen by: the dev set of SemEval, and the dev split of the travel duplicates.

    Args:
        work: for the forum whose search finds the candidates.
    """
    path = work / "travel.forum"
    if not path.exists():
        with Forum.create(path) as forum:
            forum.load(folder / TRAVEL)
    with Forum.open(path) as forum:
        travel = forum_rerank_task("travel dev", forum, duplicate_task(forum, "dev"))
    judged = read_judged(folder / "semeval-task3-b", "semeval", "dev")
    semeval = bm25_task(judged, "semeval", questions_of(judged))
    return {"semeval": candidate_task(semeval), "travel": candidate_task(travel)}
