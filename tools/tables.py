"""The tables of figures in the documents, as data, and what writes them into the pages.

Command: ``python -m tools.tables`` fills each place between ``<!-- table: NAME -->`` and ``<!-- end -->`` in README.md
and docs/ from results/; ``--list`` prints the names, and the pages that show them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from tools.render import REPOSITORY, Cell, Facts, Record, Records, Table, rendered

MARKER: Final = re.compile(r"(?<=<!-- table: )([\w-]+)( -->\n)(?:.*?\n)??(?=<!-- end -->)", flags=re.DOTALL)

# -- what the search finds ---------------------------------------------------------------------------------------------


def language_rows(result: Record) -> Records:
    """Return the languages with the figures of each forum."""
    yield from ((name, record) for name, record in result["found"].items() if name != "ms a search")


JUDGED: Final = {"pool": "judged pools", "drawn": "drawn queries", "pool and drawn": "all"}


def ndcg_of(kinds: str) -> str:
    """Return the template of an encoder's nDCG@5 with its interval."""
    return f"{{{kinds}[ndcg@5][0]:.1f}} ({{{kinds}[ndcg@5][1]:.1f}} to {{{kinds}[ndcg@5][2]:.1f}})"


def evidence_rows(result: Record) -> Records:
    """Return each group of queries of each split, with the best duplicate alone and all of them."""
    for split, by_known in result["splits"].items():
        for known, groups in by_known.items():
            for group, row in groups.items():
                alone, damped, whole = (row["damping"][key] for key in ("0.0", "0.25", "1.0"))
                name = f"{split}, {known}, {group}"
                yield name, {"queries": row["queries"], "alone": alone, "damped": damped, "whole": whole}


def adapted_rows(result: Record) -> Records:
    """Return each training of each forum with what the bundled encoder finds there."""
    for forum, record in result["forums"].items():
        for seed, row in record["seeds"].items():
            yield f"{forum}, seed {seed}", {"queries": record["queries"], "before": record["ndcg@5"], **row}


RIVALS: Final = ("cosine of MiniLM", "scorer over MiniLM", "cosine of mpnet", "scorer over mpnet")


def rival_rows(result: Record) -> Records:
    """Return the encoders beside the scorer as it is installed, with what that finds more."""
    for rival in RIVALS:
        yield rival, result["systems"]["scorer, vectors"]["against"][rival]


def more_than(kinds: str) -> str:
    """Return the template of a paired difference with its interval and p."""
    return f"{{{kinds}[more][0]:+.1f}} ({{{kinds}[more][1]:+.1f}} to {{{kinds}[more][2]:+.1f}}), p = {{{kinds}[p]:.4f}}"


