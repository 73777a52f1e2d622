"""How fast RAMN re-ranks: one query against 20 and 100 candidates of 100 words, beside all-MiniLM-L6-v2's cosine.

Command: ``OMP_WAIT_POLICY=PASSIVE python -m benchmarks.ramn_speed``. Reddit questions cut at 100 words; a forum's
settings, and random numbers in the sizes of the recipes ``ramn`` and ``ramn-rnn``, since speed does not depend on their
values. *known*: the candidates' states (or MiniLM's vectors) are kept, as a forum keeps them; *new*: they are computed
too. All systems turn by turn in one run; MiniLM with two threads. Writes ``results/ramn-speed.json``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from askalike.index.states import ModelStates
from askalike.models.encoders.model import Model
from askalike.models.ramn import FORUM
from askalike.models.vocabulary import Vocabulary
from askalike.search import Query
from askalike.search.networks import RamnReranker
from askalike.search.pool import Pooled
from askalike.text.analyzer import stemmer_of
from askalike.text.tokens import words
from askalike.training.recipe import Recipe, load_recipe
from askalike.types import Question
from benchmarks.encode_runtime import read_questions
from benchmarks.minilm import MiniLM
from benchmarks.record import percentiles, write

COMMAND = "OMP_WAIT_POLICY=PASSIVE python -m benchmarks.ramn_speed"
WORDS = 100
COUNTS = (20, 100)
QUERIES = 40
NEW_QUERIES = 8
RIVAL_THREADS = 2
VOCABULARY = 30_000


def long_questions() -> list[Question]:
    """Return real questions of exactly ``WORDS`` words, title and body together."""
    found = []
    for question in read_questions(20_000):
        read = words(f"{question.title} {question.body}")[:WORDS]
        if len(read) == WORDS:
            found.append(Question(question.id, " ".join(read[:10]), " ".join(read[10:])))
    return found


def random_model(recipe: str, questions: Sequence[Question]) -> Model:
    """Return a model as a recipe makes it, with random numbers."""
    found = load_recipe(recipe)
    assert isinstance(found, Recipe)
    settings = found.model_settings()
    stems = stemmer_of(settings.stems)
    texts = (" ".join(stems.stems(words(f"{one.title} {one.body}"))) for one in questions)
    vocabulary = Vocabulary.build(texts, max_size=VOCABULARY)
    chance = np.random.default_rng(0)
    shapes = settings.encoder.shapes()
    return Model.build(
        settings,
        vocabulary,
        chance.standard_normal((len(vocabulary), settings.encoder.input_size), dtype=np.float32),
        {name: 0.1 * chance.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()},
        counts=np.arange(len(vocabulary), dtype=np.int64)[::-1].copy(),
    )


def by_ramn(model: Model, *, is_known: bool) -> Callable[[Question, Sequence[Question]], object]:
    """Return what scores candidates by RAMN with a forum's settings."""
    source = ModelStates(model)

    def score(query: Question, candidates: Sequence[Question]) -> object:
        found = [
            (Pooled(int(question.id), {"bm25": 1.0}, {"lexical": rank}), question)
            for rank, question in enumerate(candidates, start=1)
        ]
        states = source if is_known else ModelStates(model)
        return RamnReranker(states, FORUM).scores(Query(query.title, query.body), found)

    return score


def by_cosine(rival: MiniLM, *, is_known: bool) -> Callable[[Question, Sequence[Question]], object]:
    """Return what scores candidates by MiniLM's cosine; known vectors are looked up by the question's id."""
    known: dict[str, Any] = {}

    def score(query: Question, candidates: Sequence[Question]) -> object:
        if not is_known:
            vectors = rival.encode([query, *candidates])
            return vectors[1:] @ vectors[0]
        if new := [question for question in candidates if question.id not in known]:
            known.update(zip([question.id for question in new], rival.encode(new), strict=True))
        return np.stack([known[question.id] for question in candidates]) @ rival.encode([query])[0]

    return score


def main() -> None:
    """Measure and write the result."""
    questions = [Question(str(place), one.title, one.body) for place, one in enumerate(long_questions())]
    rival = MiniLM(RIVAL_THREADS, cache=None)
    models = {"attention": random_model("ramn", questions), "gru": random_model("ramn-rnn", questions)}
    found: dict[str, Any] = {}
    for count in COUNTS:
        candidates, queries = questions[:count], questions[count : count + QUERIES]
        for state in ("known", "new"):
            is_known = state == "known"
            systems = {f"ramn, {name}": by_ramn(model, is_known=is_known) for name, model in models.items()}
            systems["minilm"] = by_cosine(rival, is_known=is_known)
            taken: dict[str, list[float]] = {name: [] for name in systems}
            for query in queries[: QUERIES if is_known else NEW_QUERIES]:
                for name, score in systems.items():
                    began = time.perf_counter()
                    score(query, candidates)
                    taken[name].append(time.perf_counter() - began)
            shown = {name: percentiles(seconds[1:]) for name, seconds in taken.items()}  # the first one warms up
            found[f"{count} candidates, {state}"] = shown
            print(count, state, shown, flush=True)
    write(
        "ramn-speed",
        COMMAND,
        {
            "words": WORDS,
            "rival": "all-MiniLM-L6-v2",
            "rival_threads": RIVAL_THREADS,
            "parameters": {name: model.settings.encoder.parameter_count() for name, model in models.items()},
            "latency": found,
        },
    )


if __name__ == "__main__":
    main()
