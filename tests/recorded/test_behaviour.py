"""What was recorded holds: searches find the same with the same probabilities, and routes answer in the same shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.recorded.behaviour import CONTRACT, QUERIES, SEARCHES, build, contract, differences, searches


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("bundled", tmp_path_factory.mktemp("recorded"))


def test_the_bundled_forum_is_searched_as_recorded(bundled: Path) -> None:
    recorded = json.loads(SEARCHES.read_text(encoding="utf-8"))["bundled"]
    assert differences(recorded, searches("bundled", bundled)) == []


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUERIES if name != "bundled"])
def test_real_forums_are_searched_as_recorded(name: str, tmp_path: Path, data_dir: Path) -> None:
    recorded = json.loads(SEARCHES.read_text(encoding="utf-8"))[name]
    assert differences(recorded, searches(name, build(name, tmp_path))) == []


def test_routes_answer_as_recorded(bundled: Path) -> None:
    recorded = json.loads(CONTRACT.read_text(encoding="utf-8"))
    answers = contract(bundled)
    changed = {name: answers[name] for name in answers if answers[name] != recorded.get(name)}
    assert changed == {}
