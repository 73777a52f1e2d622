"""Judging runs: measures, protocols, reports, significance, files of judgements and runs, splits without leaks.

Enters: `Qrels` and `Run`, or files of them. Leaves: reports and comparisons. May import: askalike.types,
askalike.errors, NumPy; it knows no engine.
"""

from askalike.evaluation.candidates import CandidateTask
from askalike.evaluation.compare import Comparison, compare
from askalike.evaluation.files import (
    FORMATS,
    detect,
    read_askubuntu,
    read_gold,
    read_run,
    read_semeval_gold,
    read_semeval_run,
    read_trec_qrels,
    read_trec_run,
    write_askubuntu,
    write_semeval_gold,
    write_semeval_run,
    write_trec_qrels,
    write_trec_run,
)
from askalike.evaluation.kept_split import kept_split
from askalike.evaluation.leaks import Leak, check_leaks, find_leaks
from askalike.evaluation.measures import (
    MEASURES,
    Measure,
    Ranked,
    average_precision,
    ndcg_at,
    parse_measure,
    precision_at,
    recall_at,
    reciprocal_rank,
    success_at,
)
from askalike.evaluation.pairs import (
    PAIR_MEASURES,
    PairComparison,
    compare_pairs,
    pair_average_precision,
    pair_interval,
    roc_area,
)
from askalike.evaluation.protocols import PROTOCOLS, Protocol, parse_protocol
from askalike.evaluation.report import DEFAULT_MEASURES, Report, evaluate
from askalike.evaluation.significance import (
    Interval,
    RandomisationTest,
    bootstrap_difference,
    bootstrap_mean,
    randomisation_test,
)
from askalike.evaluation.split import components, split_components

__all__ = [
    "DEFAULT_MEASURES",
    "FORMATS",
    "MEASURES",
    "PAIR_MEASURES",
    "PROTOCOLS",
    "CandidateTask",
    "Comparison",
    "Interval",
    "Leak",
    "Measure",
    "PairComparison",
    "Protocol",
    "RandomisationTest",
    "Ranked",
    "Report",
    "average_precision",
    "bootstrap_difference",
    "bootstrap_mean",
    "check_leaks",
    "compare",
    "compare_pairs",
    "components",
    "detect",
    "evaluate",
    "find_leaks",
    "kept_split",
    "ndcg_at",
    "pair_average_precision",
    "pair_interval",
    "parse_measure",
    "parse_protocol",
    "precision_at",
    "randomisation_test",
    "read_askubuntu",
    "read_gold",
    "read_run",
    "read_semeval_gold",
    "read_semeval_run",
    "read_trec_qrels",
    "read_trec_run",
    "recall_at",
    "reciprocal_rank",
    "roc_area",
    "split_components",
    "success_at",
    "write_askubuntu",
    "write_semeval_gold",
    "write_semeval_run",
    "write_trec_qrels",
    "write_trec_run",
]
