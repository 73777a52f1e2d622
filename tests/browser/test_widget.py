"""The widget in pages of another origin, and the example pages."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from tests.browser.conftest import Site, accessibility_wrongs

from askalike.server.app import PAGE

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make setup)").expect

Opened = Callable[..., "Page"]
TITLE = "My laptop keeps losing the wireless"
ITEMS = "[data-askalike-suggestions] section > ul > li"


def test_the_widget_is_small() -> None:
    assert (PAGE / "widget.js").stat().st_size < 20_000
    assert len(gzip.compress((PAGE / "widget.js").read_bytes())) < 8_000


def test_a_foreign_forum_shows_suggestions_below_its_title_field(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(
        foreign.page(service, attributes='data-title="#title" data-body="#b" data-limit="3" data-minimum="0"')
    )
    names = page.evaluate("Object.getOwnPropertyNames(window).filter(name => /askalike/i.test(name))")
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    assert names == []
    assert page.locator(ITEMS).count() == 3
    assert page.evaluate("document.querySelector('#title').nextElementSibling.dataset.askalikeSuggestions") == ""
    link = page.locator(f"{ITEMS} a").first
    assert link.get_attribute("target") == "_blank"
    assert "noopener" in (link.get_attribute("rel") or "")
    assert (link.get_attribute("href") or "").startswith(f"{service}/#/explore/")
    assert page.locator("[data-askalike-suggestions] [role=status]").inner_text() == "3 similar questions"
    assert "laptop" in [mark.lower() for mark in page.locator(f"{ITEMS} mark").all_inner_texts()]
    page.locator(f"{ITEMS} summary").first.click()
    assert len(page.locator(f"{ITEMS} details p").first.inner_text()) > 20


def test_the_body_counts_too_and_the_suggestions_can_be_hidden(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service))
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    with page.expect_request("**/v1/similar") as sent:
        page.fill("#b", "It drops whenever the microwave runs")
    assert sent.value.post_data_json["body"] == "It drops whenever the microwave runs"
    sent.value.response()
    page.get_by_role("button", name="Hide the suggestions").click()
    assert page.locator(ITEMS).count() == 0 or page.locator(ITEMS).first.is_hidden()
    page.fill("#title", "Another printer question")
    page.wait_for_timeout(600)
    assert not page.locator("[data-askalike-suggestions] section").is_visible()


def test_escape_hides_the_suggestions_alone_until_the_title_is_emptied(
    opened: Opened, foreign: Site, service: str
) -> None:
    page = opened(foreign.page(service))
    page.evaluate(
        "document.addEventListener('keydown', ({ key }) => { if (key === 'Escape') document.title = 'left' })"
    )
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    page.locator(f"{ITEMS} summary").first.press("Escape")
    assert not page.locator("[data-askalike-suggestions] section").is_visible()
    assert page.evaluate("[document.activeElement.id, document.title === 'left']") == ["title", False]
    page.keyboard.press("Escape")  # with nothing to hide, the key is the page's own
    assert page.title() == "left"
    page.fill("#title", "")
    page.wait_for_timeout(500)
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)


def test_its_words_follow_the_pages_language_or_the_attribute(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service, language="de-AT"))
    page.fill("#title", TITLE)
    page.get_by_text("Schon gefragt?").wait_for()
    page.goto(foreign.page(service, language="de", attributes='data-language="fr"'))
    page.fill("#title", TITLE)
    page.get_by_text("Déjà demandé").wait_for()


def test_words_of_the_page_s_own_take_the_place_of_a_languages(opened: Opened, foreign: Site, service: str) -> None:
    words = '{"head": "Look here first", "found": "# hits"}'
    page = opened(foreign.page(service, attributes=f"data-limit='1' data-minimum='0' data-words='{words}'"))
    page.fill("#title", TITLE)
    page.get_by_text("Look here first").wait_for()
    assert page.locator("[data-askalike-suggestions] [role=status]").inner_text() == "1 hits"


def test_arrows_walk_the_suggestions_and_leave_the_body_alone(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service, attributes='data-title="#title" data-body="#b" data-minimum="0"'))
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    links = page.locator(f"{ITEMS} a")
    for focused, key in ((links.nth(0), "ArrowDown"), (links.nth(1), "ArrowDown"), (links.nth(0), "ArrowUp")):
        page.keyboard.press(key)
        expect(focused).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#title")).to_be_focused()
    page.focus("#b")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#b")).to_be_focused()


LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "ru", "ja", "zh", "ar")


def test_each_language_has_every_message_and_each_plural_form_that_it_needs(opened: Opened) -> None:
    tables = re.search(
        r"const MESSAGES = (\[.*?\]);\n  const WORDS = (\{.*?\n  \});",
        (PAGE / "widget.js").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert tables is not None
    read = f"""() => {{
      const names = {tables[1]};
      const words = ({tables[2]});
      const forms = (name) => new Intl.PluralRules(name).resolvedOptions().pluralCategories.sort();
      const named = (one) => Object.fromEntries(one.map((message, place) => [names[place], message]));
      return Object.entries(words).map(([name, one]) => [name, named(one), forms(name)]);
    }}"""
    texts_of = {name: (words, forms) for name, words, forms in opened().evaluate(read)}
    assert tuple(texts_of) == LANGUAGES
    english = texts_of["en"][0]
    for language, (words, forms) in texts_of.items():
        assert list(words) == list(english)
        assert len(words["likely"]) == len(set(words["likely"])) == 4
        for name, said in words.items():
            texts = said if isinstance(said, list) else [] if isinstance(said, dict) else [said]
            assert all(
                text.strip() == text != "" and text.count("#") == (name in {"through", "others"}) for text in texts
            )
            if isinstance(said, dict):
                assert sorted(said) == forms, (language, name)
                unnumbered = {"zero", "one", "two"} if language == "ar" else set()  # its words say how many
                assert {form for form, text in said.items() if text.count("#") != 1} == unnumbered
    for name in ("head", "accepted", "helped", "hide", "tab"):
        assert len({words[name] for words, _ in texts_of.values()}) == len(LANGUAGES), name


@pytest.mark.parametrize(
    ("language", "number", "said"),
    [
        ("pl", 3, "3 podobne pytania"),
        ("ru", 5, "5 похожих вопросов"),
        ("ar", 3, "أسئلة مشابهة"),
        ("ja", 5, "似た質問が5件"),
    ],
)
def test_how_many_were_found_is_said_in_the_plural_form_of_the_language(
    opened: Opened, foreign: Site, service: str, language: str, number: int, said: str
) -> None:
    attributes = f'data-lang="{language}" data-limit="{number}" data-minimum="0"'
    page = opened(foreign.page(service, attributes=attributes))
    page.fill("#title", TITLE)
    expect(page.locator("[data-askalike-suggestions] [role=status]")).to_contain_text(said)
    assert page.locator("[data-askalike-suggestions] section").get_attribute("lang") == language


def test_arabic_is_written_from_right_to_left_and_posts_as_they_are(
    opened: Opened, foreign: Site, service: str
) -> None:
    page = opened(foreign.page(service, attributes='data-lang="ar"'), width=320)
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    section = page.locator("[data-askalike-suggestions] section")
    assert section.get_attribute("dir") == "rtl"
    head, hide = page.locator("p.head").bounding_box(), page.locator("button.hide").bounding_box()
    assert head is not None
    assert hide is not None
    assert hide["x"] < head["x"] + head["width"] / 2
    assert page.locator(f"{ITEMS} a").first.evaluate("link => getComputedStyle(link).direction") == "ltr"
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.locator(f"{ITEMS} summary").first.click()
    assert accessibility_wrongs(page) == []


def test_an_unknown_language_is_answered_in_english(opened: Opened, foreign: Site, service: str) -> None:
    for language in ("tlh", "constructor"):
        page = opened(foreign.page(service, language=language))
        page.fill("#title", TITLE)
        page.get_by_text("Asked before?").wait_for()


def test_who_was_helped_is_counted_once_and_thanked_and_what_was_opened_is_counted(
    opened: Opened, foreign: Site, service: str
) -> None:
    def counts() -> dict[str, int]:
        text = page.request.get(f"{service}/metrics").text()
        events = re.findall(r'suggestions_total\{event="(\w+)"\} (\d+)', text)
        return {"opened": 0, "helped": 0} | {event: int(count) for event, count in events}

    page = opened(foreign.page(service))
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    before = counts()
    with page.expect_response("**/opened"), page.context.expect_page():
        page.locator(f"{ITEMS} a").first.click()
    page.locator(f"{ITEMS} summary").first.click()
    button = page.get_by_role("button", name="This answered my question").first
    button.click()
    page.locator(f"{ITEMS} .helped", has_text="Thank you.").wait_for()
    expect(button).not_to_be_visible()
    after = counts()
    assert {name: after[name] - before[name] for name in ("opened", "helped")} == {"opened": 1, "helped": 1}
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]


def test_thanks_are_not_said_for_what_was_not_counted(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service), may_fail=True)
    page.route("**/helped", lambda route: route.abort())
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    page.locator(f"{ITEMS} summary").first.click()
    button = page.get_by_role("button", name="This answered my question").first
    with page.expect_event("requestfailed"):
        button.click()
    expect(button).to_be_enabled()
    assert page.get_by_text("Thank you.").count() == 0


def test_the_forums_page_learns_what_is_shown_opened_helped_and_hidden(
    opened: Opened, foreign: Site, service: str
) -> None:
    page = opened(foreign.page(service))
    page.evaluate(
        """() => {
          window.heard = [];
          for (const name of ["shown", "opened", "helped", "hidden"])
            document.addEventListener(`askalike:${name}`, ({ type, detail }) => window.heard.push([type, detail]));
        }"""
    )
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    with page.context.expect_page():
        page.locator(f"{ITEMS} a").first.click()
    page.locator(f"{ITEMS} summary").first.click()
    page.get_by_role("button", name="This answered my question").first.click()
    page.locator(f"{ITEMS} .helped", has_text="Thank you.").wait_for()
    page.get_by_role("button", name="Hide the suggestions").click()
    heard = page.evaluate("window.heard")
    assert [name for name, _ in heard] == [f"askalike:{name}" for name in ("shown", "opened", "helped", "hidden")]
    shown = heard[0][1]["questions"]
    assert len(shown) == page.locator(ITEMS).count()
    assert shown[0].keys() == {"id", "title", "url", "probability"}
    assert heard[1][1] in shown
    assert heard[2][1] in shown


def test_what_stands_for_its_duplicate_says_so_in_page_and_widget(opened: Opened, foreign: Site, service: str) -> None:
    title = "Wireless disappears again and again when my laptop runs on battery"  # a duplicate of another question
    page = opened(foreign.page(service, attributes='data-minimum="0"'))
    page.fill("#title", title)
    page.wait_for_selector(ITEMS)
    said = page.locator(f"{ITEMS} small", has_text=f"found through “{title}”").first
    expect(said).to_be_visible()
    assert "disappears" in [mark.lower() for mark in said.locator("mark").all_inner_texts()]
    page = opened()
    page.fill("#title", title)
    page.wait_for_selector(".hit")
    page.locator(".unfold").first.click()
    expect(page.locator(".hit .via").first).to_have_text(f"found through “{title}”")
    page.locator(".why summary").first.click()
    assert "missing" not in page.locator(".why dl").first.inner_text().lower()


def test_a_selector_that_matches_nothing_is_told_on_the_console(opened: Opened, foreign: Site, service: str) -> None:
    page = opened("/healthz")
    with page.expect_console_message(lambda message: "data-title" in message.text) as said:
        page.goto(foreign.page(service, attributes='data-title="#headline" data-body="#b"'))
    assert said.value.text == 'askalike: nothing matches data-title="#headline" yet.'


def test_an_unknown_language_of_the_tag_is_told_on_the_console(opened: Opened, foreign: Site, service: str) -> None:
    page = opened("/healthz")
    with page.expect_console_message(lambda message: "data-lang" in message.text) as said:
        page.goto(foreign.page(service, attributes='data-lang="tlh"'))
    assert said.value.text.startswith('askalike: data-lang="tlh" is none of en, de, fr,')


def test_an_emoji_before_a_matched_word_moves_no_mark(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service))

    def with_emoji(route: Route) -> None:
        answer = route.fetch()
        content = answer.json()
        for hit in content["hits"]:
            hit["question"]["title"] = "🙂 my laptop"
            hit["highlights"]["title"] = [[5, 11]]
        route.fulfill(response=answer, json=content)

    page.route("**/v1/similar", with_emoji)
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    assert page.locator(f"{ITEMS} mark").first.inner_text() == "laptop"


def test_a_key_is_sent_where_the_tag_names_one(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service, attributes='data-key="read-me"'), may_fail=True)
    with page.expect_request("**/v1/similar") as sent:
        page.fill("#title", TITLE)
    assert sent.value.headers["authorization"] == "Bearer read-me"


def test_it_keeps_still_when_the_service_fails(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service), may_fail=True)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    answers: list[Callable[[Route], None]] = [
        lambda route: route.abort(),
        lambda route: route.fulfill(status=200, body="<html>"),
        lambda route: route.fulfill(status=403, json={"error": "not from here", "hint": "ask"}),
    ]
    page.route("**/v1/similar", lambda route: answers.pop(0)(route))
    for number in range(len(answers)):
        with page.expect_request("**/v1/similar"):
            page.fill("#title", f"{TITLE} {number}")
        page.wait_for_timeout(100)
        assert not page.locator("[data-askalike-suggestions] section").is_visible()
    page.fill("#title", TITLE)  # it was refused: it asks no more for a minute, or the list of answers would be empty
    page.wait_for_timeout(500)
    assert errors == []


def test_hostile_posts_stay_text_in_a_foreign_page(opened: Opened, foreign: Site, service: str) -> None:
    page = opened(foreign.page(service, attributes='data-limit="20" data-minimum="0"'))
    page.fill("#title", "zyzzyva zyzzyva")
    page.wait_for_selector(ITEMS)
    for summary in page.locator(f"{ITEMS} summary").all():
        summary.click()
    assert "zyzzyva" in page.locator(ITEMS).first.inner_text()
    assert page.evaluate("window.ran") is None
    shadow = "document.querySelector('[data-askalike-suggestions]').shadowRoot"
    assert (
        page.evaluate(f"{shadow}.querySelectorAll('img, script, svg, iframe, form, object, video, li style').length")
        == 0
    )
    assert set(page.evaluate(f"[...{shadow}.querySelectorAll('a')].map(a => a.protocol)")) == {"http:"}


def test_the_example_is_accessible_light_and_dark_and_fits_a_phone(opened: Opened) -> None:
    page = opened("/example.html", width=320)
    page.fill("#title", TITLE)
    page.wait_for_selector(ITEMS)
    page.locator(f"{ITEMS} summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert accessibility_wrongs(page) == []
