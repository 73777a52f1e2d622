"""The documents of measured figures: a page of headlines, and a page for each subject and each paper."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tools.headlines import headlines
from tools.sections import (
    capacity,
    das2016,
    encoders,
    groups,
    language,
    languages,
    lei2016,
    machines,
    misspelling,
    quality,
    scorer,
    searching,
    service,
    siamese,
    students,
    training,
    zhang2018,
)
from tools.sections.readings import readings

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "results"

Section = Callable[[Mapping[str, Any]], list[str]]
"""From the content of a results file to lines of Markdown, a heading of the second level first."""


@dataclass(frozen=True, slots=True)
class Page:
    """One document of results.

    Args:
        title: its heading.
        about: a sentence that says what the reader finds.
        sections: name of the results file → how its section is written, in the order of the page.
    """

    title: str
    about: str
    sections: Mapping[str, Section]


PAGES: Mapping[str, Page] = {
    "docs/results/quality.md": Page(
        "Results: finding questions that ask the same",
        "Rankings by words, by meaning and by both, on labelled sets; probabilities; misspelt queries.",
        {
            "quality-search": quality.searches,
            "encoders": encoders.pools,
            "several-vectors": encoders.several,
            "quality-semantic": quality.semantic,
            "quality-semantic-dev": quality.semantic_dev,
            "quality-lexical": quality.lexical,
            "scorer": scorer.believed,
            "judgements": scorer.judged,
            "drawn-queries": scorer.drawn,
            "agreement": scorer.read_again,
            "groups": groups.held_together,
            "misspelling": misspelling.lost,
            "spelling": misspelling.corrected,
            "languages": languages.several,
            "language-encoders": languages.encoders,
            "svm-baseline": quality.ranking_svm,
            "students": students.pools,
            "forum-students": students.whole_forums,
            "whole-forums": students.beside_cosine,
            "model-size": quality.model_size,
            "unseen-words": quality.unseen_words,
            "tune-lexical": searching.tuning,
            "tune-ramn": searching.ramn_tuning,
            "scorer-checks": quality.scorers,
        },
    ),
    "docs/results/speed.md": Page(
        "Results: speed and memory",
        "Indexing, searching, encoding and training, beside rivals in the same run.",
        {
            "index-and-search": searching.indexing,
            "scale-20000": searching.scale,
            "scale-224741": searching.scale,
            "scale-1000000": searching.scale,
            "scale-2000000": searching.scale,
            "loads-1000000": searching.loads,
            "likely-pairs-20000": searching.likely_pairs,
            "likely-pairs-224741": searching.likely_pairs,
            "likely-pairs-1000000": searching.likely_pairs,
            "likely-pairs-1000000-drawn": searching.drawn_pairs,
            "search-cost": searching.cost,
            "many-queries": searching.many,
            "updates": searching.updates,
            "serve-load": service.load,
            "plain-service": service.beside,
            "encode-runtime": encoders.runtime,
            "transformer-runtime": encoders.transformers,
            "vector-search": encoders.vectors,
            "ramn-speed": searching.reranking,
            "language-speed": language.speed,
            "siamese": siamese.speed,
            "recurrence": encoders.recurrence,
            "autoencoders": training.autoencoders,
            "moments": training.moments,
            "training-time": training.training_time,
            "journeys": searching.journeys,
            "rebuild": searching.rebuild,
        },
    ),
    "docs/results/robustness.md": Page(
        "Results: kills, damage and hostile requests",
        "What a forum loses when processes are killed, files are damaged and clients misbehave.",
        {
            "kill": searching.kills,
            "encode-kill": encoders.killed,
            "encode-kill-224741": encoders.killed,
            "damage": searching.damage,
            "serve-kill": service.kills,
            "follow": service.followed,
            "serve-schema": service.schema,
            "serve-attack": service.attacks,
        },
    ),
    "docs/results/machines.md": Page(
        "Results: several machines",
        "An engine that several machines share, what kills of it lose, and whole archives compared by a cluster.",
        {
            "engines": machines.engines,
            "engines-20000": machines.engines,
            "engine-kill": machines.engine_kills,
            "service-kill": machines.service_kills,
            "batch": machines.batches,
        },
    ),
    "docs/papers/lei2016.md": Page(
        "Lei et al. 2016, reproduced",
        "Gated convolutions with encoder-decoder pre-training (RCNN), and their comparison encoders.",
        {
            "lei2016": lei2016.reproduction,
            "lei2016-variants": lei2016.variants,
            "lei2016-first-epoch": lei2016.from_first_epoch,
        },
    ),
    "docs/papers/zhang2018.md": Page(
        "Zhang and Wu 2018, reproduced",
        "The unsupervised matcher RAMN with attention autoencoders.",
        {"zhang2018": zhang2018.reproduction, "zhang2018-reddit": zhang2018.other_text},
    ),
    "docs/papers/das2016.md": Page(
        "Das et al. 2016, reproduced",
        "Siamese networks over letter trigrams (SCQA, T-SCQA), translation and topic models.",
        {
            "das2016": das2016.reproduction,
            "das2016-earlier": das2016.earlier,
            "das2016-6000": das2016.part_of_the_pairs,
        },
    ),
}
"""Path from the root of the repository → the page."""

TRAINED: Mapping[str, str] = {
    "quality-semantic": "`after-training` is what `askalike train travel.forum --hold-out-test` made of a forum of the"
    " travel set",
    "lei2016": "trained by `askalike reproduce lei2016 --data DATA --out FOLDER --vectors FILE`, FILE word2vec of 200"
    " dimensions over the unlabelled texts of DATA (its SHA-256 is in the file)",
    "lei2016-variants": "trained by `askalike reproduce lei2016 --data DATA --out FOLDER --vectors FILE --only ROW`,"
    " FILE word2vec of 200 dimensions over the sets, Slicer's topics and 80,000 of Reddit's questions",
    "lei2016-first-epoch": "trained by `askalike reproduce lei2016 --data DATA --out FOLDER --only travel --only ROW`",
    "zhang2018": "trained by `askalike reproduce zhang2018 --data DATA/semeval-task3-b --unlabelled"
    " DATA/reddit/questions.jsonl.gz --unlabelled DATA/slicer-discourse/topics.jsonl.gz --out FOLDER --amount N`; where"
    " fewer epochs are named, by a copy of the recipe `ramn` with so many",
    "zhang2018-reddit": "trained by the same with `--first questions.jsonl.gz`",
    "das2016": "trained by `askalike reproduce das2016 --data DATA --out FOLDER`",
    "das2016-earlier": "the command, data and recipe of that commit",
    "das2016-6000": "trained by `askalike reproduce das2016 --data DATA --out FOLDER --pairs 6000`",
    "misspelling": "FOLDER is the model of SCQA, seed 0, among those of `askalike reproduce das2016`",
}
"""Name of the results file → how what it measures was made, where its own command does not make it."""

HOW_TO_READ = (
    "Written from `results/*.json` by `python -m tools.document`; do not edit by hand. Quality figures are times 100,"
    " with 95 % bootstrap intervals over queries; p-values are of the paired randomisation test. Times were taken on a"
    " shared machine: read ratios, not seconds. A commit with `-dirty` had uncommitted changes. DATA is the folder of"
    " the data sets (`ASKALIKE_DATA`)."
)

_CHART = re.compile(r"\]\(([\w-]+\.svg)\)")


def loaded(name: str) -> dict[str, Any]:
    """Return the content of a results file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def overview() -> str:
    """Return the page of headlines, with a line for each page that has the details."""
    lines = ["# Results", "", HOW_TO_READ, "", *headlines(loaded), "", "## All figures", ""]
    lines += [f"- [{page.title}]({Path(path).relative_to('docs')}): {page.about}" for path, page in PAGES.items()]
    lines += ["- [Readings of the papers](papers/readings.md): what they leave open, both sides with figures."]
    return "\n".join(lines) + "\n"


