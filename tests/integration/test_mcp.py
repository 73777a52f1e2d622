"""A forum as tools for assistants, asked by the official package's client in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from tests.command import Run

from askalike import Forum
from askalike.cli.mcp import assistant_server
from askalike.data import bundled_forum

ASKED = "ssh asks for the passphrase of my key every single time"


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    with Forum.create(tmp_path_factory.mktemp("mcp") / "homenet.forum") as forum:
        forum.load(bundled_forum())
        yield forum


@pytest.fixture
def call(forum: Forum) -> Callable[..., Any]:
    """Return what calls a tool of the forum's server over the protocol; the text of a refusal is returned too."""
    mcp = pytest.importorskip("mcp")

    def call_tool(tool: str, **arguments: Any) -> Any:
        async def ask() -> Any:
            async with mcp.Client(assistant_server(forum)) as client:
                return await client.call_tool(tool, arguments)

        result = anyio.run(ask)
        text = result.content[0].text
        return text if result.is_error else json.loads(text)

    return call_tool


def test_every_tool_is_described_with_what_it_takes(forum: Forum) -> None:
    mcp = pytest.importorskip("mcp")

    async def ask() -> Any:
        async with mcp.Client(assistant_server(forum)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(ask)}
    assert set(tools) == {"search", "show"}
    assert set(tools["search"].input_schema["properties"]) == {"question", "body", "k", "tags", "answered_only"}
    assert "best answers" in tools["search"].description


def test_an_assistant_searches_and_shows(call: Callable[..., Any]) -> None:
    hits = call("search", question=ASKED, k=3)["hits"]
    assert {hits[0]["id"], hits[1]["id"]} == {"q1045", "q1156"}
    assert 0 < hits[0]["probability"] < 1
    answered = call("search", question="ssh", k=50, answered_only=True, tags=["ssh"])["hits"]
    assert answered
    assert all(hit["answers"] and "ssh" in hit["tags"] for hit in answered)
    question = call("show", id="q1045")
    assert (question["title"], question["answers"][0]["accepted"]) == (ASKED, True)
    assert call("search", question="best hiking boots for the Alps")["notes"] == ["Nothing like it was asked."]


def test_what_cannot_be_done_is_said_in_words(call: Callable[..., Any]) -> None:
    assert "no question with the id 'none'" in call("show", id="none")
    assert "expected 1 to 50" in call("search", question="a", k=51)


def test_without_the_package_it_is_said_which_extra_is_missing(
    forum: Forum, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    done = run("serve", forum.path, "--mcp")
    assert (done.code, "mcp" in done.err and "pip install" in done.err) == (1, True)
