"""A forum that version 0.1.0 wrote is read by every later one: formats on disk do not change unnoticed.

``python -m tests.recorded.test_frozen_forum`` writes it anew. A version that cannot read the forum before it refuses
it with a new format number and the command that indexes the archive anew; its commit says so and records that forum.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

import pytest

from askalike import Forum, Link, Query, Question

ARCHIVE: Final = Path(__file__).with_name("forum-0.1.0.tar.xz")
TITLES: Final = {
    "1": "How do I reset my router without its password?",
    "2": "Can a router be set back when the password is lost?",
    "3": "Which cable do I need for a monitor with 144 Hz?",
    "4": "Why does the scanner draw a line through every page?",
    "5": "My tomatoes have brown leaves, what is wrong?",
}
"""All but question 6, which is deleted, and 7, which was added later."""

LATER: Final = Question("7", "How can I print on both sides?")


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """Return the folder of a copy of the forum."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "forum"


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every segment of the indexes; how far they have read the archive may change."""
    segments = [path for kind in ("*.words", "*.segment") for path in folder.rglob(kind)]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in segments}


def test_texts_answers_links_and_judgements_are_there(frozen: Path) -> None:
    assert Forum.check(frozen).is_sound
    with Forum.open(frozen) as forum:
        assert {question.id: question.title for question in forum.questions()} == TITLES | {LATER.id: LATER.title}
        assert [answer.body for answer in forum.answers("1")] == ["Hold the small button for ten seconds."]
        assert forum.store.links_of("1") == [Link("2", "1")]
        assert forum.store.judgements_on("3") == {"4": "different"}


def test_a_search_reads_its_indexes_as_they_are(frozen: Path) -> None:
    before = digests(frozen)
    assert before
    with Forum.open(frozen) as forum:
        assert forum.search(Query("lost the password of my router", k=2)).hits[0].question.id == "1"
        assert forum.similar("two-sided prints")[0].question.id == LATER.id
    assert digests(frozen) == before


def test_it_goes_on_being_written(frozen: Path) -> None:
    with Forum.open(frozen) as forum:
        forum.add(Question("8", "Why is the kettle so loud?"))
        forum.edit(Question("5", "My cucumbers have brown leaves"))
        forum.delete("4")
        assert [forum.similar(title)[0].question.id for title in ("loud kettle", "cucumbers")] == ["8", "5"]
    assert Forum.check(frozen).is_sound


def write() -> None:
    """Write the forum with this version: loaded, then changed."""
    with tempfile.TemporaryDirectory() as work:
        archive, folder = Path(work) / "archive.jsonl", Path(work) / "forum"
        rows = [{"id": key, "title": title, "body": "", "tags": ["home"]} for key, title in TITLES.items()]
        rows[0]["answers"] = [{"id": "a1", "body": "Hold the small button for ten seconds.", "accepted": True}]
        rows.append({"id": "6", "title": "Is this question deleted?"})
        archive.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        words = [sys.executable, "-m", "askalike", "index", str(archive), "--into", str(folder)]
        subprocess.run(words, check=True, env={**os.environ, "ASKALIKE_ENCODER": "general"})
        with Forum.open(folder) as forum:
            forum.add(LATER, links=[Link("2", "1")])
            forum.delete("6")
            forum.judge("3", "4", "different", by="reader")
            forum.encode()
        with tarfile.open(ARCHIVE, "w:xz") as packed:
            packed.add(folder, "forum")


if __name__ == "__main__":
    write()
