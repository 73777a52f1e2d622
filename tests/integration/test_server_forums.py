"""Several forums in one service: their paths, keys and counts, opened when they are asked for and closed for others."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from starlette.testclient import TestClient
from tests.command import Run

from askalike import Forum, Question
from askalike.errors import DatabaseError
from askalike.server.forums import ForumsApplication
from askalike.server.guards import Keys
from askalike.server.service import Service
from askalike.server.settings import Limits, ServeSettings
from askalike.store.layout import forum_names

pytestmark = pytest.mark.usefixtures("words_alone")

LIMITS = Limits(rate=0, timeout_s=120)
Serve = Callable[..., TestClient]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, words_alone: None) -> Path:
    path = tmp_path_factory.mktemp("network")
    for name, title in (("travel", "Visa for a layover in Doha"), ("cooking", "Rice sticks to the pan")):
        with Forum.create(path / name) as forum:
            forum.add([Question(f"{name}/1", title)])
    (path / "notes").mkdir()
    return path


@pytest.fixture
def serve(folder: Path) -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(**settings: object) -> TestClient:
            serve_settings = ServeSettings(str(folder), **{"limits": LIMITS, **settings})  # type: ignore[arg-type]
            return stack.enter_context(TestClient(ForumsApplication(serve_settings), base_url="http://localhost:8765"))

        yield start


def test_each_forum_answers_under_its_own_name(serve: Serve) -> None:
    client = serve()
    for name, title in (("travel", "visa layover"), ("cooking", "rice sticks")):
        hits = client.post(f"/{name}/v1/similar", json={"title": title}).json()["hits"]
        assert [hit["question"]["id"] for hit in hits] == [f"{name}/1"]
        assert client.get(f"/{name}/v1/questions/{name}%2F1").json()["question"]["id"] == f"{name}/1"
        assert client.get(f"/{name}/v1/status").json()["forum"]["name"] == name
        assert "askalike" in client.get(f"/{name}/").text
    assert client.get("/travel", follow_redirects=False).headers["location"] == "travel/"


def test_what_holds_no_forum_is_not_found(serve: Serve) -> None:
    client = serve()
    for path in ("/notes/", "/nothing/v1/status", "/..%2F/x", "/%00/", "/-", "/v1/similar"):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert answer.json()["error"]
    answer = client.post("/cardan/v1/similar", json={"title": "x"})
    refusal = {"error": "there is no forum 'cardan'", "hint": "/v1/forums lists them"}
    assert (answer.status_code, answer.json()) == (404, refusal)
    assert "/v1/forums" in client.post("/v1/similar", json={"title": "x"}).json()["hint"]


OUTSIDE = (
    "/../outside/v1/status",
    "/travel/../../outside/v1/status",
    "/%2e%2e/outside/v1/status",
    "/..%2foutside/v1/status",
    "/..%5coutside/v1/status",
    "//outside/v1/status",
    "/.hidden/v1/status",
    "/travel%00/v1/status",
    "/travel/%2e%2e/cooking/v1/status",
    "/travel/archive.sqlite",
    "/travel/keys.json",
    "/keys.json",
)


async def status_of(forums: ForumsApplication, path: str) -> int:
    """Return the status of a GET whose path reaches the service as it is written."""
    messages: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        messages.append(message)

    headers = [(b"host", b"localhost:8765")]
    scope = {"type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(), "query_string": b""}
    await forums({**scope, "headers": headers, "client": ("127.0.0.1", 1), "app": forums}, receive, send)
    return int(messages[0]["status"])


def test_no_path_leads_out_of_the_folder_or_to_a_file(serve: Serve, folder: Path) -> None:
    for path in (folder.parent / "outside", folder / ".hidden"):
        shutil.copytree(folder / "travel", path)
    client, forums = serve(), ForumsApplication(ServeSettings(str(folder), limits=LIMITS))
    try:
        for path in OUTSIDE:
            assert asyncio.run(status_of(forums, path)) == 404, path
        for name in ("../../x", "..", "a/../b", "\x01"):  # ids name rows, and no files
            address = "/travel/v1/questions/" + quote(name, safe="").replace(".", "%2E")
            assert client.put(address, json={"title": "a title"}).json()["id"] == name
            assert client.delete(address).status_code == 200
    finally:
        for path in (folder.parent / "outside", folder / ".hidden"):
            shutil.rmtree(path)


def test_a_forum_does_not_take_the_service_s_own_addresses(
    folder: Path, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    names = ("v1", "healthz", "style.css")
    for name in names:
        shutil.copytree(folder / "travel", folder / name)
    try:
        client = serve()
        assert [forum["name"] for forum in client.get("/v1/forums").json()["forums"]] == ["cooking", "travel"]
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/style.css").headers["content-type"].startswith("text/css")
        for name in names:
            assert f"the forum {name} is not served" in caplog.text
    finally:
        for name in names:
            shutil.rmtree(folder / name)


def test_all_forums_are_listed(serve: Serve) -> None:
    client = serve()
    client.get("/travel/v1/status")
    assert client.get("/v1/forums").json()["forums"] == [
        {"name": "cooking", "path": "/cooking/", "is_open": False},
        {"name": "travel", "path": "/travel/", "is_open": True},
    ]
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert '<a href="travel/">travel</a>' in page.text
    assert client.get("/style.css").status_code == 200
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_a_forum_opens_with_its_own_keys_or_with_those_of_the_service(serve: Serve, folder: Path, run: Run) -> None:
    own = Keys(folder / "travel").add("", "read")[1]
    assert run("keys", folder, "--add", "read").code == 0
    of_all = Keys(folder).add("", "read")[1]
    client = serve(host="0.0.0.0")
    assert client.get("/travel/v1/status").status_code == 401
    for name, key, expected in (
        ("travel", own, 200),
        ("cooking", own, 401),
        ("travel", of_all, 200),
        ("cooking", of_all, 200),
    ):
        answer = client.get(f"/{name}/v1/status", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == expected, (name, expected)
    listed = client.get("/v1/forums", headers={"Authorization": f"Bearer {own}"}).json()["forums"]
    assert [entry["name"] for entry in listed] == ["travel"]
    assert client.get("/v1/forums").json()["forums"] == []
    assert client.get("/v1/forums", headers={"Authorization": "Bearer x"}).status_code == 401
    assert client.get("/metrics", headers={"Authorization": f"Bearer {own}"}).status_code == 401
    assert client.get("/metrics", headers={"Authorization": f"Bearer {of_all}"}).status_code == 200


def test_counts_and_log_lines_are_kept_by_forum(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    client = serve()
    with caplog.at_level(logging.INFO):
        for name in ("travel", "travel", "cooking"):
            client.get(f"/{name}/v1/status")
    logged = [getattr(record, "fields", {}).get("forum") for record in caplog.records]
    assert [name for name in logged if name] == ["travel", "travel", "cooking"]
    every = client.get("/metrics").text
    assert 'askalike_requests_total{forum="travel",route="GET /v1/status",status="200"} 2.0' in every
    assert 'askalike_questions{forum="cooking"} 1.0' in every
    assert every.count("# TYPE askalike_requests_total") == 1
    own = client.get("/cooking/metrics").text
    assert 'askalike_requests_total{forum="cooking",route="GET /v1/status",status="200"} 1.0' in own
    assert "travel" not in own


def test_metrics_leave_out_what_a_forum_in_trouble_cannot_tell(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, size = serve(), Forum.__len__

    def fails(forum: Forum) -> int:
        if forum.path.name == "travel":
            raise DatabaseError("the database is away")
        return size(forum)

    for name in ("travel", "cooking"):
        assert client.get(f"/{name}/v1/status").status_code == 200
    monkeypatch.setattr(Forum, "__len__", fails)
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert 'askalike_questions{forum="cooking"} 1.0' in answer.text
    assert 'askalike_questions{forum="travel"}' not in answer.text
    for name in ("travel", "cooking"):
        assert f'askalike_requests_total{{forum="{name}",route="GET /v1/status",status="200"}} 1.0' in answer.text
    assert "of travel: the database is away" in caplog.text


def test_what_was_asked_least_recently_is_closed_for_another(serve: Serve) -> None:
    client = serve(limits=Limits(rate=0, timeout_s=120, open_forums=1))
    for name in ("travel", "cooking", "travel"):
        assert client.get(f"/{name}/v1/status").status_code == 200
        opened = [forum["name"] for forum in client.get("/v1/forums").json()["forums"] if forum["is_open"]]
        assert opened == [name]


@pytest.fixture
def slow_close(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Let the forum ``travel`` close slowly; return what is set once it begins, and what lets it end."""
    begins, may_end, close = threading.Event(), threading.Event(), Service.close

    def slowly(service: Service) -> None:
        if service.settings.folder.name == "travel":
            begins.set()
            assert may_end.wait(60)
        close(service)

    monkeypatch.setattr(Service, "close", slowly)
    return begins, may_end


