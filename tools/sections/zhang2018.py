"""The section on the tables of Zhang and Wu 2018."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from askalike.models.ramn import ALPHAS
from tools.sections.cells import compared, mean, table

__all__ = ["other_text", "reproduction"]

TASKS = {"dev": "dev", "test2016": "2016", "test2017": "2017"}
SHOWN_TREATMENTS = 6
CURVES = ("-base", "-mismatch", "-full", "-clamped", "-positions", "-both", "-combined")
"""Rows that are shown for every amount of text."""


def reproduction(result: Mapping[str, Any]) -> list[str]:
    """Return the tables, what dev chose, the course of the trainings and some reconstructions."""
    rows = result["rows"]
    shown = _shown(rows)
    return [
        "## Zhang and Wu 2018: RAMN, layer by layer",
        "",
        "What `askalike reproduce zhang2018` found, MAP and MRR by the official protocol. Means over seeds; ± is the"
        " standard deviation of the seeds' means, in brackets the interval over queries; p compares MAP with that of"
        " the search engine's order. Dev alone chose every setting. `base` is the match by meaning, `mismatch` adds the"
        " missing words, `full` adds the initial rank: the search engine's own, up to 166, R as the formula has it,"
        " below 0 from the rank 1/α on. `clamped` lets R be a millionth there, `-035` has the paper's α in place of"
        " dev's, and `positions` takes the place among the ten candidates for the rank, as an earlier version of this"
        " page did throughout. `tuned` weighs the same three with positions, `both` matches the candidate's"
        " words in the query too, and `combined` adds up all of these and BM25, each standardised over a query's"
        " candidates. Rows of `words` have no autoencoder: all words are matched alike, so that missing words, rank and"
        " BM25 alone remain, and what an autoencoder brings is what its rows are above these. In rows of `white`,"
        " states are whitened: less their mean, with the same variance in all directions. Texts to learn from, in this"
        f" order: {_counts(result)}; the paper's are 189,941 questions of the forum itself and their 1,894,456"
        f" comments. The rows of this table learned from the first {shown:,}. Neither dev's texts nor the tests' are"
        f" among them, so that words are as unknown in dev as in the tests; rows of {_with_dev(rows)} texts are of an"
        " earlier version, whose texts had dev's among them, and have positions alone.",
        "",
        *_table([row for row in rows if row["texts"] in (0, shown)], result["reported"]),
        "",
        "What the paper says of rows, by MAP; p of the paired randomisation test, two-sided. The rows `tuned`,"
        " `both`, `combined`, `white` and `words` are ours. No p is corrected for how many there are:",
        "",
        *compared(result["compared"][str(shown)]),
        "",
        *_elsewhere(result["compared"][str(shown)]),
        _cut(result["epochs"], result["measured"]),
        "",
        "How it moves with the amount of text, MAP:",
        "",
        *_curve(rows),
        "",
        f"What dev chose, {shown:,} texts. {_edge(rows)}",
        "",
        *_settings([row for row in rows if row["texts"] == shown]),
        "",
        *_weights([row for row in rows if row["texts"] == shown]),
        "",
        *_unknown(result.get("unknown_on_dev", [])),
        f"The best {SHOWN_TREATMENTS} treatments of what the paper leaves open, each with its best α, by dev MAP:",
        "",
        *_tried({name: found for name, found in result["tried_on_dev"].items() if name.endswith(f" {shown:,} texts")}),
        "",
        f"![Loss and perplexity by epoch]({result['figure']})",
        "",
        f"Loss and held-out perplexity by epoch, a line a seed ({result['drawn']} texts). The course of every training"
        f" is in [{result['logs']}](../results/{result['logs']}).",
        "",
        *_epochs(result["epochs"]),
        "",
        _limits(result["measured"]),
        "",
        "Held-out questions, and what each decoder wrote of them (words are stems):",
        "",
        *_reconstructions(result["reconstructions"]),
    ]


def other_text(result: Mapping[str, Any]) -> list[str]:
    """Return the curve of amounts that took the texts of another place first."""
    return [
        f"## Zhang and Wu 2018: RAMN, learned from {result['first']} first",
        "",
        f"The same rows where amounts take texts in this order: {_counts(result)}. MAP:",
        "",
        *_curve(result["rows"]),
        "",
        *_epochs(result["epochs"]),
        "",
        _limits(result["measured"]),
    ]


def _counts(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{count:,} of {name}" for name, count in result["texts"].items())


def _shown(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the amount with most seeds and rows, of these the largest: other points of the curve may have fewer."""
    ranked = {row["texts"] for row in rows if row["texts"] and row["row"].endswith("-full")}
    amounts = ranked or {row["texts"] for row in rows if row["texts"]}
    return max(amounts, key=lambda amount: (sum(len(row["seeds"]) for row in rows if row["texts"] == amount), amount))


