"""RAMN over the states of word2vec, autoencoders and transformers; no score chooses anything.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.ramn_states --out FOLDER [--states NAME] [--transformer NAME=FOLDER]``
on SemEval Task 3 B; with ``--set travel`` or ``--set slicer`` on the judged sets of ``askalike reproduce das2016``;
with ``--set pools`` on the graded pools and the drawn queries of ``recipes.scorer``.

Weights, α (the paper's .035) and the floor are fixed beforehand (``askalike.papers.zhang2018.states``). word2vec, the
untrained encoder, the attention autoencoder and an RCNN learn from the 1,613 questions of SemEval's training files,
with as many seeds each; ``--states`` names some of these, and the bundled encoder is always measured. The RCNN learns
as ``lei2016`` pre-trains it, by writing titles from titles and bodies, over the stems that the autoencoder reads.
FOLDER is that of ``askalike reproduce zhang2018``, whose finished trainings are taken. A transformer is a folder of the
sentence-transformers kind; it reads 128 pieces, in bfloat16, and its states are kept in FOLDER.

On the others nothing is trained: transformers alone are measured, how often a word occurs is counted in the forum's
questions (of the pools: in those that were judged), and the rank is the place among the candidates by the forum's own
search by words. Of a pool, what is related or more is relevant. Writes ``results/ramn-states.json``, or
``results/ramn-states-SET.json``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import floor
from pathlib import Path
from typing import Any, Final

import numpy as np
from recipes.folders import DATA, need_data
from recipes.scorer.pairs import graded, open_forum

from askalike.data import general_folder
from askalike.evaluation import evaluate
from askalike.evaluation.forum.tasks import RerankTask, bm25_run
from askalike.models.general import general_encoder
from askalike.models.vocabulary import QuestionReader
from askalike.papers.das2016 import data as das2016
from askalike.papers.harness import Outcome, Row, RowResult, compare_rows
from askalike.papers.zhang2018.autoencoders import PlainWords, StateTrainer
from askalike.papers.zhang2018.data import read_data
from askalike.papers.zhang2018.ramn import Floats, Similarity
from askalike.papers.zhang2018.rows import States
from askalike.papers.zhang2018.states import ContextualWords, FixedRamn, MeanStates, TokenStates, VectorSource
from askalike.papers.zhang2018.table import MEASURES, rank_bm25_run
from askalike.search.settings import MAX_HITS
from askalike.training.recipe import DecodingOptions, Recipe, network_recipe
from askalike.types import Query, Question, Run
from benchmarks.record import option_parser, write

SIZE: Final = 1613
PIECES: Final = 128
LEARNED: Final[dict[str, States]] = {
    "word2vec": "word2vec",
    "untrained": "untrained",
    "autoencoder": "attention",
    "rcnn": "attention",
}
"""Name → what a trainer of that name is asked for; the RCNN's trainer has a recipe of its own."""
KINDS: Final = ("pool", "drawn")
POOL_MEASURES: Final = (*MEASURES, "ndcg@5")
SIMILARITIES: Final[tuple[Similarity, ...]] = ("dot", "cosine")
LAYER_PAIRS: Final = (
    ("mismatch", "base"),
    ("rank", "mismatch"),
    ("bm25", "rank"),
    ("matches", "cosine"),
    ("sum", "control"),
)
"""Layers of the same states that are compared, the first said to be above the second."""


def kept(name: str, file: Path, encode: Callable[[Sequence[str]], list[tuple[list[str], Floats]]]) -> TokenStates:
    """Return what encodes texts once and keeps their states in a file of half precision."""

    def token_states(texts: Sequence[str]) -> list[tuple[Sequence[str], Floats]]:
        digest = hashlib.sha256(repr((name, PIECES, list(texts))).encode(errors="replace")).hexdigest()[:16]
        path = file.with_name(f"{file.name}-{digest}.npz")
        if not path.exists():
            encoded = encode(texts)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(
                path,
                pieces=np.array([piece for pieces, _ in encoded for piece in pieces]),
                lengths=np.array([len(pieces) for pieces, _ in encoded]),
                states=np.concatenate([states for _, states in encoded]).astype(np.float16),
            )
        with np.load(path) as stored:
            pieces, lengths, states = stored["pieces"].tolist(), stored["lengths"], stored["states"]
        ends = np.cumsum(lengths)
        spans = zip(ends - lengths, ends, strict=True)
        return [(pieces[begin:end], states[begin:end].astype(np.float32)) for begin, end in spans]

    return token_states


