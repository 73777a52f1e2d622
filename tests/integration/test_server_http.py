"""The service over HTTP, in this process: statuses, headers, keys, limits, hostile requests."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from askalike import Answer, Forum, Link, Question
from askalike.errors import DamagedForumError
from askalike.operations import OPERATIONS
from askalike.schemas import Similar, SimilarHit
from askalike.server import routes
from askalike.server.app import build
from askalike.server.guards import Keys
from askalike.server.handlers import Handlers
from askalike.server.settings import Limits, ServeSettings

pytestmark = pytest.mark.usefixtures("words_alone")

BASE = "http://localhost:8765"
LIMITS = Limits(rate=0, body_bytes=500_000, timeout_s=120)
AWAY = {"host": "0.0.0.0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, words_alone: None) -> Path:
    path = tmp_path_factory.mktemp("serve") / "f.forum"
    with Forum.create(path) as forum:
        forum.add(
            [
                Question("1", "Wifi drops at night", "<p>All <b>lights</b> blink</p>", "html"),
                Question("a/b c", "Printer prints blank pages", tags=("printer",)),
                Question("3", "Printer prints only blank pages"),
            ]
        )
        forum.store.add_answers([Answer("x", "1", "<script>x()</script><p>Move it</p>", "html")])
        forum.store.put_links([Link("3", "a/b c")])
    return path


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(build(ServeSettings(str(folder), limits=LIMITS)), base_url=BASE) as client:
        yield client


@pytest.fixture
def other(folder: Path) -> Iterator[Any]:
    """Give a way to serve the same forum by other settings."""
    opened: list[TestClient] = []

    def make(**settings: Any) -> TestClient:
        client = TestClient(build(ServeSettings(str(folder), **{"limits": LIMITS, **settings})), base_url=BASE)
        opened.append(client)
        return client.__enter__()

    yield make
    for client in opened:
        client.__exit__(None, None, None)


def search(client: TestClient, **fields: Any) -> Any:
    return client.post("/v1/similar", json={"title": "wifi drops", **fields})


# -- what is asked for -------------------------------------------------------------------------------------------------


def test_a_hit_has_highlights_its_best_answer_and_what_was_attended(client: TestClient) -> None:
    result = search(client, body="lights of the router")
    assert result.status_code == 200
    (hit,) = result.json()["hits"]
    assert hit["highlights"] == {"title": [[0, 4], [5, 10]], "excerpt": [[4, 10]]}
    assert hit["best_answer"]["text"] == "Move it"
    assert "html" not in hit["best_answer"]


def test_a_hit_has_only_the_fields_that_are_asked_for(client: TestClient) -> None:
    (hit,) = search(client, fields=["score", "question.url", "best_answer.html"]).json()["hits"]
    assert hit.keys() == {"score", "question", "best_answer"}
    assert hit["question"] == {"id": "1", "title": hit["question"]["title"], "url": ""}
    assert hit["best_answer"] == {"html": "<p>Move it</p>"}
    (hit,) = search(client, fields=["score"]).json()["hits"]
    assert hit.keys() == {"score", "question"}
    assert hit["question"].keys() == {"id", "title"}
    refused = search(client, fields=["question.nothing"])
    assert refused.status_code == 422
    assert "fields" in refused.json()["error"]


def test_an_operation_without_a_handler_fails_when_the_application_is_built(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = {operation: handler for operation, handler in routes.HANDLERS.items() if operation.path != "/v1/log"}
    monkeypatch.setattr(routes, "HANDLERS", handlers)
    with pytest.raises(KeyError, match="/v1/log"):
        build(ServeSettings(str(folder)))


def test_a_stand_in_says_by_what_it_was_found(client: TestClient) -> None:
    (hit,) = search(client, title="only blank pages").json()["hits"]
    title = "Printer prints only blank pages"
    assert (hit["question"]["id"], hit["via"]["id"], hit["via"]["title"]) == ("a/b c", "3", title)
    assert [title[start:end] for start, end in hit["via"]["highlights"]] == ["blank", "pages"]
    assert ({match["word"] for match in hit["matched"]}, hit["missing"]) == ({"blank", "pages"}, [])


def test_searches_that_wait_are_answered_together(other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    is_seen, may_go, real = threading.Event(), threading.Event(), Handlers.similar_many

    def waiting(handlers: Handlers, requests: Sequence[Any]) -> list[Similar]:
        sizes.append(len(requests))
        is_seen.set()
        may_go.wait(120)
        return real(handlers, requests)

    monkeypatch.setattr(Handlers, "similar_many", waiting)
    client = other(limits=replace(LIMITS, threads=1))
    ids = ["1", "3", "nowhere", "a/b c"]
    with ThreadPoolExecutor(1 + len(ids)) as several:
        first = several.submit(search, client)
        assert is_seen.wait(120)
        others = [several.submit(search, client, id=identifier, title="") for identifier in ids]
        while client.app.forum.service.readers.busy < 1 + len(ids):
            time.sleep(0.01)
        may_go.set()
        assert first.result().status_code == 200
        assert [request.result().status_code for request in others] == [200, 200, 404, 200]
    assert sizes == [1, 4, 1, 1, 1, 1]  # together, and each alone since one of them cannot be answered
    together = [others[place].result().json()["hits"] for place in (0, 1, 3)]
    assert together == [search(client, id=ids[place], title="").json()["hits"] for place in (0, 1, 3)]
    assert [hit["question"]["id"] for hit in together[1]]


def test_an_id_may_hold_anything_that_a_path_can_encode(client: TestClient) -> None:
    answer = client.get("/v1/questions/a%2Fb%20c")
    assert answer.json()["question"]["id"] == "a/b c"
    assert answer.json()["links"][0]["direction"] == "from"
    assert search(client, id="a/b c", title="", k=1).json()["hits"] == []  # its only neighbour is its own duplicate
    for identifier in ("%2Fsimilar", "a%252Fb", "%F0%9F%99%82", "x%3Ay", "..%2F..%2Fetc", "similar"):
        path = f"/v1/questions/{identifier}"
        assert client.put(path, json={"title": "odd"}).status_code == 200
        assert client.get(path).status_code == 200
        assert client.delete(path).json()["operation"] == "deleted"


def test_a_question_is_put_read_and_deleted(client: TestClient) -> None:
    written = client.put(
        "/v1/questions/new", json={"title": "Toaster 🙂 burns", "created": "2024-05-01", "tags": ["x"]}
    )
    assert written.json() == {"id": "new", "operation": "added", "indexed": True}
    assert client.get("/v1/questions/new").json()["question"]["created"] == "2024-05-01T00:00:00Z"
    answer = client.get("/v1/questions/1").json()
    assert (answer["html"], answer["text"]) == ("<p>All <b>lights</b> blink</p>", "All lights blink")
    hostile = {"title": "t", "body": "<script>x()</script><p onclick='x()'>Hot</p>", "markup": "html"}
    assert client.put("/v1/questions/hostile", json=hostile).json()["operation"] == "added"
    assert client.get("/v1/questions/hostile").json()["html"] == "<p>Hot</p>"
    assert client.delete("/v1/questions/hostile").status_code == 200
    assert search(client, title="toaster").json()["hits"][0]["question"]["id"] == "new"
    assert search(client, title="toaster", id="new").json()["hits"] == []
    assert client.get("/v1/questions?limit=1").json()["questions"][0]["id"] == "new"
    assert client.put("/v1/questions/new", json={"title": "x", "id": "old"}).status_code == 422
    refused = client.put("/v1/questions/new", json={"title": "  "})
    assert (refused.status_code, refused.json()["error"]) == (422, "question 'new': title and body are empty")
    assert search(client, title="toaster").json()["hits"][0]["question"]["id"] == "new"
    assert client.delete("/v1/questions/new").json()["operation"] == "deleted"
    assert client.delete("/v1/questions/new").status_code == 404
    assert search(client, title="toaster").json()["hits"] == []


def test_answers_and_marks_are_put_and_taken_away(client: TestClient) -> None:
    client.put("/v1/questions/copy", json={"title": "Wifi copy"})
    answer = {"question_id": "copy", "body": "*Yes*", "markup": "markdown", "accepted": True, "created": "2024-05-01"}
    assert client.put("/v1/answers/y%2F1", json=answer).json() == {"id": "y/1", "operation": "added", "indexed": True}
    assert client.put("/v1/answers/y%2F1", json=answer).json()["operation"] == "unchanged"
    assert client.put("/v1/answers/y%2F1", json={**answer, "score": 3}).json()["operation"] == "edited"
    (stored,) = client.get("/v1/questions/copy").json()["answers"]
    assert (stored["id"], stored["html"], stored["accepted"], stored["score"]) == (
        "y/1",
        "<p><em>Yes</em></p>\n",
        True,
        3,
    )
    assert client.put("/v1/answers/z", json={**answer, "question_id": "none"}).status_code == 404
    assert client.put("/v1/answers/z", json={**answer, "id": "other"}).status_code == 422
    mark = "/v1/questions/copy/originals/1"
    assert client.put(mark).json()["operation"] == "added"
    assert client.put(mark).json()["operation"] == "unchanged"
    hits = search(client, title="wifi copy").json()["hits"]
    assert [(hit["question"]["id"], hit["via"]["id"]) for hit in hits] == [("1", "copy")]
    assert client.delete(mark).json()["operation"] == "deleted"
    assert client.delete(mark).status_code == 404
    assert client.put("/v1/questions/copy/originals/copy").status_code == 422
    assert client.put("/v1/questions/copy/originals/none").status_code == 404
    assert client.delete("/v1/answers/y%2F1").json()["operation"] == "deleted"
    assert client.delete("/v1/answers/y%2F1").status_code == 404
    assert client.delete("/v1/questions/copy").status_code == 200


def test_a_decision_has_to_fit(client: TestClient) -> None:
    decision = {"question": "1", "candidate": "3", "verdict": "different"}
    drawn = {"by": "sample", "probability": 0.25}
    for unfit in ({**drawn, "by": "guess"}, {**drawn, "probability": 2}, {**drawn, "more": 2}):
        assert client.post("/v1/decisions", json={**decision, "draw": unfit}).status_code == 422
    assert client.post("/v1/decisions", json={**decision, "candidate": "none"}).status_code == 404
    assert client.post("/v1/decisions", json={**decision, "candidate": "1"}).status_code == 422


def test_a_queue_of_a_tag_holds_the_pairs_of_which_a_question_has_it(client: TestClient) -> None:
    assert client.put("/v1/questions/twin", json={"title": "Printer prints pages that are blank"}).status_code == 200
    client.app.forum.service.forum.pairs.compare()  # type: ignore[attr-defined]
    parameters = {"minimum": 0.01, "limit": 1}
    pairs = []
    while True:
        page = client.get("/v1/duplicates", params={**parameters, "tag": "printer"}).json()
        pairs += page["pairs"]
        if page["next"] is None:
            break
        parameters["cursor"] = page["next"]
    named = [{pair["question"]["id"], pair["candidate"]["id"]} for pair in pairs]
    assert {"twin", "a/b c"} in named
    assert all("a/b c" in name for name in named)
    assert client.get("/v1/duplicates?minimum=0.01&tag=none").json()["pairs"] == []
    assert client.delete("/v1/questions/twin").status_code == 200


def test_the_service_tells_how_it_does(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    search(client)
    state = client.get("/v1/status").json()
    assert state["forum"]["name"] == "f.forum"
    assert state["service"]["may"] == {"read": True, "write": True}
    assert state["service"]["requests"] >= 1
    text = client.get("/metrics").text
    assert 'askalike_requests_total{route="POST /v1/similar",status="200"' in text
    for stage in ("lexical", "vector", "rank", "answer"):
        assert f'askalike_stage_seconds_count{{stage="{stage}"' in text
    assert client.get("/openapi.json").json()["openapi"] == "3.1.0"


def test_suggestions_are_counted_by_what_becomes_of_them(other: Any) -> None:
    counting = other()
    assert len(search(counting).json()["hits"]) == 1
    assert counting.post("/v1/questions/1/opened").json() == {"id": "1"}
    assert counting.post("/v1/questions/nowhere/opened").status_code == 404
    times = counting.post("/v1/questions/1/helped").json()["times"]
    assert counting.get("/v1/status").json()["helped"] == {"times": times, "questions": 1}
    counts = dict(re.findall(r'askalike_suggestions_total{event="(\w+)"} (\S+)', counting.get("/metrics").text))
    assert counts == {"shown": "1.0", "opened": "1.0", "helped": "1.0"}


def test_every_answer_is_of_the_type_that_its_route_names(client: TestClient) -> None:
    kinds = {f"{row.method} {row.path}": row.returns for row in OPERATIONS}
    put = {"title": "Shape of a question", "created": "2024-05-01T12:00:00.5+02:00", "tags": ["x"], "score": 3}
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT /v1/questions/{id}", "/v1/questions/shape", put),
        ("PUT /v1/answers/{id}", "/v1/answers/shape", {"question_id": "shape", "body": "Round", "accepted": True}),
        ("PUT /v1/questions/{id}/originals/{original}", "/v1/questions/shape/originals/1", {}),
        (
            "POST /v1/decisions",
            "/v1/decisions",
            {"question": "1", "candidate": "3", "verdict": "different", "by": "ann"},
        ),
        ("POST /v1/decisions/undo", "/v1/decisions/undo", {"number": 1}),
        ("GET /v1/log", "/v1/log", {}),
        ("POST /v1/questions/{id}/helped", "/v1/questions/shape/helped", {}),
        ("POST /v1/questions/{id}/opened", "/v1/questions/shape/opened", {}),
        (
            "POST /v1/similar",
            "/v1/similar",
            {"title": "shape of a question wifi", "fields": SimilarHit.__struct_encode_fields__},
        ),
        ("GET /v1/questions", "/v1/questions?limit=2", {}),
        ("GET /v1/questions/{id}", "/v1/questions/shape", {}),
        ("GET /v1/duplicates", "/v1/duplicates?minimum=0.2", {}),
        ("GET /v1/duplicates/groups", "/v1/duplicates/groups", {}),
        ("GET /v1/status", "/v1/status", {}),
        ("GET /readyz", "/readyz", {}),
        ("GET /healthz", "/healthz", {}),
        ("DELETE /v1/questions/{id}/originals/{original}", "/v1/questions/shape/originals/1", {}),
        ("DELETE /v1/answers/{id}", "/v1/answers/shape", {}),
        ("DELETE /v1/questions/{id}", "/v1/questions/shape", {}),
    ]
    lines = {"POST /v1/follow", "GET /metrics", "GET /openapi.json"}
    assert {name for name, _, _ in requests} | lines == set(kinds)
    for name, path, body in requests:
        answer = client.request(name.partition(" ")[0], path, json=body or None)
        assert answer.status_code == 200, answer.text
        value = msgspec.json.decode(answer.content, type=kinds[name])
        assert msgspec.json.encode(value) == answer.content, name


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/../pyproject.toml", 404),
        ("GET", "/%2e%2e/%2e%2e/pyproject.toml", 404),
        ("GET", "/page/index.html", 404),
        ("GET", "//etc/passwd", 404),
        ("GET", "/v1/questions/none", 404),
        ("GET", "/v1/questions/%ff", 400),
        ("GET", "/v1/questions/%ed%a0%80", 400),
        ("GET", "/v1/questions?limit=1000000", 422),
        ("GET", "/v1/questions?after=99999999999999999999999", 422),
        ("GET", "/v1/questions?after=_" + "9" * 30, 422),
        ("GET", "/v1/questions?after=x_1", 422),
        ("GET", "/v1/similar", 405),
        ("POST", "/v1/questions", 405),
        ("TRACE", "/v1/questions/1", 405),
        ("POST", "/v1/similar", 415),
    ],
)
def test_every_refusal_says_what_and_what_to_do(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "hint"}
    assert answer.headers["x-request-id"]


def test_a_ranker_that_the_forum_has_not_learned_is_a_conflict(client: TestClient) -> None:
    assert search(client, ranker="meaning").status_code == 409
    assert search(client, ranker="none").status_code == 422


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_send_is_no_change(client: TestClient, kind: str) -> None:
    answer = client.put("/v1/questions/form", content=b'{"title":"x"}', headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert client.get("/v1/questions/form").status_code == 404


HOSTILE: dict[str, bytes] = {
    "quotes that are escaped": b'{"title":[["' + b'\\"' * 200_000,
    "many values": b'{"title":[' + b"[]," * 150_000 + b"[]]}",
    "many fields": b"{" + b",".join(b'"%d":1' % n for n in range(40_000)) + b"}",
    "long field": b'{"' + b"a" * 400_000 + b'":1}',
    "empty": b"",
    "broken UTF-8": b'{"title":"\xff\xfe"}',
    "half a surrogate pair": b'{"title":"\\ud800"}',
    "NUL": b'{"title":"a\\u0000b wifi"}',
    "right-to-left marks": '{"title":"\u202ewifi\u202c \u2067drops\u2069"}'.encode(),
    "emoji": '{"title":"👩‍👩‍👧‍👦🏳️‍🌈 wifi"}'.encode(),
    "one-letter words": json.dumps({"title": "x", "body": "a " * 99_000}).encode(),
    "different words": json.dumps({"title": "x", "body": " ".join(f"w{n}" for n in range(28_000))}).encode(),
    "one long word": json.dumps({"title": "x", "body": "a" * 199_000}).encode(),
    "marks": json.dumps({"title": "e" + "\u0301" * 900, "body": "e" + "\u0301" * 9_000}).encode(),
    "too many letters": json.dumps({"title": "x", "body": "a " * 150_000}).encode(),
    "deep": b'{"title":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "deep HTML": json.dumps({"title": "x", "body": "<div>" * 9_000, "markup": "html"}).encode(),
    "deep Markdown": json.dumps({"title": "x", "body": "> " * 9_000 + "[" * 9_000, "markup": "markdown"}).encode(),
    "long number": b'{"title":"x","k":' + b"9" * 9_000 + b"}",
    "query syntax": b'{"title":"title:* AND (body:[a TO z] OR \\"x)^9 ~ wifi"}',
    "SQL": b'{"title":"x\'; DROP TABLE questions; --","exclude":["\' OR 1=1"],"tags":["\'"]}',
    "twice": b'{"title":"x","title":"y"}',
    "list": b"[]",
    "too large": b'{"title":"' + b"a" * 600_000 + b'"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_search_is_answered_or_refused(client: TestClient, name: str) -> None:
    answer = client.post("/v1/similar", content=HOSTILE[name], headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 400, 413, 422), answer.text[:200]
    assert answer.json()
    assert client.get("/v1/questions/1").status_code == 200  # nothing was dropped


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_question_is_stored_as_it_is_or_refused(client: TestClient, name: str) -> None:
    sent = client.put("/v1/questions/hostile", content=HOSTILE[name], headers={"Content-Type": "application/json"})
    assert sent.status_code in (200, 400, 413, 422), sent.text[:200]
    if sent.status_code == 200:
        question = client.get("/v1/questions/hostile").json()["question"]
        assert question["title"] == json.loads(HOSTILE[name])["title"]
        assert search(client, id="hostile", title="").status_code == 200
        client.delete("/v1/questions/hostile")


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_date_that_could_not_be_read_back_is_refused(client: TestClient, moment: str) -> None:
    for path, body in (
        ("questions/odd", {"title": "t", "created": moment}),
        ("questions/odd", {"title": "t", "closed": moment}),
        ("answers/odd", {"question_id": "1", "body": "b", "created": moment}),
    ):
        refused = client.put(f"/v1/{path}", json=body)
        assert refused.status_code == 422
        assert "years 1 to 9999" in refused.json()["hint"]
    assert client.get("/v1/questions/odd").status_code == 404
    assert search(client, before=moment).status_code == 200


def test_a_body_that_says_too_little_of_its_length_is_refused_while_it_comes(client: TestClient) -> None:
    parts = iter([b'{"title":"', *[b"a" * 100_000] * 6, b'"}'])
    answer = client.post("/v1/similar", content=parts, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_a_compressed_body_is_refused(client: TestClient) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.post("/v1/similar", content=b"x", headers=headers).status_code == 415


# -- who may ask -------------------------------------------------------------------------------------------------------


def test_who_probes_a_bare_address_is_answered_off_the_loopback_and_nobody_else(other: Any) -> None:
    def statuses(**settings: Any) -> list[int]:
        client = other(allow_hosts=("forum.example.org",), **settings)
        return [client.get(path, headers={"Host": "10.1.2.3:8765"}).status_code for path in paths]

    paths = ("/healthz", "/readyz", "/v1/status")
    assert statuses(host="0.0.0.0") == [200, 200, 421]
    assert statuses(host="127.0.0.1") == [421, 421, 421]


def test_elsewhere_a_key_says_who_may_do_what(folder: Path, other: Any) -> None:
    keys = Keys(folder)
    (reading, read), (writing, write) = keys.add("r", "read"), keys.add("w", "write")
    away = other(**AWAY)

    def status(method: str, path: str, key: str | None = None, **more: Any) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return int(away.request(method, path, headers=headers, **more).status_code)

    body = {"json": {"title": "wifi"}}
    assert status("GET", "/healthz") == status("GET", "/openapi.json") == 200
    for method, path in (
        ("GET", "/v1/questions/1"),
        ("GET", "/v1/status"),
        ("GET", "/metrics"),
    ):
        assert status(method, path) == 401
        assert status(method, path, "ask_wrong") == 401
        assert status(method, path, read) == status(method, path, write) == 200
    assert status("POST", "/v1/similar", None, **body) == 401
    assert status("POST", "/v1/similar", read, **body) == 200
    assert status("PUT", "/v1/questions/k", None, **body) == 401
    assert status("PUT", "/v1/questions/k", read, **body) == 403
    assert status("POST", "/v1/decisions", read, json={}) == 403
    for header, error, hint in (
        (None, "a key that may write is needed", "send it as Authorization: Bearer KEY"),
        (
            "Bearer ask_wrong",
            "the key is not known",
            'create one that may write with "askalike keys FORUM --add write"',
        ),
        (f"Basic {write}", "the header Authorization holds no key", "send it as Authorization: Bearer KEY"),
    ):
        answer = away.put("/v1/questions/k", headers={"Authorization": header} if header else {}, **body)
        assert (answer.status_code, answer.json()) == (401, {"error": error, "hint": hint})
    assert status("PUT", "/v1/questions/k", write, **body) == 200
    assert status("DELETE", "/v1/questions/k", write) == 200
    assert (
        away.get("/v1/status", headers={"Authorization": f"Bearer {read}"}).json()["service"]["may"]["write"] is False
    )
    keys.remove(reading.id)
    assert status("GET", "/v1/questions/1", read) == 401
    keys.remove(writing.id)


def test_a_name_that_was_made_to_lead_here_is_refused(client: TestClient) -> None:
    answer = client.get("/v1/questions/1", headers={"Host": "evil.example"})
    assert answer.status_code == 421


def test_a_page_of_another_site_can_neither_change_nor_read(client: TestClient) -> None:
    origin = {"Origin": "https://evil.example"}
    assert client.put("/v1/questions/e", json={"title": "e"}, headers=origin).status_code == 403
    assert client.delete("/v1/questions/1", headers=origin).status_code == 403
    read = client.post("/v1/similar", json={"title": "wifi"}, headers=origin)
    assert "access-control-allow-origin" not in read.headers
    form = {**origin, "Content-Type": "application/x-www-form-urlencoded"}
    times = client.get("/v1/status").json()["helped"]
    for path in ("/v1/questions/1/helped", "/v1/questions/1/opened", "/v1/decisions"):
        assert client.post(path, headers=form).status_code == 403, path
        assert client.post(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403, path
    assert client.get("/v1/status").json()["helped"] == times
    preflight = {**origin, "Access-Control-Request-Method": "PUT"}
    assert "access-control-allow-origin" not in client.options("/v1/questions/e", headers=preflight).headers


def test_a_page_of_an_allowed_site_can_read(other: Any) -> None:
    allowed = other(allow_origins=("https://forum.example",))
    origin = {"Origin": "https://forum.example"}
    preflight = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    before = allowed.options("/v1/similar", headers=preflight)
    assert before.status_code == 204
    assert before.headers["access-control-allow-origin"] == "https://forum.example"
    assert "Content-Type" in before.headers["access-control-allow-headers"]
    read = allowed.post("/v1/similar", json={"title": "wifi"}, headers=origin)
    assert (read.status_code, read.headers["access-control-allow-origin"]) == (200, "https://forum.example")
    other_site = allowed.post("/v1/similar", json={"title": "wifi"}, headers={"Origin": "https://forum.example.evil"})
    assert "access-control-allow-origin" not in other_site.headers
    assert allowed.put("/v1/questions/e", json={"title": "e"}, headers=origin).status_code == 403  # changes need a key
    voted = allowed.post("/v1/questions/1/helped", headers={**origin, "Sec-Fetch-Site": "cross-site"})
    assert voted.status_code == 200  # a vote does not
    refused = allowed.post("/v1/similar", json={}, headers=origin)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (422, "https://forum.example")


def test_the_log_names_a_site_whose_pages_may_not_read_once(other: Any, caplog: pytest.LogCaptureFixture) -> None:
    client = other(allow_origins=("https://forum.example",))
    preflight = {"Access-Control-Request-Method": "POST"}
    with caplog.at_level(logging.WARNING, logger="askalike.server"):
        for origin in ("https://forum.example", "https://other.example", "https://other.example"):
            client.options("/v1/similar", headers={**preflight, "Origin": origin})
    (line,) = [record.getMessage() for record in caplog.records]
    assert "'https://other.example'" in line
    assert "--allow-origin" in line


def test_who_asks_too_often_is_told_to_wait(other: Any) -> None:
    slow = other(limits=Limits(rate=0.001, burst=2))
    statuses = [search(slow).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    answer = search(slow)
    assert int(answer.headers["retry-after"]) > 0
    assert slow.get("/healthz").status_code == 200


def test_what_takes_too_long_is_given_up(other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    is_answered = threading.Event()
    hasty = other(limits=Limits(rate=0, timeout_s=0.05))
    monkeypatch.setattr(Forum, "similar_many", lambda *_, **__: is_answered.wait(60))
    try:
        assert search(hasty).status_code == 504
    finally:
        is_answered.set()


def test_who_finds_too_many_waiting_is_refused(other: Any) -> None:
    full = other(limits=Limits(rate=0, threads=1, waiting=-1))
    answer = search(full)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


class Panic(BaseException):
    """As those of libraries in Rust, which are no ``Exception``."""


@pytest.mark.parametrize("error", [ZeroDivisionError("secret"), Panic("secret")])
def test_an_error_that_nobody_foresaw_is_an_answer_too(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(Forum, "similar_many", fail)
    answer = search(client)
    assert (answer.status_code, set(answer.json())) == (500, {"error", "hint"})
    assert "secret" not in answer.text
    assert answer.headers["x-request-id"] in caplog.text


def test_a_service_whose_index_is_damaged_is_not_ready(other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: Any, **__: Any) -> None:
        raise DamagedForumError("the word index is damaged", 'rebuild it with "askalike reindex"')

    client = other()
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr("askalike.server.service.PROBE_EVERY_S", 0.0)
    monkeypatch.setattr(Forum, "similar_many", damaged)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"error": "the word index is damaged", "hint": 'rebuild it with "askalike reindex"'}
    monkeypatch.undo()
    monkeypatch.setattr("askalike.server.service.PROBE_EVERY_S", 0.0)
    assert client.get("/readyz").status_code == 200, "it was mended"


def test_watching_costs_one_search_a_second(other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    client = other()
    monkeypatch.setattr("askalike.server.service.PROBE_EVERY_S", 3600.0)
    monkeypatch.setattr(Forum, "similar", lambda *_, **__: searches.append(1))
    assert [client.get("/readyz").status_code for _ in range(5)] == [200] * 5
    assert len(searches) <= 1


# -- what is sent besides ----------------------------------------------------------------------------------------------


def test_every_answer_has_the_headers_that_protect(client: TestClient) -> None:
    for answer in (client.get("/v1/questions/1"), client.get("/none"), client.get("/")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert "server" not in answer.headers


def test_the_page_is_sent_and_asked_for_again_only_when_it_changed(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert client.get("/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    assert client.head("/").status_code == 200


def test_a_key_in_an_address_is_refused_and_not_logged(
    folder: Path, other: Any, caplog: pytest.LogCaptureFixture
) -> None:
    key = Keys(folder).add("", "write")[1]
    client = other(**AWAY, is_read_open=True)
    requests = (
        ("GET", f"/v1/questions/1?key={key}"),
        ("GET", f"/v1/status?access_token={key}"),
        ("GET", f"/healthz?{key}"),
        ("PUT", f"/v1/questions/new?api_key={key}"),
        ("GET", f"/{key}/v1/status"),
    )
    with caplog.at_level(logging.DEBUG, logger="askalike"):
        for method, address in requests:
            answer = client.request(method, address, json={"title": "Toaster"} if method == "PUT" else None)
            assert answer.status_code == 400, address
            assert "send it as Authorization: Bearer KEY" in answer.json()["hint"]
            assert key not in answer.text
        assert client.get("/v1/questions/1", headers={"Authorization": f"Basic {key}"}).status_code == 401
    assert key not in str([record.__dict__ for record in caplog.records if record.name.startswith("askalike")])


def test_the_log_tells_of_requests_without_their_texts(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="askalike.server.requests"):
        search(client, title="my secret wifi", body="my secret body")
        client.get("/v1/questions/secret-id")
    fields = [record.__dict__["fields"] for record in caplog.records]
    assert [(line["route"], line["status"]) for line in fields] == [
        ("POST /v1/similar", 200),
        ("GET /v1/questions/{id}", 404),
    ]
    assert "secret" not in str(fields)


def test_a_service_that_stops_does_not_wait_for_its_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Encoding many questions takes minutes, and goes on when the service starts."""
    is_encoding, is_over = threading.Event(), threading.Event()

    def encode() -> bool:
        is_encoding.set()
        return not is_over.wait(60)

    monkeypatch.setattr("askalike.server.service.CLOSE_S", 0.05)
    with TestClient(build(ServeSettings(str(folder))), base_url=BASE) as client:
        service = client.app.forum.service
        monkeypatch.setattr(service.maintenance, "do_slice", encode)
        assert is_encoding.wait(60)
    assert "still under way" in caplog.text
    is_over.set()
    assert service.maintenance.stop(60)
    service.forum.close()


def test_a_service_that_stops_finishes_and_closes(folder: Path) -> None:
    with TestClient(build(ServeSettings(str(folder))), base_url=BASE) as client:
        assert client.put("/v1/questions/late", json={"title": "late"}).status_code == 200
    with Forum.open(folder) as forum:
        assert forum.question("late").title == "late"
        forum.delete("late")
