"""The sections on MiniLM and its students in whole forums: large documents, searched by large or small queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.sections.cells import table

FORUMS = ("devops", "reddit", "slicer", "travel")


def pools(result: Mapping[str, Any]) -> list[str]:
    """Return nDCG@5 of each system on the judged pools, what students cost, and the card of one."""
    rows, costs = [], []
    for name, row in result["rows"].items():
        for part in ("alone", "with words"):
            if part in row:
                values = row[part]
                low, high = values["interval"]
                system = name if part == "alone" else f"{name}, with words"
                shown = [f"{values[forum]:.1f}" for forum in FORUMS]
                rows.append((system, *shown, f"{values['all']:.1f} ({low:.1f}–{high:.1f})"))
        travel, held = row.get("travel"), row.get("held out")
        if travel:
            cosine = f"{held['cosine'][1]:.3f}" if held else ""
            spent = f"{row['training_s']:,}" if "training_s" in row else ""
            costs.append((name, cosine, f"{100 * travel['overlap@10']:.1f}", f"{100 * travel['ndcg@10']:.1f}", spent))
    compared = [
        (name, f"{middle:+.1f} ({low:+.1f} to {high:+.1f})")
        for name, (low, middle, high) in result["differences"].items()
    ]
    took = ", ".join(f"{name} {ms:.2f} ms" for name, ms in result["query_p50_ms"].items())
    queries = len(result["queries"])
    return [
        "## Students of MiniLM",
        "",
        f"nDCG@5 of {queries} judged queries (gain 2^grade − 1, judged candidates alone). Documents are MiniLM's,"
        " queries the student's, unless a row says otherwise. The weight of words is chosen on the other three forums."
        " Neither these queries nor travel's dev and test queries, nor texts that equal their titles,"
        " were learned from.",
        "",
        *table(("system", *FORUMS, "all"), rows),
        "",
        *table(("difference in nDCG@5", "mean, 95 % interval"), compared),
        "",
        "Cosine: to the teacher's vector of texts that were kept out of training. Travel: dev titles over all questions"
        " of the forum, brute force; overlap@10 is the share of the teacher's ten nearest among the student's. Training"
        f" with the teacher's vectors at hand. A query through the student, p50: {took}.",
        "",
        *table(("queries by", "cosine", "travel, overlap@10", "travel dev, nDCG@10", "training, s"), costs),
        "",
        "### The model card of the general student",
        "",
        *[f"#### {line[2:]}" if line.startswith("# ") else line for line in result["card"].splitlines()],
    ]


def whole_forums(result: Mapping[str, Any]) -> list[str]:
    """Return what students reach in whole forums through the search, and what their training took."""
    rows, errors, trained, duplicates = [], [], [], []
    for name, row in result["rows"].items():
        low, high = row["interval"]
        by_others = f"{row['left out']['all']:.1f}" if "left out" in row else ""
        values = [f"{row[one]:.1f}" for one in FORUMS]
        rows.append((name, *values, f"{row['all']:.1f} ({low:.1f}–{high:.1f})", by_others))
        if "alone" not in name and name != "words":
            left = row.get("left out", {}).get("calibration error", {})
            both = [f"{by[one]:.1f}" if by else "" for by in (row["calibration error"], left) for one in FORUMS]
            errors.append((name, *both))
    for name, one in result["trainings"].items():
        low, mid, high = one["agreement"]
        more = f"{one['gain'][1]:+.2f}"
        trained.append((name, f"{one['texts']:,}", f"{mid:.2f} ({low:.2f}–{high:.2f})", more, f"{one['seconds']:,.0f}"))
    for name, found in result.items():
        if name.startswith("travel, "):
            low, mid, high = (100 * one for one in found["student less teacher"])
            values = [found[one] for one in ("dev, teacher", "dev, student", "test, teacher", "test, student")]
            shown = [f"{100 * one:.1f}" for one in values]
            duplicates.append((name.removeprefix("travel, "), *shown, f"{mid:+.1f} ({low:+.1f} to {high:+.1f})"))
    compared = [
        (name, f"{mid:+.1f} ({low:+.1f} to {high:+.1f})") for name, (low, mid, high) in result["differences"].items()
    ]
    timed = [one for name, one in result.items() if name.startswith("query, ")]
    took = ", ".join(f"{one['p50_ms']:.2f} ms (95 %: {one['p95_ms']:.2f} ms)" for one in timed)
    return [
        "## Students in whole forums",
        "",
        "nDCG@5 of judged queries through the search as it is by default (probability, words and vectors), over whole"
        " forums; of Reddit, the pools' questions and 10,000 others. Students are trained by `askalike train --teacher"
        " minilm` in each forum, from the forum's text alone or going on from another; no text of these queries, or of"
        " travel's dev and test queries, is learned from. MiniLM encodes the questions in every row but words, general"
        " and those on both sides. The package's scorer was learned on these pools among others: the table compares"
        " encoders under the same scorer, and its level is that of a forum with judged pairs. In"
        " the last column each forum is asked by weights that were learned without it.",
        "",
        *table(("queries by", *FORUMS, "all", "all, left out"), rows),
        "",
        *table(("difference in nDCG@5", "mean, 95 % interval"), compared),
        "",
        "Calibration error in points: ten equal groups of judged candidates, probability against the share that helps;"
        " by the package's weights, and by those that were learned without the forum.",
        "",
        *table(("queries by", *FORUMS, *(f"{one}, left out" for one in FORUMS)), errors),
        *_on_pools(result.get("pools alone, left out", {})),
        "",
        "Agreement: the share of MiniLM's ten nearest questions that are among the student's, for titles that it has"
        " not learned from; then how much more that is than of words. Seconds on a machine with other work, texts"
        " partly encoded before.",
        "",
        *table(("student", "texts", "agreement", "more than words", "seconds"), trained),
        "",
        "Travel's duplicates, titles by vectors alone over the whole forum, nDCG@10. A title through the student takes"
        f" {took} (p50).",
        "",
        *table(("student", "dev, MiniLM", "dev", "test, MiniLM", "test", "less MiniLM, both"), duplicates),
    ]


def _on_pools(rows: Mapping[str, Any]) -> list[str]:
    if not rows:
        return []
    shown = [
        (
            name,
            *(f"{row[one]:.1f}" for one in (*FORUMS, "all")),
            *(f"{row['calibration error'][one]:.1f}" for one in FORUMS),
        )
        for name, row in rows.items()
    ]
    return [
        "",
        "The pools' candidates alone, by weights that were learned without the forum: nDCG@5, then calibration error."
        " Students ask, and MiniLM's vectors answer. A forum's own goes on from the package's, which never asks before"
        " that.",
        "",
        *table(("queries by", *FORUMS, "all", *(f"off by, {one}" for one in FORUMS)), shown),
    ]


def beside_cosine(result: Mapping[str, Any]) -> list[str]:
    """Return how MiniLM's search orders whole forums beside its cosine alone, and what its probability is worth."""
    rows = [
        (
            view if name == "travel" else "",
            name,
            row["queries"],
            *[f"{row['ndcg@5'][by]:.1f}" for by in ("probability", "cosine")],
            _difference(row["difference"]),
            *[f"{row['unjudged of five'][by]:.1f}" for by in ("probability", "cosine")],
        )
        for view, by_forum in result["views"].items()
        for name, row in by_forum.items()
    ]
    linked = [
        (
            form,
            row["queries"],
            *[f"{100 * row['ndcg@10'][by]:.1f}" for by in ("probability", "cosine")],
            _difference([100 * one for one in row["difference"]]),
        )
        for form, row in result["travel's duplicate links"].items()
    ]
    errors = [
        (grade, judged, *[f"{row[name]:.1f}" for name in FORUMS])
        for judged, by_grade in result["calibration error"].items()
        for grade, row in by_grade.items()
    ]
    cells = [
        (
            "–".join(f"{100 * one:.0f}" for one in cell["words"]) + " %",
            "–".join(f"{one:.2f}" for one in cell["cosine"]),
            cell["pairs"],
            f"{cell['said']:.0f} %",
            f"{cell['was']:.0f} %",
        )
        for cell in result["by words and cosine"]
        if cell["pairs"] >= 20
    ]
    first, low_mid_high = result["first five"], result["learned with the first five"]
    return [
        "## MiniLM in whole forums beside its cosine alone",
        "",
        "The same search, ordered by the probability or by MiniLM's cosine. Three views of nDCG@5: the pools' queries"
        " by the pools' grades, which leave out every hit that is in no pool; the same with all hits of the first five"
        f" judged ({first['pairs']} more pairs, {first['grade 2 or 3']} of them of grade 2 or 3;"
        f" {first['same grade']} of {first['read twice']} read twice got the same grade); every judged query, by title"
        " and with its body. The weights were learned on these forums among others. The pools have 21 to 33 of a"
        " forum's queries, each in one form. Difference with 95 % interval; unjudged: hits of the first five.",
        "",
        *table(("view", "forum", "queries", "probability", "cosine", "difference", "unjudged", "cosine's"), rows),
        "",
        "Travel's duplicate links, dev and test, in either direction: nDCG@10 of the search and of MiniLM's cosine with"
        " every question (brute force).",
        "",
        *table(("query", "queries", "probability", "cosine", "difference"), linked),
        "",
        "Calibration error in points, by weights learned without the forum. Weights that learn from the new pairs too"
        f" have {_difference(low_mid_high)} nDCG@5: the package keeps its own.",
        "",
        *table(("probability of", "judged", *FORUMS), errors),
        "",
        "How often pairs of like cosine (on the scorer's scale) and like share of the query's words are said to be the"
        " same, and are, by weights learned without the forum: a paraphrase in other words gets what such pairs are"
        " worth.",
        "",
        *table(("words shared", "cosine", "pairs", "said", "were"), cells),
    ]


def _difference(bounds: Sequence[float]) -> str:
    low, middle, high = bounds
    return f"{middle:+.1f} ({low:+.1f} to {high:+.1f})"
