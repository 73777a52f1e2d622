"""Discourse topics as the API gives them, one or many, and the JSON that they come in."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from askalike.errors import DamagedInputError, UnsafeInputError
from askalike.readers.discourse import DiscourseReader, read_json_items
from askalike.readers.frame import Limits, ReadContext, ReadOptions
from askalike.types import Answer, Link, Question, Record

READER = DiscourseReader()


def post(number: int, **more: Any) -> dict[str, Any]:
    base = {"id": 100 + number, "post_number": number, "post_type": 1, "username": f"u{number}", "topic_id": 9}
    return base | {"cooked": f"<p>post {number}</p>", "created_at": f"2020-01-0{number}T00:00:00.000Z"} | more


def topic(number: int = 9, *posts: dict[str, Any], **more: Any) -> dict[str, Any]:
    shown = list(posts) or [post(1), post(2)]
    base = {
        "id": number,
        "title": f"Topic {number}",
        "slug": f"topic-{number}",
        "created_at": "2020-01-01T00:00:00.000Z",
    }
    return {"post_stream": {"posts": shown}} | base | more


def read(path: Path, options: ReadOptions | None = None) -> tuple[list[Record], ReadContext, list[str]]:
    notices: list[str] = []
    context = ReadContext(options or ReadOptions(), notice=notices.append)
    records = list(READER.read(path, context))
    assert context.records_in == len(records) + context.rejects.count
    return records, context, notices


def read_value(tmp_path: Path, value: Any, site_url: str = "") -> tuple[list[Record], ReadContext, list[str]]:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return read(path, ReadOptions(site_url=site_url))


def first_question(records: list[Record]) -> Question:
    assert isinstance(records[0], Question)
    return records[0]


def test_markdown_is_preferred_where_the_file_has_it(tmp_path: Path) -> None:
    records, _, _ = read_value(tmp_path, topic(9, post(1, raw="*hi*")))
    assert (first_question(records).body, first_question(records).markup) == ("*hi*", "markdown")


@pytest.mark.parametrize(
    "value",
    [
        topic(9, post(1), post(2), post(3), accepted_answer={"post_number": 3, "username": "u3"}),
        topic(9, post(1), post(2), post(3, accepted_answer=True)),
    ],
)
def test_the_solution_is_accepted_in_both_spellings(tmp_path: Path, value: dict[str, Any]) -> None:
    records, _, _ = read_value(tmp_path, value)
    assert [a.is_accepted for a in records if isinstance(a, Answer)] == [False, True]


def test_likes_are_the_score(tmp_path: Path) -> None:
    posts = [
        post(1, actions_summary=[{"id": 3, "count": 9}, {"id": 2, "count": 4}]),
        post(2, actions_summary=[]),
        post(3, like_count=5),
        post(4),
    ]
    records, _, _ = read_value(tmp_path, topic(9, *posts))
    assert [record.score for record in records if not isinstance(record, Link)] == [4, 0, 5, None]


def test_the_category_is_the_first_tag_and_tags_may_be_objects(tmp_path: Path) -> None:
    tags = ["a", {"id": 1, "name": "b"}]
    for more, expected in (
        ({"category": {"id": 3, "name": "Support"}}, ("Support", "a", "b")),
        ({"category_name": "Support"}, ("Support", "a", "b")),
        ({"category_id": 3}, ("category-3", "a", "b")),
        ({}, ("a", "b")),
    ):
        records, _, _ = read_value(tmp_path, topic(tags=tags, **more))
        assert first_question(records).tags == expected


def test_a_folder_names_its_categories(tmp_path: Path) -> None:
    (tmp_path / "9.json").write_text(json.dumps(topic(9, category_id=3)))
    (tmp_path / "10.json.gz").write_bytes(gzip.compress(json.dumps(topic(10, category_id=4)).encode()))
    (tmp_path / "categories.json").write_text(
        json.dumps({"category_list": {"categories": [{"id": 3, "name": "Help"}]}})
    )
    assert READER.matches(tmp_path)
    records, _, _ = read(tmp_path)
    assert {r.id: r.tags for r in records if isinstance(r, Question)} == {"9": ("Help",), "10": ("category-4",)}


def test_what_the_system_wrote_and_what_is_gone_is_left_out(tmp_path: Path) -> None:
    posts = [
        post(1),
        post(2, post_type=3, action_code="closed.enabled"),
        post(3, post_type=2),
        post(4, user_deleted=True),
    ]
    records, context, _ = read_value(tmp_path, topic(9, *posts))
    assert len(records) == 1
    assert context.skipped == {"system post": 2, "deleted post": 1}


def test_private_messages_and_deleted_topics_are_left_out(tmp_path: Path) -> None:
    values = [topic(1, archetype="private_message"), topic(2, deleted_at="2020-01-01"), topic(3)]
    records, context, _ = read_value(tmp_path, values)
    assert first_question(records).id == "3"
    assert context.skipped == {"private message": 1, "deleted topic": 1}


def test_links_to_other_topics_are_related(tmp_path: Path) -> None:
    counts = [
        {"url": "https://forum.example.org/t/3d-views/12/4", "internal": True},
        {"url": "/t/13", "internal": True},
        {"url": "/t/14/2?u=ada", "internal": True},
        {"url": "/t/other/15", "internal": True, "reflection": True},
        {"url": "https://elsewhere.org/t/x/16", "internal": False},
        {"url": "/t/self/9", "internal": True},
        {"url": "/u/ada", "internal": True},
    ]
    details = {"links": [{"url": "/t/views/12", "internal": True}, {"url": "/t/last/17", "internal": True}]}
    records, _, _ = read_value(tmp_path, topic(9, post(1, link_counts=counts), details=details))
    assert [r.target_id for r in records if isinstance(r, Link)] == ["12", "17", "13", "14"]


def test_a_further_page_of_posts_gives_only_answers(tmp_path: Path) -> None:
    records, _, _ = read_value(tmp_path, {"post_stream": {"posts": [post(3), post(4)]}, "id": 9})
    assert [record.id for record in records if isinstance(record, Answer)] == ["103", "104"]


def test_posts_that_the_file_does_not_hold_are_told(tmp_path: Path) -> None:
    value = topic()
    value["post_stream"]["stream"] = list(range(30))
    _, context, notices = read_value(tmp_path, value)
    assert context.skipped["post that the topic's file does not hold"] == 28
    assert "28 more posts than its file holds" in notices[0]


def test_topics_and_posts_that_cannot_be_used_are_rejected(tmp_path: Path) -> None:
    values = [
        topic(1, title="", post_stream={}),
        {"post_stream": {}, "title": "no id"},
        5,
        topic(2, post(1), post(2, cooked="")),
        topic(3, post(1, cooked="<p></p>"), title=""),
    ]
    records, context, _ = read_value(tmp_path, values)
    assert len(records) == 1
    assert [reject.reason for reject in context.rejects.first] == [
        "title and body are empty",
        "no topic id",
        "item 3 is a JSON int, expected an object",
        "post 2 of topic 2: the answer is empty",
        "the title is empty, and the body is html without text",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"  \n ", "Expecting value: line 2"),
        (b'[{"id": 1},\n{"id": ', "Expecting value: line 2"),
        (b'[{"id": 1}\n', "Expecting ',' delimiter: line 2"),
        (b'[{"id": 1}]\n{}', "Extra data: line 2"),
        (b'[\n\n{"id" 1}' + b" " * 100, "Expecting ':' delimiter: line 3"),
        (b'[\n{"id": "\xff"}]', "line 2: not UTF-8"),
        (b'[{"id": ' + b"1" * 5000 + b"}]", "not JSON, or cut off: Exceeds the limit"),
    ],
)
def test_a_damaged_document_is_named_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DamagedInputError, match=message):
        list(read_json_items(path, "a.json", ReadContext()))


def test_a_document_too_large_or_nested_too_deep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('["' + "x" * 3_000_000)
    with pytest.raises(UnsafeInputError, match="a JSON document longer than 1,000,000 bytes"):
        list(read_json_items(path, "a.json", ReadContext(ReadOptions(limits=Limits(document_bytes=1_000_000)))))
    path.write_text("[" * 200_000)
    with pytest.raises(UnsafeInputError, match="nested too deep"):
        list(read_json_items(path, "a.json", ReadContext()))


def test_a_closed_topic_has_the_moment_at_which_it_was_closed(tmp_path: Path) -> None:
    action = post(3, post_type=3, action_code="closed.enabled", cooked="")
    last = "2020-02-01T00:00:00.000Z"
    records, _, _ = read_value(tmp_path, topic(9, post(1), post(2), action, closed=True, last_posted_at=last))
    assert first_question(records).closed == datetime(2020, 1, 3, tzinfo=UTC)
    records, _, _ = read_value(tmp_path, topic(9, post(1), closed=True, last_posted_at=last))
    assert first_question(records).closed == datetime(2020, 2, 1, tzinfo=UTC)
    records, _, _ = read_value(tmp_path, topic(9, post(1), action, closed=False, last_posted_at=last))
    assert first_question(records).closed is None


def test_what_moderators_have_hidden_is_left_out(tmp_path: Path) -> None:
    records, context, _ = read_value(tmp_path, topic(9, post(1, hidden=True), post(2, hidden=True), post(3)))
    assert first_question(records).body == ""
    assert [record.id for record in records if isinstance(record, Answer)] == ["103"]
    assert context.skipped == {"hidden post": 1}
