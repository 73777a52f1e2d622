"""``askalike follow`` as a command and beside the service: one at a time, stopped in peace, fed by webhooks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import filelock
import pytest
from starlette.testclient import TestClient
from tests.command import Run
from tests.fake_discourse import CALM
from tests.living import Following, living
from tests.postgres_server import new_database

from askalike import Forum
from askalike.errors import ForumError
from askalike.follow.state import State
from askalike.follow.webhook import MAX_BYTES
from askalike.server.app import build
from askalike.server.settings import Limits, ServeSettings
from askalike.store import ForumLayout

pytestmark = pytest.mark.usefixtures("words_alone")

SECRET = "FOLLOWED_FORUM_SECRET"


@pytest.fixture
def following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(SECRET, "secret")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    with living(tmp_path / "f", 5, 12, chances=CALM, rate=0) as following:
        yield following


def called(following: Following, *words: object) -> list[str]:
    line = [sys.executable, "-m", "askalike", "follow", following.folder, "--from", following.address, "--rate", "0"]
    return [str(word) for word in (*line, *words)]


def test_once_makes_both_equal_and_the_status_says_how_it_went(run: Run, following: Following) -> None:
    done = run("follow", following.folder, "--from", following.address, "--rate", 0, "--once", "--json")
    assert (done.code, following.differences()) == (0, [])
    status = json.loads(run("follow", following.folder, "--status", "--json").out)
    assert status["questions_added"] == len(following.fake.threads(""))
    assert status["is_failing"] is False
    assert (status["waiting"], status["is_sweeping"]) == ({"events": 0, "polled": 0, "swept": 0, "old": 0}, False)
    assert "last sweep" in run("follow", following.folder, "--status").out
    again = run("follow", following.folder, "--once", "--json")
    assert json.loads(again.out)["questions_edited"] == 0
    assert Forum.check(following.folder).is_sound
    assert not [finding for finding in Forum.check(following.folder).findings if "follow" in finding.path]


def test_a_forum_is_created_where_there_is_none_and_taken_away_where_the_site_refuses(
    run: Run, following: Following, tmp_path: Path
) -> None:
    new = tmp_path / "new.forum"
    for address, wanted in ((tmp_path / "feed.ndjson", "askalike index FILE"), (None, "follows nothing yet")):
        refused = run("follow", new, *([] if address is None else ["--from", address]), "--once")
        assert (refused.code, wanted in " ".join(refused.err.split()), new.exists()) == (2, True, False)
    answer = following.fake.answer
    following.fake.answer = lambda *_: (301, {"Location": "https://elsewhere.example.org/"}, b"")  # type: ignore[method-assign]
    refused = run("follow", new, "--from", following.address, "--once")
    assert (refused.code, "elsewhere.example.org" in refused.err, new.exists()) == (1, True, False)
    following.fake.answer = answer  # type: ignore[method-assign]
    options = ("--from", following.address, "--rate", 0, "--language", "german", "--once")
    assert run("follow", new, *options).code == 0
    with Forum.open(new) as forum:
        assert {question.id for question in forum.questions()} == following.fake.threads("").keys()
        assert forum.analyzer.settings.named == "german"


def test_one_forum_follows_one_other_and_one_process_at_a_time_does(run: Run, following: Following) -> None:
    assert run("follow", following.folder, "--once").code == 2
    assert run("follow", following.folder, "--status").code == 1
    assert run("follow", following.folder, "--from", following.address, "--rate", 0, "--once").code == 0
    other = run("follow", following.folder, "--from", "https://other.example.org", "--once")
    assert (other.code, "this forum follows" in other.err) == (2, True)
    with filelock.FileLock(ForumLayout(following.folder).follow_lock):
        busy = run("follow", following.folder, "--once")
    assert (busy.code, "another process follows" in busy.err) == (1, True)
    again = ("follow", following.folder, "--from", following.address, "--once")
    missing = run(*again, "--key-variable", "NO_SUCH_VARIABLE")
    assert (missing.code, "NO_SUCH_VARIABLE" in missing.err) == (2, True)


def test_once_ends_where_nobody_answers_and_says_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.follow.follower.PATIENCE_S", 0.5)
    monkeypatch.setattr("askalike.follow.follower.FIRST_REST_S", 0.2)
    Forum.create(tmp_path / "f").close()
    done = run("follow", tmp_path / "f", "--from", "http://127.0.0.1:9", "--once")
    said = " ".join(done.err.split())
    assert done.code == 1
    assert "cannot be reached" in said
    assert "times in a row" in said
    assert "check the address" in said
    assert said.count("asked again for") <= 1  # of several failures, the first is told
    status = run("follow", tmp_path / "f", "--status", "--json")
    assert (status.code, status.json["is_failing"]) == (1, True)


def test_a_folder_from_elsewhere_sends_no_key_of_this_user_to_its_own_address(
    run: Run, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRECIOUS_KEY", "secret")
    following.prepare(key_variable="PRECIOUS_KEY")
    done = run("follow", following.folder, "--once")
    assert (done.code, "which you have not said to follow" in " ".join(done.err.split())) == (2, True)
    assert following.fake.counts["requests"] == 0
    assert run("follow", following.folder, "--from", following.address, "--rate", 0, "--once").code == 0
    assert run("follow", following.folder, "--once").code == 0


@pytest.mark.parametrize(
    "kept", [[], {"address": 7}, {"address": "https://a.example.org", "kind": "discourse", "rate": "x"}]
)
def test_a_folder_whose_settings_somebody_made_up_is_refused_by_name(run: Run, following: Following, kept: Any) -> None:
    with State.create(following.layout) as state:
        state.put(settings=kept)
    done = run("follow", following.folder, "--once")
    assert (done.code, done.err.startswith("error: ")) == (2, True)
    assert run("follow", following.folder, "--status").code == 0
    assert run("follow", following.folder, "--from", following.address, "--rate", 0, "--once").code == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM to be told by")
def test_a_follower_that_is_told_to_stop_ends_in_peace_and_goes_on_where_it_was(following: Following) -> None:
    process = subprocess.Popen(called(following, "--every", 1), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(ForumError), State(ForumLayout(following.folder)) as state:
            if (state.get("swept") or {}).get("ended_s") and not sum(state.waiting()):
                break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert following.differences() == []


@pytest.mark.slow
def test_a_follower_that_starts_before_its_database_waits_for_it(following: Following, tmp_path: Path) -> None:
    first, server = new_database().split("host=")
    place, *more = server.split("&", 1)
    sockets = tmp_path / "pg"
    sockets.symlink_to(unquote(place))
    Forum.attach(tmp_path / "there", "&".join([f"{first}host={sockets}", *more])).close()
    sockets.unlink()
    line = [sys.executable, "-m", "askalike", "follow", str(tmp_path / "there"), "--from", following.address]
    once = subprocess.run([*line, "--once"], capture_output=True, text=True, check=False)
    assert (once.returncode, "PGUSER" in once.stderr) == (1, True)
    for is_back in (False, True):
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            notice = next(line for line in process.stdout if "tried again until it answers" in line)
            assert str(sockets) in notice
            assert process.poll() is None
            if is_back:
                sockets.symlink_to(unquote(place))
                assert any(f"following {following.address}" in line for line in process.stdout)
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
        assert process.returncode == 0, rest


def test_the_service_keeps_a_webhook_before_it_acknowledges_it(following: Following) -> None:
    headers = following.fake.headers("topic", "topic_edited", b'{"topic": {"id": 3}}')
    settings = ServeSettings(str(following.folder), limits=Limits(rate=0, body_bytes=2_000_000, timeout_s=120))
    with TestClient(build(settings), base_url="http://localhost:8765") as client:

        def send(content: bytes = b'{"topic": {"id": 3}}', kind: str = "application/json", **more: str) -> Any:
            return client.post("/v1/follow", content=content, headers={**headers, "Content-Type": kind, **more})

        assert send().status_code == 404
        following.prepare(SECRET)
        assert send().json() == {"outcome": "kept"}
        assert send().json() == {"outcome": "known"}
        with State(ForumLayout(following.folder)) as state:
            assert [thread.id for thread in state.due(9, 1e12)] == ["3"]
        refused = [
            send(b'{"topic": {"id": 4}}'),
            send(**{"X-Discourse-Event-Signature": ""}),
            send(b" " * (MAX_BYTES + 1)),
            send(kind="text/plain"),
            send(kind="application/x-www-form-urlencoded"),  # is taken, but is no form
        ]
        assert [answer.status_code for answer in refused] == [403, 401, 413, 415, 400]
        assert all(answer.json()["hint"] for answer in refused)
