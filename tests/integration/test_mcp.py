"""A forum as tools for assistants, asked by the official package's client in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from askalike import Forum
from askalike.cli.mcp import server, tools
from askalike.data import bundled_forum
from askalike.errors import MissingExtraError

ASKED = "ssh asks for the passphrase of my key every single time"


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("mcp") / "homenet.forum") as made:
        made.load(bundled_forum())
        yield made


@pytest.fixture
def call(forum: Forum) -> Callable[..., Any]:
    """Return what calls a tool of the forum's server over the protocol; the text of a refusal is returned too."""
    client = getattr(pytest.importorskip("mcp"), "Client", None) or pytest.skip("mcp is older than 2.0")

    def called(tool: str, **arguments: Any) -> Any:
        async def ask() -> Any:
            async with client(server(forum, "homenet")) as connected:
                return await connected.call_tool(tool, arguments)

        found = anyio.run(ask)
        text = found.content[0].text
        return text if found.is_error else json.loads(text)

    return called


def test_every_tool_is_described_with_what_it_takes(forum: Forum) -> None:
    client = getattr(pytest.importorskip("mcp"), "Client", None) or pytest.skip("mcp is older than 2.0")

    async def ask() -> Any:
        async with client(server(forum)) as connected:
            return (await connected.list_tools()).tools

    described = {tool.name: tool for tool in anyio.run(ask)}
    assert set(described) == {"search", "show", "duplicates"}
    assert set(described["search"].input_schema["properties"]) >= {"question", "tags", "answered_only", "minimum"}
    assert "best answers" in described["search"].description


def test_an_assistant_searches_shows_and_lists_duplicates(call: Callable[..., Any]) -> None:
    hits = call("search", question=ASKED, k=3)["hits"]
    assert {hits[0]["id"], hits[1]["id"]} == {"q1045", "q1156"}
    assert 0 < hits[0]["probability"] < 1
    assert "ssh" in hits[0]["tags"]
    shown = call("show", id="q1045")
    assert shown["title"] == ASKED
    assert shown["answers"][0]["accepted"] is True
    pairs = call("duplicates", minimum=0.3, limit=2)["pairs"]
    assert (pairs[0]["question"]["id"], pairs[0]["original"]["id"]) == ("q1156", "q1045")


def test_an_assistant_is_told_where_nothing_like_it_was_asked(call: Callable[..., Any]) -> None:
    assert call("search", question="best hiking boots for the Alps")["notes"] == ["Nothing like it was asked."]


def test_filters_of_the_search_hold(call: Callable[..., Any]) -> None:
    hits = call("search", question="ssh", k=50, answered_only=True, after="2021-01-01", tags=["ssh"])["hits"]
    assert hits
    assert all(hit["answers"] and hit["created"] >= "2021" and "ssh" in hit["tags"] for hit in hits)


def test_what_cannot_be_done_is_said_in_words(call: Callable[..., Any]) -> None:
    assert "no question with the id 'none'" in call("show", id="none")
    assert "expected 1 to 50" in call("search", question="a", k=51)
    assert "expected a date" in call("search", question="a", after="yesterday")


def test_the_tools_answer_without_the_protocol_too(forum: Forum) -> None:
    search, show, duplicates = tools(forum)
    assert search(question=ASKED, k=1)["hits"][0]["id"] in ("q1045", "q1156")
    assert show(id="q1045")["id"] == "q1045"
    assert len(duplicates(minimum=0.3, limit=1)["pairs"]) == 1


def test_without_the_package_it_is_said_which_extra_is_missing(forum: Forum, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mcp", "mcp.server", "mcp.server.mcpserver", "mcp.server.fastmcp"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="mcp"):
        server(forum)
