"""The bundled encoder adapted to forums as ``askalike train`` does, judged by the queries of ``evaluate``.

Links of judged queries and of the dev split are not learned from. ``own bodies`` compares as a forum without duplicates
does.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchmarks.record import compare

from askalike.models.adapted import AdaptedEncoder, bundled_folder
from askalike.models.general import GeneralEncoder
from askalike.training.adaptation import adapt_encoder, left_out, own_bodies
from askalike.training.encoder import TrainingRun
from askalike.training.recipe import Adaptation, read_recipe
from askalike.training.session import forum_training
from recipes.encoder.evaluate import KINDS, judged_queries, measure
from recipes.scorer.pairs import graded, open_forum

FORUMS: Final = ("travel", "slicer", "devops", "cardano", "quantum", "math", "yahoo")


def adapt(forums: Sequence[str], seeds: Sequence[int], device: str, most: int) -> Iterator[dict[str, Any]]:
    """Yield what the result file holds after each forum.

    Args:
        most: questions that are learned from, the newest; judged ones are not left out.
    """
    recipe = read_recipe("default")
    assert isinstance(recipe, Adaptation)
    before: list[float] = []
    after: list[list[float]] = [[] for _ in seeds]
    rows: dict[str, Any] = {}
    for name in forums:
        queries = judged_queries([name])
        plain = GeneralEncoder(bundled_folder()).encode_document
        own = measure(plain, queries)
        before += own
        rows[name] = {"queries": len(queries), "ndcg@5": _percent(fmean(own)), "seeds": {}}
        for place, seed in enumerate(seeds):
            began = time.monotonic()
            encoder, row = _adapted(name, recipe, seed, device, most)
            row["seconds"] = round(time.monotonic() - began)
            values = measure(encoder.encode_text, queries)
            after[place] += values
            row |= {"ndcg@5": _percent(fmean(values)), **compare(values, own)}
            rows[name]["seeds"][str(seed)] = row
            print(name, seed, rows[name]["ndcg@5"], row, flush=True)
        means = [fmean(of_query) for of_query in zip(*after, strict=True)]
        yield {
            "recipe": recipe.to_json(),
            "device": device,
            "most_questions": most,
            "forums": rows,
            "together": {
                "queries": len(before),
                "before": _percent(fmean(before)),
                "after": _percent(fmean(means)),
                **compare(means, before),
            },
        }


def _adapted(name: str, recipe: Adaptation, seed: int, device: str, most: int) -> tuple[AdaptedEncoder, dict[str, Any]]:
    """Return the encoder adapted to a forum, and how it was compared without duplicates."""
    judged = {query for kind, forum, query, *_ in graded() if forum == name and kind in KINDS}
    with open_forum(name) as forum, tempfile.TemporaryDirectory() as work:
        data = forum_training(forum).data
        kept = {question.id for question in data.questions[-most:]}
        data = replace(
            data,
            questions=[question for question in data.questions if question.id in kept],
            pairs=[pair for pair in data.pairs if kept.issuperset(pair) and judged.isdisjoint(pair)],
            answers=[answer for answer in data.answers if answer.question_id in kept],
        )
        compared = left_out(data.questions)
        data = replace(data, held_out=[question.id for question in compared])
        encoder = adapt_encoder(recipe, data, TrainingRun(Path(work), seed, device))
        bundled = GeneralEncoder(bundled_folder())
        ranks = [own_bodies(compared, encode) for encode in (bundled.encode_document, encoder.encode_text)]
    values = [list(report.per_query["mrr"].values()) for report in ranks]
    row = {
        "questions": len(data.questions),
        "answers": len(data.answers),
        "links": len(data.pairs),
        "own bodies": {"questions": len(compared), **compare(values[1], values[0])},
    }
    return encoder, row


def _percent(value: float) -> float:
    return round(100 * value, 2)
