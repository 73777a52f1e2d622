"""``docs/results.md``: every table of measured figures, each with its command and commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.sections import (
    das2016,
    encoders,
    language,
    lei2016,
    likelihood,
    misspelling,
    quality,
    searching,
    service,
    siamese,
    training,
    zhang2018,
)

__all__ = ["REPOSITORY", "RESULTS", "results_document"]

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "results"

SECTIONS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "quality-semantic": quality.semantic,
    "quality-semantic-dev": quality.semantic_dev,
    "quality-lexical": quality.lexical,
    "likelihood": likelihood.believed,
    "model-size": quality.model_size,
    "svm-baseline": quality.ranking_svm,
    "lei2016": lei2016.reproduction,
    "zhang2018": zhang2018.reproduction,
    "zhang2018-reddit": zhang2018.other_text,
    "das2016": das2016.reproduction,
    "das2016-6000": das2016.part_of_the_pairs,
    "index-and-search": searching.indexing,
    "ramn-speed": searching.reranking,
    "language-speed": language.speed,
    "updates": searching.updates,
    "kill": searching.kills,
    "damage": searching.damage,
    "serve-load": service.load,
    "serve-kill": service.kills,
    "serve-schema": service.schema,
    "tune-lexical": searching.tuning,
    "tune-ramn": searching.ramn_tuning,
    "encode-runtime": encoders.runtime,
    "vector-search": encoders.vectors,
    "recurrence": encoders.recurrence,
    "siamese": siamese.speed,
    "autoencoders": training.autoencoders,
    "moments": training.moments,
    "training-time": training.training_time,
    "misspelling": misspelling.lost,
    "unseen-words": quality.unseen_words,
    "scorer-checks": quality.scorers,
}
"""Name of the results file → how its section is written, in the document's order."""


TRAINED: Mapping[str, str] = {
    "quality-semantic": "`after-training` is what `askalike train travel.forum --hold-out-test` made of a forum of the"
    " travel set",
    "lei2016": "trained by `askalike reproduce lei2016 --data DATA --out FOLDER --vectors FILE`, FILE word2vec of 200"
    " dimensions over the unlabelled texts of DATA (its SHA-256 is in the file)",
    "zhang2018": "trained by `askalike reproduce zhang2018 --data DATA/semeval-task3-b --unlabelled"
    " DATA/reddit/questions.jsonl.gz --unlabelled DATA/slicer-discourse/topics.jsonl.gz --out FOLDER --amount N`; where"
    " fewer epochs are named, by a copy of the recipe `ramn` with so many",
    "zhang2018-reddit": "trained by the same with `--first questions.jsonl.gz`",
    "das2016": "trained by `askalike reproduce das2016 --data DATA --out FOLDER`",
    "das2016-6000": "trained by `askalike reproduce das2016 --data DATA --out FOLDER --pairs 6000`",
    "misspelling": "FOLDER is the model of SCQA, seed 0, among those of `askalike reproduce das2016`",
}
"""Name of the results file → how what it measures was made, where its own command does not make it."""


def results_document() -> str:
    """Return the document of the results that are there."""
    parts = [
        "# Results",
        "",
        "Written from `results/*.json` by `python -m tools.document`; do not edit by hand. Quality figures are times"
        " 100, with 95 % bootstrap intervals over queries; p-values are of the paired randomisation test. Times were"
        " taken on a shared machine: read ratios, not seconds. A commit with `-dirty` had changes on it that were not"
        " committed yet. DATA is the folder of the data sets (`ASKALIKE_DATA`).",
    ]
    for name, make in SECTIONS.items():
        path = RESULTS / f"{name}.json"
        if path.is_file():
            result = json.loads(path.read_text(encoding="utf-8"))
            made = f"; {TRAINED[name]}" if name in TRAINED else ""
            parts += ["", *make(result), "", _provenance(result, path) + made]
    return "\n".join(parts) + "\n"


def _provenance(result: Mapping[str, Any], path: Path) -> str:
    machine = result["machine"]
    return (
        f"`{result['command']}`, commit `{result['commit']}`, {result['when'][:10]}, {machine['cores']} cores of"
        f" {machine['cpu']}, Python {machine['python']}; [{path.name}](../results/{path.name})"
    )