def test_a_forum_that_is_asked_while_another_closes_for_a_third_stays_open(
    folder: Path, slow_close: tuple[threading.Event, threading.Event]
) -> None:
    begins, may_end = slow_close
    Forum.create(folder / "third").close()
    forums = ForumsApplication(ServeSettings(str(folder), limits=Limits(rate=0, timeout_s=120, open_forums=1)))

    async def steps() -> None:
        try:
            await forums.forum_named("travel").ensure_open()
            forums.served["travel"].busy += 1
            # more than may be open, since none could be closed
            service = await forums.forum_named("cooking").ensure_open()
            forums.served["travel"].busy -= 1
            opening = asyncio.create_task(forums.forum_named("third").ensure_open())
            assert await asyncio.to_thread(begins.wait, 60)
            forums.served["cooking"].busy += 1
            may_end.set()
            third = await opening
            assert forums.services == {"cooking": service, "third": third}
        finally:
            await forums.stop()

    try:
        asyncio.run(steps())
    finally:
        shutil.rmtree(folder / "third")


class Turn(threading.Semaphore):
    """A lock that somebody holds, and that shows whether another waits for it."""

    def __init__(self) -> None:
        super().__init__(0)
        self.is_wanted = threading.Event()

    def acquire(self, *arguments: Any, **named: Any) -> bool:
        self.is_wanted.set()
        return super().acquire(*arguments, **named)

    __enter__ = acquire


