"""The same records give the same hits and probabilities, to the last digit, whatever the history of a forum."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.embedding_server import WordHashes

from askalike import Forum, ForumSettings, Question
from askalike.data import bundled_forum
from askalike.types import Draw, Source

Row = dict[str, Any]


def rows(first: int, last: int) -> list[Row]:
    lines = bundled_forum().read_text(encoding="utf-8").splitlines()[first:last]
    return [{name: row[name] for name in ("id", "title", "body", "tags")} for row in map(json.loads, lines)]


QUERIES = [row["title"] for row in rows(0, 150)[::9]]


def load(forum: Forum, records: Sequence[Row]) -> None:
    archive = forum.path.parent / "archive.jsonl"
    archive.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    forum.load(archive)


def edited(record: Row) -> Row:
    return {**record, "title": f"{record['title']} again"}


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
    load(forum, rows(0, 150))


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
                forum.use_encoder(WordHashes())
            fill(forum)
            forum.judge(rows(3, 4)[0]["id"], rows(5, 6)[0]["id"], "different", draw=Draw("sample", 0.5, 0.25))
            answers.append(results(forum))
    assert answers[0] == answers[1]