QUALITY: Final[Mapping[str, Table | Facts]] = {
    "encoders": Table(
        "encoder",
        {
            "encoder": "{name}",
            **{label: ndcg_of(kinds) for kinds, label in JUDGED.items()},
            "all, against MiniLM": "{pool and drawn[more than the first][0]:+.1f}"
            " ({pool and drawn[more than the first][1]:+.1f} to {pool and drawn[more than the first][2]:+.1f}),"
            " p = {pool and drawn[p]:.4f}",
        },
        ("encoders",),
    ),
    "adaptation": Table(
        "adaptation",
        {
            "forum": "{name}",
            "questions": "{questions:,}",
            "answers": "{answers:,}",
            "own bodies, MRR": "{own bodies[more][0]:+.1f} ({own bodies[more][1]:+.1f} to {own bodies[more][2]:+.1f})",
            "judged queries": "{queries}",
            "nDCG@5 before": "{before:.1f}",
            "after": "{ndcg@5:.1f}",
            "more": "{more[0]:+.1f} ({more[1]:+.1f} to {more[2]:+.1f}), p = {p:.4f}",
        },
        adapted_rows,
    ),
    "scorer": Table(
        "scorer",
        {
            "system": "{name}",
            **{
                kind: f"{{ndcg@5[{kind}][0]:.1f}} ({{ndcg@5[{kind}][1]:.1f}} to {{ndcg@5[{kind}][2]:.1f}})"
                for kind in ("pool", "other", "drawn")
            },
            "calibration error, pools": "{calibration error[pool]:.3f}",
            "same or not, AUC": "{same or not[all pairs]:.2f}",
            "close paraphrases": "{same or not[close paraphrases against near-copies]:.2f}",
            "near-copies, median": "{same or not[median of near-copies]:.2f}",
            "Quora, AUC": "{quora:.2f}",
            "a query, ms": "{costs[a query, ms]:.1f}",
            "a question, ms": "{costs[a question, ms]:.1f}",
        },
        ("systems",),
        {
            "words alone": "words alone",
            "cosine": "the bundled encoder's cosine",
            "sum of words and cosine": "sum of words and cosine",
            "scorer, words": "the scorer, words alone",
            **{
                name: name
                for name in (
                    "one cosine",
                    "+ shared words",
                    "+ differences",
                    "without shared words",
                )
            },
            "scorer, vectors": "+ words of answers, as it is installed",
            **{rival: rival for rival in RIVALS},
        },
    ),
    "scorer-rivals": Table(
        "scorer",
        {
            "as it is installed, beside": "{name}",
            "all judged queries": more_than("pool other drawn"),
            "judged pools": more_than("pool"),
        },
        rival_rows,
    ),
    "scorer-known": Table(
        "scorer",
        {
            "version": "{name}",
            **{
                heading: f"{{{kind}[percentiles][{share}%]:.3f}}"
                for heading, kind, share in (
                    ("a copy, median", "copy", 50),
                    ("a copy's title, median", "copy of title", 50),
                    ("best of another forum's title, 95th percentile", "elsewhere", 95),
                    ("best of nonsense, 95th percentile", "nonsense", 95),
                )
            },
        },
        ("known answers",),
    ),
    "answers": Table(
        "answers",
        {
            "weight of answers": "{name}",
            **{
                heading: f"{{{measure}[mean]:.1f}} ({{{measure}[more][0]:+.1f}}, {{{measure}[more][1]:+.1f}} to"
                f" {{{measure}[more][2]:+.1f}})"
                for heading, measure in (("nDCG@5", "ndcg@5"), ("good ones among 50", "recall@50"))
            },
        },
        ("candidates",),
    ),
    "answers-cost": Table(
        "answers",
        {
            "words": "{name}",
            "processor time of indexing, s": "{index_s:.1f}",
            "MB on disk": "{mb:.1f}",
            "a search by title, ms": "{search_ms:.0f}",
        },
        ("costs",),
        {"without": "without answers", "with": "with answers"},
    ),
    "evidence": Table(
        "evidence",
        {
            "split, other duplicates, queries": "{name}",
            "number": "{queries}",
            "best duplicate alone": "{alone[mrr][0]:.1f}",
            "all, damped": "{damped[mrr][0]:.1f}",
            "damped, more": "{damped[more][0]:+.1f} ({damped[more][1]:+.1f} to {damped[more][2]:+.1f})",
            "all, undamped": "{whole[mrr][0]:.1f}",
        },
        evidence_rows,
    ),
    "groups": Facts(
        (
            (
                "groups that are shown in the travel forum: pairs with grade 2 or 3",
                "groups",
                "{reading[shown][grade 2 or 3]} of {reading[shown][pairs]} ({reading[shown][interval][0]:.0%} to"
                " {reading[shown][interval][1]:.0%})",
            ),
            (
                "the same without any link, from .8",
                "groups",
                "{reading[without links][0.8][grade 2 or 3]} of {reading[without links][0.8][pairs]}",
            ),
            (
                "the same without any link, from .6",
                "groups",
                "{reading[without links][0.6][grade 2 or 3]} of {reading[without links][0.6][pairs]}",
            ),
            ("groups of the Slicer forum", "groups", "{slicer[grade 2 or 3]} of {slicer[pairs]}"),
            ("first grouping of 224,741 questions", "groups", "{cost[first, s]:.1f} s"),
            (
                "after one link or judgement, median",
                "groups",
                "{cost[after one link or judgement, ms][median]:.0f} ms",
            ),
        )
    ),
    "languages": Table(
        "languages",
        {
            "queries in": "{name}",
            "number": "{queries}",
            "read as English": "{english[mean]:.1f}",
            "words as they are": "{none[mean]:.1f}",
            "each by its own language": "{each[mean]:.1f}",
            "each less English": "{each[less english][0]:+.1f} ({each[less english][1]:+.1f} to"
            " {each[less english][2]:+.1f})",
        },
        language_rows,
        caption="MRR@10 times 100, {questions:,} questions.",
    ),
    "language-detectors": Table(
        "languages",
        {
            "detector": "{name}",
            "titles told rightly": "{right:.1f} %",
            "English ones": "{right of English:.1f} %",
            "others": "{right of the others:.1f} %",
            "ms": "{ms:.2f}",
            "MB on disk": "{size_mb:.1f}",
        },
        ("told apart", "detectors"),
    ),
    "protocols": Table(
        "scorer-checks",
        {
            "set": "{name}",
            "protocol": "{protocol}",
            "published": lambda record: _measures(record["published"]),
            "ours": lambda record: _measures(record["ours"]),
        },
        ("checks",),
    ),
}


def _measures(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in figures.items())


# -- speed, memory, several machines -----------------------------------------------------------------------------------

SIZES: Final = ("scale-20000", "scale-224741", "scale-1000000", "scale-2000000")


def likely(least: str) -> str:
    """Return the template of how many exact pairs of a probability were found."""
    return f"{{exact pairs[from {least}][found]:.3f}} of {{exact pairs[from {least}][there are]:,}}"


def service_rows(result: Record) -> Records:
    """Return what was asked of the service, searches in a row and by chance."""
    yield from result["service"].items()
    for pace, record in result["paced"].items():
        yield f"title, 16 connections, {pace} searches/s by chance", record


