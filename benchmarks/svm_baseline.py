"""The ranking SVM over similarity measures, beside the search, BM25 and TF-IDF; and how many pairs a second it scores.

Command: ``python -m benchmarks.svm_baseline``. SemEval: learned on train (both parts), C by MAP on dev. Travel
duplicates: learned on the train part's candidates, C by MAP on the dev split. With C chosen, each test set is scored
once for each of two configurations: all measures, and all but the two of word vectors.

Word vectors: skip-gram on Reddit questions, the training questions of SemEval and the questions of the travel forum.
Document frequencies: SemEval's train and dev; the whole travel forum.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.evaluation import Report, compare
from askalike.evaluation.forum.links import duplicate_task
from askalike.evaluation.forum.tasks import (
    RerankTask,
    bm25_task,
    forum_rerank_task,
    judge,
    make_scorer,
    questions_of,
    rerank,
)
from askalike.forum import Forum
from askalike.models.ranking_svm import (
    COSTS,
    LabelledCandidates,
    RankingGroup,
    RankingSvm,
    choose_cost,
    ranking_groups,
)
from askalike.models.similarity import SimilarityFeatures
from askalike.models.vocabulary import Vocabulary
from askalike.readers.detection import READERS
from askalike.readers.frame import ReadContext
from askalike.readers.research.judged import read_judged
from askalike.text.markup import readable
from askalike.text.settings import TextSettings
from askalike.text.tokens import words
from askalike.training.corpus import WordList
from askalike.training.words import Word2VecSettings, train_word2vec
from askalike.types import Question, Run
from benchmarks.quality_rows import ranking_rows, shown
from benchmarks.quality_sets import forum_folder
from benchmarks.record import need_data, write

COMMAND = "python -m benchmarks.svm_baseline"
REDDIT_QUESTIONS = 30_000
WORD2VEC = Word2VecSettings(size=200, epochs=5)
CONFIGURATIONS = ("svm", "svm, no word vectors")
BASELINES = ("bm25", "tfidf", "tfidf-2-all-words")
SPEED_WORDS = 100
SPEED_QUERIES = 40
SPEED_CANDIDATES = 20
SEED = 0

Vectors = Mapping[str, NDArray[np.float32]]


def reddit() -> Iterator[Question]:
    """Yield the Reddit questions in the file's order, which is shuffled."""
    path = need_data("reddit/questions.jsonl.gz")
    yield from (record for record in READERS["jsonl"].read(path, ReadContext()) if isinstance(record, Question))


def word_vectors(own: Iterable[Question]) -> Vectors:
    """Train word vectors on Reddit and on what is known of the sets."""
    known = [*islice(reddit(), REDDIT_QUESTIONS), *own]
    texts = [f"{question.title}\n{readable(question.body, question.markup, with_code=True)}" for question in known]
    read = WordList(map(words, texts))
    vocabulary = Vocabulary.from_counts(read.counts(), min_count=5)
    rows = train_word2vec(read.over(vocabulary), len(vocabulary), WORD2VEC, seed=SEED)
    print(f"word vectors: {len(vocabulary.words):,} words from {len(texts):,} questions", flush=True)
    return dict(zip(vocabulary.words, rows[1:], strict=True))


def semeval_task(split: str, known: Sequence[Question]) -> RerankTask:
    """Return one split of SemEval."""
    return bm25_task(read_judged(need_data("semeval-task3-b"), "semeval", split), "semeval", known)


def examples(task: RerankTask) -> list[LabelledCandidates]:
    """Return a task's queries with their candidates, 1 for a positive one."""
    return [
        LabelledCandidates(
            task.queries[query],
            [task.documents[document] for document, _ in found],
            [int(task.qrels[query].get(document, 0) > 0) for document, _ in found],
        )
        for query, found in task.given.items()
    ]


