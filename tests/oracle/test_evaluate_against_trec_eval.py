"""The trec protocol against ir-measures, which runs trec_eval's own code."""

from __future__ import annotations

import random

import ir_measures
import pytest
from ir_measures import AP, RR, P, R, Success, nDCG

from askalike.evaluation import evaluate
from askalike.types import Qrels, Run

NAMES = {
    "map": AP,
    "mrr": RR,
    "p@1": P @ 1,
    "p@5": P @ 5,
    "recall@5": R @ 5,
    "recall@100": R @ 100,
    "ndcg@3": nDCG @ 3,
    "ndcg@10": nDCG @ 10,
    "success@1": Success @ 1,
    "success@5": Success @ 5,
}


def _gold_and_run(seed: int) -> tuple[Qrels, Run]:
    """Draw judged queries, some without positives and some missing from the run; few distinct scores, so many ties."""
    chance = random.Random(seed)
    documents = [f"d{number}" for number in range(60)]
    qrels: Qrels = {}
    run: Run = {}
    for number in range(30):
        grades = (0,) if number % 7 == 0 else (0, 0, 0, 1, 2, 3)
        judged = chance.sample(documents, chance.randint(1, 30))
        qrels[f"q{number}"] = {document: chance.choice(grades) for document in judged}
        ranked = chance.sample(documents, chance.randint(1, 60))
        if number % 11 != 5:
            run[f"q{number}"] = [(document, chance.randint(0, 8) / 4) for document in ranked]
    run["unjudged"] = [("d1", 1.0)]
    return qrels, run


@pytest.mark.parametrize("seed", range(8))
def test_every_measure_of_every_query_is_that_of_trec_eval(seed: int) -> None:
    qrels, run = _gold_and_run(seed)
    report = evaluate(qrels, run, "trec", list(NAMES))
    theirs = {
        (str(metric.measure), metric.query_id): metric.value
        for metric in ir_measures.iter_calc(
            list(NAMES.values()),
            [ir_measures.Qrel(query, name, grade) for query, marks in qrels.items() for name, grade in marks.items()],
            [ir_measures.ScoredDoc(query, name, score) for query, entries in run.items() for name, score in entries],
        )
    }
    ours = {
        (str(NAMES[name]), query): value for name, values in report.per_query.items() for query, value in values.items()
    }
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert report.missing == ("q5", "q16", "q27")
    assert report.unjudged == ("unjudged",)


def test_judged_queries_without_positives_and_missing_queries_count_zero_in_its_means_too() -> None:
    qrels, run = _gold_and_run(99)
    theirs = ir_measures.calc_aggregate(
        list(NAMES.values()),
        [ir_measures.Qrel(query, name, grade) for query, marks in qrels.items() for name, grade in marks.items()],
        [ir_measures.ScoredDoc(query, name, score) for query, entries in run.items() for name, score in entries],
    )
    report = evaluate(qrels, run, "trec", list(NAMES))
    assert report.without_positives
    assert report.means == pytest.approx({name: theirs[measure] for name, measure in NAMES.items()}, abs=1e-9)


def test_semeval_and_askubuntu_agree_with_trec_eval_where_their_policies_make_no_difference() -> None:
    chance = random.Random(1)
    qrels: Qrels = {f"q{n}": {f"d{d}": int(d == n or chance.random() < 0.3) for d in range(10)} for n in range(10)}
    run: Run = {query: [(name, chance.random()) for name in marks] for query, marks in qrels.items()}
    names = ["map", "mrr", "p@1", "p@5", "ndcg@10"]
    expected = evaluate(qrels, run, "trec", names).means
    assert evaluate(qrels, run, "semeval", names).means == pytest.approx(expected)
    assert evaluate(qrels, run, "askubuntu", names).means == pytest.approx(expected)
