"""Writes the documents that are made from the program and its results: reference, results, README's figures, picture.

Command: ``python -m tools.document``. A test checks that the committed documents are what this writes.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import tempfile
import textwrap
from pathlib import Path

from rich.console import Console

from askalike import Forum
from askalike.cli.demo import QUESTIONS
from askalike.cli.display import print_hits
from askalike.data import bundled_forum, default_model
from askalike.server.routes import service_document
from tools.api import http_document, python_document
from tools.headlines import chart
from tools.reference import cli_document
from tools.results import REPOSITORY, RESULT_DOCUMENTS, RESULTS, loaded

__all__ = ["DOCUMENTS", "RESULTS"]

README_RESULTS = (
    "scale-224741",
    "sizes-in-turns",
    "updates",
    "kill",
    "forum-students",
    "drawn-queries",
    "plain-service",
    "misspelling",
    "spelling",
)
SCREEN = re.compile(r"(?<=^```console\n)(\$ askalike search .*\n)(?:.*\n)*?(?=^```$)", flags=re.MULTILINE)
"""The first search on a console: what is typed, and what it printed."""


def readme() -> str:
    """Return the README with the figures of the newest results and, where there is a model, what its search prints."""
    found = {name: loaded(name) for name in README_RESULTS}
    search, indexing, kill = found["scale-224741"]["search"], found["scale-224741"]["indexing"], found["kill"]
    elsewhere = found["sizes-in-turns"]["rows"][0]
    cpus = [found[name]["machine"]["cpu"] for name in ("scale-224741", "sizes-in-turns")]
    processors = [re.sub(r"\(R\)| Processor", "", cpu) for cpu in cpus]
    slowest = max(values["p50_ms"] for values in found["updates"]["until_shown"].values())
    rows = {name: f"{row['all']:.1f}" for name, row in found["forum-students"]["rows"].items()}
    mistyped = {name: one["misspelled"]["mean"] for name, one in found["misspelling"]["systems"].items()}
    corrected = found["spelling"]["search"]["every word misspelt"]["now"]["mean"]
    by_others = {
        name: f"{row['left out']['all']:.1f}"
        for name, row in found["forum-students"]["rows"].items()
        if "left out" in row
    }
    drawn, many = found["drawn-queries"], found["plain-service"]["answers a second, askalike by plain"]["16"]
    low, more, high = drawn["candidates"]["all"]["differences"]["MiniLM - MiniLM's cosine"]
    rivals = [
        "| | nDCG@5 | what it gives |",
        "|---|---|---|",
        f"| words alone, as Elasticsearch's `more_like_this` | {rows['words']} | no probability; a cluster to run |",
        f"| MiniLM's cosine, as in a column of pgvector | {rows['minilm alone']} | a cosine; the rest you build |",
        "| Discourse's related topics | not measured | topics of one Discourse; an embedding service to run |",
        "| semhash | not measured | a data set without repeats; no search, answers or service |",
        f"| askalike as it is installed | {rows['general']} | probability, answers, reasons, a page, a widget |",
        f"| askalike with MiniLM | {rows['minilm']} | the same; a query costs some milliseconds more |",
        f"| askalike with a student of MiniLM | {rows['student']} | the same, at the bundled encoder's speed |",
    ]
    figures = [
        "nDCG@5 of 105 graded queries over four whole forums. askalike's scorer was learned on these forums among"
        f" others; by weights that were learned without the forum it has {by_others['general']} as installed,"
        f" {by_others['minilm']} with MiniLM and {by_others['student']} with a student. On"
        f" {drawn['readings']['queries']} other queries, drawn by chance from eight forums, its order with MiniLM is"
        f" {more:.1f} points ({low:.1f} to {high:.1f}) above MiniLM's cosine alone. So MiniLM in pgvector finds nearly"
        " as much: choose askalike for what surrounds the ranking.",
        f"- On 2 cores of an {processors[0]} and {indexing['questions']:,} real questions a search takes"
        f" {search['title']['p50_ms']:.0f} ms by title, {search['title and body']['p50_ms']:.0f} ms with a body, on an"
        f" {processors[1]} that others share {elsewhere['title']['p50_ms']:.0f} and"
        f" {elsewhere['title and body']['p50_ms']:.0f} ms; indexing them takes {indexing['seconds']:.0f} s and"
        f" {indexing['peak_memory_mb']['this process']:,} MB of memory.",
        f"- With the bundled encoder the service answers {min(many):.0f} to {max(many):.0f} times as many titles a"
        " second as a plain one of FastAPI, MiniLM and FAISS, in half the memory.",
        f"- A change shows in searches after {slowest:.0f} ms. Killed {kill['kills']} times while writing, a forum lost"
        f" none of {kill['acknowledged_writes']:,} acknowledged writes.",
        f"- With a typing error in each content word it finds {corrected:.0f} of 100 duplicates among its ten best,"
        f" BM25 {mistyped['bm25']:.0f} and MiniLM {mistyped['all-MiniLM-L6-v2']:.0f}.",
        "- Every figure has its command on a page of [docs/results.md](docs/results.md).",
    ]
    begin, end = "<!-- figures: written by tools/document.py -->", "<!-- end of figures -->"
    before, rest = (REPOSITORY / "README.md").read_text(encoding="utf-8").split(begin)
    about, *lines = (
        textwrap.fill(line, 118, subsequent_indent="  " if line.startswith("-") else "") for line in figures
    )
    wrapped = "\n".join([*rivals, "", about, "", *lines])
    above = _with_screen(before) if default_model() else before
    return f"{above}{begin}\n\n{wrapped}\n\n{end}{rest.split(end)[1]}"


def _with_screen(text: str) -> str:
    """Return a text with what the search of its first console block prints on a terminal of 80 columns."""
    before, typed, after = SCREEN.split(text, maxsplit=1)
    *_, question, _, count = shlex.split(typed)
    screen = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, Forum.create(Path(folder) / "homenet.forum") as forum:
        forum.load(bundled_forum())
        print_hits(
            forum.similar(question, k=int(count)),
            Console(width=80, file=screen, force_terminal=False, color_system=None),
        )
    shown = "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())
    return f"{before}{typed}{shown}{after}"


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
    "docs/http.md": http_document,
    "docs/python.md": python_document,
    **RESULT_DOCUMENTS,
    "docs/quality.svg": lambda: chart(loaded("quality-search")),
    "docs/demo.svg": picture,
    "docs/openapi.json": lambda: json.dumps(service_document(), indent=1) + "\n",
}


def main() -> None:
    """Write every document."""
    for name, make in DOCUMENTS.items():
        path = REPOSITORY / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make(), encoding="utf-8")
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