def vector_rows(result: Record) -> Records:
    """Return the indexes of each size."""
    for size in result["sizes"]:
        for row in size["rows"]:
            yield f"{size['vectors']:,} vectors: {row['name']}", row


def plain_rows(result: Record) -> Records:
    """Return both services by connections: the median of the turns."""
    for connections in result["services"]["askalike"]:
        record: dict[str, Any] = {}
        for service, turns in result["services"].items():
            record[service] = {
                name: median(turn[name] for turn in turns[connections]) for name in ("per_s", "p50_ms", "p99_ms")
            }
        yield connections, record


SPEED: Final[Mapping[str, Table | Facts]] = {
    "scale": Table(
        SIZES,
        {
            "questions": "{questions:,}",
            "a search by title, p50 ms": "{search[title][p50_ms]:.1f}",
            "with a body": "{search[title and body][p50_ms]:.1f}",
            "its encoder": "{search[encoder][p50_ms]:.1f}",
            "bm25s": "{search[bm25s][p50_ms]:.1f}",
            "FAISS": "{search[FAISS][p50_ms]:.1f}",
            "by title, of their sum": "{by title, of the sum of its parts:.2f}",
            "an addition until it is found, ms": "{added until found[p50_ms]:.0f}",
            "indexing, s": "{indexing[seconds]:,.0f}",
        },
    ),
    "capacity": Table(
        SIZES,
        {
            "questions": "{questions:,}",
            "records, MB": "{disk_mb[archive.sqlite]:,.0f}",
            "index of words, MB": "{disk_mb[lexical]:,.0f}",
            "vectors, MB": "{disk_mb[vectors]:,.0f}",
            "memory while indexing, MB": "{indexing[peak_memory_mb][this process, without mapped files]:,}",
            "processor time of indexing, s": "{indexing[processor_s][this process]:,.0f} +"
            " {indexing[processor_s][its workers]:,.0f} in workers",
            "another writer waited at most, s": "{indexing[longest wait of another writer, s]:.1f}",
        },
    ),
    "sizes-in-turns": Table(
        "sizes-in-turns",
        {
            "questions": "{questions:,}",
            "by title, p50 ms": "{title[p50_ms]:.1f}",
            "with a body": "{title and body[p50_ms]:.1f}",
        },
        ("rows",),
    ),
    "vector-search": Table(
        "vector-search",
        {
            "index": "{name}",
            "p50 ms": "{p50_ms:.2f}",
            "recall@10": "{recall_at_10:.4f}",
            "build s": "{build_s:.0f}",
            "bytes a vector": "{bytes_a_vector}",
            "open s": "{open_s:.3f}",
        },
        vector_rows,
    ),
    "likely-pairs": Table(
        ("likely-pairs-224741", "likely-pairs-1000000"),
        {
            "questions": "{questions:,}",
            "processor time a question, ms": "{processor_s[a question, ms]:.1f}",
            "seconds on the clock": "{seconds[comparing]:,.0f}",
            "pairs": "{pairs:,}",
            "exact pairs found, from .1": likely("0.1"),
            "from .3": likely("0.3"),
            "from .5": likely("0.5"),
        },
    ),
    "serve-load": Table(
        "serve-load",
        {
            "asked": "{name}",
            "answers a second": "{per_s:.0f}",
            "p50 ms": "{p50_ms:.0f}",
            "p99 ms": "{p99_ms:.0f}",
            "a write, p50 ms": "{write[p50_ms]:.0f}",
            "refused": "{refused}",
        },
        service_rows,
        caption="{questions:,} questions, {workers} workers. The library alone takes {library[title][p50_ms]:.1f} ms by"
        " title and {library[title and body][p50_ms]:.1f} ms with a body.",
    ),
    "plain-service": Table(
        "plain-service",
        {
            "connections": "{name}",
            "askalike, answers a second": "{askalike[per_s]:.0f}",
            "p50 ms": "{askalike[p50_ms]:.0f}",
            "plain service, answers a second": "{plain[per_s]:.0f}",
            "plain, p50 ms": "{plain[p50_ms]:.0f}",
        },
        plain_rows,
        caption="{questions:,} questions, {workers} workers each. Memory of all workers, without mapped files:"
        " {memory of all workers, MB: own, mapped[askalike][0]:,.0f} MB and"
        " {memory of all workers, MB: own, mapped[plain][0]:,.0f} MB.",
    ),
    "transformer-runtime": Table(
        "transformer-runtime",
        {
            "runtime": "{name}",
            "titles a processor second": "{titles_per_cpu_s:.0f}",
            "times plain": "{titles_times_plain:.2f}",
            "whole questions": "{wholes_per_cpu_s:.1f}",
            "times plain, whole": "{wholes_times_plain:.2f}",
            "mean cosine": "{mean_cosine:.4f}",
        },
        ("one_thread", "systems"),
    ),
    "training-time": Table(
        "training-time",
        {"phase": "{name}", "s": "{whole:,.0f}"},
        ("seconds",),
        caption="{questions:,} questions of pre-training, then a forum of {topics:,} topics with {answers:,} answers;"
        " {threads} threads, {minutes} minutes in all.",
    ),
    "engines": Table(
        "engines",
        {
            "ranker": "{name}",
            "overlap at 10": "{overlap_at_10:.3f}",
            "local, p50 ms": "{search[local][p50_ms]:.1f}",
            "Milvus Lite, p50 ms": "{search[milvus][p50_ms]:.1f}",
            "processor, local": "{processor_ms[local]:.1f}",
            "processor, Milvus Lite": "{processor_ms[milvus]:.1f}",
        },
        ("rankers",),
        {"default": "the default", "words": "words", "meaning": "meaning"},
        caption="{questions:,} questions. Filling took {load_s[milvus]:,.0f} s, local indexes {load_s[local]:,.0f} s."
        " Of the exactly nearest ten vectors the engine finds {nearest[AUTOINDEX]:.3f}."
        " At {indexed[per_second]} writes a second a write is found after"
        " {indexed[p50_ms]:,.0f} ms (p99 {indexed[p99_ms]:,.0f}), on a machine whose load was {load_average[0]:.0f}.",
    ),
    "postgres": Facts(
        (
            ("loading 20,000 questions: file, PostgreSQL", "postgres", "{load_s[file]} s, {load_s[postgresql]} s"),
            (
                "a search, p50: file, PostgreSQL",
                "postgres",
                "{search[file][p50_ms]:.1f} ms, {search[postgresql][p50_ms]:.1f} ms",
            ),
            ("overlap at 10", "postgres", "{overlap_at_10:.3f}"),
            (
                "kills of server and writers",
                "postgres",
                "{killed[kills]}; {killed[acknowledged]:,} acknowledged writes, wrong by record"
                " {killed[wrong][this machine][by record]}, by words {killed[wrong][this machine][by words]}",
            ),
        )
    ),
}