def page_text(page: Page) -> str:
    """Return one page, with the sections whose results files exist."""
    lines = [f"# {page.title}", "", f"{page.about} Overview: [results](../results.md). {HOW_TO_READ}"]
    for name, section in page.sections.items():
        if (RESULTS / f"{name}.json").is_file():
            result = loaded(name)
            trained = f"; {TRAINED[name]}" if name in TRAINED else ""
            lines += ["", *section(result), "", _provenance(result) + trained]
    text = "\n".join(lines) + "\n"
    return _CHART.sub(r"](../\1)", text.replace("](../results/", "](../../results/"))


def readings_page() -> str:
    """Return the page of what the papers leave open."""
    about = f"Both sides of what three papers leave open. Overview: [results](../results.md). {HOW_TO_READ}"
    return "\n".join(["# Readings of the papers", "", about, "", *readings(loaded)]) + "\n"


def capacity_page() -> str:
    """Return the page of what larger forums need."""
    measured = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("scale-*.json"))]
    machines = loaded("capacity") if (RESULTS / "capacity.json").is_file() else None
    forums = [loaded(name) for name in ("engines-20000", "engines") if (RESULTS / f"{name}.json").is_file()]
    turns = loaded("sizes-in-turns") if (RESULTS / "sizes-in-turns.json").is_file() else None
    return "\n".join(capacity.capacity(measured, machines, forums, turns)) + "\n"


RESULT_DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "docs/capacity.md": capacity_page,
    "docs/results.md": overview,
    "docs/papers/readings.md": readings_page,
    **{path: partial(page_text, page) for path, page in PAGES.items()},
}


def _provenance(result: Mapping[str, Any]) -> str:
    machine, file = result["machine"], f"{result['name']}.json"
    return (
        f"`{result['command']}`, commit `{result['commit']}`, {result['when'][:10]}, {machine['cores']} cores of"
        f" {machine['cpu']}, Python {machine['python']}; [{file}](../results/{file})"
    )
