"""The section on the tables of Lei et al. 2016."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.sections.cells import compared, mean, table

__all__ = ["from_first_epoch", "reproduction", "variants"]

MEASURES = ("map", "mrr", "p@1", "p@5")
MARKS = {"recomputed": "=", "remembered": "~"}
"""Where a reported figure is from, if not from the texts of paper and thesis → what is written before it."""


def reproduction(result: Mapping[str, Any]) -> list[str]:
    """Return a table for each test set, and where the course of the trainings is."""
    lines = [
        "## Lei et al. 2016, row by row",
        "",
        "What `askalike reproduce lei2016` found. Means over queries and seeds; ± is the standard deviation of the"
        " seeds' means, in brackets the interval over queries; p compares MAP with BM25's, each query's value being the"
        " mean over seeds. Dev chose epochs and the SVM's C. Reported are MAP, MRR, P@1 and P@5 on AskUbuntu's test"
        " set, in one column the paper's and in another those of Joshi's thesis, whose models have other settings; ="
        " was recomputed from the released scores, ~ is remembered and has to be checked before it is quoted."
        " `bm25` is BM25 over title and body joined, untuned; `candidate-search` are the scores of the search that"
        " found the candidates: of travel the forum's own search by fields, whose weights were chosen on train and dev"
        " splits. `svm` has its C chosen by dev, where the paper has SVM-Light's default; the GRU has its reset gate"
        " behind the product; learning rate, dropout and the width of the CNN are not searched. The recipe keeps an"
        " epoch of max-margin from the first on; where a training had the encoder before it, [readings](readings.md)"
        " say so, and what else the papers leave open.",
        *_kept(result),
        *_tables(result),
    ]
    if result["figure"]:
        lines += [
            "Pre-training, a line a network and seed; the dot is the epoch that was kept, that of the lowest"
            " perplexity of titles. MRR is of title and body averaged; the paper's figure 3 has that of titles alone,"
            " and the perplexity from bodies:",
            "",
            f"![Perplexity and dev MRR by epoch of pre-training]({result['figure']})",
            "",
        ]
    return [*lines, _files(result)]


def variants(result: Mapping[str, Any]) -> list[str]:
    """Return the same of other readings and settings, each beside the row that it departs from."""
    how = {row["row"]: row["how"] for one in result["sets"].values() for row in one["rows"] if row["parameters"]}
    program = (
        " Rows that end in `program` have settings of the program that the authors published, not of the paper"
        " ([lei2016-program.toml](../../src/askalike/training/recipes/lei2016-program.toml) names each)."
    )
    return [
        "## Other readings and settings of the RCNN",
        "",
        "Trained with word vectors of fewer texts than the tables above, so that rows are to be compared within this"
        " section alone, which has its own of those that others depart from. Their file of word vectors was not kept,"
        " so that no row can be added; the encoder before fine-tuning could be the best epoch of those that are not"
        " `program`." + (program if any(name.endswith("program") for name in how) else ""),
        "",
        *(f"- `{name}`: {about}" for name, about in how.items()),
        *_tables(result),
        _files(result),
    ]


def from_first_epoch(result: Mapping[str, Any]) -> list[str]:
    """Return what of these rows was trained again since the recipe begins with the first epoch."""
    return [
        "## The same from the first epoch on",
        "",
        "Trained again, so that the encoder before fine-tuning is no epoch to be chosen, with word vectors that each"
        " seed trains on the texts of both sets (8,405 questions): `askalike reproduce` makes all of it from the data,"
        " and rows can be added. They are to be compared within this section: rows of one seed are there for what they"
        " say against BM25.",
        *_tables(result),
        _files(result),
    ]


def _tables(result: Mapping[str, Any]) -> list[str]:
    """Return a table for each test of each set, and what was compared."""
    lines: list[str] = []
    for found in result["sets"].values():
        dev, *tests = found["tasks"]
        lines += ["", f"### {found['title'][0].upper()}{found['title'][1:]}", ""]
        if not found["is_the_papers_data"]:
            lines[-1:] = ["", "The reported figures are of other data: compare the order of rows, not figures.", ""]
        for task in tests:
            lines += [f"{task}:", "", *_table(found["rows"], dev, task), ""]
        if found["compared"]:
            lines += ["What paper and thesis say of rows, by MAP; p of the paired randomisation test, two-sided:", ""]
            lines += [*compared(found["compared"]), ""]
        lines += _not_run(found["rows"])
    return lines


def _files(result: Mapping[str, Any]) -> str:
    """Return where the course of the trainings is, and each query's values."""
    kept = ", ".join(f"[{name}](../results/{name})" for name in result.get("outcomes", []))
    course = f"The course of every training is in [{result['logs']}](../results/{result['logs']})."
    return course + (f" The values of every query are in {kept}." if kept else "")


def _table(rows: list[Mapping[str, Any]], dev: str, task: str) -> list[str]:
    header = ("row", "parameters", "seeds", "dev mrr", *MEASURES, "p", "paper", "thesis")
    return table(header, [_row(row, dev, task) for row in rows if row["found"]])


def _row(row: Mapping[str, Any], dev: str, task: str) -> tuple[str, ...]:
    found = row["found"][task]
    low, high = (100 * bound for bound in found["map"]["interval95"])
    p_value = found["map"]["p_value"]
    return (
        row["row"],
        f"{row['parameters']:,}" if row["parameters"] else "",
        str(len(row["seeds"])) if row["parameters"] else "",
        mean(row["found"][dev]["mrr"]),
        f"{mean(found['map'])} ({low:.1f}–{high:.1f})",
        *(mean(found[name]) for name in MEASURES[1:]),
        "" if p_value is None else f"{p_value:.4f}",
        *(
            " / ".join(_reported(figures.get(name)) for name in MEASURES) if figures else ""
            for figures in (row["reported"], row["thesis"])
        ),
    )


def _kept(result: Mapping[str, Any]) -> list[str]:
    """Return what can be said of rows whose values by query were not kept."""
    if not result.get("without_values"):
        return []
    return [
        "",
        f"The trainings of encoders are of an earlier version (commit `{result['encoders_from']}`), which kept their"
        " means and no query's values. They could not be tested against `bm25` where that is not the search that found"
        " the candidates: they have no p on travel, and what was compared with BM25 there was compared with"
        " `candidate-search`.",
    ]


def _reported(figure: Mapping[str, Any] | None) -> str:
    return f"{MARKS.get(figure['origin'], '')}{figure['value']:.1f}" if figure else "–"


def _not_run(rows: list[Mapping[str, Any]]) -> list[str]:
    """Return a line for each reason why rows were not run."""
    reasons = dict.fromkeys(row["not_run"] for row in rows if row["not_run"])
    return [
        line
        for reason in reasons
        for line in (
            f"Not in the table, since {reason}: {', '.join(row['row'] for row in rows if row['not_run'] == reason)}.",
            "",
        )
    ]