# -- kills, damage, attacks --------------------------------------------------------------------------------------------

PARTS: Final = {
    r"archive\.sqlite": "the archive",
    r"keys\.json": "keys",
    r"lexical/.*": "words",
    r"vectors/.*": "vectors and their model",
    r"model/.*|rankers/.*": "models that were trained",
    r"pairs\.sqlite|rejects\.jsonl": "likely pairs, rejects",
    r".*\.lock": "locks",
}
"""Which files are a part of a forum; the first pattern that fits a file decides."""


def damaged_parts(result: Record) -> Records:
    """Return the counts of each part of a forum, summed over its files, and of all."""
    sums: dict[str, dict[str, int]] = {part: {} for part in PARTS.values()}
    for file, counts in result["files"].items():
        part = next(part for pattern, part in PARTS.items() if re.fullmatch(pattern, file))
        for name, count in counts.items():
            sums[part][name] = sums[part].get(name, 0) + count
    yield from ((part, counts) for part, counts in sums.items() if counts)
    yield "all", result["total"]


ROBUSTNESS: Final[Mapping[str, Table | Facts]] = {
    "kills": Facts(
        (
            (
                "a process that loads 20,000 questions and writes beside it",
                "kill",
                "{kills} kills, {acknowledged_writes:,} acknowledged writes, {failures} lost or wrong",
            ),
            (
                "a process that loads into a store and writes to it, without indexes",
                "store-kill",
                "{kills} kills, {acknowledged:,} acknowledged writes, {lost} lost",
            ),
            (
                "the service, while four clients write",
                "serve-kill",
                "{kills} kills, {acknowledged_writes:,} acknowledged writes, {failures} lost or wrong",
            ),
            (
                "a process that encodes by MiniLM",
                "encode-kill",
                "{kills} kills, {questions:,} questions, {missing} vectors missing, {wrong} wrong, {encoded_twice:,}"
                " encoded twice",
            ),
            (
                "a follower of a forum of 50,000 topics, two simulated days",
                "follow",
                "{kills} kills, {changes_in_all:,} changes, {differences} of {threads_compared:,} topics differ",
            ),
            (
                "every part of a service of several machines, in turn",
                "service-kill",
                "{kills_of_each} kills of each, {acknowledged:,} acknowledged writes; wrong by record"
                " {wrong[by record]}, by words {wrong[by words]}, by vector {wrong[by vector]}",
            ),
            (
                "PostgreSQL's first server, its standby promoted",
                "service-kill",
                "of {promoted[wrong][looked for]:,} writes wrong by record {promoted[wrong][by record]}, by words"
                " {promoted[wrong][by words]}, by vector {promoted[wrong][by vector]}",
            ),
        ),
        ("killed (SIGKILL)", "outcome"),
    ),
    "damage": Table(
        "damage",
        {
            "part": "{name}",
            "rounds": "{rounds}",
            "seen by `check`": "{seen_by_check}",
            "refused": "{refused}",
            "other answers": "{wrong_answers}",
            "and not seen": "{wrong_and_unseen}",
            "tracebacks": "{tracebacks}",
            "repaired": "{mended} of {can_be_mended}",
        },
        damaged_parts,
    ),
    "follow": Facts(
        (
            (
                "a change until searches show it, by webhook",
                "follow",
                "{webhook_lag_s[p50]} s, p99 {webhook_lag_s[p99]} s",
            ),
            ("the same by polls, each 60 s", "follow", "{poll_lag_s[p50]} s, p99 {poll_lag_s[p99]} s"),
            ("requests above the site's limit", "follow", "{requests_above_the_rate} of {requests:,}"),
            ("webhooks lost on the way", "follow", "{events[events lost]} of {events[events]:,}"),
            ("memory at most", "follow", "{follower_peak_mb} MB"),
        )
    ),
    "serve-schema": Facts(
        (
            (
                "requests that Schemathesis made from the OpenAPI document",
                "serve-schema",
                "{requests:,}; {server_errors} ended in an error of the service",
            ),
        )
    ),
    "serve-attack": Table(
        "serve-attack",
        {
            "attack": "{name}",
            "a client's search, p50 ms": "{p50_ms:.0f}",
            "p99": "{p99_ms:.0f}",
            "slowest": "{max_ms:.0f}",
            "searches": "{searches}",
            "what the attack got": "{attack:join}",
        },
        ("attacks",),
    ),
}

