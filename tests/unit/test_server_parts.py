"""The parts of the service that need no forum and no server: each with its rules."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from askalike import errors
from askalike.errors import DamagedForumError, SettingError, UnknownIdError
from askalike.schemas import (
    DecisionRequest,
    PairsQuery,
    SimilarRequest,
)
from askalike.server import pool as pool_module
from askalike.server.admission import Admission, most_connections, most_forums
from askalike.server.app import static_files
from askalike.server.guards import (
    MAX_CLIENTS,
    Access,
    Keys,
    Rates,
    check_host,
    check_origin,
    client_of,
    host_names,
)
from askalike.server.pool import Batched, Pool
from askalike.server.presentation import LONGEST_MARKDOWN, highlights, safe_html
from askalike.server.problem import STATUSES, Refused, refusal_of
from askalike.server.requests import parse_body, parse_query
from askalike.server.settings import Limits, ServeSettings
from askalike.server.workers import Lines, check_open
from askalike.store.sqlite_file import unwritable
from askalike.text.analyzer import Analyzer
from askalike.text.settings import TextSettings
from askalike.types import Markup, Match

ANALYZER = Analyzer(TextSettings())


def status_of(call: object) -> int:
    with pytest.raises(Refused) as refused:
        call()  # type: ignore[operator]
    return refused.value.status


# -- errors ------------------------------------------------------------------------------------------------------------


def test_every_error_has_a_status_and_the_first_fitting_row_is_the_narrowest() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.AskalikeError)]
    for kind in kinds:
        fitting = [row for row, _ in STATUSES if issubclass(kind, row)]
        assert fitting
        assert issubclass(fitting[0], fitting[-1])
    assert refusal_of(UnknownIdError("a", "b")).status == 404
    assert refusal_of(unwritable(Path("archive.sqlite"))).status == 409
    assert refusal_of(errors.BusyForumError("a")).headers == {"Retry-After": "2"}


# -- requests ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"title":NaN}',
        b'{"title":Infinity}',
        b"\xff\xfe",
        b'{"title":"\xff"}',
        b'{"title":"\xed\xa0\x80"}',
        b'{"title":"\\ud800"}',
        b'{"title":"a"} {}',
        b'\xef\xbb\xbf{"title":"a"}',
    ],
)
def test_what_is_no_json_is_refused(content: bytes) -> None:
    assert status_of(lambda: parse_body(SimilarRequest, content)) == 400


@pytest.mark.parametrize(
    "field",
    [
        {"title": 1},
        {"title": "a" * 1001},
        {"title": "a", "k": 0},
        {"title": "a", "k": 101},
        {"title": "a", "k": "5"},
        {"title": "a", "k": True},
        {"title": "a", "before": 5},
        {"title": "a", "markup": "latex"},
        {"title": "a", "more": 1},
        {"title": "a", "exclude": [""]},
        {"title": "a", "tags": ["a"] * 21},
        {"title": "a", "exclude": ["a"] * 100_000},
        [],
        "a",
        None,
    ],
)
def test_a_search_with_a_wrong_field_is_refused(field: object) -> None:
    assert status_of(lambda: parse_body(SimilarRequest, json.dumps(field).encode())) == 422


@pytest.mark.parametrize("moment", ["yesterday", "", "2024-13-01", "2024-05-01T25:00"])
def test_a_moment_that_is_none_is_refused_by_its_name(moment: str) -> None:
    request = parse_body(SimilarRequest, json.dumps({"title": "a", "before": moment}).encode())
    with pytest.raises(SettingError, match="before is not a date or time") as refused:
        _ = request.query
    assert refusal_of(refused.value).status == 422


def test_a_refusal_names_the_field_and_no_value_that_may_be_anything() -> None:
    for field in ({"tags": ["a", "my secret" * 20]}, {"k": "my secret"}):
        with pytest.raises(Refused) as refused:
            parse_body(SimilarRequest, json.dumps({"title": "a", **field}).encode())
        assert refused.value.error.startswith(next(iter(field)))
        assert "secret" not in refused.value.error


@pytest.mark.parametrize(
    ("body", "error", "hint"),
    [
        (
            {"fields": ["question.ulr"]},
            "fields[0]: 'question.ulr' is",
            "did you mean question.url? expected one of ans",
        ),
        ({"markup": "bbcode"}, "markup: 'bbcode' is", "expected one of html, markdown, plain; see /openapi.json"),
        ({"markup": 3}, "markup: Expected `str`", "expected one of html, markdown, plain; see /openapi.json"),
        ({"markup": "x" * 10_000}, f"markup: '{'x' * 100}' is", "expected one of html"),
        ({"titel": "x"}, "the body: `titel` is not a field", "did you mean title? the fields are title, body,"),
        ({"k": 101}, "k: Expected `int` <= 100", "see /openapi.json"),
        ([], "the body: Expected `object`", "the fields are title, body,"),
    ],
)
def test_a_refusal_names_what_is_taken_in_place_of_a_wrong_value(body: object, error: str, hint: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_body(SimilarRequest, json.dumps(body).encode())
    assert refused.value.error.startswith(error)
    assert refused.value.hint.startswith(hint)


def test_a_refusal_names_the_fields_of_what_is_within_and_of_the_query_string() -> None:
    decision = {"question": "a", "candidate": "b", "verdict": "different", "draw": {"bye": 1}}
    with pytest.raises(Refused) as refused:
        parse_body(DecisionRequest, json.dumps(decision).encode())
    assert refused.value.error == "draw: `bye` is not a field"
    assert refused.value.hint.startswith("did you mean by? the fields are by, probability;")
    with pytest.raises(Refused) as refused:
        parse_query(PairsQuery, b"sampel=1")
    assert refused.value.error == "the query string: `sampel` is not a field"
    assert refused.value.hint.startswith("did you mean sample? the fields are cursor,")


@pytest.mark.parametrize(
    ("query", "status"),
    [(b"limit=0", 422), (b"limit=x", 422), (b"none=1", 422), (b"limit=1&limit=2", 400), (b"minimum=%ff", 400)],
)
def test_a_wrong_query_string_is_refused(query: bytes, status: int) -> None:
    assert status_of(lambda: parse_query(PairsQuery, query)) == status


# -- who may ask -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:1"])
def test_the_loopback_is_known_by_its_names(host: str) -> None:
    check_host({"host": host}, host_names(ServeSettings("f")))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "", "::1", "localhost:x"]
)
def test_any_other_name_is_refused_on_the_loopback(host: str) -> None:
    assert status_of(lambda: check_host({"host": host}, host_names(ServeSettings("f")))) == 421


def test_names_can_be_allowed_and_elsewhere_any_is() -> None:
    check_host({"host": "forum.example"}, host_names(ServeSettings("f", allow_hosts=("Forum.example",))))
    check_host({"host": "what.ever"}, host_names(ServeSettings("f", host="0.0.0.0")))
    elsewhere = ServeSettings("f", host="0.0.0.0", allow_hosts=("a",))
    assert status_of(lambda: check_host({"host": "what.ever"}, host_names(elsewhere))) == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:1", "origin": "http://evil.example"},
        {"host": "localhost:1", "origin": "http://localhost:2"},
        {"host": "localhost:1", "origin": "null"},
        {"host": "localhost:1", "sec-fetch-site": "cross-site"},
        {"host": "localhost:1", "sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_origin_changes_nothing_without_a_key(headers: dict[str, str]) -> None:
    assert status_of(lambda: check_origin(headers)) == 403


def test_the_page_itself_and_programs_may_change() -> None:
    check_origin({"host": "localhost:1"})
    check_origin({"host": "localhost:1", "origin": "http://localhost:1", "sec-fetch-site": "same-origin"})
    allowed = {"host": "localhost:1", "origin": "https://forum.example", "sec-fetch-site": "cross-site"}
    check_origin(allowed, ["https://forum.example"])
    assert status_of(lambda: check_origin(allowed, ["https://forum.example.org"])) == 403


@pytest.mark.parametrize("origin", ["*", "a.example", "https://a.example/", "ftp://a", "https://"])
def test_what_is_no_origin_cannot_be_allowed(origin: str) -> None:
    with pytest.raises(SettingError):
        ServeSettings("f", allow_origins=(origin,))


def test_keys_give_the_rights_that_they_were_made_with(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    _, reading = keys.add("widget", "read")
    stored, writing = keys.add("", "write")
    other = Keys(tmp_path)  # as another process has it
    assert [key.may for key in (other.get(reading), other.get(writing)) if key] == ["read", "write"]
    assert other.get("") is other.get("ask_x") is other.get("\ud800") is None
    keys.remove(stored.id)
    assert other.get(writing) is None
    with pytest.raises(UnknownIdError):
        keys.remove(stored.id)
    assert reading not in (tmp_path / "keys.json").read_text()


def test_a_file_of_keys_is_never_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    create = os.open

    def watched(path: str, flags: int, *mode: int, **more: int) -> int:
        descriptor = create(path, flags, *mode, **more)
        if "keys.json" in str(path):
            opened.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    before = os.umask(0)
    try:
        Keys(tmp_path).add("", "read")
    finally:
        os.umask(before)
    assert opened == [0o600]
    assert (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600


def test_a_file_of_keys_that_others_may_write_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Keys(tmp_path).add("", "read")
    assert Keys(tmp_path).all()
    assert caplog.text == ""
    (tmp_path / "keys.json").chmod(0o620)
    assert Keys(tmp_path).all()
    assert f"{tmp_path / 'keys.json'} may be written by others" in caplog.text


KEY = {"id": "1", "name": "", "may": "read", "sha256": "0" * 64, "created": ""}
WRONG: list[dict[str, object]] = [{"may": "all"}, {"sha256": "é" * 64}, {"sha256": 5}, {"sha256": "0"}, {"id": [1]}]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"format": 9}',
        '{"format": 1, "keys": [{"may": "all"}]}',
        '{"format": 1, "keys": [5]}',
        *(json.dumps({"format": 1, "keys": [{**KEY, **wrong}]}) for wrong in WRONG),
    ],
)
def test_a_damaged_file_of_keys_lets_nobody_in(tmp_path: Path, content: str) -> None:
    (tmp_path / "keys.json").write_text(content)
    with pytest.raises(DamagedForumError):
        Keys(tmp_path).get("x")


def test_rights_follow_from_the_settings_and_the_key(tmp_path: Path) -> None:
    _, secret = Keys(tmp_path).add("widget", "read")

    def access(**settings: Any) -> Access:
        return Access(ServeSettings(str(tmp_path), **settings))

    assert access().visitor({}).rights == {"read", "write"}
    assert access(host="0.0.0.0").visitor({}).rights == frozenset()
    assert access(host="0.0.0.0", is_read_open=True).visitor({}).rights == {"read"}
    assert access(is_read_open=True).visitor({}).rights == {"read"}, "a proxy may pass requests on"
    assert access(host="0.0.0.0", is_insecure=True).visitor({}).rights == {"read", "write"}
    bearer = {"authorization": f"Bearer {secret}"}
    assert access().visitor(bearer)[:2] == ({"read"}, "widget")
    for wrong in ("Bearer x", "Basic x", "x", f"bearer{secret}"):
        assert status_of(lambda wrong=wrong: access().visitor({"authorization": wrong})) == 401


def test_elsewhere_nothing_is_served_without_a_key(tmp_path: Path) -> None:
    settings = ServeSettings(str(tmp_path), host="0.0.0.0")
    with pytest.raises(SettingError, match="without an API key"):
        check_open(settings)
    with pytest.raises(SettingError, match=r"forum\.example"):
        check_open(ServeSettings(str(tmp_path), allow_hosts=("forum.example",)))
    check_open(ServeSettings(str(tmp_path)))
    check_open(ServeSettings(str(tmp_path), host="0.0.0.0", is_insecure=True))
    check_open(ServeSettings(str(tmp_path), host="0.0.0.0", is_read_open=True))
    Keys(tmp_path).add("", "read")
    check_open(settings)


@pytest.mark.parametrize("proxy", ["x", "1.2.3", "10.0.0.1/8", "*", ""])
def test_what_is_no_address_of_a_proxy_cannot_be_trusted(proxy: str) -> None:
    with pytest.raises(SettingError, match="proxy"):
        ServeSettings("f", trusted_proxies=(proxy,))


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        ("10.0.0.1", ["192.0.2.1, 192.0.2.2"], "192.0.2.2"),
        ("10.0.0.1", ["192.0.2.1", "192.0.2.2, 10.0.0.3"], "192.0.2.2"),
        ("10.0.0.1", ["10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["192.0.2.1:4711"], "192.0.2.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["fe80::1%eth0"], "fe80::1"),
        ("10.0.0.1", ["unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["", ",,,", "192.0.2.1,"], "10.0.0.1"),
        ("10.0.0.1", ["1" * 70_000], "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.1" + ", 10.0.0.2" * 5_000], "10.0.0.2"),
        ("::ffff:10.0.0.1", ["192.0.2.1"], "192.0.2.1"),
        ("192.0.2.7", ["192.0.2.1"], "192.0.2.7"),
        ("", ["192.0.2.1"], ""),
    ],
)
def test_a_request_counts_for_whom_the_nearest_trusted_proxy_says(
    peer: str, forwarded: list[str], expected: str
) -> None:
    settings = ServeSettings("f", trusted_proxies=("10.0.0.0/8",))
    assert client_of(peer, ", ".join(forwarded), settings.proxies) == expected
    assert client_of("10.0.0.1", ", ".join(forwarded), ()) == "10.0.0.1", "nobody is trusted unasked"


def test_a_client_that_asks_too_often_waits_and_others_do_not() -> None:
    rates = Rates(rate=10.0, burst=2)
    assert [rates.take_token("a", 0.0) for _ in range(3)] == [0.0, 0.0, pytest.approx(0.1)]
    assert rates.take_token("b", 0.0) == 0.0
    assert rates.take_token("a", 0.1) == 0.0
    assert Rates(rate=0.0, burst=1).take_token("a", 0.0) == 0.0
    slow = Rates(rate=0.1, burst=1)
    for number in range(MAX_CLIENTS + 1):
        assert slow.take_token(str(number), 1.0) == 0.0
    assert slow.take_token(str(MAX_CLIENTS), 1.0) > 0.0, "it is remembered"
    assert slow.take_token("0", 1.0) == 0.0, "it was forgotten for the newest"


class Crowd:
    """An admission with connections that are only names, and a clock that a test sets."""

    def __init__(self, most: int, most_of_one: int = 1_000) -> None:
        limits = Limits(connections=most, client_connections=most_of_one)
        self.admission = Admission(limits, ServeSettings("f", trusted_proxies=("10.0.0.0/8",)).proxies)
        self.now_s = 0.0
        self.closed: list[str] = []

    def comes(self, name: str, address: str, *, is_strange: bool = True) -> Member | None:
        """Open a connection that then waits; return it where there is room."""
        self.now_s += 1.0
        member = Member(name, self.closed)
        if not self.admission.admit(member, address):
            self.admission.forget(member)
            return None
        self.admission.note(member, "strange" if is_strange else "known")
        return member


class Member:
    def __init__(self, name: str, closed: list[str]) -> None:
        self._name, self._closed = name, closed

    def close_for_another(self) -> None:
        self._closed.append(self._name)


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Crowd]:
    def make(most: int, most_of_one: int = 1_000) -> Crowd:
        crowd = Crowd(most, most_of_one)
        monkeypatch.setattr("askalike.server.admission.time.monotonic", lambda: crowd.now_s)
        return crowd

    return make


def test_of_one_clients_waiting_connections_strange_ones_go_first_unless_they_have_just_come(
    crowd: Callable[..., Crowd],
) -> None:
    few = crowd(10)
    assert not few.admission.make_room()
    known = [few.comes(f"known {number}", "a", is_strange=False) for number in (1, 2)]
    for number in (1, 2):
        few.comes(f"stranger {number}", "a")
    few.now_s = 4.9
    assert few.admission.make_room()
    assert few.admission.make_room()
    assert few.closed == ["stranger 1", "stranger 2"]
    few.now_s = 5.0
    few.comes("has just come", "a")
    few.now_s += 0.001
    assert few.admission.make_room()
    assert known[1] is not None
    few.admission.note(known[1], "work")  # its client waits for the service now
    assert few.admission.make_room()
    assert not few.admission.make_room()
    assert few.closed[2:] == ["known 1", "has just come"]


def test_whoever_holds_most_connections_loses_one_for_the_next(crowd: Callable[..., Crowd]) -> None:
    full = crowd(8)
    full.comes("one of few", "192.0.2.1", is_strange=False)
    for number in range(50):
        assert full.comes(f"a {number}", "198.51.100.1") is not None
        assert full.comes(f"b {number}", f"2001:db8::{number}") is not None
    assert full.comes("another of few", "192.0.2.2") is not None
    assert not {"one of few", "another of few"} & set(full.closed)
    assert len(full.closed) == 102 - 8


def test_a_client_whose_connections_are_all_at_work_takes_none_of_those_who_hold_fewer(
    crowd: Callable[..., Crowd],
) -> None:
    full = crowd(4)
    full.comes("one of few", "192.0.2.1")
    for number in range(3):
        member = full.comes(f"busy {number}", "192.0.2.9")
        assert member is not None
        full.admission.note(member, "work")
    assert full.comes("the next", "192.0.2.9") is None
    assert full.comes("a newcomer", "192.0.2.2") is not None
    assert full.closed == ["one of few"], "each has one now, and this one has waited"


def test_one_client_has_no_more_connections_than_its_limit_and_a_trusted_proxy_as_many_as_there_are(
    crowd: Callable[..., Crowd],
) -> None:
    few = crowd(100, most_of_one=3)
    for number in range(5):
        few.comes(f"client {number}", "192.0.2.1")
    assert few.closed == ["client 0", "client 1"]
    for number in range(90):
        few.comes(f"proxy {number}", "10.0.0.1")
    assert len(few.closed) == 2
    for number in range(20):
        few.comes(f"others {number}", f"198.51.100.{number // 2}")
    assert not any(name.startswith("proxy") for name in few.closed)


@pytest.mark.parametrize(
    ("limit", "connections", "forums"),
    [(64, 16, 1), (320, 64, 2), (1_024, 512, 6), (8_192, 512, 100), (None, 512, 100)],
)
def test_connections_and_open_forums_share_the_file_handles(
    limit: int | None, connections: int, forums: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource", reason="the system does not limit file handles")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY if limit is None else limit, 10_000))
    assert most_connections(Limits()) == Admission(Limits()).most == connections
    assert most_forums(Limits()) == forums
    assert most_connections(Limits(connections=2)) == 2
    assert most_forums(Limits(open_forums=1, threads=64)) == 1


def test_a_process_takes_as_many_file_handles_as_it_may_have() -> None:
    pytest.importorskip("resource", reason="the system does not limit file handles")
    program = (
        "import resource; from askalike.server.admission import raise_limit; one = resource.RLIMIT_NOFILE; "
        "resource.setrlimit(one, (100, 200)); raise_limit(); print(resource.getrlimit(one))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "(200, 200)\n"


def test_who_is_given_up_hears_whether_something_may_have_been_done() -> None:
    async def steps() -> None:
        pool, is_free = Pool("test", 1, 2), threading.Event()
        with pytest.raises(Refused) as begun:
            await pool.run(lambda: is_free.wait(60), 0.01)
        with pytest.raises(Refused) as waited:
            await pool.run(lambda: is_free.wait(60), 0.01)
        is_free.set()
        assert "may be stored all the same" in begun.value.hint
        assert "nothing was done" in waited.value.hint
        assert pool.close(60)

    asyncio.run(steps())


def test_what_waits_is_made_together_and_each_gets_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> list[list[int]]:
        batches, is_free, has_begun = list[list[int]](), threading.Event(), threading.Event()

        def together(numbers: Sequence[int]) -> list[int]:
            batches.append(list(numbers))
            has_begun.set()
            assert is_free.wait(60)
            return [number * number for number in numbers]

        pool = Pool("test", 2, 100, together)
        names = ["greedy"] * 10 + ["a", "b"]
        tasks = [asyncio.create_task(pool.run(Batched(number), 60, name)) for number, name in enumerate(names, start=1)]
        while not has_begun.is_set():
            await asyncio.sleep(0.001)
        assert await pool.run(lambda: 7, 60) == 7  # another thread is free for what is not made together
        is_free.set()
        assert await asyncio.gather(*tasks) == [number * number for number in range(1, 13)]
        assert pool.busy == 0
        assert pool.close(60)
        return batches

    monkeypatch.setattr(pool_module, "MAX_HOLD_S", 60)  # however slow the machine is
    first, *others = asyncio.run(steps())
    assert first == [1], "who comes to nobody waits for nobody"
    assert others == [[2, 11, 12, 3, 4, 5, 6, 7], [8, 9, 10]], "clients take turns, and eight are made at once"


def test_those_that_take_long_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        is_free = threading.Event()

        def together(numbers: Sequence[int]) -> list[int]:
            assert numbers != [1] or is_free.wait(60)
            return [number * number for number in numbers]

        pool = Pool("test", 2, 10, together)
        long = asyncio.create_task(pool.run(Batched(1), 60))
        await asyncio.sleep(0)
        assert await pool.run(Batched(2), 60) == 4
        assert not long.done()
        is_free.set()
        assert await long == 1
        assert await pool.run(Batched(3), 60) == 9
        assert pool.busy == 0
        assert pool.close(60)

    monkeypatch.setattr(pool_module, "MAX_HOLD_S", 0.01)
    asyncio.run(steps())


def test_large_calls_leave_a_thread_to_the_others() -> None:
    async def steps() -> None:
        pool, is_free = Pool("test", 2, 10), threading.Event()
        large = [asyncio.create_task(pool.run(lambda: is_free.wait(60), 60, "a", is_large=True)) for _ in range(3)]
        await asyncio.sleep(0)
        assert await pool.run(lambda: 7, 60, "b") == 7
        assert await pool.run(lambda: 8, 60, "c") == 8
        assert pool.busy == 3
        is_free.set()
        assert await asyncio.gather(*large) == [True] * 3
        alone = Pool("test", 1, 10)
        assert await alone.run(lambda: 9, 60, is_large=True) == 9
        assert pool.close(60)
        assert alone.close(60)

    asyncio.run(steps())


def test_who_waits_in_vain_takes_no_thread() -> None:
    async def steps() -> None:
        pool, is_free = Pool("test", 1, 2), threading.Event()
        working = asyncio.create_task(pool.run(lambda: is_free.wait(60), 60))
        await asyncio.sleep(0)
        for _ in range(5):
            with pytest.raises(Refused, match="longer than"):
                await pool.run(lambda: pytest.fail("it was given up"), 0.001, "other")
        given_up = asyncio.create_task(pool.run(lambda: pytest.fail("it was given up"), 60, "other"))
        await asyncio.sleep(0)
        given_up.cancel()
        assert await asyncio.gather(given_up, return_exceptions=True) != []
        assert pool.busy == 1
        is_free.set()
        assert await working
        assert await pool.run(lambda: 7, 60) == 7
        assert pool.close(60)

    asyncio.run(steps())


@pytest.mark.parametrize("is_large", [False, True])
def test_where_no_thread_can_be_started_a_call_fails_and_its_place_is_free_again(
    is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def steps() -> None:
        pool = Pool("test", 2, 1)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", fail)
            for _ in range(5):
                with pytest.raises(RuntimeError, match="start new thread"):
                    await pool.run(lambda: 7, 60, is_large=is_large)
        assert pool.busy == 0
        assert await asyncio.gather(*(pool.run(lambda: 8, 60, is_large=is_large) for _ in range(3))) == [8] * 3
        assert pool.close(60)

    asyncio.run(steps())


# -- what is sent ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("markup", ["html", "markdown", "plain"])
@pytest.mark.parametrize(
    "body",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">x</a>',
        '<a href="JaVaScRiPt&colon;alert(1)">x</a>',
        '<a href=" java\nscript:alert(1)">x</a>',
        '<a href="data:text/html,<script>alert(1)</script>">x</a>',
        "<svg><script>alert(1)</script></svg>",
        "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
        "<iframe src=//evil></iframe>",
        "<form action=//evil><input name=x></form>",
        "<p style='background:url(//evil)' class=x id=y onclick=z>t</p>",
        "<base href=//evil><meta http-equiv=refresh content=0><link rel=stylesheet href=//evil>",
        "[x](javascript:alert(1)) ![x](http://evil/x.png)",
        "<scr<script>ipt>alert(1)</scr</script>ipt>",
        "<<b>script>alert(1)<</b>/script>",
        "<div>" * 5000 + "<script>alert(1)</script>",
        "\x00<\x00script>alert(1)</script>",
    ],
)
def test_nothing_in_a_post_runs_or_loads(body: str, markup: Markup) -> None:
    from selectolax.lexbor import LexborHTMLParser

    shown = safe_html(body, markup)
    tree = LexborHTMLParser(f"<body>{shown}</body>")
    assert tree.body is not None
    for node in tree.body.css("*"):
        assert node.tag in {"body", "p", "br", "b", "a", "table", "div"}, shown
        assert node.tag != "div", shown
        for name, value in node.attributes.items():
            assert name in ("href", "rel"), shown
            assert name != "href" or str(value).startswith(("http:", "https:", "mailto:")), shown


def test_a_very_long_post_is_shown_as_text() -> None:
    assert safe_html("*a* " * LONGEST_MARKDOWN, "markdown").startswith("<p>a a ")
    assert safe_html("<i>x</i>" * 2000, "html").startswith("<p>xxx")


REL = 'rel="nofollow noopener noreferrer"'


@pytest.mark.parametrize(
    ("body", "markup", "shown"),
    [
        (
            "<p>See <img alt='a &amp; b' src=https://x.y/1.png></p>",
            "html",
            f'<p>See <a href="https://x.y/1.png" {REL}>image: a &amp; b</a></p>',
        ),
        ("![the log](https://x.y/1.png)", "markdown", f'<p><a href="https://x.y/1.png" {REL}>image: the log</a></p>\n'),
        ("a<IMG SRC='/relative.png' alt='b'>", "html", "ab"),
        ("<img src=javascript:alert(1) alt='\"><script>x()</script>'>", "html", "'&gt;"),
        ("`<img src=x>`", "markdown", "<p><code>&lt;img src=x&gt;</code></p>\n"),
        ('<a title="<img src=http://x onerror=y()>" href="https://z">z</a>', "html", None),
    ],
)
def test_images_become_links_and_nothing_is_loaded(body: str, markup: Markup, shown: str | None) -> None:
    html = safe_html(body, markup)
    assert "<img" not in html
    assert "onerror=" not in html.replace("&", "")
    assert shown is None or html == shown


def test_many_images_that_never_end_take_no_time_to_speak_of() -> None:
    assert "<img" not in safe_html("<img src='" * 900, "html")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Printers print", [(0, 8)]),
        ("🙂 printer, printer", [(2, 9), (11, 18)]),
        ("reprinter", []),
        ("", []),
        ("printer " * 3, [(0, 7), (8, 15), (16, 23)]),
    ],
)
def test_words_are_found_where_they_stand(text: str, expected: list[tuple[int, int]]) -> None:
    assert highlights(text, [Match("printer", "title", 1.0)], ANALYZER) == list(map(list, expected))
    assert highlights(text, [], ANALYZER) == []


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("無線LANが切れる", ["LAN"], [(2, 5)]),
        ("無線LANが切れる", ["無", "線", "切"], [(0, 2), (6, 7)]),
        ("プリンタで印刷できない。プリンタ", ["プリンタ", "印"], [(0, 4), (5, 6), (12, 16)]),
        ("打印机 无法打印", ["打"], [(0, 1), (6, 7)]),
        ("พิมพ์ไม่ได้ ครับ", ["ครับ"], [(12, 16)]),
        ("x ｄｏｎ’ｔ Core™", ["Core™"], [(8, 13)]),
        ("see /etc/hosts.", ["hosts"], [(4, 14)]),
    ],
)
def test_words_are_found_where_the_tokens_are_in_scripts_without_spaces(
    text: str, words: list[str], expected: list[tuple[int, int]]
) -> None:
    ranges = highlights(text, [Match(word, "title", 1.0) for word in words], ANALYZER)
    assert ranges == list(map(list, expected))


def test_only_files_of_the_table_are_served(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("a")
    (tmp_path / "secret.py").write_text("b")
    (tmp_path / "link.js").symlink_to("/etc/hostname")
    (tmp_path / "widget").mkdir()
    (tmp_path / "widget" / "w.js").write_text("c")
    files = static_files(tmp_path)
    assert set(files) == {"/", "/index.html", "/widget/w.js"}
    assert files["/widget/w.js"].is_embedded
    assert not files["/"].is_embedded


@pytest.mark.parametrize("host", ["https://a.example", "a.example/", "a example", "::1", "bücher.example", ""])
def test_what_no_browser_sends_is_no_hosts_name(host: str) -> None:
    with pytest.raises(SettingError, match="no host's name"):
        ServeSettings("f", allow_hosts=(host,))


@pytest.mark.parametrize(
    ("is_json", "line"),
    [
        (False, "Z info worker {worker}: method POST, path /v1/similar, status 200"),
        (True, '"worker": {worker}, "method": "POST", "path": "/v1/similar", "status": 200}}'),
    ],
)
def test_the_log_is_in_words_or_where_asked_for_in_json(is_json: bool, line: str) -> None:
    record = logging.LogRecord("askalike.server", logging.INFO, "", 0, "answered", (), None)
    record.fields = {"method": "POST", "path": "/v1/similar", "status": 200}
    assert Lines(is_json=is_json).format(record).endswith(line.format(worker=os.getpid()))
