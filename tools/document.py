"""Writes the documents that are made from the program and its results: reference, results, picture.

Command: ``python -m tools.document``. A test checks that the committed documents are what this writes.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from askalike import Forum
from askalike.cli.demo import QUESTIONS
from askalike.cli.display import print_hits
from askalike.cli.main import app
from askalike.data import bundled_forum

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "results"

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("askalike demo",),
    "index": (
        "askalike index travel.stackexchange.com.7z --into travel.forum",
        "askalike index posts.csv --into my.forum --column title=subject --column body=message",
    ),
    "reindex": ("askalike reindex my.forum",),
    "encode": ("askalike encode my.forum", "askalike encode my.forum --model another-model"),
    "train": (
        "askalike train my.forum",
        "askalike train my.forum --hold-out-test --seed 1",
        "askalike train my.forum --recipe my-recipe.toml --from nothing --fresh",
    ),
    "search": (
        'askalike search my.forum "Printer vanishes after a power cut" -k 5',
        'askalike search my.forum "Printer vanishes" --body - --tag printer --before 2024-01-01 --json < body.md',
    ),
    "info": ("askalike info my.forum --json",),
    "add": (
        'askalike add my.forum --title "Printer vanishes after a power cut" --tag printer --id q2001',
        'askalike add my.forum --answer-to q2001 --body "Give it a fixed address."',
    ),
    "edit": ('askalike edit my.forum q2001 --title "Printer vanishes after every power cut"',),
    "delete": ("askalike delete my.forum q2001",),
    "score": (
        "askalike score gold.qrels bm25.run --protocol trec --measure map --measure ndcg@10",
        "askalike score dev.txt dev.txt --protocol askubuntu --json",
        "askalike score gold.relevancy ours.pred --protocol semeval --against theirs.pred",
    ),
    "evaluate": (
        "askalike evaluate my.forum",
        "askalike evaluate my.forum --protocol rerank --split test --save runs/",
    ),
    "reproduce": (
        "askalike reproduce lei2016 --data askubuntu --out lei2016 --jobs 2",
        "askalike reproduce lei2016 --data stand-ins --only BM25 --only 'RCNN (pre-trained)' --seeds 1",
    ),
}


def cli_document() -> str:
    """Return the reference of the command line, from the program itself."""
    group = typer.main.get_command(app)
    assert hasattr(group, "commands")
    parts = [
        "# The command line",
        "",
        "Written from the program by `python -m tools.document`; do not edit by hand.",
        "",
        "Every command that prints results takes `--json`. Progress and notes go to the error stream. Exit codes:"
        " 0 done, 1 an error that the message explains, 2 the command was used wrongly.",
    ]
    for name, command in group.commands.items():
        parts += ["", f"## askalike {name}", "", str(command.help).strip(), "", "```sh", *EXAMPLES[name], "```", ""]
        parts += ["| argument or option | meaning | default |", "|---|---|---|"]
        parts += [_parameter_row(parameter) for parameter in command.params]
    return "\n".join(parts) + "\n"


def _parameter_row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        shown = parameter.metavar or parameter.name.upper()
    else:
        shown = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    if parameter.required:
        text = "required"
    elif default in (None, "", False, ()):
        text = ""
    else:
        text = f"`{default}`"
    return f"| {shown} | {str(getattr(parameter, 'help', '') or '').replace('|', '/')} | {text} |"


def results_document() -> str:
    """Return every table of measured figures, each with its command and commit."""
    parts = [
        "# Results",
        "",
        "Written from `results/*.json` by `python -m tools.document`; do not edit by hand. Quality figures are times"
        " 100, with 95 % bootstrap intervals over queries; p-values are of the paired randomisation test. Times were"
        " taken on a shared machine: read ratios, not seconds.",
    ]
    for name, make in SECTIONS.items():
        path = RESULTS / f"{name}.json"
        if path.is_file():
            result = json.loads(path.read_text(encoding="utf-8"))
            parts += ["", *make(result), "", _provenance(result, path)]
    return "\n".join(parts) + "\n"


def _provenance(result: Mapping[str, Any], path: Path) -> str:
    machine = result["machine"]
    return (
        f"`{result['command']}`, commit `{result['commit']}`, {result['when'][:10]}, {machine['cores']} cores of"
        f" {machine['cpu']}, Python {machine['python']}; [{path.name}](../results/{path.name})"
    )


def _table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    names = list(header)
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def _scorers(result: Mapping[str, Any]) -> list[str]:
    rows = [
        (
            name,
            check["protocol"],
            _numbers(check["published"]),
            _numbers(check["ours"]),
            "yes" if check["equal"] else "no",
        )
        for name, check in result["checks"].items()
    ]
    intro = ["## Scorers", "", "Published figures of released rankings, and ours for the same files.", ""]
    return intro + _table(("set", "protocol", "published", "ours", "equal"), rows)


def _numbers(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def _quality(result: Mapping[str, Any]) -> list[str]:
    lines = ["## BM25 and TF-IDF"]
    titles = {
        "dev": "SemEval dev: re-ranking of 10 candidates, official protocol",
        "test2016": "SemEval 2016 test",
        "test2017": "SemEval 2017 test",
        "retrieval": "Travel duplicates, test part: full retrieval over 4,919 questions",
        "rerank": "Travel duplicates, test part: re-ranking of the search's 20 best, AskUbuntu's protocol",
    }
    for part, systems in {**result["semeval"], **result["travel test"]}.items():
        first = next(iter(systems))
        measures = [name for name in systems[first] if f"{name}_interval95" in systems[first]]
        rows = []
        for name, values in systems.items():
            test = values.get("against_first")
            against = f"{test['measure']} {test['difference']:+.2f}, p = {test['p_value']:.4f}" if test else ""
            rows.append((name, *(_with_interval(values, measure) for measure in measures), values["queries"], against))
        header = ("system", *measures, "queries", f"against {first}")
        lines += ["", f"### {titles[part]}", "", *_table(header, rows)]
    return lines


def _with_interval(values: Mapping[str, Any], measure: str) -> str:
    low, high = values[f"{measure}_interval95"]
    return f"{values[measure]:.2f} ({low:.1f}–{high:.1f})"


def _search(result: Mapping[str, Any]) -> list[str]:
    indexing = result["indexing"]
    lines = [
        "## Indexing and searching 224,741 Reddit questions",
        "",
        f"Indexed {indexing['questions']:,} questions ({indexing['rejected']} rejected) in {indexing['seconds']:.0f} s,"
        f" {indexing['questions_per_s']:,} a second (phases: {_seconds(indexing['phase_s'])}), with at most"
        f" {indexing['peak_memory_mb']} MB of memory, into {indexing['size_mb']:.0f} MB on disk"
        f" ({indexing['archive_mb']:.0f} MB of it the archive).",
    ]
    for kind, engines in result["search"].items():
        rows = [
            (name, *(f"{values[key]:.2f}" for key in ("p50_ms", "p95_ms", "p99_ms")))
            for name, values in engines.items()
        ]
        lines += ["", f"Query: {kind}; best {result['k']}; milliseconds.", ""]
        lines += _table(("engine", "p50", "p95", "p99"), rows)
    return [
        *lines,
        "",
        f"{result['queries']:,} real titles ({result['queries_of_slow_rivals']} for the two slow rivals). All engines"
        " get the same terms. The rivals' time is ranking alone; `Forum.similar` also reads the questions, their"
        f" answers and the words that matched. Building the rivals took {_seconds(result['rivals_build_s'])}; of them,"
        " only FTS5 takes single changes.",
    ]


def _seconds(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f} s" for name, value in values.items())


def _updates(result: Mapping[str, Any]) -> list[str]:
    rows = [
        (kind, *(f"{values[key]:.1f}" for key in ("p50_ms", "p95_ms", "p99_ms")))
        for kind, values in result["until_shown"].items()
    ]
    intro = [
        "## Changes until they show",
        "",
        f"{result['changes']:,} changes to the forum of {result['forum']}; milliseconds from the call until a search"
        " had found the change (a durable write, the index's commit, one search).",
        "",
    ]
    return intro + _table(("change", "p50", "p95", "p99"), rows)


def _runtime(result: Mapping[str, Any]) -> list[str]:
    rows = []
    for kind, found in result["kinds"].items():
        query = next(value for name, value in found.items() if name.startswith("query of"))
        rate = next(value for name, value in found.items() if name.startswith("questions_per_s"))
        rows.append((kind, f"{found['parameters']:,}", f"{rate:,}", f"{query['p50_ms']:.1f}", f"{query['p95_ms']:.1f}"))
    header = ("encoder", "parameters", "questions/s, from text", "query of 100 words, p50 ms", "p95 ms")
    intro = [
        "## Encoders without torch",
        "",
        "Random weights, one thread, real questions with title and body. Not part of the search yet.",
        "",
    ]
    return intro + _table(header, rows)


VECTOR_COLUMNS = ("recall_at_10", "build_s", "size_mb")


def _vectors(result: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Storing and searching vectors",
        "",
        f"Synthetic clustered vectors, one query at a time, {result['threads']} threads, on a machine with a load of"
        f" {result['load_15_min_at_end']:.1f}: differences under a factor of two are not settled. Not part of the"
        " search yet.",
    ]
    for size in result["sizes"]:
        rows = [
            (row["name"], *(f"{row[key]:.2f}" for key in ("p50_ms", "p95_ms")), *(row[key] for key in VECTOR_COLUMNS))
            for row in size["rows"]
        ]
        lines += ["", f"{size['vectors']:,} vectors of {size['dimensions']} dimensions:", ""]
        lines += _table(("form", "p50 ms", "p95 ms", "recall@10", "build s", "MB"), rows)
    return lines


def _kill(result: Mapping[str, Any]) -> list[str]:
    during = ", ".join(f"{count} in {phase}" for phase, count in sorted(result["killed_during"].items()))
    overlap = 100 * result["mean_overlap_of_best_ten_with_fresh_forum"]
    return [
        "## Killed while writing",
        "",
        f"A writing process was killed {result['kills']} times ({during}), after {result['acknowledged_writes']:,}"
        f" acknowledged writes in all: {result['failures']} forums failed to open, lost an acknowledged write or found"
        f" other questions than a forum built afresh. The best ten were the same in {overlap:.1f} % (deleted questions"
        " weigh in term statistics until the index merges its segments).",
    ]


def _tuning(result: Mapping[str, Any]) -> list[str]:
    names = [name for name in result["tried"][0] if name not in result["chosen"]]
    rows = [
        (*(f"{one[name]:g}" for name in result["chosen"]), *(f"{one[name]:.2f}" for name in names))
        for one in sorted(result["tried"], key=lambda one: -one["mean"])[:10]
    ]
    queries = ", ".join(f"{name} {count}" for name, count in result["queries"].items())
    chosen = ", ".join(f"{name} {value:g}" for name, value in result["chosen"].items())
    intro = [
        "## Settings of the search",
        "",
        f"Chosen on {result['data']} (queries: {queries}) by {result['measure']} in full retrieval: {chosen}."
        f" The best ten of {len(result['tried'])} tried; a column a forum and kind of query.",
        "",
    ]
    return intro + _table((*result["chosen"], *names), rows)


SECTIONS = {
    "quality-lexical": _quality,
    "index-and-search": _search,
    "updates": _updates,
    "kill": _kill,
    "tune-lexical": _tuning,
    "encode-runtime": _runtime,
    "vector-search": _vectors,
    "scorer-checks": _scorers,
}
"""Name of the results file → how its section is written, in the document's order."""


