"""Forums whose best hits a scorer of pairs puts in its order: a program's object, a folder, an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.command import Run
from tests.embedding_server import EmbeddingServer, serving

from askalike import Forum, Link, Question
from askalike.errors import EncoderError, NotLearnedError, SettingError
from askalike.models.encoder_settings import RerankerSettings
from askalike.models.remote import Patience, RemoteReranker
from askalike.server.app import build
from askalike.server.settings import ServeSettings
from askalike.store import ForumLayout
from askalike.types import Query

pytestmark = pytest.mark.usefixtures("alone")
QUESTIONS = [
    Question("evening", "Wifi drops every evening", "It happens at nine."),
    Question("printer", "Wifi printer is offline"),
    Question("update", "Wifi is slow since the update"),
    Question("range", "How far does wifi reach?"),
]


class Backwards:
    """Scores by the place of a text in what it is given: what was last is best."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, query: Question, questions: Sequence[Question]) -> list[float]:
        self.asked.append((query.title, [f"{question.title}\n{question.body}".strip() for question in questions]))
        return [self.scale * (place - 1) for place in range(len(questions))]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no endpoint."""
    initialise = RemoteReranker.__init__

    def patiently(self: RemoteReranker, *arguments: object) -> None:
        initialise(self, *arguments, patience=Patience(query_timeout_s=30, rest_s=0))  # type: ignore[arg-type]

    monkeypatch.setattr(RemoteReranker, "__init__", patiently)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as server:
        yield server


@pytest.fixture
def forum(tmp_path: Path) -> Iterator[Forum]:
    with Forum.create(tmp_path / "forum") as forum:
        forum.add(QUESTIONS)
        yield forum


def ids(forum: Forum, k: int = 10, ranker: str | None = None, title: str = "wifi drops") -> list[str]:
    return [hit.question.id for hit in forum.similar(title, k=k, ranker=ranker)]


@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_any_object_puts_the_best_hits_in_its_order_and_probabilities_stay(forum: Forum, scale: float) -> None:
    before = forum.similar("wifi drops")
    scorer = Backwards(scale)
    forum.models.use_reranker(scorer)
    hits = forum.similar("wifi drops", k=2)
    assert [hit.question.id for hit in hits] == [hit.question.id for hit in before][::-1][:2]
    query, texts = scorer.asked[-1]
    assert (query, len(texts)) == ("wifi drops", 4)  # more than are asked for
    assert "Wifi drops every evening\nIt happens at nine." in texts
    likelihoods = {hit.question.id: hit.likelihood for hit in before}
    assert all(hit.likelihood == likelihoods[hit.question.id] for hit in hits)
    assert all(0 < hit.score <= 1 and not hit.notice for hit in hits)
    assert hits[0].components["reranker"] == pytest.approx(2 * scale)
    assert forum.search(Query("wifi drops")).ranker == "reranker"
    assert ids(forum, ranker="probability") == [hit.question.id for hit in before]
    assert ids(forum, ranker="reranker") == ids(forum)
    forum.models.use_reranker(None)
    assert ids(forum) == [hit.question.id for hit in before]


def test_the_least_score_that_is_asked_for_is_the_probabilitys(forum: Forum) -> None:
    best, *others = forum.similar("wifi drops")
    forum.models.use_reranker(Backwards())
    (hit,) = forum.search(Query("wifi drops", minimum=others[0].score + 1e-6)).hits
    assert (hit.question.id, hit.likelihood) == (best.question.id, best.score)
    assert len(forum.search(Query("wifi drops", minimum=others[-1].score)).hits) == 4


def test_hits_beyond_the_best_twenty_follow_in_the_order_before(forum: Forum) -> None:
    forum.add(Question(f"n{number}", f"Wifi drops in room {'x' * number}") for number in range(1, 31))
    before = ids(forum, k=34)
    forum.models.use_reranker(Backwards())
    hits = forum.similar("wifi drops", k=34)
    assert [hit.question.id for hit in hits] == before[:20][::-1] + before[20:]
    assert all(hit.score >= other.score > 0 for hit, other in pairwise(hits))


def test_the_duplicates_text_is_compared_where_its_original_is_shown(forum: Forum) -> None:
    forum.add(Question("again", "Wifi drops at night"), links=[Link("again", "range")])
    scorer = Backwards()
    forum.models.use_reranker(scorer)
    result = forum.search(Query("wifi drops at night", is_canonical=True))
    (shown,) = [hit for hit in result.hits if hit.via is not None]
    assert (shown.question.id, shown.via and shown.via.id) == ("range", "again")
    assert "Wifi drops at night" in scorer.asked[-1][1]
    assert "How far does wifi reach?" not in scorer.asked[-1][1]


@pytest.mark.parametrize("answer", [[1.0], [1.0, float("nan"), 0.5, 0.5], None])
def test_what_a_scorer_gives_instead_of_scores_is_refused_and_the_order_before_answers(
    forum: Forum, answer: object
) -> None:
    class Wrong:
        is_sound = True

        def score(self, query: Question, questions: Sequence[Question]) -> Sequence[float]:
            return [0.5] * len(questions) if self.is_sound else answer  # type: ignore[return-value]

    before, wrong = ids(forum), Wrong()
    forum.models.use_reranker(wrong)
    wrong.is_sound = False
    result = forum.search(Query("wifi drops"))
    assert [hit.question.id for hit in result.hits] == before
    assert result.ranker == "probability"
    assert result.notice.startswith("in the order before reranking: the reranker gave ")
    with pytest.raises(EncoderError, match="the reranker gave"):
        forum.models.use_reranker(wrong)


def test_an_endpoint_is_kept_with_the_forum_and_its_failure_is_said(forum: Forum, server: EmbeddingServer) -> None:
    before = ids(forum)
    forum.models.use_reranker(f"cohere:{server.address}/v2#served")
    assert ids(forum)[0] == "evening"
    assert forum.models.rankers()["reranker"]
    server.plan = ["500"]
    result = forum.search(Query("wifi drops"))
    assert [hit.question.id for hit in result.hits] == before
    assert "in the order before reranking: the reranker cohere:served" in result.notice
    assert result.hits[0].notice == result.notice
    assert not forum.search(Query("wifi drops")).notice  # it is back
    assert forum.score("wifi drops", ["wifi drops", "printer"]) == [1.0, pytest.approx(1e-9)]


def test_the_probability_of_plain_texts_reads_no_more_than_a_questions_share_of_them(forum: Forum) -> None:
    long = "wifi drops " + "evening " * 20_000
    query, other = "Wifi drops every evening\nIt happens at nine.", "Printer is offline"
    scores = forum.score(query, [query, long, long[:4_000], other])
    assert scores[0] > scores[1] == scores[2] > scores[3] > 0
    assert forum.score(long, [other]) == forum.score(long[:4_000], [other])
    assert forum.score(query, [forum.question("evening").title + "\nIt happens at nine."]) == scores[:1]


def test_a_forum_of_anybody_calls_no_reranker_that_its_user_has_not_named(
    forum: Forum, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = RerankerSettings("cohere", server.address, "m", "KEY")
    ForumLayout(forum.path).reranker.write_bytes(settings.to_bytes())
    with Forum.open(forum.path) as opened:
        result = opened.search(Query("wifi drops"))
        assert "which you have not agreed to use" in result.notice
        assert result.hits
        assert not opened.models.rankers()["reranker"]
        assert server.requests == []
        monkeypatch.setenv("ASKALIKE_ENCODERS", settings.agreement)
        assert "set KEY to it" in opened.search(Query("wifi drops")).notice
        monkeypatch.setenv("KEY", "secret")
        assert opened.search(Query("wifi drops")).ranker == "reranker"
    assert server.requests[0][1]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("content", [b"{}", b"\xff", b"[" * 9_999])
def test_a_damaged_file_is_named_and_the_order_before_answers(forum: Forum, content: bytes) -> None:
    before = ids(forum)
    ForumLayout(forum.path).reranker.write_bytes(content)
    result = forum.search(Query("wifi drops"))
    assert ([hit.question.id for hit in result.hits], "reranker.json cannot be read" in result.notice) == (before, True)
    assert [finding.path for finding in Forum.check(forum.path).findings] == ["reranker.json"]


def test_a_reranker_that_is_none_is_a_clear_error(forum: Forum, tmp_path: Path) -> None:
    for written in (
        "foo:bar",
        "cohere:",
        "cohere:https://host/v1",
        "cross-encoder:",
        "nonsense",
        "cohere:ftp://host#x",
    ):
        with pytest.raises(SettingError, match="expected"):
            forum.models.use_reranker(written)
    with pytest.raises(EncoderError, match="there is no cross-encoder at"):
        forum.models.use_reranker(f"cross-encoder:{tmp_path / 'nothing'}")
    with pytest.raises(NotLearnedError, match="askalike encode FORUM --reranker"):
        forum.similar("wifi", ranker="reranker")
    with pytest.raises(SettingError, match="k is 0"):
        forum.similar("wifi", k=0)


def test_the_command_names_a_reranker_and_the_service_says_when_it_is_down(
    run: Run, forum: Forum, server: EmbeddingServer
) -> None:
    done = run("encode", forum.path, "--reranker", f"cohere:{server.address}#m")
    assert (done.code, f"put in order by cohere:{server.address}#m" in " ".join(done.out.split())) == (0, True)
    hits = json.loads(run("search", forum.path, "wifi drops", "--json").out)
    assert hits[0]["components"]["reranker"] == pytest.approx(2 / 8)
    with TestClient(build(ServeSettings(str(forum.path))), base_url="http://localhost:8765") as client:
        answer = client.post("/v1/similar", json={"title": "wifi drops"}).json()
        assert (answer["ranker"], answer["notice"]) == ("reranker", "")
        server.plan = ["503"]
        answer = client.post("/v1/similar", json={"title": "wifi drops"}).json()
        assert (answer["ranker"], len(answer["hits"])) == ("probability", 4)
        assert "in the order before reranking: the reranker cohere:m" in answer["notice"]
    assert run("encode", forum.path, "--reranker", "none").code == 0
    assert not ForumLayout(forum.path).reranker.exists()
    assert "there is no reranker 'x:y'" in run("encode", forum.path, "--reranker", "x:y").err
