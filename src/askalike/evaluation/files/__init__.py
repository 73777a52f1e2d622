"""Judgements and runs on disk, one file per format.

Enters: paths. Leaves: `Qrels` and `Run`; and the way back. May import: askalike.types, askalike.errors.
"""

from askalike.evaluation.files.askubuntu import read_askubuntu, write_askubuntu
from askalike.evaluation.files.formats import FORMATS, detect, read_gold, read_run
from askalike.evaluation.files.semeval import (
    read_semeval_gold,
    read_semeval_run,
    write_semeval_gold,
    write_semeval_run,
)
from askalike.evaluation.files.trec_qrels import read_trec_qrels, write_trec_qrels
from askalike.evaluation.files.trec_run import read_trec_run, write_trec_run

__all__ = [
    "FORMATS",
    "detect",
    "read_askubuntu",
    "read_gold",
    "read_run",
    "read_semeval_gold",
    "read_semeval_run",
    "read_trec_qrels",
    "read_trec_run",
    "write_askubuntu",
    "write_semeval_gold",
    "write_semeval_run",
    "write_trec_qrels",
    "write_trec_run",
]
