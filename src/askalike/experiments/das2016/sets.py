"""The data of the table: Yahoo! Answers as the paper had it, or what stands in for it.

Enters: a folder. Leaves: ``DasData``. May import: read, forum, types, errors, its own folder and its neighbours in
experiments.

================= =========================================== =====================================================
set               learned from                                dev and test
================= =========================================== =====================================================
yahoo             answers of Yahoo! Answers L6, 2 million     the labelled set of Zhang et al. 2014: a fifth of its
                  questions                                   queries is dev, the rest test
semeval           the pairs of ``pairs``, the same for all    dev; test 2016 and 2017, official protocol
travel            the same                                    the lexical search's 20 best for the duplicates
slicer            the same                                    the lexical search's 20 best for topics that link to
                                                              others in replies, "related"
================= =========================================== =====================================================

Differs: the paper tunes on 400,000 pairs of questions and answers, which tell no MAP of questions; here a fifth of the
labelled queries chooses settings, and the reported figures are of all 1,018.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from askalike.errors import FormatError
from askalike.experiments.das2016.pairs import LINKS, TOPICS, PairData, read_archive, read_pairs
from askalike.experiments.forum_tasks import forum_rerank_task
from askalike.experiments.judged_task import bm25_task
from askalike.experiments.lei2016.sets import LeiSet, find_sets
from askalike.experiments.related import related_task
from askalike.experiments.tasks import RerankTask
from askalike.forum import Forum, ForumSettings
from askalike.read.detection import named
from askalike.read.judged import JUDGED, read_judged
from askalike.types import Judged, Question

__all__ = ["PAIRS", "SETS", "DasData", "DasSet", "read_data"]

PAIRS: Final = 2_000_000
"""Questions of Yahoo! Answers that the paper learns from."""
SETS: Final = ("yahoo", "semeval", "travel", "slicer")
_DEV_SHARE: Final = 5


@dataclass(frozen=True, slots=True)
class DasSet:
    """Judged candidates.

    Args:
        name: one of ``SETS``.
        title: what it is, for the table.
        dev: chooses settings.
        tests: scored with what dev chose.
    """

    name: str
    title: str
    dev: RerankTask
    tests: tuple[RerankTask, ...]

    def tasks(self) -> tuple[RerankTask, ...]:
        """Return dev and tests."""
        return (self.dev, *self.tests)


@dataclass(frozen=True, slots=True)
class DasData:
    """Everything that a row needs.

    Args:
        sets: what is scored on.
        pairs: what is learned from.
        is_original: the data that the reported figures are of.
    """

    sets: tuple[DasSet, ...]
    pairs: PairData
    is_original: bool


def read_data(folder: Path, amount: int = 0) -> DasData:
    """Return the data of a folder.

    Args:
        folder: Yahoo! Answers L6 beside the labelled set, or the folder of the sets that stand in for them.
        amount: questions to learn from, 0 for the paper's number of Yahoo! Answers, and for all of others.

    Raises:
        FormatError: it holds nothing of this.
    """
    original = _yahoo_files(folder)
    if original:
        archive, labels = original
        held = _labelled(labels)
        return DasData((held,), read_archive(archive, _queries([held]), amount or PAIRS), is_original=True)
    found = _stand_ins(folder)
    return DasData(tuple(found), read_pairs(folder, _queries(found), amount), is_original=False)


def _queries(sets: Iterable[DasSet]) -> list[Question]:
    return [query for one in sets for task in one.tasks() for query in task.queries.values()]


def _yahoo_files(folder: Path) -> tuple[Path, Path] | None:
    """Return the L6 archive and the labelled set of a folder, or None where it is not theirs.

    Raises:
        FormatError: one of them is there and the other is not.
    """
    if not folder.is_dir():
        raise FormatError(f"there is no folder {folder}", "give the folder of the data")
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    archives = [path for path in files if named("yahoo").matches(path)]
    labelled = [path for path in files if JUDGED["labelled"].matches(path)]
    if not archives:
        return None
    if len(labelled) != 1:
        raise FormatError(
            f"{folder} holds {archives[0].name} and {len(labelled)} labelled sets, expected one",
            "put the labelled set of Zhang et al. 2014 beside the archive: query, candidate, label, key, split by tabs",
        )
    return archives[0], labelled[0]


def _labelled(path: Path) -> DasSet:
    judged = read_judged(path, "labelled")
    parts = {
        is_dev: _part(judged, [query for query in judged.queries if _is_dev(judged.queries[query].title) == is_dev])
        for is_dev in (True, False)
    }
    dev, test = parts[True], parts[False]
    if not (dev.queries and test.queries):
        raise FormatError(f"{path.name} has too few queries to tune on some of them", "give the whole set")
    known = [*dev.queries.values(), *judged.documents.values()]
    tasks = [
        replace(bm25_task(one, "trec", known), name=f"yahoo {part}") for part, one in (("dev", dev), ("test", test))
    ]
    return DasSet("yahoo", "Yahoo! Answers, the labelled set of the paper", tasks[0], (tasks[1],))


def _part(judged: Judged, queries: Iterable[str]) -> Judged:
    kept = list(queries)
    candidates = {query: judged.candidates[query] for query in kept}
    documents = {found: judged.documents[found] for entries in candidates.values() for found, _ in entries}
    return Judged(
        judged.name,
        {query: judged.queries[query] for query in kept},
        documents,
        candidates,
        {query: judged.qrels[query] for query in kept},
    )


def _is_dev(text: str) -> bool:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()[0] % _DEV_SHARE == 0


def _stand_ins(folder: Path) -> list[DasSet]:
    try:
        readers = {name: read for name, read in find_sets(folder).items() if name in SETS}
    except FormatError:  # none that the other paper has too
        readers = {}
    found = {name: _from_lei(read()) for name, read in readers.items()}
    if (folder / LINKS).exists():
        found["slicer"] = _slicer(folder)
    if not found:
        raise FormatError(
            f"{folder} holds no archive of Yahoo! Answers, and none of the sets {', '.join(SETS)}",
            "give the folder that has one; docs/recipes.md names them",
        )
    return [found[name] for name in SETS if name in found]


def _from_lei(data: LeiSet) -> DasSet:
    return DasSet(data.name, data.title.partition(",")[0], data.dev, data.tests)


def _slicer(folder: Path) -> DasSet:
    """Return the topics that link to others in replies; a question that links to a topic mostly quotes its title."""
    rows = (line.split("\t") for line in (folder / LINKS).read_text(encoding="utf-8").splitlines())
    links = [(source, target) for source, target, where in rows if where == "reply"]
    settings = ForumSettings(has_vectors=False)
    with TemporaryDirectory() as work, Forum.create(Path(work) / "slicer.forum", settings=settings) as forum:
        forum.load(folder / TOPICS)
        dev, test = (forum_rerank_task("slicer", forum, related_task(forum, links, half)) for half in ("dev", "test"))
    return DasSet("slicer", "Linked topics of the 3D Slicer forum", dev, (test,))
