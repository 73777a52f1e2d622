"""What every format does alike: titles are plain text, and questions link to the site where ``--site-url`` says how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askalike.readers.detection import READERS
from askalike.readers.frame import ReadContext, ReadOptions
from askalike.types import Question

SITE = "https://forum.example.org"
TOPIC = {"id": 7, "title": "Why?", "slug": "why", "post_stream": {"posts": [{"post_number": 1, "cooked": "x"}]}}
SEMEVAL = (
    '<xml><OrgQuestion ORGQ_ID="7"><OrgQSubject>Why?</OrgQSubject><OrgQBody>x</OrgQBody><Thread><RelQuestion'
    ' RELQ_ID="7_R1" RELQ_RANKING_ORDER="1" RELQ_RELEVANCE2ORGQ="Relevant"><RelQSubject>How?</RelQSubject>'
    "</RelQuestion></Thread></OrgQuestion></xml>"
)
FILES: dict[str, dict[str, str]] = {
    "stackexchange": {"Posts.xml": '<posts>\n<row Id="7" PostTypeId="1" Title="Why?" Body="x" />\n</posts>'},
    "discourse": {"7.json": json.dumps(TOPIC)},
    "jsonl": {"questions.jsonl": '{"id": 7, "title": "Why?"}\n'},
    "table": {"posts.csv": "id,title\n7,Why?\n"},
    "askubuntu": {"text_tokenized.txt": "7\tWhy?\tx\n"},
    "semeval": {"a.xml": SEMEVAL},
    "yahoo": {"a.xml": "<vespaadd><document><uri>7</uri><subject>Why?</subject></document></vespaadd>"},
    "yahoo-liveqa": {"a": "20130824170310AA7\tBooks\tArts\t2013-08-25\tWhy?\tx\n"},
}
ESCAPES = dict.fromkeys(("stackexchange", "yahoo-liveqa"), "&amp;gt;") | {"yahoo": "&amp;amp;gt;"}
"""How a title that speaks of ``&gt;`` is written where it is not written as it is."""


def first_question(tmp_path: Path, name: str, site_url: str, notices: list[str], title: str = "Why?") -> Question:
    for file, content in FILES[name].items():
        (tmp_path / file).write_text(content.replace("Why?", title), encoding="utf-8")
    path = tmp_path if len(FILES[name]) > 1 or name == "askubuntu" else tmp_path / next(iter(FILES[name]))
    context = ReadContext(ReadOptions(site_url=site_url), notice=notices.append)
    return next(record for record in READERS[name].read(path, context) if isinstance(record, Question))


@pytest.mark.parametrize("name", ["stackexchange", "discourse", "jsonl", "table", "yahoo", "yahoo-liveqa"])
def test_a_title_that_speaks_of_an_escape_survives(tmp_path: Path, name: str) -> None:
    title = f"How does {ESCAPES.get(name, '&gt;')} work?"
    assert first_question(tmp_path, name, "", [], title).title == "How does &gt; work?"


@pytest.mark.parametrize("name", FILES)
def test_questions_are_where_the_pattern_of_site_url_leads_to(tmp_path: Path, name: str) -> None:
    question = first_question(tmp_path, name, SITE + "/t/{id}", [])
    assert question.url == f"{SITE}/t/{question.id}"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("stackexchange", "/questions/7"),
        ("askubuntu", "/questions/7"),
        ("table", "/questions/7"),
        ("jsonl", "/questions/7"),
        ("discourse", "/t/why/7"),
    ],
)
def test_a_site_without_a_pattern_is_enough_where_the_format_knows_the_path(
    tmp_path: Path, name: str, path: str
) -> None:
    assert first_question(tmp_path, name, SITE, []).url == SITE + path


@pytest.mark.parametrize("name", ["semeval", "yahoo", "yahoo-liveqa"])
def test_where_no_path_is_known_it_is_said_what_site_url_lacks(tmp_path: Path, name: str) -> None:
    notices: list[str] = []
    assert first_question(tmp_path, name, SITE, notices).url == ""
    assert any("say where ids go in it" in line for line in notices)


def test_a_records_own_address_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 7, "title": "Why?", "url": "https://other.example/7"}\n', encoding="utf-8")
    (question,) = READERS["jsonl"].read(path, ReadContext(ReadOptions(site_url=SITE)))
    assert isinstance(question, Question)
    assert question.url == "https://other.example/7"
