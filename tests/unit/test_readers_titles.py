"""Titles are plain text where the format's titles are, and unescaped once where its texts are HTML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askalike.readers.detection import READERS
from askalike.readers.frame import ReadContext
from askalike.types import Question

TOPIC = {
    "id": 7,
    "title": "How does &gt; work?",
    "fancy_title": "How does &amp;gt; work?",
    "post_stream": {"posts": [{"post_number": 1, "cooked": "x"}]},
}
THREAD = "subject,content,bestanswer,ans0\nb'How does &amp;gt; work?',,b'x',b'x'\n"


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        (
            "stackexchange",
            "Posts.xml",
            '<posts>\n<row Id="7" PostTypeId="1" Title="How does &amp;gt; work?" Body="x" />\n</posts>',
        ),
        ("discourse", "7.json", json.dumps(TOPIC)),
        ("jsonl", "q.jsonl", '{"id": 7, "title": "How does &gt; work?"}\n'),
        ("table", "q.csv", "id,title\n7,How does &gt; work?\n"),
        ("yahoo-threads", "q.csv", THREAD),
        ("yahoo-liveqa", "q", "20130824170310AA7\tBooks\tArts\t2013-08-25\tHow does &amp;gt; work?\tx\n"),
        (
            "yahoo",
            "q.xml",
            "<vespaadd><document><uri>7</uri><subject>How does &amp;amp;gt; work?</subject></document></vespaadd>",
        ),
    ],
)
def test_a_title_that_speaks_of_an_escape_survives(tmp_path: Path, name: str, file: str, content: str) -> None:
    (tmp_path / file).write_text(content, encoding="utf-8")
    found = next(iter(READERS[name].read(tmp_path / file, ReadContext())))
    assert isinstance(found, Question)
    assert found.title == "How does &gt; work?"