# -- the papers --------------------------------------------------------------------------------------------------------


def of_row(*path: str, is_named: bool = False) -> Callable[[Record], Records]:
    """Return what gives the finished rows of a paper, whose list is at a path of keys; "paper" is its name of a row."""

    def rows(result: Record) -> Records:
        listed: Any = result
        for key in path:
            listed = listed[key]
        yield from ((row["row"], {**row, "paper": row["name"]} if is_named else row) for row in listed if row["found"])

    return rows


def seeds(row: Record) -> str:
    """Return how many trainings a row is the mean of, "" for what is not trained."""
    return str(len(row["seeds"])) if len(row["seeds"]) > 1 else ""


def mean_of(task: str, measure: str = "map", *, with_interval: bool = False) -> Callable[[Record], str]:
    """Return what shows a row's mean times 100, and the deviation of the seeds' means where there are several."""

    def show(row: Record) -> str:
        if task not in row["found"]:
            return ""
        figures = row["found"][task][measure]
        low, high = figures["interval95"]
        spread = f" ± {100 * figures['spread']:.2f}" if figures["spread"] is not None else ""
        interval = f" ({100 * low:.1f}–{100 * high:.1f})" if with_interval else ""
        return f"{100 * figures['mean']:.2f}{spread}{interval}"

    return show


def p_of(task: str) -> str:
    """Return the template of a row's p by MAP."""
    return f"{{found[{task}][map][p_value]:.4f}}"


def lei2016_reported(source: str) -> Callable[[Record], str]:
    """Return what shows MAP and MRR of the paper ("reported") or the thesis; = was recomputed from released scores."""

    def show(row: Record) -> str:
        figures = [row[source].get(measure) for measure in ("map", "mrr")]
        texts = [
            f"{'=' * (figure['origin'] == 'recomputed')}{figure['value']:.1f}" if figure else "–" for figure in figures
        ]
        return " / ".join(texts) if any(figures) else ""

    return show


SEMEVAL_TASKS: Final = {"dev": "dev", "test2016": "2016", "test2017": "2017"}
ZHANG_LAYERS: Final = ("base", "mismatch", "full")
STATES: Final = {
    "word2vec": "word2vec",
    "untrained": "untrained encoder",
    "autoencoder": "attention autoencoder",
    "rcnn": "RCNN",
    "bundled": "bundled encoder",
    "minilm": "all-MiniLM-L6-v2",
    "mpnet": "all-mpnet-base-v2",
}


def zhang2018_rows(*, is_reading: bool) -> Callable[[Record], Records]:
    """Return what gives the rows of the fewest texts: those of the paper's model, or other readings of it."""

    def rows(result: Record) -> Records:
        for name, row in of_row("sets", "1613 texts", "rows", is_named=True)(result):
            is_own = row["system"] == "search" or name.split("-", 1)[1] in ZHANG_LAYERS
            if is_own != is_reading:
                yield name, row

    return rows


def earlier_autoencoders(result: Record) -> Records:
    """Return the rows of an earlier run by their similarity."""
    for row in result["rows"]:
        yield f"{row['row']} {row['texts']}", {"what": row["row"], **row}


def ramn_states(result: Record) -> Records:
    """Return the rows by states and layer; rows of the search have no states."""
    for row in result["rows"]:
        states, _, layer = row["row"].partition("-")
        search = "candidate-search" if row["row"] == "ir" else row["row"]
        what = (STATES[states], layer.replace("-", ", ")) if states in STATES else ("", search)
        yield row["row"], dict(zip(("states", "layer"), what, strict=True)) | row


def ramn_comparisons(result: Record) -> Records:
    """Return pairs of rows with their differences on every task."""
    pairs: dict[str, dict[str, Any]] = {}
    for comparison in result["compared"]:
        name = f"{comparison['better']} over {comparison['worse']}"
        pairs.setdefault(name, {})[comparison["task"]] = comparison
    yield from pairs.items()