def test_a_forum_closes_while_another_has_the_turn_to_work_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askalike.server.service.PAUSE_S", 0.01)
    turn = Turn()
    service = Service.open(ServeSettings(str(folder / "travel")), turn=turn)
    assert turn.is_wanted.wait(60)
    service.close()
    assert service.maintenance.stop(0), "it has ended"


def test_a_forum_whose_work_takes_long_is_closed_after_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("askalike.server.service.CLOSE_S", 0.05)
    service, is_over, is_closed = (
        Service.open(ServeSettings(str(folder / "travel"))),
        threading.Event(),
        threading.Event(),
    )
    close = service.forum.close
    monkeypatch.setattr(service.forum, "close", lambda: (close(), is_closed.set()))

    async def search() -> None:
        search = asyncio.create_task(service.readers.run(lambda: is_over.wait(60), 60))
        await asyncio.sleep(0)
        service.close()
        assert not is_closed.is_set()
        is_over.set()
        assert await search

    asyncio.run(search())
    assert is_closed.wait(60)


def opened(client: TestClient) -> list[str]:
    """Return the names of the forums that are open."""
    app = client.app
    assert isinstance(app, ForumsApplication)
    return sorted(app.services)


def test_what_a_forum_would_refuse_does_not_open_it(serve: Serve, folder: Path) -> None:
    reads = {"Authorization": f"Bearer {Keys(folder / 'travel').add('', 'read')[1]}"}
    client, query = serve(host="0.0.0.0"), {"title": "visa"}
    app, portal = client.app, client.portal
    assert isinstance(app, ForumsApplication)
    assert portal is not None
    for method, path, headers, status in (
        ("GET", "/v1/status", {}, 401),
        ("HEAD", "/v1/status", {}, 401),
        ("POST", "/v1/similar", {}, 401),
        ("GET", "/v1/status", {"Authorization": "Bearer ask_wrong"}, 401),
        ("PUT", "/v1/questions/1", reads, 403),
        ("POST", "/v1/status", {}, 405),
        ("GET", "/v1/nothing", reads, 404),
    ):
        answer = client.request(method, f"/travel{path}", headers=headers, json=query)
        assert answer.status_code == status, path
        assert opened(client) == []
        if method != "HEAD":
            assert client.post("/travel/v1/similar", headers=reads, json=query).status_code == 200
            before = client.request(method, f"/travel{path}", headers=headers, json=query)
            assert (answer.status_code, answer.content) == (before.status_code, before.content)
            portal.call(app.served["travel"].close)
    local = serve()
    answer = local.get("/travel/v1/status", headers={"Host": "elsewhere.example"})
    assert (answer.status_code, opened(local)) == (421, [])


