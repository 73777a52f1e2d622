"""What every reader shares: rejects are kept, counts add up, repairs are told once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askalike.errors import SettingError
from askalike.readers.frame import ReadContext, ReadOptions, Rejects
from askalike.types import Reject


def test_rejects_are_counted_and_the_first_twenty_kept() -> None:
    rejects = Rejects()
    for line in range(1, 31):
        rejects.add(Reject("a.csv", line, "", "no id"))
    assert rejects.count == 30
    assert [reject.line for reject in rejects.first] == list(range(1, 21))


def test_the_reject_file_holds_one_json_object_a_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rejects.jsonl"
    with Rejects() as rejects:
        rejects.keep_in(path)
        assert not path.exists()
        rejects.add(Reject("a.csv", 2, "x\ud800", "bad"))
        rejects.add(Reject("a.csv", 3, "", "no id"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[1] == {"file": "a.csv", "line": 3, "record_id": "", "reason": "no id"}
    assert len(rows) == 2


def test_rejects_of_an_earlier_reading_do_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("old\n")
    Rejects().keep_in(path)
    assert not path.exists()


def test_a_repair_is_told_once_and_counted_every_time() -> None:
    notices: list[str] = []
    context = ReadContext(notice=notices.append)
    for _ in range(3):
        context.repair("dates that cannot be read, left out")
    assert len(notices) == 1
    assert context.repaired["dates that cannot be read, left out"] == 3


@pytest.mark.parametrize(
    "address", ["forum.example.org", "ftp://a.example", "https://", "https://a.example/?q=1", "https://{id}.example/"]
)
def test_an_address_that_no_link_begins_with_is_refused(address: str) -> None:
    with pytest.raises(SettingError, match="the forum's address"):
        ReadOptions(site_url=address)


def test_a_question_is_where_the_users_pattern_or_the_formats_own_leads_to() -> None:
    pattern, site = "https://a.example/t/{id}?x=1", "https://a.example/"
    assert ReadContext(ReadOptions(site_url=pattern)).address("7/ü", "/q/{id}") == (
        "https://a.example/t/7%2F%C3%BC?x=1"
    )
    assert ReadContext(ReadOptions(site_url=site)).address("7", "/q/{id}") == "https://a.example/q/7"
    assert ReadContext().address("7", "/q/{id}") == ""
