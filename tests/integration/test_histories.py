"""The same records give the same hits and probabilities, to the last digit, whatever the history of a forum."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.embedding_server import WordHashes

from askalike import Answer, Forum, ForumSettings, Question
from askalike.data import bundled_forum
from askalike.types import Draw, Source

Row = dict[str, Any]


def rows(first: int, last: int) -> list[Row]:
    lines = bundled_forum().read_text(encoding="utf-8").splitlines()[first:last]
    return [{name: row[name] for name in ("id", "title", "body", "tags", "answers")} for row in map(json.loads, lines)]


QUERIES = [
    *(row["title"] for row in rows(0, 150)[::9]),
    *(row["answers"][0]["body"][:60] for row in rows(0, 150)[::15] if row["answers"]),
]


def load(forum: Forum, records: Sequence[Row]) -> None:
    archive = forum.path.parent / "archive.jsonl"
    archive.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    forum.load(archive)


def edited(record: Row) -> Row:
    """Return a record with another title, without its first answer, and with another last one."""
    answers = [{**answer, "body": f"{answer['body']} Or buy a cable."} for answer in record.get("answers", ())[1:]]
    return {**record, "title": f"{record['title']} again", "answers": answers}


def loaded_again_and_again(forum: Forum) -> None:
    load(forum, rows(0, 60))
    load(forum, rows(0, 150))
    load(forum, [edited(row) if place % 3 == 0 else row for place, row in enumerate(rows(40, 170))])
    load(forum, rows(0, 150))


def stopped_while_it_was_loaded(forum: Forum) -> None:
    load(forum, rows(0, 100))
    stored = [Question(row["id"], row["title"], row["body"]) for row in rows(90, 170)]

    def broken() -> Any:
        yield from stored
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forum.store.load(broken(), Source("stopped", "jsonl"), lambda _: None)
    load(forum, rows(0, 150))


def written_by_hand(forum: Forum) -> None:
    load(forum, rows(0, 150))
    forum.add([Question("late", "printer is offline", "since the update")])
    forum.edit(Question(rows(7, 8)[0]["id"], "another title"))
    forum.delete("late")
    forum.store.put_answers([Answer("late", rows(9, 10)[0]["id"], "Buy a scanner.")])
    forum.store.delete_answers([rows(1, 2)[0]["answers"][0]["id"]])
    forum.catch_up()
    forum.store.delete_answers(["late"])
    load(forum, rows(0, 150))


def changed_a_little(forum: Forum, records: Sequence[Row]) -> None:
    """Give a forum its records by way of a few others: less is deleted than an index would build itself anew for."""
    load(forum, [*records[:-20], *(edited({**row, "id": f"gone {row['id']}"}) for row in records[:100])])
    forum.add([Question(f"late {number}", f"printer {number} is offline", "since the update") for number in range(50)])
    load(forum, [edited(row) if place % 50 == 0 else row for place, row in enumerate(records)])
    forum.delete([f"late {number}" for number in range(50)])
    load(forum, records)


def changed_throughout(forum: Forum, records: Sequence[Row]) -> None:
    """Give a forum its records by way of as many others."""
    gone = [edited({**row, "id": f"gone {row['id']}"}) for row in records[::3]]
    load(forum, [*gone, *(edited(row) for row in records[::2])])
    load(forum, [edited(row) for row in records])
    load(forum, records)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("history", "encoder"), [(changed_throughout, "words"), (changed_throughout, "texts"), (changed_a_little, "texts")]
)
def test_a_forum_of_thousands_answers_as_its_rebuilt_copy(
    tmp_path: Path, data_dir: Path, history: Callable[[Forum, Sequence[Row]], None], encoder: str
) -> None:
    with gzip.open(data_dir / "reddit" / "questions.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 2_500)]
    records = [{name: row[name] for name in ("id", "title", "body", "tags")} for row in rows]
    answers = []
    for name, fill in (("old", history), ("new", load)):
        (tmp_path / name).mkdir()
        with Forum.create(tmp_path / name / "f", settings=ForumSettings(has_vectors=encoder != "words")) as forum:
            if encoder == "texts":
                forum.models.use_encoder(WordHashes())
            fill(forum, records)
            assert len(forum) == len(records)
            answers.append(
                [
                    (row["id"], hit.question.id, hit.score, hit.likelihood)
                    for row in records[::50]
                    for hit in forum.search(row["title"][:1_000] or "?").hits
                ]
            )
    assert answers[0] == answers[1]


def results(forum: Forum) -> list[tuple[str, str, float, float | None]]:
    hits = ((query, hit) for query in QUERIES for hit in forum.search(query).hits)
    return [(query, hit.question.id, hit.score, hit.likelihood) for query, hit in hits]


@pytest.mark.parametrize("encoder", ["words", "texts"])
@pytest.mark.parametrize("history", [loaded_again_and_again, stopped_while_it_was_loaded, written_by_hand])
def test_a_forum_answers_as_its_rebuilt_copy(tmp_path: Path, history: Callable[[Forum], None], encoder: str) -> None:
    settings = ForumSettings(has_vectors=encoder != "words")
    answers = []
    for name, fill in (("old", history), ("new", lambda forum: load(forum, rows(0, 150)))):
        (tmp_path / name).mkdir()
        with Forum.create(tmp_path / name / "f", settings=settings) as forum:
            if encoder == "texts":
                forum.models.use_encoder(WordHashes())
            fill(forum)
            forum.judge(rows(3, 4)[0]["id"], rows(5, 6)[0]["id"], "different", draw=Draw("sample", 0.5))
            answers.append(results(forum))
    assert answers[0] == answers[1]