def readme() -> str:
    """Return the README with the figures of the newest results."""
    found = {name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in README_RESULTS}
    search = {kind: engines["askalike Forum.similar"] for kind, engines in found["index-and-search"]["search"].items()}
    indexing, kill = found["index-and-search"]["indexing"], found["kill"]
    slowest = max(values["p50_ms"] for values in found["updates"]["until_shown"].values())
    figures = [
        f"- On 2 cores and {indexing['questions']:,} real questions, a search takes {search['title']['p50_ms']:.1f} ms"
        f" by title and {search['title and body']['p50_ms']:.1f} ms with a body (median), answers and matched words"
        " included.",
        f"- Indexing them takes {indexing['seconds']:.0f} s and {indexing['peak_memory_mb']} MB of memory, and"
        f" {indexing['size_mb']:.0f} MB on disk.",
        f"- A new, edited or deleted question shows in searches after {slowest:.0f} ms at most (median), and is on disk"
        " by then.",
        f"- Killed {kill['kills']} times while writing, a forum lost none of {kill['acknowledged_writes']:,}"
        " acknowledged writes.",
        "- The scorers give the published figures of AskUbuntu and SemEval to two decimals.",
    ]
    begin, end = "<!-- figures: written by tools/document.py -->", "<!-- end of figures -->"
    before, rest = (REPOSITORY / "README.md").read_text(encoding="utf-8").split(begin)
    wrapped = "\n".join(textwrap.fill(line, 116, subsequent_indent="  ") for line in figures)
    return f"{before}{begin}\n\n{wrapped}\n\n{end}{rest.split(end)[1]}"


README_RESULTS = ("index-and-search", "updates", "kill")


def picture() -> str:
    """Return what a search on the bundled forum looks like on a terminal, as SVG."""
    shown = Console(record=True, width=96, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    with tempfile.TemporaryDirectory() as folder, Forum.create(Path(folder) / "homenet.forum") as forum:
        forum.load(bundled_forum())
        for question in QUESTIONS:
            shown.print(f'$ askalike search homenet.forum "{question}" -k 2', markup=False, style="bold green")
            print_hits(forum.similar(question, k=2), shown)
    svg = shown.export_svg(title="askalike", unique_id="askalike")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


DOCUMENTS = {
    "README.md": readme,
    "docs/cli.md": cli_document,
    "docs/results.md": results_document,
    "docs/demo.svg": picture,
}


def main() -> None:
    """Write every document."""
    for name, make in DOCUMENTS.items():
        (REPOSITORY / name).write_text(make(), encoding="utf-8")
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