def _with_dev(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the amounts of which there are no rows with the engine's rank."""
    ranked = {row["texts"] for row in rows if row["row"].endswith("-full")}
    return (
        ", ".join(f"{amount:,}" for amount in sorted({row["texts"] for row in rows if row["texts"]} - ranked)) or "no"
    )


def _unknown(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what an unknown word may cost, and what dev makes of it."""
    if not found:
        return []
    names = [name for name in found[0] if name not in ("texts", "unknown", "seeds")]
    cells = [
        (f"{one['texts']:,}", one["unknown"], str(one["seeds"]), *(f"{100 * one[name]:.2f}" for name in names))
        for one in found
    ]
    return [
        "How often a word that the corpus does not hold is said to have occurred in it, dev MAP: `once`, as in all"
        " rows; `never`, which gives every candidate that lacks it the same product of 0; `as UNK`, as often as all"
        " words together that have no vector of their own:",
        "",
        *table(("texts", "an unknown word occurred", "seeds", *names), cells),
        "",
    ]


def _table(rows: Sequence[Mapping[str, Any]], reported: Mapping[str, Any]) -> list[str]:
    header = ["row", "seeds"]
    for name in TASKS.values():
        header += [f"{name} MAP", f"{name} MRR"] + ([] if name == "dev" else ["p", "paper"])
    lines = []
    for row in rows:
        cells = [row["row"], str(len(row["seeds"])) if row["seeds"] else ""]
        for task in TASKS:
            found = row["found"][task]
            cells += [_with_interval(found["map"]), mean(found["mrr"])]
            if task != "dev":
                p_value = found["map"]["p_value"]
                cells.append("" if p_value is None else f"{p_value:.4f}")
                cells.append(" / ".join(f"{one:.2f}" for one in reported.get(row["row"], {}).get(task, ())))
        lines.append(cells)
    campaign = reported["campaign"]
    lines.append(
        ["best at the campaign", ""]
        + ["", ""]
        + [cell for task in list(TASKS)[1:] for cell in ("", "", "", " / ".join(f"{v:.2f}" for v in campaign[task]))]
    )
    return table(header, lines)


def _curve(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    shown = [row for row in rows if row["row"].endswith(CURVES)]
    cells = [
        (
            row["row"],
            f"{row['texts']:,}",
            str(len(row["seeds"])) if row["seeds"] else "",
            *(_with_interval(row["found"][task]["map"]) for task in TASKS),
        )
        for row in sorted(shown, key=lambda row: (row["row"], row["texts"]))
    ]
    return table(("row", "texts", "seeds", *TASKS.values()), cells)


def _with_interval(found: Mapping[str, Any]) -> str:
    low, high = (100 * bound for bound in found["interval95"])
    return f"{mean(found)} ({low:.1f}–{high:.1f})"


def _edge(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how often the end of the paper's grid of α was best."""
    most = max(ALPHAS)
    parts = []
    for name in ("full", "clamped", "positions"):
        chosen = [row["settings"]["alpha"] for row in rows if row["row"].endswith(f"-{name}")]
        if chosen:
            parts.append(f"{sum(alpha == most for alpha in chosen)} of {len(chosen)} rows `{name}`")
    return f"The end of the paper's grid, α = {most}, is dev's choice in {', '.join(parts)} of all amounts."


def _cut(found: Mapping[str, Mapping[str, Any]], measured: Mapping[str, Mapping[str, Any]]) -> str:
    """Return which trainings the limit of epochs ended while their perplexity was still falling."""
    cut = []
    for name, one in found.items():
        limit = measured[name]["most_epochs"]
        count = sum(epochs >= limit for epochs in one["epochs"])
        if count:
            cut.append(f"{name} ({count} of {len(one['epochs'])}, after {limit})")
    if not cut:
        return "Patience ended every training."
    return f"Ended by the limit of epochs, not by patience, and so below what longer training gives: {', '.join(cut)}."


def _settings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    shown = [row for row in rows if row["row"].endswith(("-full", "-clamped", "-positions", "-tuned", "-both"))]
    names = ("similarity", "floor", "repeats", "alpha", "mismatch_weight", "is_per_word")
    cells = [(row["row"], f"{row['texts']:,}", *(row["settings"][name] for name in names)) for row in shown]
    return table(("row", "texts", *names), cells)


def _weights(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    shown = [row for row in rows if row["weights"]]
    names = list(shown[0]["weights"]) if shown else []
    cells = [(row["row"], f"{row['texts']:,}", *(row["weights"][name] for name in names)) for row in shown]
    return table(("row", "texts", *names), cells)


def _tried(tried: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    lines = [
        (name, one["similarity"], one["floor"], one["repeats"], one["alpha"], f"{100 * one['dev_map']:.2f}")
        for name, found in tried.items()
        for one in found[:SHOWN_TREATMENTS]
    ]
    return table(("autoencoder", "similarity", "floor", "repeats", "α", "dev MAP"), lines)


def _epochs(found: Mapping[str, Any]) -> list[str]:
    lines = [
        (name, _listed(one["epochs"]), _listed(one["epoch_s"]), _listed(one["perplexity"]))
        for name, one in found.items()
    ]
    return table(("autoencoder", "epochs", "s an epoch (median)", "held-out perplexity"), lines)


def _limits(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """Return where trainings were ended at the latest, and by which commit they were scored."""
    limits = "; ".join(
        f"{name} at most {one['most_epochs']} epochs (commit `{one['commit']}`)" for name, one in measured.items()
    )
    return f"Trained: {limits}."


def _elsewhere(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which comparisons are of rows that were scored at another time than most."""
    commits = [one["commit"] for one in found]
    usual = max(commits, key=commits.count)
    others = list(dict.fromkeys(f"{one['better']} over {one['worse']}" for one in found if one["commit"] != usual))
    if not others:
        return []
    what = ", ".join(others)
    return [
        f"Both rows of {what} are of an earlier training of the same seeds, which differs from that in the table by"
        " rounding on another machine.",
        "",
    ]


def _reconstructions(found: Sequence[Mapping[str, str]]) -> list[str]:
    lines = []
    for one in found:
        lines += [f"- read: {one['read']}", *(f"  - {kind}: {text}" for kind, text in one.items() if kind != "read")]
    return lines


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
