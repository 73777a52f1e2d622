"""The page: asking, exploring, judging and status, as a person uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from tests.browser.conftest import accessibility_wrongs
from tests.browser.hostile import hostile_questions
from tools.serving import wait_for_pairs

from askalike.types import Question

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make setup)").expect

Opened = Callable[..., "Page"]
TITLE = "Laptop keeps losing the wireless"


def ask(page: Page, title: str = TITLE) -> None:
    page.fill("#title", title)
    page.wait_for_selector(".hit")


def test_typing_shows_similar_questions_with_the_shared_words_marked(opened: Opened) -> None:
    page = opened()
    assert page.get_by_text("Start typing.").is_visible()
    page.locator("#title").press_sequentially(TITLE)
    first = page.locator(".hit").first
    first.wait_for()
    assert "laptop" in [mark.lower() for mark in first.locator("h3 mark").all_inner_texts()]
    assert re.search(r"(the same|related)\s+\d+ %", first.locator(".likelihood").inner_text())
    expect(first.locator(".likelihood")).to_have_attribute("title", re.compile("probability that an answer"))
    assert not first.locator(".details").is_visible()  # nor weights, cosines and scores
    first.locator(".unfold").click()
    assert "meaning" not in first.inner_text()
    first.locator(".why summary").click()
    assert "laptop" in first.locator(".why dl").inner_text().lower()
    assert "meaning" in first.locator(".why dl").inner_text()
    assert re.search(r"\d+ similar questions? found", page.locator("#announcer").inner_text())


def test_who_was_helped_is_counted_and_shown_in_the_status(opened: Opened, service: str) -> None:
    def counted() -> int:
        with urlopen(f"{service}/v1/status") as answer:
            return int(json.loads(answer.read())["helped"]["times"])

    before = counted()
    page = opened()
    ask(page)
    page.locator(".unfold").first.click()
    page.get_by_role("button", name="This answered my question").click()
    page.get_by_text("Thank you.").wait_for()
    assert counted() == before + 1
    page.locator(".views a", has_text="Status").click()
    expect(page.get_by_text("Askers who were helped")).to_be_visible()


def test_questions_with_an_answer_only_are_asked_for_by_a_box(opened: Opened) -> None:
    page = opened()
    ask(page)
    with page.expect_request("**/v1/similar") as sent:
        page.get_by_label("With an answer only").check()
    assert (sent.value.post_data_json["answered"], sent.value.post_data_json["order"]) == (True, "help")
    page.wait_for_selector(".results:not([aria-busy])")
    assert page.locator(".answered.none").count() == 0


def test_hits_below_the_threshold_are_folded_and_a_new_question_leads_to_where_it_is_asked(opened: Opened) -> None:
    page = opened()

    def with_address(route: Route) -> None:
        state = route.fetch().json()
        state["service"]["ask_url"] = "https://forum.example.org/ask?title={title}"
        route.fulfill(json=state)

    page.route("**/v1/status", with_address)
    page.fill("#title", "how do I bake a chocolate cake?")
    page.get_by_text("Your question looks new.").wait_for()
    link = page.get_by_role("link", name="Ask it")
    expect(link).to_have_attribute(
        "href", "https://forum.example.org/ask?title=how%20do%20I%20bake%20a%20chocolate%20cake%3F"
    )
    assert not page.locator(".hit").first.is_visible()
    page.get_by_text(re.compile("less likely question")).click()
    expect(page.locator(".hit").first).to_be_visible()
    assert accessibility_wrongs(page) == []


def test_a_question_in_a_language_that_the_encoder_does_not_read_is_not_called_new(opened: Opened) -> None:
    page = opened()
    page.fill("#title", "Wie kann ich mein Passwort zurücksetzen?")
    page.get_by_text("No similar question found.").first.wait_for()
    assert page.get_by_text("looks new").count() == 0


def test_arrows_walk_the_hits_and_enter_opens_one(opened: Opened) -> None:
    page = opened()
    ask(page)
    title, links = page.locator("#title"), page.locator(".hit h3 a:visible")
    title.focus()
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(title).to_be_focused()
    page.keyboard.press("ArrowDown")
    wanted = links.nth(0).inner_text()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=wanted).wait_for()


def test_who_follows_a_link_with_a_question_walks_its_hits_at_once(opened: Opened) -> None:
    page = opened("/#/ask?title=laptop%20wireless")
    page.wait_for_selector(".hit h3 a")
    expect(page.locator(".took")).to_contain_text("good answers move up")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit h3 a:visible").first).to_be_focused()


def test_words_of_scripts_without_spaces_are_marked_as_the_service_reads_them(opened: Opened) -> None:
    page = opened()
    highlighted = page.evaluate(
        """async () => {
          const { pattern } = await import("./modules/marks.js");
          return Array.from("無線LANとWLAN".matchAll(pattern(["lan", "線"])), (match) => match[0]);
        }"""
    )
    assert highlighted == ["線", "LAN"]


def test_an_emoji_before_a_matched_word_moves_no_mark(opened: Opened) -> None:
    marked = opened().evaluate(
        """async () => {
          const { markedRanges } = await import("./modules/marks.js");
          return markedRanges("🙂 my laptop", [[5, 11]]).map((node) => [node.nodeName, node.textContent]);
        }"""
    )
    assert marked == [["#text", "🙂 my "], ["MARK", "laptop"]]


def test_a_misspelt_word_is_told_as_what_it_was_read(opened: Opened) -> None:
    page = opened()
    ask(page, "Laptop keeps losing the wirelss")
    expect(page.get_by_text("wirelss read as wireless")).to_be_visible()
    assert "wireless" in [mark.lower() for mark in page.locator(".hit h3 mark").all_inner_texts()]


def test_the_best_answer_unfolds_and_folds_and_stays_open_while_one_types(opened: Opened) -> None:
    page = opened()
    ask(page)
    button = page.get_by_role("button", name="Answer and more of").first
    name = button.inner_text()
    panel = page.locator(f"#{button.get_attribute('aria-controls')}")
    assert button.get_attribute("aria-expanded") == "false"
    assert panel.is_hidden()
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert len(panel.locator(".post").inner_text()) > 20
    with page.expect_response("**/v1/similar"):
        page.locator("#title").press_sequentially(" now")
    page.wait_for_selector(".unfold[aria-expanded=true]")
    again = page.locator(".unfold[aria-expanded=true]").first
    assert again.inner_text() == name
    again.click()
    assert page.locator(".unfold[aria-expanded=true]").count() == 0


def test_an_answer_that_is_out_of_date_is_dropped(opened: Opened) -> None:
    page = opened(may_fail=True)
    routes: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if routes:
            route.continue_()
        else:
            routes.append(route)

    page.route("**/v1/similar", hold_the_first)
    page.fill("#title", "printer prints empty pages")
    page.wait_for_selector(".results[aria-busy=true]")
    ask(page)
    shown = page.locator(".results").inner_text()
    routes[0].continue_()
    page.wait_for_timeout(200)
    assert page.locator(".results").inner_text() == shown


def test_nothing_found_an_error_and_an_unreachable_service_say_what_to_do(opened: Opened) -> None:
    page = opened(may_fail=True)
    none = {"ranker": "probability", "took_ms": 1.0, "hits": [], "is_new": True}
    page.route("**/v1/similar", lambda route: route.fulfill(json=none))
    page.fill("#title", "qwertz")
    page.get_by_text("Your question looks new.").wait_for()
    refused = {"error": "the forum is being rebuilt", "hint": "try again soon"}
    page.unroute("**/v1/similar")
    page.route("**/v1/similar", lambda route: route.fulfill(status=503, json=refused, headers={"Retry-After": "7"}))
    page.fill("#title", "qwertz again")
    page.locator(".wrong", has_text="The forum is being rebuilt.").wait_for()
    assert "Try again soon" in page.locator(".wrong").inner_text()
    assert "7 s" in page.locator(".wrong").inner_text()
    page.unroute("**/v1/similar")
    page.route("**/v1/similar", lambda route: route.abort())
    page.get_by_role("button", name="Try again").click()
    page.locator(".wrong", has_text="Cannot reach the service.").wait_for()
    page.unroute("**/v1/similar")
    page.fill("#title", TITLE)
    page.wait_for_selector(".hit")


def test_what_part_of_the_search_could_not_be_used_is_said_above_the_hits(opened: Opened) -> None:
    page = opened()
    ask(page)
    assert not page.get_by_text("Part of the search could not be used.").is_visible()
    reason = "found by words alone: the encoder <b>tei:served</b> cannot be reached"

    def with_notice(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "notice": reason})

    page.route("**/v1/similar", with_notice)
    ask(page, f"{TITLE} again")
    page.get_by_text(reason).wait_for()
    assert page.locator(".hit").count() > 0
    assert accessibility_wrongs(page) == []


def test_a_device_that_is_offline_is_told_so_and_the_search_goes_on_when_it_is_back(opened: Opened) -> None:
    page = opened(may_fail=True)
    page.context.set_offline(True)
    page.fill("#title", TITLE)
    page.locator(".wrong", has_text="This device is offline.").wait_for()
    page.context.set_offline(False)
    page.wait_for_selector(".hit")


def test_the_page_works_below_a_prefix_that_a_proxy_strips(opened: Opened, service: str) -> None:
    page = opened("/forum/")
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    ask(page)
    page.locator(".views a", has_text="Status").click()
    page.wait_for_selector(".tile")
    assert addresses
    assert [url for url in addresses if not url.startswith(f"{service}/forum/")] == []


def test_a_question_is_explored_by_its_id_and_by_its_neighbours(opened: Opened) -> None:
    page = opened("/#/explore")
    page.wait_for_selector(".picks li")
    page.fill("#find", "q1001")
    page.keyboard.press("Enter")
    page.wait_for_selector(".neighbours")
    assert page.get_by_role("heading", name="Laptop drops off the wireless every few minutes").is_visible()
    first = page.locator(".neighbours a").first
    onward = first.inner_text()
    first.click()
    page.get_by_role("heading", name=onward).wait_for()
    assert page.locator(".trail a").count() == 2
    page.locator(".neighbours a").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=onward)).to_be_hidden()


LONG = "<p>A line of a log.</p>" * 400 + "<p><a href='https://far.example/'>far below</a></p>"


def lengthen(route: Route) -> None:
    """Make the body and the answers of a question that is fetched long."""
    shown = route.fetch().json()
    shown["html"] = LONG
    shown["answers"] = [{**answer, "html": LONG, "author": "", "created": None} for answer in shown["answers"]]
    route.fulfill(json=shown)


def test_a_long_post_is_folded_until_all_of_it_is_asked_for(opened: Opened) -> None:
    page = opened("/example.html", width=375)
    page.route("**/v1/questions/q1001", lengthen)
    page.goto(page.url.replace("example.html", "#/explore/q1001"))
    posts, buttons = page.locator(".question .post"), page.locator(".question .all:visible")
    expect(buttons).to_have_text(["Show all", "Show all"])  # of the question, and of the answer that is open
    height = "document.documentElement.scrollHeight"
    folded = page.evaluate(height)
    assert folded < 4_000
    assert accessibility_wrongs(page) == []
    buttons.first.focus()
    page.keyboard.press("Enter")
    expect(buttons.first).to_have_attribute("aria-expanded", "true")
    assert page.evaluate(height) > folded + 10_000
    page.keyboard.press("Enter")
    expect(buttons.first).to_have_text("Show all")
    assert page.evaluate(height) == folded
    posts.first.get_by_text("far below").focus()
    expect(buttons.first).to_have_text("Show less")


def test_what_was_asked_again_is_listed_under_the_question_to_answer_it_by(opened: Opened, service: str) -> None:
    wait_for_pairs(service)
    page = opened("/#/explore")
    often = page.locator(".often")
    expect(often).to_be_visible()
    group = often.locator(".picks > li").first
    assert "2 times" in group.inner_text()
    group.locator("summary").click()
    others = group.locator(".rest a")
    assert others.count() == 1
    title = others.first.inner_text()
    others.first.click()
    page.get_by_role("heading", name=title).wait_for()


def test_a_question_is_found_by_its_words_and_an_unknown_one_is_said(opened: Opened) -> None:
    page = opened("/#/explore", may_fail=True)
    page.fill("#find", "wireless drops")
    page.keyboard.press("Enter")
    page.get_by_text("Similar to “wireless drops”").wait_for()
    page.locator(".picks a").first.click()
    page.wait_for_selector(".question")
    page.evaluate("location.hash = '#/explore/nowhere'")
    page.wait_for_selector(".wrong")
    assert "nowhere" in page.locator(".wrong").inner_text()


def log(service: str) -> list[dict[str, str]]:
    with urlopen(f"{service}/v1/log?limit=100") as answer:
        return list(json.load(answer)["entries"])


def test_a_moderator_judges_by_keyboard_and_takes_the_last_verdict_back(opened: Opened, service: str) -> None:
    page = opened("/#/review", may_fail=True)
    page.wait_for_selector("#pair .question")
    pair = page.locator("#pair")

    def shown() -> str:
        return str(pair.get_attribute("data-pair"))

    def press(key: str) -> None:
        before = shown()
        page.keyboard.press(key)
        expect(pair).not_to_have_attribute("data-pair", before)

    first = shown()
    press("y")
    second = shown()
    press("n")
    third = shown()
    press("u")
    assert shown() == second
    press("j")
    assert shown() == third
    press("ArrowLeft")
    assert shown() == second
    press("k")
    assert shown() == first
    assert page.get_by_text("judged the same").is_visible()
    assert {"duplicate", "different"} <= {entry["kind"] for entry in log(service)}
    assert page.locator("#pair mark.differs").count() > 0
    expect(page.locator(".legend")).to_have_text("marked words differ")
    assert page.locator(".verdicts .main").count() == 0


def test_the_queue_of_a_tag_and_of_a_promise_is_asked_for_by_its_address(opened: Opened) -> None:
    page = opened("/healthz")
    with page.expect_request("**/v1/duplicates?**") as sent:
        page.goto(page.url.replace("healthz", "#/review?tag=wifi%20%26%20more&minimum=precision:0.9"))
    assert "tag=wifi+%26+more" in sent.value.url
    assert "minimum=precision%3A0.9" in sent.value.url
    expect(page.locator(".view .tag").first).to_have_text("wifi & more")
    with page.expect_request("**/v1/duplicates?**") as every:
        page.get_by_role("link", name="All pairs").click()
    assert "tag=&" in every.value.url
    expect(page.get_by_role("link", name="All pairs")).to_have_count(0)
    assert "null" not in page.locator(".view.review").inner_text()
    page.wait_for_selector("#pair .question")
    assert page.locator("#categories option").count() > 0
    page.fill("#category", "wifi")
    with page.expect_request("**/v1/duplicates?**") as chosen:
        page.press("#category", "Tab")
    assert "tag=wifi&" in chosen.value.url
    with page.expect_request("**/v1/duplicates?**") as promised:
        page.select_option("#promise", "precision:0.9")
    assert "minimum=precision%3A0.9" in promised.value.url
    assert "tag=wifi&" in promised.value.url


def test_a_verdict_is_undone_by_its_number_and_replaced_by_the_other(opened: Opened) -> None:
    page = opened("/#/review", may_fail=True)
    sent: list[object] = []

    def answer(route: Route) -> None:
        decision = route.request.post_data_json
        sent.append(decision.get("number") or decision["verdict"])
        route.fulfill(json={"number": len(sent), "made_link": False})

    page.route("**/v1/decisions**", answer)
    pair = page.locator("#pair")
    before = str(pair.get_attribute("data-pair"))
    page.keyboard.press("n")
    expect(pair).not_to_have_attribute("data-pair", before)
    page.get_by_role("button", name="Undo").click()
    expect(pair).to_have_attribute("data-pair", before)
    said = page.locator(".said")
    expect(said).to_contain_text("Undone")
    page.keyboard.press("y")
    expect(said).to_contain_text("Judged the same")
    page.keyboard.press("k")
    page.keyboard.press("n")
    expect(said).to_contain_text("Judged different")
    expect(said).to_contain_text("Undo (u) takes it back.")
    assert sent == ["different", 1, "duplicate", 3, "different"]


def test_a_link_that_is_refused_is_explained_and_the_verdict_alone_offered(opened: Opened) -> None:
    page = opened("/#/review", may_fail=True)
    sent: list[bool] = []

    def answer(route: Route) -> None:
        sent.append(route.request.post_data_json["link"])
        if sent[-1]:
            route.fulfill(status=422, json={"error": "q2 is a duplicate itself: q1 -> q2 -> q3", "hint": ""})
        else:
            route.fulfill(json={"number": 1, "made_link": False})

    page.route("**/v1/decisions", answer)
    page.wait_for_selector("#pair .question")
    page.keyboard.press("y")
    expect(page.locator(".said")).to_contain_text("q1 -> q2 -> q3")
    page.get_by_role("button", name="Judge without a link").click()
    expect(page.locator(".said")).to_contain_text("Judged the same")
    page.get_by_role("checkbox", name="Link duplicates").uncheck()
    page.keyboard.press("y")
    expect(page.locator(".said")).to_contain_text("Judged the same")
    assert sent == [True, False, False]


def test_a_moderators_decision_is_in_the_log_under_the_name_and_is_undone_there(opened: Opened, service: str) -> None:
    page = opened("/#/review")
    pair = page.locator("#pair")
    before = str(pair.get_attribute("data-pair"))
    page.fill("#moderator", "Ann <b>")
    page.press("#moderator", "Tab")
    page.locator(".history summary").click()
    page.keyboard.press("y")
    expect(pair).not_to_have_attribute("data-pair", before)
    first = page.locator(".log li").first
    expect(first).to_contain_text("the same")
    assert accessibility_wrongs(page) == []
    with urlopen(f"{service}/v1/log?limit=1") as answer:
        (entry,) = json.loads(answer.read())["entries"]
    assert (entry["kind"], entry["by"], entry["made_link"]) == ("duplicate", "Ann <b>", True)
    first.get_by_role("button", name="Undo").click()
    expect(page.locator(".log li").first).to_contain_text(f"undid entry {entry['number']}")
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()


def test_shortcuts_can_be_switched_off(opened: Opened, service: str) -> None:
    page = opened("/#/review")
    page.wait_for_selector("#pair .question")
    before, shown = log(service), page.locator("#pair").get_attribute("data-pair")
    page.get_by_role("checkbox", name="Single-key").uncheck()
    page.keyboard.press("y")
    page.keyboard.press("j")
    page.wait_for_timeout(200)
    assert log(service) == before
    assert page.locator("#pair").get_attribute("data-pair") == shown


def guarded(page: Page, addresses: str) -> list[str | None]:
    """Let addresses be answered for the key ``right`` alone, and return the keys that will have come."""
    keys: list[str | None] = []

    def guard(route: Route) -> None:
        keys.append(route.request.headers.get("authorization"))
        if keys[-1] == "Bearer right":
            rest = {name: value for name, value in route.request.headers.items() if name != "authorization"}
            route.continue_(headers=rest)
        else:
            error = "the key is not known" if keys[-1] else "a key is needed"
            route.fulfill(status=401, json={"error": error, "hint": "make one"})

    page.route(addresses, guard)
    return keys


def test_a_service_with_keys_asks_for_one_and_the_page_sends_it(opened: Opened) -> None:
    page = opened("/#/status", may_fail=True)
    keys = guarded(page, "**/v1/similar")
    page.evaluate("location.hash = '#/ask'")
    page.fill("#title", TITLE)
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Enter a key").click()
    page.get_by_label("Key", exact=True).fill("right")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    assert keys == [None, None, "Bearer right"]
    assert page.evaluate("[sessionStorage.length, localStorage.getItem('askalike.key')]") == [1, None]


def test_the_dialogue_for_a_key_is_left_with_its_view(opened: Opened) -> None:
    page = opened("/#/status", may_fail=True)
    guarded(page, "**/v1/log?**")
    page.evaluate("location.hash = '#/review'")
    page.wait_for_selector("#pair .question")
    page.locator(".history summary").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate("location.hash = '#/explore'")
    page.wait_for_selector(".picks")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_key_that_is_refused_keeps_the_dialogue_open_with_the_reason(opened: Opened) -> None:
    page = opened("/example.html", may_fail=True)
    guarded(page, "**/v1/**")
    page.goto(page.url.replace("example.html", "#/ask"))
    dialogue = page.get_by_role("dialog")
    field = page.get_by_label("Key", exact=True)
    expect(dialogue).to_be_visible()
    expect(dialogue.locator("#key-refused")).to_be_empty()
    field.fill("nonsense")
    page.keyboard.press("Enter")
    expect(dialogue.get_by_role("alert")).to_have_text("The key is not known. Make one")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    page.wait_for_function("sessionStorage.length === 0")  # a key that was refused is not kept
    page.fill("#title", TITLE)
    page.get_by_role("button", name="Enter a key").click()
    field.fill("nonsense")
    page.keyboard.press("Enter")
    expect(dialogue.get_by_role("alert")).to_have_text("The key is not known. Make one")
    field.fill("right")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    expect(dialogue).to_be_hidden()


def test_the_status_tells_the_forums_size_and_its_model(opened: Opened) -> None:
    page = opened("/#/status")
    page.wait_for_selector(".tile")
    text = page.locator("main").inner_text()
    for needed in ("questions", "In step", "Ranker", "general"):
        assert needed in text


def test_what_posts_say_stays_text_everywhere(opened: Opened, service: str) -> None:
    page = opened()
    ask(page, "zyzzyva")
    titles = {question.title for question in hostile_questions()}
    shown = {text for text in page.locator(".hit h3").all_inner_texts() if "zyzzyva" in text}
    assert shown
    assert {re.sub(r"\s+", " ", text) for text in shown} <= {re.sub(r"\s+", " ", text) for text in titles}
    folded = page.locator(".unfold[aria-expanded=false]")
    while folded.count():
        folded.first.click()
    for question in hostile_questions():
        page.evaluate("hash => { location.hash = hash }", f"#/explore/{quote(question.id, safe='')}")
        expect(page.locator(".question h2")).to_have_text(question.title)
    assert page.evaluate("window.ran") is None
    within = "main :is(script, style, img, iframe, object, embed, form form, video, link, base, svg[onload])"
    assert page.locator(within).count() == 0
    addresses = page.evaluate("[...document.querySelectorAll('a')].map(a => a.protocol)")
    assert set(addresses) <= {"http:", "https:"}


def test_what_pairs_and_names_say_stays_text(opened: Opened) -> None:
    page = opened("/example.html")
    first, second, *_ = hostile_questions()

    def brief(question: Question) -> dict[str, object]:
        shown = {"id": question.id, "title": question.title, "excerpt": question.body, "url": question.url}
        return {**shown, "created": None, "score": None, "answers": 0, "tags": list(question.tags)}

    pair = {"question": brief(first), "candidate": brief(second), "score": 0.9, "cosine": None}
    pair["likelihood"] = {"value": 0.93, "word": "almost certainly the same"}
    listed = {"pairs": [pair], "next": None, "progress": {"done": 1, "questions": 1}}
    page.route("**/v1/duplicates?*", lambda route: route.fulfill(json=listed))

    def rename(route: Route) -> None:
        state = route.fetch().json()
        state["forum"]["name"] = state["vectors"]["model"] = first.title
        route.fulfill(json=state)

    page.route("**/v1/status", rename)
    page.goto(page.url.replace("example.html", "#/review"))
    page.get_by_text("Almost certainly the same").wait_for()
    expect(page.locator("#pair h2").first).to_have_text(first.title)
    expect(page.locator("#pair h2").nth(1)).to_have_text(second.title)
    page.locator(".views a", has_text="Status").click()
    expect(page.locator(".figure", has_text="zyzzyva")).to_be_visible()
    assert "zyzzyva" in page.locator("#forum-name").inner_text()
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("view", ["ask", "explore", "explore/q1001", "review", "status"])
def test_a_view_is_accessible_light_and_dark_and_fits_a_phone(opened: Opened, view: str) -> None:
    page = opened(f"/#/{view}", width=320)
    if view == "ask":
        ask(page)
        page.locator(".unfold").first.click()
    page.wait_for_selector(
        {"ask": ".details .answer", "explore": ".picks", "review": "#pair details", "status": ".tile"}.get(
            view, ".neighbours"
        )
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert accessibility_wrongs(page) == []


def test_the_colours_follow_the_system_until_they_are_chosen_and_are_kept(opened: Opened) -> None:
    page = opened()
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) != light
    page.emulate_media(color_scheme="light")
    button = page.get_by_role("button", name="Colours")
    button.click()
    assert page.evaluate(colour) == light
    button.click()
    assert page.evaluate(colour) != light
    page.reload()
    assert page.evaluate(colour) != light
    assert "dark" in button.inner_text()