def travel_comparisons(result: Record) -> Records:
    """Return pairs of rows with their differences on travel's parts."""
    yield from ramn_comparisons(result["sets"]["travel"])


def difference(task: str) -> str:
    """Return the template of a difference with its interval and p."""
    bounds = f"{{{task}[interval95][0]:+.1c}} to {{{task}[interval95][1]:+.1c}}"
    return f"{{{task}[difference]:+.1c}} ({bounds}), p {{{task}[p_value]:.4f}}"


def forum_states(name: str) -> Table:
    """Return the layers over each encoder's states on a forum's duplicates."""
    columns: dict[str, Cell] = {"states": "{states}", "layer": "{layer}"}
    for part in ("dev", "test"):
        columns[f"{part} MAP"] = mean_of(f"{name} {part}", with_interval=True)
        columns[f"{part} MRR"] = mean_of(f"{name} {part}", "mrr")
    return Table(f"ramn-states-{name}", columns, ramn_states)


def pool_states() -> Table:
    """Return the layers over each encoder's states on graded candidates."""
    columns: dict[str, Cell] = {"states": "{states}", "layer": "{layer}"}
    for kind, label in (("pool", "pools"), ("drawn", "drawn")):
        columns[f"{label} MAP"] = mean_of(f"pools {kind}", with_interval=True)
        columns[f"{label} nDCG@5"] = mean_of(f"pools {kind}", "ndcg@5")
    return Table("ramn-states-pools", columns, ramn_states)


def forum_differences(name: str) -> Table:
    """Return what layers bring on a forum's duplicates."""
    parts = {"pools": "pool", "drawn": "drawn"} if name == "pools" else {"dev": "dev", "test": "test"}
    columns: dict[str, Cell] = {"rows": "{name}"}
    columns |= {label: difference(f"{name} {part}") for label, part in parts.items()}
    return Table(f"ramn-states-{name}", columns, ramn_comparisons)


DAS_TESTS: Final = {
    "semeval2016-test": "SemEval 2016",
    "semeval2017-test": "SemEval 2017",
    "travel test": "travel",
    "slicer test": "Slicer",
}


def das2016_rows(result: Record) -> Records:
    """Return the rows of all sets, each with its name in the paper."""
    rows: dict[str, dict[str, Any]] = {}
    for name in result["sets"]:
        for row_name, row in of_row("sets", name, "rows")(result):
            shown = rows.setdefault(row_name, {**row, "paper": row["name"], "found": {}})
            shown["found"] = {**shown["found"], **row["found"]}
    yield from rows.items()


TRAVEL_PARTS: Final = {"travel dev": "dev", "travel test": "test"}

ON_TRAVEL: Final[Mapping[str, Cell]] = {
    "dev MAP": mean_of("travel dev"),
    "dev MRR": mean_of("travel dev", "mrr"),
    "MAP": mean_of("travel test", with_interval=True),
    "MRR": mean_of("travel test", "mrr"),
    "p, against bm25": p_of("travel test"),
}
"""Columns of a row on travel's duplicates."""

