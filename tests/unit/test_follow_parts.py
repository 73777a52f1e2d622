"""What following is made of: the pace, what is on disk, and webhooks, each by itself."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import socket
import sqlite3
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests import fake_github
from tests.fake_github import FakeGitHub
from tests.fake_site import FakeClock

from askalike.errors import BusyForumError, DamagedForumError, ForumError, SettingError
from askalike.follow import state as states
from askalike.follow.settings import FollowSettings
from askalike.follow.site import Pace
from askalike.follow.state import State
from askalike.follow.webhook import FORM, JSON, MAX_BYTES, WebhookError, receive
from askalike.store import ForumLayout
from askalike.web import FailedError, Web

SECRET = "FOLLOWED_FORUM_SECRET"


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ForumLayout:
    monkeypatch.setenv(SECRET, "secret")
    return ForumLayout(tmp_path)


@pytest.fixture
def state(layout: ForumLayout) -> Any:
    with State.create(layout) as state:
        state.put(settings=FollowSettings("https://a.example.org", "discourse", secret_variable=SECRET).to_json())
        yield state


# -- requests ----------------------------------------------------------------------------------------------------------


def test_a_refusal_that_comes_byte_by_byte_is_read_until_its_time_is_over() -> None:
    is_read, is_whole = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(4_096)
                connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 60000\r\n\r\n")
                for _ in range(200):
                    connection.sendall(b"x")
                    if is_read.wait(0.2):
                        return
                is_whole.set()

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(FailedError, match="answered 503: x"):
            Web(address).send(address, {}, 1_000, 0.5)
        is_read.set()
        thread.join()
    assert not is_whole.is_set(), "it waited for all that came"


# -- pace --------------------------------------------------------------------------------------------------------------


def test_no_minute_has_more_requests_than_the_rate_whoever_was_killed_within() -> None:
    clock, sent_s = FakeClock(), []
    for _ in range(40):  # a new process each time, that forgets everything
        pace = Pace(10, clock.clock)
        for _ in range(3):
            pace.begin()
            sent_s.append(clock.now_s)
            clock.now_s += 0.3
            pace.end()
    assert len(sent_s) == 120
    assert all(later - earlier >= 60 for earlier, later in zip(sent_s, sent_s[10:], strict=False))


def test_a_limit_is_waited_for_as_long_as_the_site_asks_or_a_minute_and_longer_each_time() -> None:
    clock = FakeClock()
    pace = Pace(0, clock.clock)
    assert [pace.limit(None) for _ in range(3)] == [60, 120, 240]
    assert pace.wait_s() == 240
    clock.now_s += 240 + 601
    assert [pace.limit(5.0) for _ in range(3)] == [5, 60, 120]
    assert [pace.limit(900.0), pace.limit(None)] == [900, 960]
    pace.begin()
    assert clock.now_s >= 1_750_000_000 + 841 + 960
    assert [pace.limit(None) for _ in range(9)][-1] == 3_600


# -- what is on disk ---------------------------------------------------------------------------------------------------


def test_a_thread_that_is_asked_for_while_it_is_read_is_read_again(state: State) -> None:
    state.add_event("e1", ["7"], 1.0)
    (thread,) = state.due(9, 2.0)
    state.add_event("e2", ["7"], 3.0)
    state.finish([(thread, True, ())], 2.0, 4.0)
    assert [thread.id for thread in state.due(9, 5.0)] == ["7"]
    assert state.lags_s() == [3.0], "the event that came while it was read is not done"


def test_a_thread_is_read_where_its_stamp_is_new_and_events_come_first(state: State) -> None:
    state.add_listed({"1": "a", "2": "b"}, 2, 1.0, cursor={"at": 5})
    assert state.get("cursor") == {"at": 5}
    state.add_event("e", ["2"], 1.5)
    taken = state.due(9, 2.0)
    assert [(thread.id, thread.rank) for thread in taken] == [("2", 0), ("1", 2)]
    state.finish([(thread, True, ()) for thread in taken], 2.0, 2.0)
    state.add_listed({"1": "a", "2": "b2", "3": ""}, 1, 3.0)
    assert [thread.id for thread in state.due(9, 4.0)] == ["2", "3"]


def test_a_thread_that_was_postponed_before_the_clock_was_set_back_is_due(state: State) -> None:
    now_s = 1_750_000_000.0
    state.add_event("e", ["7"], now_s)
    (thread,) = state.due(9, now_s)
    state.postpone(thread, now_s + 3_600, "answered 500")
    assert state.due(9, now_s) == []
    now_s -= 30 * 86_400
    assert [thread.id for thread in state.due(9, now_s)] == ["7"]


def test_a_thread_that_was_read_before_the_clock_was_set_back_is_read_again(state: State) -> None:
    now_s = 1_750_000_000.0
    state.add_listed({"7": ""}, 1, now_s)
    state.finish([(thread, True, ()) for thread in state.due(9, now_s)], now_s, now_s)
    assert state.queue_old(now_s - 60, 9, now_s) == 0
    now_s -= 30 * 86_400
    assert state.queue_old(now_s - 60, 9, now_s) == 1
    assert [thread.id for thread in state.due(9, now_s)] == ["7"]


def test_an_event_counts_once_and_too_many_are_refused(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state.add_event("e", ["1"], 1.0)
    assert not state.add_event("e", ["1"], 2.0)
    monkeypatch.setattr(states, "MAX_EVENTS", 1)
    with pytest.raises(BusyForumError):
        state.add_event("other", ["2"], 3.0)
    assert [thread.id for thread in state.due(9, 9.0)] == ["1"]
    assert state.get("events_doubled") == 1


def test_a_file_that_is_none_is_named_with_what_to_do(layout: ForumLayout) -> None:
    with pytest.raises(ForumError, match="follows no forum"):
        State(layout)
    layout.follow.write_bytes(b"no database at all" * 99)
    with pytest.raises(DamagedForumError, match="delete it"):
        State.create(layout)
    layout.follow.write_bytes(b"")
    with pytest.raises(ForumError, match="follows no forum"):
        State(layout)
    State.create(layout).close()
    with sqlite3.connect(layout.follow) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DamagedForumError, match="format 99"):
        State(layout)


def test_a_file_that_another_process_writes_is_not_taken_for_a_damaged_one(
    layout: ForumLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.store.sqlite_file.BUSY_TIMEOUT_S", 0.05)
    State.create(layout).close()
    with contextlib.closing(sqlite3.connect(layout.follow, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with State.create(layout) as state, pytest.raises(BusyForumError, match="locked by another process"):
            state.put(cursor=1)


def test_secrets_are_given_by_the_names_of_variables_alone() -> None:
    with pytest.raises(SettingError, match="no name of an environment variable") as refused:
        FollowSettings("https://a.example.org", "discourse", key_variable="0123456789-very-secret")
    assert "secret" not in refused.value.message.replace("very", "")[:40]
    with pytest.raises(SettingError, match="no address"):
        FollowSettings("ftp://a", "discourse")


# -- webhooks ----------------------------------------------------------------------------------------------------------


def signed(payload: Any, event: str = "1", kind: str = "post", secret: str = "secret") -> tuple[dict[str, str], bytes]:
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    signature = hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    names = {"X-Discourse-Event-Id": event, "X-Discourse-Event-Type": kind}
    return names | {"X-Discourse-Event-Signature": f"sha256={signature}"}, content


def test_webhooks_that_nobody_with_the_secret_sent_are_refused_and_change_nothing(
    layout: ForumLayout, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, content = signed({"topic": {"id": 5}}, kind="topic")
    deep = signed(b"[" * 200_000)
    large = signed(b" " * (MAX_BYTES + 1))
    without = {name: value for name, value in headers.items() if "Signature" not in name}
    wrong = headers | {"X-Discourse-Event-Signature": "sha256=" + "0" * 64}
    odd = headers | {"X-Discourse-Event-Signature": "sha1=ü"}
    unnamed = headers | {"X-Discourse-Event-Id": "../../etc"}
    refused = {
        401: [(without, content), (odd, content)],
        403: [(wrong, content), (headers, content + b" "), signed({"topic": {"id": 5}}, secret="the one before")],
        413: [large],
        400: [deep, (unnamed, content), signed(b"\xff\xfe"), signed(b"topic=5")],
    }
    for status, sent in refused.items():
        for event in sent:
            with pytest.raises(WebhookError) as refusal:
                receive(layout, *event)
            assert (refusal.value.status, bool(refusal.value.hint)) == (status, True), event
    for odd_payload in ({"topic": {"id": "5; DROP"}}, {"topic": [1]}, ["topic"], {"topic": {"id": True}}, {"post": {}}):
        assert receive(layout, *signed(odd_payload, str(id(odd_payload)), "topic")) == "ignored"
    assert state.due(9, 1e12) == []
    monkeypatch.delenv(SECRET)
    with pytest.raises(WebhookError) as refusal:
        receive(layout, headers, content)
    assert refusal.value.status == 503


def test_webhooks_are_taken_only_where_something_is_followed_with_a_secret(layout: ForumLayout) -> None:
    for _ in range(2):
        with pytest.raises(WebhookError) as refused:
            receive(layout, *signed({"topic": {"id": 5}}))
        assert refused.value.status == 404
        with State.create(layout) as state:
            state.put(settings=FollowSettings("https://a.example.org", "discourse").to_json())


def test_webhooks_that_come_at_once_are_all_kept(layout: ForumLayout, state: State) -> None:
    def send(number: int) -> None:
        receive(layout, *signed({"topic": {"id": number}}, str(number), "topic"))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(1, 21)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {thread.id for thread in state.due(99, 1e12)} == {str(number) for number in range(1, 21)}


@pytest.fixture
def repository(layout: ForumLayout) -> FakeGitHub:
    settings = FollowSettings("https://github.com/own/name", "github", secret_variable=SECRET)
    with State.create(layout) as state:
        state.put(settings=settings.to_json())
    fake = FakeGitHub()
    fake.add_issue(4)
    fake.add_issue(5, pull_request={"url": "https://api.github.com/repos/own/name/pulls/5"})
    fake.add_discussion(6)
    return fake


@pytest.mark.parametrize(
    ("kind", "number", "ids"),
    [
        ("issues", 4, ["4"]),
        ("issue_comment", 4, ["4"]),
        ("issue_comment", 5, []),
        ("discussion", 6, ["6"]),
        ("discussion_comment", 6, ["6"]),
        ("push", 4, []),
    ],
)
@pytest.mark.parametrize("content_type", [JSON, f"{FORM}; charset=utf-8"])
def test_webhooks_of_github_come_as_json_or_as_a_form(
    layout: ForumLayout, repository: FakeGitHub, kind: str, number: int, ids: list[str], content_type: str
) -> None:
    headers, content = repository.webhook(kind, number, "secret")
    if content_type != JSON:
        content = urlencode({"payload": content.decode()}).encode()
        headers = fake_github.signed(content, kind, "secret") | {"Content-Type": content_type}
    assert receive(layout, headers, content) == ("kept" if ids else "ignored")
    with State(layout) as state:
        assert [thread.id for thread in state.due(9, 1e12)] == ids


def test_webhooks_of_another_repository_are_refused_and_those_of_this_one_in_any_case(
    layout: ForumLayout, repository: FakeGitHub
) -> None:
    with pytest.raises(WebhookError, match="follows own/name, not 'own/other'") as caught:
        receive(layout, *repository.webhook("issues", 4, "secret", repository="own/other"))
    assert caught.value.status == 403
    assert receive(layout, *repository.webhook("issues", 4, "secret", "2", "Own/NAME")) == "kept"
    ping = json.dumps({"zen": "Keep it logically awesome.", "hook_id": 1}).encode()
    assert receive(layout, fake_github.signed(ping, "ping", "secret", "3"), ping) == "ignored"


@pytest.mark.parametrize("content", [b"payload=%7B", b"other=%7B%7D", b"payload", b"&" * 1_000, b"\xff=1", b"{}"])
def test_a_form_without_json_is_refused(layout: ForumLayout, repository: FakeGitHub, content: bytes) -> None:
    headers = fake_github.signed(content, "issues", "secret") | {"Content-Type": FORM}
    with pytest.raises(WebhookError) as caught:
        receive(layout, headers, content)
    assert caught.value.status == 400
