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
from tools.headlines import chart
from tools.reference import cli_document
from tools.results import REPOSITORY, RESULT_DOCUMENTS, RESULTS, loaded

__all__ = ["DOCUMENTS", "RESULTS"]

README_RESULTS = (
    "index-and-search",
    "updates",
    "kill",
    "encode-runtime",
    "quality-semantic",
    "misspelling",
    "spelling",
)
SCREEN = re.compile(r"(?<=^```console\n)(\$ askalike search .*\n)(?:.*\n)*?(?=^```$)", flags=re.MULTILINE)
"""The first search on a console: what is typed, and what it printed."""


def readme() -> str:
    """Return the README with the figures of the newest results and, where there is a model, what its search prints."""
    found = {name: loaded(name) for name in README_RESULTS}
    search = {kind: engines["askalike Forum.similar"] for kind, engines in found["index-and-search"]["search"].items()}
    indexing, kill = found["index-and-search"]["indexing"], found["kill"]
    slowest = max(values["p50_ms"] for values in found["updates"]["until_shown"].values())
    rival = found["encode-runtime"]["beside_rival"]
    tables = found["quality-semantic"]["tables"]
    travel, slicer = tables["travel test, retrieval"], tables["slicer test half"]
    mistyped = {name: one["misspelled"]["mean"] for name, one in found["misspelling"]["systems"].items()}
    corrected = found["spelling"]["search"]["every word misspelt"]["now"]["mean"]
    work = "Indexing and encoding" if indexing.get("encoded") else "Indexing"
    figures = [
        f"- On 2 cores and {indexing['questions']:,} real questions, a search takes {search['title']['p50_ms']:.1f} ms"
        f" by title and {search['title and body']['p50_ms']:.1f} ms with a body (median), answers and matched words"
        " included.",
        f"- {work} them takes {indexing['seconds']:.0f} s and {indexing['peak_memory_mb']} MB of memory, and"
        f" {indexing['size_mb']:.0f} MB on disk.",
        f"- A new, edited or deleted question shows in searches after {slowest:.0f} ms at most (median), and is on disk"
        " by then.",
        f"- Killed {kill['kills']} times while writing, a forum lost none of {kill['acknowledged_writes']:,}"
        " acknowledged writes.",
        f"- Words and meaning find more than words: among 4,919 questions of travel.stackexchange.com that are"
        " marked or linked, of the duplicates"
        f" {travel['bm25 + general']['recall@10']:.1f} % are among the ten best instead of"
        f" {travel['bm25']['recall@10']:.1f} %, {travel['bm25 + after-training']['recall@10']:.1f} % after `askalike"
        f" train`; of 3D Slicer's related topics {slicer['bm25 + general']['recall@10']:.1f} % instead of"
        f" {slicer['bm25']['recall@10']:.1f} % (test splits; p < 0.02 each). On SemEval's and"
        " Quora's sets neither is ahead.",
        f"- Its encoder reads {rival['questions_per_s']['askalike']:,.0f} questions a second on one core,"
        f" {rival['times_as_fast']['askalike']:.0f} times as many as all-MiniLM-L6-v2 on two. MiniLM finds more than"
        " the whole search on travel and Quora, whose duplicates it was trained on, and on SemEval 2017; on SemEval"
        " 2016 and 3D Slicer neither is ahead.",
        f"- Typing errors cost little: with one in each content word of the query it finds {corrected:.0f}"
        f" of 100 of those duplicates, BM25 {mistyped['bm25']:.0f} and MiniLM {mistyped['all-MiniLM-L6-v2']:.0f}.",
        "- The scorers give the published figures of AskUbuntu and SemEval to two decimals.",
    ]
    begin, end = "<!-- figures: written by tools/document.py -->", "<!-- end of figures -->"
    before, rest = (REPOSITORY / "README.md").read_text(encoding="utf-8").split(begin)
    wrapped = "\n".join(textwrap.fill(line, 116, subsequent_indent="  ") for line in figures)
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
    **RESULT_DOCUMENTS,
    "docs/quality.svg": lambda: chart(loaded("quality-semantic")),
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
