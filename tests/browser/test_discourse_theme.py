"""The theme component for Discourse: its files, and the widget in a page with the markup of Discourse's composer.

Discourse itself is not here: the page stands for it, with the names, classes and variables of its composer, and with a
``discourse/lib/api`` that keeps what the component registers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.conftest import Site, accessibility_wrongs

pytestmark = pytest.mark.slow

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (make setup)")
if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make setup)").expect

Opened = Callable[..., "Page"]
THEME = Path(__file__).resolve().parents[2] / "integrations" / "discourse-theme"
INITIALIZER = THEME / "javascripts" / "discourse" / "api-initializers" / "askalike.js"
TITLE = "My laptop keeps losing the wireless"
ITEMS = "[data-askalike-suggestions] li"
SETTINGS: dict[str, Any] = yaml.safe_load((THEME / "settings.yml").read_text(encoding="utf-8"))
LOCALES = {"en", "de", "fr", "es", "pt_BR", "it", "nl", "pl_PL", "ru", "ja", "zh_CN", "ar"}

PAGE = """<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>A topic - Discourse</title>
<style>:root {{ --primary: #222222; --primary-very-low: #f8f8f8; --primary-low-mid: #bfbfbf; --tertiary: #0066aa;
--highlight-medium: #fff7c2; --font-family: serif; --d-border-radius: 2px }} {style}</style>
<script type="importmap">{{"imports": {{"discourse/lib/api": "/lib/api.js"}}}}</script>
<script>window.settings = {settings};</script></head><body><main><h1>Latest</h1></main><div id="reply-control"
class="closed"></div><script type="module">import "/askalike.js";</script></body></html>"""
API = """export const apiInitializer = (begin) => begin({});"""
COMPOSER = """(action) => {
  const control = document.getElementById("reply-control");
  control.className = `open composer-action-${action} edit-title topic show-preview`;
  control.innerHTML = `<div role="form" aria-label="Create topic" class="reply-area with-tags">
    <div class="composer-fields"><div class="title-and-category with-preview"><div class="title-input">
    <input id="reply-title" type="text" aria-label="Title"></div></div></div>
    <div class="d-editor-textarea-wrapper"><textarea class="d-editor-input"
    aria-label="Text"></textarea></div></div>`;
}"""


@pytest.fixture
def discourse(opened: Opened, foreign: Site, service: str) -> Callable[..., Page]:
    """Return what opens a page like Discourse's with the component, by its settings."""
    style = re.sub(r"^//.*$", "", (THEME / "common" / "common.scss").read_text(encoding="utf-8"), flags=re.MULTILINE)

    def open_page(language: str = "en", **settings: object) -> Page:
        values = {name: setting["default"] for name, setting in SETTINGS.items()}
        page = opened("/healthz")
        page.route("**/lib/api.js", lambda route: route.fulfill(body=API, content_type="text/javascript"))
        page.route("**/askalike.js", lambda route: route.fulfill(path=INITIALIZER, content_type="text/javascript"))
        path = f"/discourse-{len(foreign.pages)}"
        chosen = json.dumps({**values, "service_url": f"{service}/", **settings})
        foreign.pages[path] = PAGE.format(language=language, style=style, settings=chosen)
        page.goto(foreign.address + path)
        return page

    return open_page


def compose(page: Page, action: str = "createTopic") -> None:
    page.evaluate(COMPOSER, action)
    page.fill("#reply-title", TITLE)


def test_the_component_says_what_discourse_asks_of_it() -> None:
    about = json.loads((THEME / "about.json").read_text(encoding="utf-8"))
    assert about["component"] is True
    assert about["name"] == "askalike"
    assert {"about_url", "license_url"} <= about.keys()
    used = set(re.findall(r"settings\.(\w+)", INITIALIZER.read_text(encoding="utf-8")))
    assert used == set(SETTINGS)
    for name, setting in SETTINGS.items():
        assert setting["type"] in ("string", "bool", "integer", "enum"), name
        assert setting["type"] != "enum" or setting["default"] in setting["choices"]


def test_each_setting_is_described_in_each_of_the_widgets_languages() -> None:
    assert {path.stem for path in (THEME / "locales").glob("*.yml")} == LOCALES
    said: set[str] = set()
    for path in (THEME / "locales").glob("*.yml"):
        metadata = yaml.safe_load(path.read_text(encoding="utf-8"))[path.stem]["theme_metadata"]
        assert set(metadata["settings"]) == set(SETTINGS)
        said |= {metadata["description"], *metadata["settings"].values()}
    assert len(said) == len(LOCALES) * (len(SETTINGS) + 1)


def test_the_composer_shows_suggestions_in_discourses_colours(discourse: Callable[..., Page]) -> None:
    page = discourse()
    for _ in range(2):  # it is closed and opened again
        compose(page)
        page.wait_for_selector(ITEMS)
        page.evaluate("document.getElementById('reply-control').replaceChildren()")
        expect(page.locator("[data-askalike-suggestions]")).to_have_count(0)
    compose(page)
    page.wait_for_selector(ITEMS)
    assert page.locator(".title-and-category + [data-askalike-suggestions]").count() == 1
    assert page.locator(ITEMS).count() <= 5
    section = page.locator("[data-askalike-suggestions] section")
    styles = (
        "one => { const found = getComputedStyle(one); return [found.color, found.backgroundColor, found.fontFamily]; }"
    )
    assert section.evaluate(styles) == ["rgb(34, 34, 34)", "rgb(248, 248, 248)", "serif"]
    assert page.locator(f"{ITEMS} a").first.evaluate("one => getComputedStyle(one).color") == "rgb(0, 102, 170)"
    with page.expect_request("**/v1/similar") as sent:
        page.fill(".d-editor-input", "It drops whenever the microwave runs")
    assert sent.value.post_data_json["body"] == "It drops whenever the microwave runs"
    page.locator(f"{ITEMS} summary").first.click()
    assert accessibility_wrongs(page) == []


def test_messages_get_no_suggestions_unless_every_title_is_to_have_some(discourse: Callable[..., Page]) -> None:
    page = discourse()
    compose(page, "privateMessage")
    page.wait_for_timeout(800)
    assert page.locator("[data-askalike-suggestions]").count() == 0
    page = discourse(only_new_topics=False, suggestions=2, least_probability="0")
    compose(page, "privateMessage")
    expect(page.locator(ITEMS)).to_have_count(2)


def test_it_speaks_the_forums_language(discourse: Callable[..., Page]) -> None:
    for language, head in (("pt-BR", "Já foi perguntado?"), ("zh-CN", "有人问过了吗？"), ("pl-PL", "Już ktoś pytał?")):
        page = discourse(language)
        compose(page)
        page.get_by_text(head).wait_for()


def test_nothing_is_loaded_before_the_service_is_named(discourse: Callable[..., Page]) -> None:
    for address in ("", "  ", "javascript:alert(1)", "/widget"):
        page = discourse(service_url=address)
        page.wait_for_load_state()
        assert page.locator("script[data-askalike]").count() == 0