def test_what_needs_no_forum_does_not_open_one(serve: Serve) -> None:
    client = serve(host="0.0.0.0", allow_origins=("https://forum.example.org",))
    for path in ("", "widget.js", "healthz", "openapi.json"):
        assert client.get(f"/travel/{path}").status_code == 200, path
    preflight = {"Origin": "https://forum.example.org", "Access-Control-Request-Method": "POST"}
    answer = client.options("/travel/v1/similar", headers=preflight)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, preflight["Origin"])
    assert opened(client) == []


def test_who_asks_too_often_is_refused_by_all_forums_and_opens_none(serve: Serve) -> None:
    client = serve(limits=Limits(rate=0.001, burst=3, timeout_s=120))
    assert client.get("/travel/v1/status").status_code == 200
    assert client.get("/v1/forums").status_code == 200
    assert client.get("/").status_code == 200
    for path in ("/travel/v1/status", "/cooking/v1/status", "/cooking/readyz", "/v1/forums", "/", "/metrics"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]) == (429, "too many requests"), path
    assert client.get("/healthz").status_code == 200
    assert opened(client) == ["travel"]


def test_who_waits_too_long_for_a_forum_to_open_is_refused_and_it_opens_all_the_same(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_open, open_service = threading.Event(), Service.open
    monkeypatch.setattr(Service, "open", lambda *arguments: (may_open.wait(60), open_service(*arguments))[1])
    client = serve(limits=Limits(rate=0, timeout_s=0.01))
    answer = client.get("/travel/v1/status")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "not open within 0.01 s" in answer.json()["error"]
    may_open.set()
    for _ in range(1_000):
        if opened(client):
            break
        threading.Event().wait(0.01)
    assert opened(client) == ["travel"]


def test_many_who_ask_at_once_open_a_forum_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve()
    times: list[int] = []
    open_service = Service.open
    monkeypatch.setattr(Service, "open", lambda *arguments: (times.append(1), open_service(*arguments))[1])
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(client.get("/travel/v1/status").status_code)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 8
    assert times == [1]


def test_a_damaged_forum_keeps_no_other_from_answering(serve: Serve, folder: Path) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "archive.sqlite").write_bytes(b"nothing of the kind" * 100)
    try:
        client = serve()
        answer = client.get("/broken/v1/status")
        assert answer.status_code == 500
        assert "archive.sqlite" in answer.json()["error"]
        for method in ("POST", "PUT", "DELETE"):
            path = "/broken/v1/similar" if method == "POST" else "/broken/v1/questions/1"
            answer = client.request(method, path, json={"title": "wifi"})
            assert (answer.status_code, "archive.sqlite" in answer.json()["error"]) == (500, True), method
        assert client.get("/travel/v1/status").status_code == 200
    finally:
        (folder / "broken" / "archive.sqlite").unlink()
        (folder / "broken").rmdir()


@pytest.mark.parametrize("error", [OSError("Too many open files"), RuntimeError("can't start new thread")])
def test_why_a_forum_cannot_be_opened_is_told_as_json_whatever_the_reason(
    serve: Serve, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Service:
        raise error

    client = serve()
    monkeypatch.setattr(Service, "open", fail)
    answer = client.get("/travel/v1/status")
    assert (answer.status_code, set(answer.json())) == (500, {"error", "hint"})
    assert answer.headers["x-request-id"]


def test_a_forum_that_is_put_there_later_is_found(serve: Serve, folder: Path) -> None:
    client = serve()
    assert client.get("/later/v1/status").status_code == 404
    Forum.create(folder / "later").close()
    assert client.get("/later/v1/status").status_code == 200
    assert forum_names(folder) == ["cooking", "later", "travel"]


def test_a_service_for_others_needs_a_key_for_each_forum(tmp_path: Path, run: Run) -> None:
    for name in ("a", "b"):
        Forum.create(tmp_path / name).close()
    Keys(tmp_path / "a").add("", "read")
    done = run("serve", tmp_path, "--host", "0.0.0.0")
    assert done.code == 2
    assert f"askalike keys {tmp_path / 'b'} --add write" in " ".join(done.err.split())