OF_PAPERS: Final[Mapping[str, Table | Facts]] = {
    "lei2016-travel": Table(
        "lei2016",
        {
            "row": "{name}",
            "paper and thesis call it": "{paper}",
            "seeds": seeds,
            "dev MRR": mean_of("travel dev", "mrr"),
            "MAP": mean_of("travel test", with_interval=True),
            "MRR": mean_of("travel test", "mrr"),
            "p, against bm25": p_of("travel test"),
            "the paper's MAP / MRR": lei2016_reported("reported"),
            "the thesis's": lei2016_reported("thesis"),
        },
        of_row("sets", "travel", "rows", is_named=True),
    ),
    "lei2016-semeval": Table(
        "lei2016",
        {
            "row": "{name}",
            "seeds": seeds,
            "2016 MAP": mean_of("semeval2016-test", with_interval=True),
            "2016 MRR": mean_of("semeval2016-test", "mrr"),
            "2016 p": p_of("semeval2016-test"),
            "2017 MAP": mean_of("semeval2017-test", with_interval=True),
            "2017 MRR": mean_of("semeval2017-test", "mrr"),
            "2017 p": p_of("semeval2017-test"),
        },
        of_row("sets", "semeval", "rows"),
    ),
    "lei2016-words": Table(
        "lei2016-words",
        {"row": "{name}", **ON_TRAVEL},
        of_row("sets", "travel", "rows"),
    ),
    **{
        name: Table(
            name,
            {"row": "{name}", "seeds": seeds, **ON_TRAVEL},
            of_row("sets", "travel", "rows"),
        )
        for name in ("lei2016-own-vectors", "lei2016-variants")
    },
    "lei2016-own-vectors-compared": Table(
        "lei2016-own-vectors",
        {"rows": "{name}", **{label: difference(task) for task, label in TRAVEL_PARTS.items()}},
        travel_comparisons,
    ),
    "lei2016-variants-compared": Table(
        "lei2016-variants", {"rows": "{name}", "test": difference("travel test")}, travel_comparisons
    ),
    **{
        name: Table(
            "zhang2018",
            {
                "row": "{name}",
                "the paper calls it": "{paper}",
                "seeds": seeds,
                "dev MAP": mean_of("dev"),
                "2016 MAP": mean_of("test2016", with_interval=True),
                "2016 p": p_of("test2016"),
                "2016, the paper": "{reported[test2016][map][value]:.2f}",
                "2017 MAP": mean_of("test2017", with_interval=True),
                "2017 p": p_of("test2017"),
                "2017, the paper": "{reported[test2017][map][value]:.2f}",
            },
            zhang2018_rows(is_reading=is_reading),
        )
        for name, is_reading in (("zhang2018", False), ("zhang2018-readings", True))
    },
    "zhang2018-autoencoders": Table(
        "zhang2018-autoencoders",
        {
            "row": "{what}",
            "texts": "{texts:,}",
            "similarity": "{settings[similarity]}",
            "seeds": seeds,
            "dev MAP": mean_of("dev"),
            "2016 MAP": mean_of("test2016", with_interval=True),
            "2017 MAP": mean_of("test2017", with_interval=True),
        },
        earlier_autoencoders,
    ),
    "ramn-states": Table(
        "ramn-states",
        {
            "states": "{states}",
            "layer": "{layer}",
            "seeds": seeds,
            "dev MAP": mean_of("dev"),
            "2016 MAP": mean_of("test2016", with_interval=True),
            "2016 MRR": mean_of("test2016", "mrr"),
            "2017 MAP": mean_of("test2017", with_interval=True),
            "2017 MRR": mean_of("test2017", "mrr"),
        },
        ramn_states,
    ),
    "ramn-states-compared": Table(
        "ramn-states",
        {"rows": "{name}", **{label: difference(task) for task, label in SEMEVAL_TASKS.items()}},
        ramn_comparisons,
    ),
    "ramn-states-travel": forum_states("travel"),
    "ramn-states-travel-compared": forum_differences("travel"),
    "ramn-states-slicer": forum_states("slicer"),
    "ramn-states-slicer-compared": forum_differences("slicer"),
    "ramn-states-pools": pool_states(),
    "ramn-states-pools-compared": forum_differences("pools"),
    "das2016": Table(
        "das2016",
        {
            "row": "{name}",
            "the paper's name": "{paper}",
            "seeds": seeds,
            **{
                heading: cell_
                for task, label in DAS_TESTS.items()
                for heading, cell_ in ((label, mean_of(task)), (f"{label} p", p_of(task)))
            },
            "the paper's MAP": "{reported[map][value]:.1f}",
        },
        das2016_rows,
    ),
}


def maps(
    name: str, *tasks: str, rows: Callable[[Record], Records], measures: Sequence[str] = ("map",)
) -> Callable[[Record], str]:
    """Return what shows a row's measures on tasks, in their order, and the row's name; MAP needs no name."""

    def show(result: Record) -> str:
        row = next(row for row_name, row in rows(result) if row_name == name)
        shown = []
        for measure in measures:
            figures = " / ".join(f"{100 * row['found'][task][measure]['mean']:.1f}" for task in tasks)
            shown.append(figures if measure == "map" else f"{measure.upper()} {figures}")
        return f"{name} {', '.join(shown)}"

    return show


