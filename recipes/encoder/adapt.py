"""The bundled encoder adapted to forums as ``askalike train`` does, judged by the queries of ``evaluate``.

Links of judged queries and of the dev split are not learned from. ``own bodies`` compares as a forum without duplicates
does.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchmarks.record import compare

from askalike.files import replace_whole
from askalike.models.adapted import AdaptedEncoder, bundled_folder
from askalike.models.general import GeneralEncoder
from askalike.training.adaptation import adapt_encoder, left_out, own_bodies
from askalike.training.encoder import TrainingRun
from askalike.training.recipe import Adaptation, read_recipe
from askalike.training.session import forum_training
from recipes.encoder.evaluate import KINDS, judged_queries, measure
from recipes.scorer.pairs import graded, open_forum

FORUMS: Final = ("travel", "slicer", "devops", "cardano", "quantum", "math", "yahoo")


def adapt(forums: Sequence[str], seeds: Sequence[int], device: str, work: Path) -> dict[str, Any]:
    """Return what the result file holds.

    Args:
        work: folder of the trainings that are finished; they are not done again by the same recipe.
    """
    recipe = read_recipe("default")
    assert isinstance(recipe, Adaptation)
    digest = hashlib.sha256(recipe.to_json().encode()).hexdigest()[:8]
    values: dict[tuple[str, int], list[float]] = {}
    before: dict[str, list[float]] = {}
    rows: dict[str, Any] = {}
    for seed, name in product(seeds, forums):
        queries = judged_queries([name])
        if name not in rows:
            before[name] = measure(GeneralEncoder(bundled_folder()).encode_document, queries)
            rows[name] = {"queries": len(queries), "ndcg@5": _percent(fmean(before[name])), "seeds": {}}
        finished = work / f"{name}-{seed}-{digest}.json"
        if not finished.exists():
            began = time.monotonic()
            encoder, row = _adapted(name, recipe, seed, device, work / f"{name}-{seed}")
            row["seconds"] = round(time.monotonic() - began)
            stored = {"row": row, "values": measure(encoder.encode_text, queries)}
            replace_whole(finished, json.dumps(stored).encode())
        stored = json.loads(finished.read_text(encoding="utf-8"))
        own = values[name, seed] = stored["values"]
        row = {**stored["row"], "ndcg@5": _percent(fmean(own)), **compare(own, before[name])}
        rows[name]["seeds"][str(seed)] = row
        print(name, seed, rows[name]["ndcg@5"], row, flush=True)
    plain = [value for name in forums for value in before[name]]
    means = [
        fmean(of_query) for name in forums for of_query in zip(*(values[name, seed] for seed in seeds), strict=True)
    ]
    return {
        "recipe": recipe.to_json(),
        "device": device,
        "forums": rows,
        "together": {
            "queries": len(plain),
            "before": _percent(fmean(plain)),
            "after": _percent(fmean(means)),
            **compare(means, plain),
        },
    }


def _adapted(
    name: str, recipe: Adaptation, seed: int, device: str, work: Path
) -> tuple[AdaptedEncoder, dict[str, Any]]:
    """Return the encoder adapted to a forum, and how it was compared without duplicates."""
    judged = {query for kind, forum, query, *_ in graded() if forum == name and kind in KINDS}
    with open_forum(name) as forum:
        data = forum_training(forum).data
        compared = left_out(data.questions)
        data = replace(
            data,
            pairs=[pair for pair in data.pairs if judged.isdisjoint(pair)],
            held_out=[question.id for question in compared],
        )
        encoder = adapt_encoder(recipe, data, TrainingRun(work, seed, device))
        bundled = GeneralEncoder(bundled_folder())
        ranks = [own_bodies(compared, encode) for encode in (bundled.encode_document, encoder.encode_text)]
    reciprocal_ranks = [list(report.per_query["mrr"].values()) for report in ranks]
    row = {
        "questions": len(data.questions),
        "answers": len(data.answers),
        "links": len(data.pairs),
        "own bodies": {"questions": len(compared), **compare(reciprocal_ranks[1], reciprocal_ranks[0])},
    }
    return encoder, row


def _percent(value: float) -> float:
    return round(100 * value, 2)
