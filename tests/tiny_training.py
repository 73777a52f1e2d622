"""Training data and recipes that are small enough to be trained on in a fraction of a second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from askalike.evaluation import CandidateTask, evaluate
from askalike.models.encoders.settings import EncoderConfig
from askalike.models.vocabulary import QuestionReader
from askalike.training.corpus import Corpus, TrainingData, WordSource
from askalike.training.recipe import OBJECTIVES, LoopSettings, Recipe, StageSettings, WordSettings
from askalike.training.session import DevScore
from askalike.types import Answer, Question

TOPICS = 8
STAGES: dict[str, dict[str, Any]] = {
    "decoding": {"batch_size": 8, "held_out": 4},
    "max-margin": {"batch_size": 4, "negatives": 3},
    "reconstruction": {"batch_size": 8, "held_out": 4},
    "contrastive": {"views": {"title-body": 1.0, "marked": 1.0, "answers": 0.5}, "batch_size": 6, "temperature": 0.2},
}


def dev_score_of(*values: float) -> DevScore:
    """Return what dev says where its queries have these reciprocal ranks; of one alone, twenty queries have it."""
    named = {f"q{number}": value for number, value in enumerate(values if len(values) > 1 else values * 20)}
    report = evaluate({query: {"a": 1} for query in named}, {query: [("a", 1.0)] for query in named}, "trec", ["mrr"])
    mean = sum(named.values()) / len(named)
    return DevScore(mean, 0.1, replace(report, per_query={"mrr": named}, means={"mrr": mean}))


def tiny_data() -> TrainingData:
    """Return four questions of each of eight topics; the first three are marked with each other."""
    questions, pairs, answers = [], [], []
    for topic in range(TOPICS):
        words = [f"t{topic}{letter}" for letter in "abcd"]
        for number in range(4):
            title = f"how {words[number % 4]} {words[(number + 1) % 4]}"
            body = f"my {words[(number + 2) % 4]} is {words[(number + 3) % 4]} {words[number % 4]}"
            questions.append(Question(f"{topic}-{number}", title, body))
        pairs += [(f"{topic}-0", f"{topic}-1"), (f"{topic}-2", f"{topic}-1")]
        answers.append(Answer(f"a{topic}", f"{topic}-0", f"{words[2]} {words[3]} {words[1]}"))
    queries = [4 * topic + 3 for topic in range(TOPICS)]
    random = np.random.default_rng(0)
    candidates = [
        [query - 3, *(4 * ((query // 4 + random.permutation(7)[:4] + 1) % TOPICS)).tolist()] for query in queries
    ]
    dev = CandidateTask(questions, queries, [documents[::-1] for documents in candidates], [[0, 0, 0, 0, 1]] * TOPICS)
    return TrainingData(questions, pairs, answers, {"tiny": dev})


def tiny_corpus(data: TrainingData | None = None, reads: Any = "title and body") -> Corpus:
    """Return training data as ids of all its words."""
    source = WordSource(data or tiny_data(), QuestionReader(reads, 100), lambda _: None)
    return source.corpus(source.vocabulary(1, None))


def stage(objective: Any, loop: LoopSettings | None = None, **chosen: Any) -> StageSettings:
    """Return a stage with the tiny options of its objective."""
    own = {name: chosen.pop(name) for name in ("dropout", "needs") if name in chosen}
    options = OBJECTIVES[objective](**{**STAGES[objective], **chosen})
    return StageSettings(objective, options, loop or LoopSettings(epochs=1, patience=0, learning_rate=0.02), **own)


def recipe(*stages: StageSettings, **chosen: Any) -> Recipe:
    """Return a recipe of tiny sizes."""
    encoder = {name: chosen.pop(name) for name in ("kind", "pooling", "gate", "order", "layers") if name in chosen}
    size = 6 if encoder.get("kind") == "attention" else 8  # attention is as wide as its words
    words = {name: chosen.pop(name) for name in list(chosen) if name in WordSettings.__slots__}
    return Recipe(
        EncoderConfig(**{"kind": "rcnn", "input_size": 6, "hidden_size": size, **encoder}),
        stages,
        WordSettings(**{"min_count": 1, "vectors": "random", "size": 6, **words}),
        **chosen,
    )