TRAVEL: Final[Mapping[str, Any]] = {"rows": of_row("sets", "travel", "rows")}
SMALLEST: Final[Mapping[str, Any]] = {"rows": of_row("sets", "1613 texts", "rows")}
SEMEVAL_TESTS: Final = ("test2016", "test2017")
VERDICT: Final = Facts(
    (
        (
            "RCNN, pre-trained (Lei 2016)",
            "lei2016",
            "MRR 75.6, P@1 62.0 on AskUbuntu",
            maps("rcnn-last-pretrained", "travel test", **TRAVEL, measures=("mrr", "p@1")),
            maps("bm25", "travel test", **TRAVEL, measures=("mrr", "p@1")),
            "pre-training helps the RCNN most, as in the paper, where word vectors come from much more text, and not "
            "beyond chance where they come from the sets; from 466 queries no encoder is ahead of BM25",
        ),
        (
            "RCNN by means (Joshi 2016)",
            "lei2016",
            "MAP 59.6",
            maps("rcnn-mean", "travel test", **TRAVEL),
            maps("lstm-mean", "travel test", **TRAVEL),
            "ahead of the LSTM of its size, as in the thesis, on travel and not on SemEval; level with the CNN",
        ),
        (
            "SVM over similarity measures",
            "lei2016",
            "",
            maps("svm", "travel test", **TRAVEL),
            maps("candidate-search", "travel test", **TRAVEL),
            "level with the search that found its candidates",
        ),
        (
            "RAMN, base (Zhang 2018)",
            "zhang2018",
            "MAP 73.05 / 45.36",
            maps("attention-base", *SEMEVAL_TESTS, **SMALLEST),
            maps("untrained-base", *SEMEVAL_TESTS, **SMALLEST),
            "from 1,613 texts of the paper's two million: level with an encoder that was drawn",
        ),
        (
            "RAMN, full (Zhang 2018)",
            "zhang2018",
            "MAP 77.79 / 48.53",
            maps("attention-full", *SEMEVAL_TESTS, **SMALLEST),
            maps("words-full", *SEMEVAL_TESTS, **SMALLEST),
            "level with the same factors without an autoencoder",
        ),
        (
            "rank + BM25, no network",
            "zhang2018",
            "",
            maps("rank-bm25", *SEMEVAL_TESTS, **SMALLEST),
            maps("bm25", *SEMEVAL_TESTS, **SMALLEST),
            "as good as the paper's full model on 2016, not on 2017",
        ),
        (
            "SCQA (Das 2016)",
            "das2016",
            "MAP 81.1 on Yahoo! Answers",
            maps("scqa", *DAS_TESTS, rows=das2016_rows),
            maps("trigrams", *DAS_TESTS, rows=das2016_rows),
            "below its own input by 7.5, 6.7, 1.8 (chance; dev 7.5) and 4.3 points, and level with itself before "
            "training",
        ),
        (
            "T-SCQA (Das 2016)",
            "das2016",
            "MAP 85.2 on Yahoo! Answers",
            maps("t-scqa", *DAS_TESTS, rows=das2016_rows),
            maps("bm25", *DAS_TESTS, rows=das2016_rows),
            "level with the BM25 that it mixes in, and 5.8, 2.8, .8 and 4.7 points below it by the paper's weight",
        ),
        (
            "Q-A topic model (Das 2016)",
            "das2016",
            "MAP 78.7 on Yahoo! Answers; LMIR 76.2",
            maps("qatm", *DAS_TESTS, rows=das2016_rows),
            maps("lmir", *DAS_TESTS, rows=das2016_rows),
            "level with query likelihood on every dev set, and on the tests but the first",
        ),
        (
            "RAMN's idea on frozen MiniLM (ours)",
            "ramn-states",
            "",
            maps("minilm-sum-cosine", *SEMEVAL_TESTS, rows=of_row("rows")),
            maps("minilm-control", *SEMEVAL_TESTS, rows=of_row("rows")),
            "best matches add to cosine, rank and BM25 on 2017 alone; the mismatch layer takes away",
        ),
    ),
    ("system", "the paper's figure, on its data", "ours, on ours", "control", "verdict"),
)

# -- the README --------------------------------------------------------------------------------------------------------

README: Final[Mapping[str, Table | Facts]] = {
    "readme": Facts(
        (
            (
                "words alone: BM25 over titles, bodies and best answers",
                "scorer",
                "{systems[words alone][ndcg@5][drawn][0]:.1f}",
            ),
            ("MiniLM's cosine, as in a column of pgvector", "encoder", "{encoders[MiniLM][drawn][ndcg@5][0]:.1f}"),
            ("the bundled encoder's cosine", "encoder", "{encoders[bundled][drawn][ndcg@5][0]:.1f}"),
            ("askalike as it is installed", "scorer", "{systems[scorer, vectors][ndcg@5][drawn][0]:.1f}"),
        ),
        headings=("search", "nDCG@5"),
    ),
}

TABLES: Final[Mapping[str, Table | Facts]] = {
    **QUALITY,
    **SPEED,
    **ROBUSTNESS,
    **OF_PAPERS,
    "verdict": VERDICT,
    **README,
}
"""Name → table."""


def pages() -> list[Path]:
    """Return the pages that may show tables, relative to the repository."""
    paths = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    return [path.relative_to(REPOSITORY) for path in paths]


def filled(text: str, page: Path) -> str:
    """Return the text of a page with its tables as the results have them.

    Raises:
        KeyError: a marker names no table.
    """

    def replacement(match: re.Match[str]) -> str:
        lines = "\n".join(rendered(TABLES[match[1]], page))
        return f"{match[1]}{match[2]}\n{lines}\n\n"

    return MARKER.sub(replacement, text)


def shown(page: Path) -> list[str]:
    """Return the names of the tables that a page shows."""
    return [match[1] for match in MARKER.finditer((REPOSITORY / page).read_text(encoding="utf-8"))]


def main() -> None:
    """Fill the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the tables and the pages that show them")
    if parser.parse_args().list:
        for name in TABLES:
            print(f"{name:24} {', '.join(str(page) for page in pages() if name in shown(page))}")
        return
    for page in pages():
        path = REPOSITORY / page
        text = path.read_text(encoding="utf-8")
        try:
            new = filled(text, page)
        except KeyError as error:
            sys.exit(f"{page}: there is no table {error}; expected one of {', '.join(TABLES)}")
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"wrote {page}")


if __name__ == "__main__":
    main()
