"""Judging runs: measures, protocols, reports, significance, files of judgements and runs, splits without leaks."""

from askalike.evaluation.candidates import CandidateTask
from askalike.evaluation.files import read_gold, read_run, write_trec_qrels, write_trec_run
from askalike.evaluation.measures import MEASURES, PROTOCOLS
from askalike.evaluation.report import Comparison, Report, compare, evaluate
from askalike.evaluation.significance import (
    Interval,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_over_seeds,
    randomisation_test,
)
from askalike.evaluation.splits import components, split_components

__all__ = [
    "MEASURES",
    "PROTOCOLS",
    "CandidateTask",
    "Comparison",
    "Interval",
    "Report",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_over_seeds",
    "compare",
    "components",
    "evaluate",
    "randomisation_test",
    "read_gold",
    "read_run",
    "split_components",
    "write_trec_qrels",
    "write_trec_run",
]
