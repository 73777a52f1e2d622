"""What a search costs: processor time beside another commit and beside rivals, all in turns, and where it goes.

Command: ``OMP_NUM_THREADS=1 python -m benchmarks.search_cost CHECKOUT [--data ARCHIVE] [--blocks N]``, with the other
commit's folder. A process of each holds the forum that its own code made of the archive; a third one holds tantivy
alone and bm25s over the same terms in one field, which rank and read no record. Blocks of 20 questions are asked in
turns, each question by its title and with its body. A busy machine makes all slower alike: ratios are what counts.
Writes ``results/search-cost.json``.

The parts of a search by probability: words (candidates and scores by words), meaning (the query's vector, what is
nearest to it), scoring, records, matched (which words of the hits matched), and the rest.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

REPOSITORY: Final = Path(__file__).resolve().parent.parent
BLOCK: Final = 20
KINDS: Final = [(body, ranker) for body in (False, True) for ranker in ("probability", "hybrid", "lexical")]
_ENGINE: Final = "forum.engine:LocalEngine"
PARTS: Final = {
    "words": [f"{_ENGINE}:lexical", "index.words:WordSnapshot:scores"],
    "meaning": ["forum.engine:QueryEncoder:encode", f"{_ENGINE}:nearest", f"{_ENGINE}:scores"],
    "scoring": ["search.scorer:Scoring:logits"],
    "records": [f"{_ENGINE}:{name}" for name in ("texts", "questions", "answers", "duplicate_links")],
    "matched": ["search.searcher:informative_words", "search.searcher:matches"],
}
"""What is counted to which part; what one of these calls of another part is not counted to it."""


def named(body: bool, ranker: str) -> str:
    """Return what a kind of search is called.

    >>> named(True, "hybrid")
    'title and body, hybrid'
    """
    return f"{'title and body' if body else 'title'}, {ranker}"


class Parts:
    """Counts the processor time of the parts of a search."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys((*PARTS, "rest"), 0.0)
        self._open = ["rest"]
        self._since = time.process_time()
        for part, paths in PARTS.items():
            for path in paths:
                module, *owners, name = path.split(":")
                owner = functools.reduce(getattr, owners, importlib.import_module(f"askalike.{module}"))
                setattr(owner, name, self._counting(part, getattr(owner, name)))

    def turn(self) -> dict[str, float]:
        """Return the milliseconds of each part since the last turn."""
        self._count()
        found = {part: 1000 * spent for part, spent in self.spent.items()}
        self.spent = dict.fromkeys(self.spent, 0.0)
        return found

    def _count(self) -> None:
        now = time.process_time()
        self.spent[self._open[-1]] += now - self._since
        self._since = now

    def _counting(self, part: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def call(*given: Any, **named: Any) -> Any:
            self._count()
            self._open.append(part)
            try:
                return inner(*given, **named)
            finally:
                self._count()
                self._open.pop()

        return call


def work(folder: Path, archive: Path, count: int, rivals: bool) -> None:
    """Ask blocks of questions, a number a line on stdin; print the milliseconds of each kind, a line for each block."""
    from askalike.forum import Forum
    from askalike.types import Filters, Query, Question

    if not folder.exists():
        with Forum.create(folder) as made:
            made.load(archive)
    with Forum.open(folder) as forum:
        numbers = random.Random(0).sample(range(1, forum.size() + 1), count + 2 * BLOCK)
        asked = list(forum.questions_by_number(numbers).values())
        if rivals:
            ask_rivals(forum, asked, count)
            return
        parts = Parts()

        def ask(one: Question, body: bool, ranker: str) -> dict[str, float]:
            own = Filters(exclude_ids=frozenset([one.id]))
            query = Query(one.title, one.body if body else "", one.markup, 10, own, ranker, is_canonical=True)
            parts.turn()
            forum.search(query)
            return parts.turn()

        for one in asked[count:]:
            ask(one, True, "probability")
        kinds = {named(*kind): functools.partial(ask, body=kind[0], ranker=kind[1]) for kind in KINDS}
        answer(forum.size(), asked[:count], kinds)


def answer(size: int, asked: list[Any], kinds: Mapping[str, Callable[[Any], dict[str, float]]]) -> None:
    """Print the number of questions, and then for each block that is asked for what each kind of search took."""
    print(json.dumps({"questions": size}), flush=True)
    for line in sys.stdin:
        block = asked[BLOCK * int(line) : BLOCK * (int(line) + 1)]
        print(json.dumps({kind: [ask(one) for one in block] for kind, ask in kinds.items()}), flush=True)


def ask_rivals(forum: Any, asked: list[Any], count: int) -> None:
    """Answer by tantivy alone and by bm25s."""
    import bm25s
    import tantivy

    from benchmarks.index_and_search import joined

    analyzer = forum.analyzer
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    index = tantivy.Index(builder.build())
    writer = index.writer(256 << 20, 1)
    ids: dict[str, int] = {}
    documents: list[list[int]] = []
    for question in forum.questions():
        terms = joined(analyzer, question)
        documents.append([ids.setdefault(term, len(ids)) for term in terms])
        document = tantivy.Document()
        document.add_text("text", " ".join(terms))
        writer.add_document(document)
    writer.commit()
    index.reload()
    searcher, schema = index.searcher(), index.schema
    model = bm25s.BM25(backend="numba")
    model.index((documents, ids), show_progress=False)
    model.activate_numba_scorer()
    del documents

    def terms_of(one: Any, body: bool) -> list[str]:
        prepared = analyzer.prepare(one.title, one.body if body else "", one.markup)
        return [term for term in prepared.title + prepared.body if term in ids]

    def by_tantivy(one: Any, body: bool) -> dict[str, float]:
        begun = time.process_time()
        each = [tantivy.Query.term_query(schema, "text", term, "freq") for term in dict.fromkeys(terms_of(one, body))]
        searcher.search(tantivy.Query.boolean_query([(tantivy.Occur.Should, one) for one in each]), 10, count=False)
        return {"rest": 1000 * (time.process_time() - begun)}

    def by_bm25s(one: Any, body: bool) -> dict[str, float]:
        begun = time.process_time()
        if terms := terms_of(one, body):
            model.retrieve([terms], k=10, show_progress=False)
        return {"rest": 1000 * (time.process_time() - begun)}

    kinds = {
        named(body, name): functools.partial(ask, body=body)
        for body in (False, True)
        for name, ask in (("tantivy alone", by_tantivy), ("bm25s (numba)", by_bm25s))
    }
    for ask in kinds.values():
        for one in asked[count:]:
            ask(one)
    answer(forum.size(), asked[:count], kinds)


def started(source: Path, folder: Path, archive: Path, count: int, *rest: str) -> subprocess.Popen[str]:
    """Start the process of one commit."""
    command = [sys.executable, __file__, str(source), "--work", str(folder), "--data", str(archive)]
    paths = os.pathsep.join((str(source / "src"), str(REPOSITORY)))
    return subprocess.Popen(
        [*command, "--blocks", str(count), *rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def told(process: subprocess.Popen[str], block: int | None = None) -> Any:
    """Return the next line of a process, asking for a block of questions first where one is given."""
    assert process.stdin is not None
    assert process.stdout is not None
    if block is not None:
        process.stdin.write(f"{block}\n")
        process.stdin.flush()
    return json.loads(process.stdout.readline())


def compare(other: Path, archive: Path, blocks: int) -> dict[str, Any]:
    """Return what searches cost in both commits and by the rivals, and the parts of those by probability."""
    from benchmarks.record import WORK

    name = archive.name.partition(".")[0]
    sources = {"before": other, "now": REPOSITORY}
    folders = {key: WORK / f"cost-{key}-{name}.forum" for key in sources}
    processes = {key: started(source, folders[key], archive, blocks) for key, source in sources.items()}
    size = max([told(process)["questions"] for process in processes.values()])
    processes["rivals"] = started(REPOSITORY, folders["now"], archive, blocks, "--rivals")
    told(processes["rivals"])
    found: dict[str, dict[str, list[dict[str, float]]]] = {key: {} for key in processes}
    for block in range(blocks):
        for key in sorted(processes, reverse=bool(block % 2)):
            for kind, values in told(processes[key], block).items():
                found[key].setdefault(kind, []).extend(values)
    for process in processes.values():
        process.communicate()
    times = {
        key: {kind: np.percentile([sum(one.values()) for one in ones], [50, 95]) for kind, ones in of.items()}
        for key, of in found.items()
    }
    rows: dict[str, dict[str, Any]] = {}
    for kind in map(named, *zip(*KINDS, strict=True)):
        rows[kind] = {key: np.round(times[key][kind], 2).tolist() for key in sources}
        rows[kind]["ratio"] = round(float(times["now"][kind][0] / times["before"][kind][0]), 3)
    return {
        "questions": size,
        "asked": blocks * BLOCK,
        "processor time, p50 and p95 ms": rows,
        "rivals, p50 and p95 ms": {kind: np.round(pair, 2).tolist() for kind, pair in times["rivals"].items()},
        "parts, p50 ms": {
            asked: {
                key: {
                    part: round(float(np.median([one[part] for one in found[key][f"{asked}, probability"]])), 2)
                    for part in (*PARTS, "rest")
                }
                for key in sources
            }
            for asked in ("title", "title and body")
        },
    }


def main() -> None:
    """Run it, or one of its processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the folder of the commit to compare with")
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rivals", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        work(given.work, given.data[0], given.blocks * BLOCK, given.rivals)
        return
    from benchmarks.record import need_data, write

    archives = given.data or [need_data("devops-stackexchange/posts.csv.gz"), need_data("reddit/questions.jsonl.gz")]
    rows = {}
    for archive in archives:
        rows[f"{archive.parent.name}/{archive.name}"] = row = compare(given.other.resolve(), archive, given.blocks)
        print(json.dumps(row, indent=1))
    other = subprocess.run(
        ["git", "-C", str(given.other), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    command = "OMP_NUM_THREADS=1 python -m benchmarks.search_cost CHECKOUT"
    write("search-cost", command, {"before": other.stdout.strip(), "forums": rows})


if __name__ == "__main__":
    main()
