"""One browser, one service and one foreign site for all tests of this folder.

Playwright keeps an event loop in the thread that started it, so its fixtures end with this package: tests that follow
may run loops of their own.
"""

from __future__ import annotations

import http.server
import importlib.util
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.hostile import hostile_answers, hostile_questions
from tools.serving import serving

from askalike import Forum

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Debian calls it chromium. It runs without its sandbox, which root has not; it sees pages of this machine alone.
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_MS = 60_000
NEEDED = ("playwright", "axe_playwright_python", "starlette", "uvicorn")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        pytest.skip(f"{', '.join(lacking)} not installed (make setup brings it)")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


FOREIGN = """<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>A forum</title></head><body>
<main><h1>Ask</h1><form><label for="{title}">Title</label><input id="{title}"><label for="b">Text</label>
<textarea id="b" name="body"></textarea></form><p id="later"></p></main>
<script src="{service}/widget.js" {attributes}></script></body></html>"""


class ForeignSite(http.server.BaseHTTPRequestHandler):
    """A site of another origin. Its pages are what its ``pages`` hold, by path."""

    pages: dict[str, str]

    def do_GET(self) -> None:
        page = self.pages.get(self.path)
        self.send_response(200 if page else 204)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep still."""


class Site:
    """The foreign site: where it is, and what its pages say."""

    def __init__(self, address: str, pages: dict[str, str]) -> None:
        self.address = address
        self.pages = pages

    def page(self, service: str, *, attributes: str = "", title: str = "title", language: str = "en") -> str:
        """Put up a page with an ask form and the widget's tag; return its address."""
        path = f"/{len(self.pages)}"
        self.pages[path] = FOREIGN.format(service=service, attributes=attributes, title=title, language=language)
        return self.address + path


@pytest.fixture(scope="package")
def foreign() -> Iterator[Site]:
    pages: dict[str, str] = {}
    handler = type("Handler", (ForeignSite,), {"pages": pages})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Site(f"http://127.0.0.1:{server.server_address[1]}", pages)
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="package")
def service(
    browser: Browser, foreign: Site, encoded_homenet: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    from askalike.server.app import build
    from askalike.server.settings import Limits, ServeSettings

    path = Path(shutil.copytree(encoded_homenet, tmp_path_factory.mktemp("browser") / "homenet.forum"))
    with Forum.open(path) as forum:
        forum.add(hostile_questions())
        forum.store.add_answers(hostile_answers())
    application = build(ServeSettings(str(path), allow_origins=(foreign.address,), limits=Limits(rate=0.0)))

    async def behind_a_proxy(scope: dict[str, Any], receive: object, send: object) -> None:
        """Answer below /forum/ too, as a proxy does that strips a prefix."""
        if scope["type"] == "http":
            stripped = {
                "path": scope["path"].removeprefix("/forum"),
                "raw_path": scope["raw_path"].removeprefix(b"/forum"),
            }
            scope = {**scope, **stripped}
        await application(scope, receive, send)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("askalike.forum.encoders.LEAST_READ", 100)  # so that misspelt words are read in a small forum
        with serving(behind_a_proxy) as address:
            yield address


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def accessibility_wrongs(page: Page) -> list[str]:
    """Return what axe-core finds against WCAG's levels A and AA, a line each: all rules in light, contrast in dark."""
    from axe_playwright_python.sync_playwright import Axe

    wrongs: list[str] = []
    for scheme, kind, rules in (("light", "tag", RULES), ("dark", "rule", ["color-contrast"])):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        report = Axe().run(page, options={"runOnly": {"type": kind, "values": rules}})
        assert kind == "tag" or report.response["passes"] or report.response["violations"], "no contrast was looked at"
        wrongs += [
            f"{scheme}, {violation['id']}: {node['target']} {node['failureSummary']}"
            for violation in report.response["violations"]
            for node in violation["nodes"]
        ]
    return wrongs


class Watched:
    """What a page did that it must not do."""

    def __init__(self, page: Page, addresses: tuple[str, ...]) -> None:
        self.wrongs: list[str] = []
        page.on("pageerror", lambda error: self.wrongs.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.wrongs.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda said: self.wrongs.append(said.text) if said.type == "error" else None)
        page.on(
            "request",
            lambda sent: None if sent.url.startswith((*addresses, "data:")) else self.wrongs.append(f"to {sent.url}"),
        )


@pytest.fixture
def opened(browser: Browser, service: str, foreign: Site) -> Iterator[Callable[..., Page]]:
    """Return what opens a fresh page; a script error, a broken policy or a request elsewhere fails the test."""
    watched: list[Watched] = []
    contexts = []

    def new(path: str = "/", *, width: int = 1200, may_fail: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        seen = Watched(page, (service, foreign.address))
        if not may_fail:
            watched.append(seen)
        page.goto(path if path.startswith("http") else service + path)
        return page

    yield new
    for context in contexts:
        context.close()
    assert [wrong for seen in watched for wrong in seen.wrongs] == []
