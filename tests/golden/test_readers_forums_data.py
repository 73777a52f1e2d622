"""Golden values of the forum readers on the real data sets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from askalike.readers.detection import choose
from askalike.readers.frame import ReadContext
from askalike.types import Answer, Link, Question, Record

pytestmark = pytest.mark.data


def read(path: Path, expected_format: str) -> tuple[list[Record], Counter[str], ReadContext]:
    reader = choose(path)
    assert reader.name == expected_format
    seen: list[int] = []
    context = ReadContext(advance=seen.append)
    records = list(reader.read(path, context))
    assert sum(seen) == reader.size_bytes(path)
    assert context.records_in == len(records) + context.rejects.count
    assert not context.repaired
    return (
        records,
        Counter(record.kind if isinstance(record, Link) else type(record).__name__ for record in records),
        context,
    )


def ids(records: list[Record]) -> list[str]:
    """Return the ids of the first, the tenth and the last record."""
    chosen = (records[0], records[9], records[-1])
    return [f"{r.source_id}>{r.target_id}" if isinstance(r, Link) else r.id for r in chosen]


def accepted(records: list[Record]) -> int:
    return sum(isinstance(record, Answer) and record.is_accepted for record in records)


@pytest.mark.parametrize(
    ("site", "counts", "accepted_count", "expected_ids"),
    [
        (
            "quantumcomputing-2018",
            {"Question": 612, "Answer": 1060, "related": 313, "duplicate": 14},
            389,
            ["1", "12", "4125>2346"],
        ),
        ("cardano-2021", {"Question": 1042, "Answer": 1496}, 459, ["1", "12", "4805"]),
    ],
)
def test_the_stack_exchange_dumps(
    data_dir: Path, site: str, counts: dict[str, int], accepted_count: int, expected_ids: list[str]
) -> None:
    records, kinds, context = read(data_dir / "stackexchange-dumps" / site, "stackexchange")
    assert kinds == counts
    assert accepted(records) == accepted_count
    assert isinstance(records[0], Question)
    assert records[0].created is not None
    assert ids(records) == expected_ids
    assert context.rejects.count == 0


def test_the_devops_table(data_dir: Path) -> None:
    records, kinds, context = read(data_dir / "devops-stackexchange" / "posts.csv.gz", "table")
    assert kinds == {"Question": 3700, "Answer": 4968}
    assert accepted(records) == 1627
    assert ids(records) == ["1", "10", "12357"]
    assert context.rejects.count == 0
    assert context.skipped["blank row"] == 1
    assert isinstance(records[0], Question)
    assert records[0].tags == ("jenkins", "software-recommendation", "hudson")
    assert records[0].body.startswith('<p><a href="https://jenkins.io/"')


def test_the_slicer_forum(data_dir: Path) -> None:
    records, kinds, context = read(data_dir / "slicer-discourse" / "topics.jsonl.gz", "jsonl")
    assert (kinds["Question"], kinds["Answer"], context.rejects.count) == (19047, 77368, 0)
    assert ids(records) == ["4", "8-a2", "47940"]
    assert isinstance(records[0], Question)
    assert (records[0].id, records[0].title) == ("4", "Terms of Service")


def test_the_travel_folder(data_dir: Path) -> None:
    records, kinds, context = read(data_dir / "travel-stackexchange", "jsonl")
    assert (kinds["Question"], kinds["duplicate"], context.rejects.count) == (4919, 780, 0)
    assert ids(records) == ["1", "26", "52871>39263"]
    assert isinstance(records[0], Question)
    assert records[0].title == "What are some Caribbean cruises for October?"


def test_the_reddit_questions(data_dir: Path) -> None:
    path = data_dir / "reddit" / "questions.jsonl.gz"
    context = ReadContext()
    kept: dict[int, Record] = {}
    for number, record in enumerate(choose(path).read(path, context), start=1):
        if number in (1, 10, 224741):
            kept[number] = record
    assert (context.records_in, context.rejects.count, dict(context.repaired)) == (224741, 0, {})
    assert [record.id for record in kept.values() if isinstance(record, Question)] == ["1iftmc", "1c8to3", "150vv0"]
    first = kept[1]
    assert isinstance(first, Question)
    assert (first.tags, first.markup) == (("Animesuggest",), "markdown")
    assert first.created is not None
    assert first.created.timestamp() == 1374008035
