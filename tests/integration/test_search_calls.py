"""A search makes few calls to what holds the forum, whatever its length, so that an engine may be far away."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import askalike
from askalike import Forum, Link, Query, Question
from askalike.data import bundled_forum, default_model
from askalike.forum.engine import LocalEngine
from askalike.search.engine import CandidateSource, RecordSource

MOST_CALLS = 9
MOST_FUNCTIONS = 75
"""Of the pipeline, from the library to the engine; what analyses, encodes and holds the indexes is not counted."""
BODY = "It began after the last update. The router is in the cellar, and every evening all the laptops lose it. " * 5
CALLS = [name for source in (CandidateSource, RecordSource) for name in vars(source) if not name.startswith("_")]

pytestmark = pytest.mark.skipif(default_model() is None, reason="the package contains no general model")


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("calls") / "forum") as made:
        made.load(bundled_forum())
        made.add([Question("circle-1", "Wifi drops each evening"), Question("circle-2", "Wifi drops every evening?")])
        made.add_links([Link("circle-1", "circle-2"), Link("circle-2", "circle-1")])
        yield made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def counting(name: str) -> Any:
        inner = getattr(LocalEngine, name)

        def call(*given: Any) -> Any:
            found[name] += 1
            return inner(*given)

        return call

    for name in CALLS:
        monkeypatch.setattr(LocalEngine, name, counting(name))
    return found


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("Wifi drops every evening", ""),
        ("Wifi drops every evening", BODY),
        ("My lapotp looses the wireles connection", "The roter is in the cellar, and nobody can conect any more."),
    ],
    ids=["title", "title and body", "misspelt"],
)
def test_a_search_makes_few_calls(forum: Forum, calls: Counter[str], title: str, body: str) -> None:
    assert forum.search(Query(title, body, is_canonical=True)).hits
    assert calls.total() <= MOST_CALLS, calls
    calls.clear()
    assert forum.similar(title, body)
    assert calls.total() <= MOST_CALLS, calls


def test_a_search_passes_few_functions(forum: Forum) -> None:
    query = Query("Wifi drops every evening")
    forum.search(query)  # reads the model
    package = Path(askalike.__file__).parent
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_pipeline = Path(code.co_filename).parent in (package / "forum", package / "search")
        if event == "call" and is_pipeline and not code.co_name.startswith("<"):
            passed.add(code.co_qualname)

    sys.setprofile(note)
    try:
        forum.search(query)
    finally:
        sys.setprofile(None)
    assert "Searcher.search" in passed
    assert len(passed) <= MOST_FUNCTIONS, " ".join(sorted(passed))


def test_the_engine_of_one_machine_has_every_call() -> None:
    assert len(CALLS) == 11  # nine of a search, one that foretells the first of them, and a count
    assert all(callable(getattr(LocalEngine, name)) for name in CALLS)