def transformer(folder: Path) -> Callable[[Sequence[str]], list[tuple[list[str], Floats]]]:
    """Return what encodes texts with a folder of the sentence-transformers kind, in bfloat16."""

    def encode(texts: Sequence[str]) -> list[tuple[list[str], Floats]]:
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        model = SentenceTransformer(str(folder), device="cpu").to(torch.bfloat16)
        model.max_seq_length = PIECES
        states = model.encode(list(texts), output_value="token_embeddings", batch_size=16, show_progress_bar=True)
        encoded = []
        for text, own in zip(texts, states, strict=True):
            ids = model.tokenizer(text, truncation=True, max_length=PIECES)["input_ids"]
            encoded.append((model.tokenizer.convert_ids_to_tokens(ids), own[: len(ids)].float().numpy()))
        return encoded

    return encode


def bundled(texts: Sequence[str]) -> list[tuple[list[str], Floats]]:
    """Return the pieces and states of texts by the bundled encoder."""
    folder = general_folder()
    assert folder is not None, "the package has no bundled encoder"
    return [(pieces[:PIECES], states[:PIECES]) for pieces, states in general_encoder(folder).token_states(texts)]


def main() -> None:
    """Write ``results/ramn-states.json``."""
    parser = option_parser(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder of askalike reproduce zhang2018")
    parser.add_argument("--set", choices=("semeval", "travel", "slicer", "pools"), default="semeval")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--states", action="append", choices=LEARNED, help="of what is learned; default: all")
    parser.add_argument("--transformer", action="append", default=[], metavar="NAME=FOLDER")
    options = parser.parse_args()
    named = dict(pair.split("=", 1) for pair in options.transformer)
    encoders = {"bundled": bundled} | {name: transformer(Path(folder)) for name, folder in named.items()}
    recipe = network_recipe("ramn")
    learned: dict[str, Iterable[VectorSource]] = {}
    texts: Sequence[Question]
    if options.set == "semeval":
        data = read_data(need_data("semeval-task3-b"))
        tasks, texts = data.tasks(), data.first(SIZE)
        trainer = StateTrainer(recipe, data, options.out, SIZE, threads=1)
        trainers = {"rcnn": replace(trainer, recipe=rcnn_recipe(recipe), out=options.out / "rcnn")}
        for name in options.states or LEARNED:
            source = partial(trainers.get(name, trainer).source, LEARNED[name])
            learned[name] = map(MeanStates, map(source, range(options.seeds)))
    elif options.set == "pools":
        tasks = pool_tasks()
        texts = tasks[0].statistics
    else:
        sets = {judged_set.name: judged_set for judged_set in das2016.read_data(DATA, has_pairs=False).sets}
        tasks, texts = tuple(map(with_places, sets[options.set].tasks())), sets[options.set].dev.statistics
    frequencies = PlainWords(texts, QuestionReader(recipe.reads, recipe.word_limit, recipe.stems)).frequencies

    def sources() -> Iterator[tuple[str, Iterable[VectorSource]]]:
        yield from learned.items()
        for name, encode in encoders.items():
            yield name, [ContextualWords(kept(name, options.out / "states" / name, encode), frequencies)]

    lexical = {task.name: bm25_run(task) for task in tasks}
    search = {
        "ir": {task.name: task.given for task in tasks},
        "bm25": lexical,
        "rank-bm25": {task.name: rank_bm25_run(task.given, lexical[task.name]) for task in tasks},
    }
    results = {name: result_of(name, tasks, [runs]) for name, runs in search.items()}
    for name, by_seed in sources():
        results |= rows_of(name, by_seed, tasks, lexical)
        print(name, flush=True)
    command = "OMP_NUM_THREADS=1 python -m benchmarks.ramn_states --out FOLDER"
    command += "" if options.set == "semeval" else f" --set {options.set}"
    command += "".join(f" --states {name}" for name in options.states or ())
    command += "".join(f" --transformer {name}=FOLDER" for name in named)
    rows = [result.to_json() for result in results.values()]
    name = "ramn-states" if options.set == "semeval" else f"ramn-states-{options.set}"
    write(name, command, {"texts": len(texts), "rows": rows, "compared": list(comparisons(results, tasks))})


def rcnn_recipe(recipe: Recipe) -> Recipe:
    """Return the pre-training of ``lei2016`` without marked pairs, over the words that another recipe reads."""
    paper = network_recipe("lei2016")
    stage, options = paper.stages[0], paper.stages[0].options
    assert isinstance(options, DecodingOptions)
    stage = replace(stage, options=replace(options, contexts=("title", "body")))
    return replace(paper, word_limit=recipe.word_limit, stems=recipe.stems, stages=(stage,))


def pool_tasks() -> tuple[RerankTask, ...]:
    """Return the graded pools and the drawn queries, each as a task whose candidates are in the order of words.

    A grade g counts 2^g - 1, halves rounded up.
    """
    rows = [row for row in graded() if row[0] in KINDS]
    questions: dict[str, Question] = {}
    queries: dict[str, dict[str, Question]] = {kind: {} for kind in KINDS}
    given: dict[str, Run] = {kind: {} for kind in KINDS}
    qrels: dict[str, dict[str, dict[str, int]]] = {kind: {} for kind in KINDS}
    for name in sorted({forum for _, forum, *_ in rows}):
        with open_forum(name) as forum:
            for kind, _, identifier, form, grades in (row for row in rows if row[1] == name):
                read = forum.store.questions_by_id([identifier, *grades])
                query = read[identifier] if form == "title and body" else Question("", read[identifier].title)
                wanted = Query(query.title, query.body, query.markup, MAX_HITS, ranker="words")
                score_of = dict(forum.indexes.ranking(wanted))
                ids = sorted(grades.keys() & read.keys(), key=lambda key: (-score_of.get(key, 0.0), key))
                candidates = {f"{name} {key}": read[key] for key in ids}
                key = f"{name} {identifier}"
                questions |= candidates
                queries[kind][key] = query
                given[kind][key] = [(own, 1 / place) for place, own in enumerate(candidates, start=1)]
                gains = [2 ** floor(grades[key] + 0.5) - 1 for key in ids]
                qrels[kind][key] = dict(zip(candidates, gains, strict=True))
    everything = tuple(questions.values())
    return tuple(
        RerankTask(f"pools {kind}", "askubuntu", queries[kind], questions, given[kind], qrels[kind], everything)
        for kind in KINDS
    )


def with_places(task: RerankTask) -> RerankTask:
    """Return the task whose candidates have 1 / their place as their score, as the search engine's are read."""
    rankings = {
        query: [(document, 1 / place) for place, (document, _) in enumerate(candidates, start=1)]
        for query, candidates in task.given.items()
    }
    return replace(task, given=rankings)


def rows_of(
    name: str, sources: Iterable[VectorSource], tasks: Sequence[RerankTask], lexical: dict[str, Run]
) -> dict[str, RowResult[Row]]:
    """Return every layer of some states, by both similarities; the cosine of means is the same for both."""
    by_seed: list[dict[str, dict[str, Run]]] = []
    for source in sources:
        rows: dict[str, dict[str, Run]] = {}
        for similarity in SIMILARITIES:
            for task in tasks:
                for layer, run in FixedRamn(source, similarity, lexical).runs(task).items():
                    row = f"{name}-{layer}" if layer in ("cosine", "control") else f"{name}-{layer}-{similarity}"
                    rows.setdefault(row, {})[task.name] = run
        by_seed.append(rows)
    return {row: result_of(row, tasks, [rows[row] for rows in by_seed]) for row in by_seed[0]}


def result_of(name: str, tasks: Sequence[RerankTask], by_seed: Sequence[dict[str, Run]]) -> RowResult[Row]:
    """Return a row's means over seeds and queries."""
    measures = POOL_MEASURES if tasks[0].name.startswith("pools") else MEASURES
    outcomes = [
        Outcome(
            name,
            seed,
            "",
            {task.name: evaluate(task.qrels, runs[task.name], task.protocol, measures).per_query for task in tasks},
        )
        for seed, runs in enumerate(by_seed)
    ]
    return RowResult.of(Row(name, name.split("-")[0], is_drawn=len(by_seed) > 1), outcomes, None, measures)


def comparisons(results: dict[str, RowResult[Row]], tasks: Sequence[RerankTask]) -> Iterator[dict[str, Any]]:
    """Yield paired comparisons: of the layers of the same states, and of sums with what they are made of."""
    systems = dict.fromkeys(result.row.system for name, result in results.items() if name.endswith("-sum-cosine"))
    pairs = [(f"{name}-sum-cosine", "rank-bm25") for name in systems]
    pairs += [(f"{name}-sum-cosine", f"{name}-cosine") for name in systems]
    for name in systems:
        for better, worse in LAYER_PAIRS:
            for similarity in SIMILARITIES:
                second = f"{name}-{worse}" if worse in ("cosine", "control") else f"{name}-{worse}-{similarity}"
                pairs.append((f"{name}-{better}-{similarity}", second))
    controls = ("word2vec", "untrained")
    pairs += [
        (f"{learner}-base-{similarity}", f"{control}-base-{similarity}")
        for learner in ("autoencoder", "rcnn")
        for similarity in SIMILARITIES
        for control in controls
        if {learner, control} <= systems.keys()
    ]
    for better, worse in pairs:
        for task in tasks:
            yield compare_rows(results[better], results[worse], task.name).to_json()


if __name__ == "__main__":
    main()