class Learned:
    """The SVM in both configurations, learned from one task, C chosen on another."""

    def __init__(self, features: SimilarityFeatures, train: RerankTask, dev: RerankTask) -> None:
        self.features = features
        names = features.names
        without = [place for place, name in enumerate(names) if "embedding" not in name]
        self.columns = dict(zip(CONFIGURATIONS, (list(range(len(names))), without), strict=True))
        groups, dev_groups = ranking_groups(features, examples(train)), ranking_groups(features, examples(dev))
        self.models: dict[str, RankingSvm] = {}
        self.facts: dict[str, Any] = {
            "training": {
                "queries": len(groups),
                "queries with both labels": sum(0 < int(group.labels.sum()) < len(group.labels) for group in groups),
                "pairs of question and candidate": sum(len(group.labels) for group in groups),
                "positive": sum(int(group.labels.sum()) for group in groups),
            }
        }
        for name, columns in self.columns.items():
            chosen = [RankingGroup(group.features[:, columns], group.labels) for group in groups]
            model, seen = choose_cost(
                chosen,
                lambda model, name=name: judge(dev, self._run(dev, dev_groups, name, model)).means[dev.main],  # type: ignore[misc]
            )
            self.models[name] = model
            self.facts[name] = {
                "features": len(columns),
                "C": model.cost,
                "map on dev by C": {str(cost): round(100 * value, 2) for cost, value in seen.items()},
                "strongest weights": self._strongest(name, model),
            }

    def runs(self, task: RerankTask) -> dict[str, Run]:
        """Return a run for each configuration."""
        groups = ranking_groups(self.features, examples(task))
        return {name: self._run(task, groups, name, model) for name, model in self.models.items()}

    def _run(self, task: RerankTask, groups: Sequence[RankingGroup], name: str, model: RankingSvm) -> Run:
        run: Run = {}
        for (query, found), group in zip(task.given.items(), groups, strict=True):
            scores = model.scores(group.features[:, self.columns[name]]).tolist()
            run[query] = [(document, score) for (document, _), score in zip(found, scores, strict=True)]
        return run

    def _strongest(self, name: str, model: RankingSvm) -> dict[str, float]:
        names = [self.features.names[column] for column in self.columns[name]]
        order = np.argsort(-np.abs(model.weights))[:10]
        return {names[place]: round(float(model.weights[place]), 4) for place in order}


def table(task: RerankTask, learned: Learned) -> dict[str, Any]:
    """Return one row a system, tested against BM25, and the SVMs against the other rows that are no SVM."""
    reports: dict[str, Report] = {"search": judge(task, task.given)}
    for name in BASELINES:
        scorer = make_scorer(name, task.statistics, TextSettings())
        reports[name] = judge(task, rerank(task.given, scorer, task.queries, task.documents))
    reports |= {name: judge(task, run) for name, run in learned.runs(task).items()}
    rows = ranking_rows(reports, task.main)
    for name in CONFIGURATIONS:
        for rival in ("search", "tfidf"):
            found = compare(reports[name], reports[rival], task.main)
            rows[name][f"against_{rival}"] = {
                task.main: {
                    "difference": round(100 * found.difference.mean, 2),
                    "interval95": [round(100 * found.difference.low, 2), round(100 * found.difference.high, 2)],
                    "p_value": round(found.p_value, 4),
                }
            }
    print(task.name, shown(rows), sep="\n", flush=True)
    return rows


def experiment(train: RerankTask, dev: RerankTask, tests: Sequence[RerankTask], vectors: Vectors) -> dict[str, Any]:
    """Learn on train, choose on dev, score dev and each test set."""
    learned = Learned(SimilarityFeatures(train.statistics, TextSettings(), vectors), train, dev)
    return {"learned": learned.facts, "scores": {task.name: table(task, learned) for task in (dev, *tests)}}


def speed(vectors: Vectors) -> dict[str, Any]:
    """Measure pairs a second: every body has exactly 100 words, twenty candidates a query, all measures.

    The time is the processor's on one thread, so that other work on the machine counts little.
    """
    long = (question for question in reddit() if len(question.body.split()) >= SPEED_WORDS)
    questions = [
        Question(question.id, question.title, " ".join(question.body.split()[:SPEED_WORDS]))
        for question in islice(long, SPEED_QUERIES * (SPEED_CANDIDATES + 1))
    ]
    features = SimilarityFeatures(questions, TextSettings(), vectors)
    queries, candidates = questions[:SPEED_QUERIES], questions[SPEED_QUERIES:]
    found: dict[str, Any] = {"words in a body": SPEED_WORDS, "features": len(features.names)}
    for state in ("each text met first", "texts prepared before"):
        started = time.process_time()
        for place, query in enumerate(queries):
            features.matrix(query, candidates[SPEED_CANDIDATES * place : SPEED_CANDIDATES * (place + 1)])
        found[f"pairs/s, {state}"] = round(len(candidates) / (time.process_time() - started))
    print(found, flush=True)
    return found


def main() -> None:
    """Learn, score, time, and write the result."""
    known = [
        question
        for split in ("train", "dev")
        for question in questions_of(read_judged(need_data("semeval-task3-b"), "semeval", split))
    ]
    with Forum.open(forum_folder("travel")) as forum:
        travel = [forum_rerank_task("travel", forum, duplicate_task(forum, part)) for part in ("train", "dev", "test")]
    vectors = word_vectors([*known, *travel[0].statistics])
    semeval = [semeval_task(split, known) for split in ("train", "dev", "test2016", "test2017")]
    write(
        "svm-baseline",
        COMMAND,
        {
            "svm": {"package": f"scikit-learn {version('scikit-learn')}", "costs": list(COSTS)},
            "word vectors": {"size": WORD2VEC.size, "reddit questions": REDDIT_QUESTIONS, "words": len(vectors)},
            "speed": speed(vectors),
            "semeval": experiment(semeval[0], semeval[1], semeval[2:], vectors),
            "travel re-ranking": experiment(travel[0], travel[1], travel[2:], vectors),
        },
    )


if __name__ == "__main__":
    main()
