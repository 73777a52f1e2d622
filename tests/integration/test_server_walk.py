"""A request passes few hands of the service between the bytes of its socket and those of its answer."""

from __future__ import annotations

import pytest
from tools.walk import part, walks

from askalike import Forum
from askalike.data import bundled_forum

MOST = {"search": 38, "write": 30}
"""Functions of the service: connection, middleware, route, engine, JSON. The library's own has a test of its own."""


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    folder = tmp_path_factory.mktemp("walk") / "homenet.forum"
    with Forum.create(folder) as forum:
        forum.load(bundled_forum())
    return walks(folder)


@pytest.mark.parametrize("kind", MOST)
def test_a_request_passes_few_functions_of_the_service(passed: dict[str, set[str]], kind: str) -> None:
    found = sorted(name for name in passed[kind] if part(name) in ("server", "schemas"))
    assert any("Connection." in name for name in found), "it begins at the socket"
    assert any("Engine." in name for name in found)
    assert len(found) <= MOST[kind], found
