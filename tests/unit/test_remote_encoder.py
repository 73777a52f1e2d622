"""Endpoints that answer, fail and come back, over a real local server."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from tests.embedding_server import EmbeddingServer, serving

from askalike.errors import EncoderError
from askalike.models.remote import (
    CHARACTERS_A_BATCH,
    TEXTS_A_BATCH,
    Patience,
    RemoteEncoder,
    RemoteReranker,
    batches,
)

TEXTS = [f"question number {number} about printers" for number in range(70)]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as server:
        yield server


def encoder_of(
    server: EmbeddingServer, pauses: list[float] | None = None, tries: int = 8, key: str = ""
) -> RemoteEncoder:
    waited = [] if pauses is None else pauses
    patience = Patience(tries=tries, timeout_s=30, query_timeout_s=30)
    return RemoteEncoder(f"{server.address}/v1", "served", key, patience=patience, pause=waited.append)


def expected(server: EmbeddingServer, texts: list[str]) -> np.ndarray:
    vectors = server.encoder.vectors(texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_an_endpoint_gives_every_text_its_own_vector(server: EmbeddingServer) -> None:
    encoder = encoder_of(server)
    np.testing.assert_allclose(encoder.encode_document(TEXTS), expected(server, TEXTS), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_query(TEXTS[:1]), expected(server, TEXTS[:1]), atol=1e-6)
    assert encoder.dimensions == 32
    assert len(server.requests) == 4  # 32, 32 and 6 texts, and the query


FAILURES = ["429 7", "500", "garbage", "nan", "nothing", "fewer", "wider", "ragged", "503"]


def test_every_vector_is_right_in_the_end_though_each_request_fails_in_another_way(server: EmbeddingServer) -> None:
    pauses: list[float] = []
    encoder = encoder_of(server, pauses, tries=12)
    encoder.encode_document(["first"])  # from now on the dimensions are known
    server.plan = list(FAILURES)
    np.testing.assert_allclose(encoder.encode_document(TEXTS), expected(server, TEXTS), atol=1e-6)
    assert not server.plan
    assert len(pauses) == len(FAILURES)
    assert pauses[0] == 7  # as Retry-After says
    assert pauses[-1] > pauses[1]


@pytest.mark.parametrize("failure", FAILURES)
def test_an_endpoint_that_goes_on_failing_is_a_clear_error(server: EmbeddingServer, failure: str) -> None:
    encoder = encoder_of(server, tries=3)
    encoder.encode_document(["first"])
    server.plan = [failure] * 3
    with pytest.raises(EncoderError, match=r"openai:served at http://127.0.0.1:\d+/v1 .*after 3 tries"):
        encoder.encode_document(["printer"])
    assert len(server.requests) == 4


def test_what_an_endpoint_refuses_for_good_is_asked_once_and_shows_no_key(server: EmbeddingServer) -> None:
    encoder = encoder_of(server, key="secret-key")
    server.plan = ["401"]
    with pytest.raises(EncoderError, match="answered 401") as raised:
        encoder.encode_document(["printer"])
    assert "secret-key" not in str(raised.value)
    ((_, headers, _),) = server.requests
    assert headers["Authorization"] == "Bearer secret-key"


def test_a_redirect_is_not_followed_since_it_would_take_texts_and_key_elsewhere(server: EmbeddingServer) -> None:
    server.plan = ["redirect"]
    with pytest.raises(EncoderError, match="answered 307"):
        encoder_of(server, key="secret-key").encode_document(["printer"])
    assert [path for path, _, _ in server.requests] == ["/v1/embeddings"]


def test_a_batch_that_is_too_large_is_asked_for_in_halves(server: EmbeddingServer) -> None:
    server.most_texts = 5
    np.testing.assert_allclose(encoder_of(server).encode_document(TEXTS[:20]), expected(server, TEXTS[:20]), atol=1e-6)


def test_a_query_is_not_waited_for_and_none_is_asked_for_a_while_after_one_failed(server: EmbeddingServer) -> None:
    now = [0.0]
    pauses: list[float] = []
    patience = Patience(query_timeout_s=30, rest_s=30)
    encoder = RemoteEncoder(server.address, "served", patience=patience, pause=pauses.append, clock=lambda: now[0])
    server.plan = ["500"]
    with pytest.raises(EncoderError, match="answered 500"):
        encoder.encode_query(["printer"])
    with pytest.raises(EncoderError, match="asked again in 30 s"):
        encoder.encode_query(["printer"])
    assert len(server.requests) == 1
    now[0] = 31.0
    assert encoder.encode_query(["printer"]).shape == (1, 32)
    assert pauses == []


def test_an_endpoint_that_is_not_there_is_named() -> None:
    with serving() as server:
        encoder = encoder_of(server, tries=2)
    with pytest.raises(EncoderError, match="cannot be reached"):
        encoder.encode_query(["printer"])


def test_where_nothing_listens_the_first_batch_fails_soon_and_a_later_one_is_waited_for() -> None:
    pauses: list[float] = []
    with serving() as server:
        absent = encoder_of(server, pauses)
        known = encoder_of(server, pauses)
        known.encode_document(["printer"])
    with pytest.raises(EncoderError, match=r"cannot be reached: .* after 3 tries"):
        absent.encode_document(["printer"])
    assert len(pauses) == 2
    assert sum(pauses) < 5
    with pytest.raises(EncoderError, match="after 8 tries"):
        known.encode_document(["printer"])


def test_batches_keep_order_and_bounds() -> None:
    texts = [
        "a" * (CHARACTERS_A_BATCH - 1),
        "bb",
        *("c" * number for number in range(100)),
        "d" * CHARACTERS_A_BATCH * 2,
    ]
    in_batches = list(batches(texts))
    assert [text for batch in in_batches for text in batch] == texts
    assert max(map(len, in_batches)) <= TEXTS_A_BATCH
    assert all(len(batch) == 1 or sum(map(len, batch)) <= CHARACTERS_A_BATCH for batch in in_batches)


PAIR = ["wifi drops", "printer is offline", "wifi drops again"]


def test_a_reranker_gives_every_text_its_own_score(server: EmbeddingServer) -> None:
    reranker = RemoteReranker(f"{server.address}/v2", "served", "secret-key")
    assert reranker.score_texts("wifi drops", PAIR) == pytest.approx([1, 0, 2 / 3])
    assert reranker.score_texts("wifi drops", []) == []
    ((path, headers, body),) = server.requests
    assert (path, headers["Authorization"]) == ("/v2/rerank", "Bearer secret-key")
    assert body["model"] == "served"


@pytest.mark.parametrize("failure", ["429", "500", "garbage", "nan", "nothing", "fewer", "twice"])
def test_a_reranker_that_fails_is_a_clear_error_and_not_asked_for_a_while(
    server: EmbeddingServer, failure: str
) -> None:
    now = [0.0]
    patience = Patience(query_timeout_s=30, rest_s=30)
    reranker = RemoteReranker(server.address, "served", patience=patience, clock=lambda: now[0])
    server.plan = [failure]
    with pytest.raises(EncoderError, match=r"the reranker cohere:served at http://127.0.0.1:\d+ "):
        reranker.score_texts("wifi drops", PAIR)
    with pytest.raises(EncoderError, match="asked again in 30 s"):
        reranker.score_texts("wifi drops", PAIR)
    now[0] = 31.0
    assert reranker.score_texts("wifi drops", PAIR) == pytest.approx([1, 0, 2 / 3])
    assert len(server.requests) == 2


@pytest.mark.slow
def test_the_memory_of_a_client_stays_flat_while_its_endpoint_fails_in_every_way(server: EmbeddingServer) -> None:
    encoder = encoder_of(server, tries=12)
    encoder.encode_document(["first"])

    def grown(rounds: int) -> int:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(rounds):
            server.plan = [failure for failure in FAILURES if failure != "429 7"]
            np.testing.assert_allclose(encoder.encode_document(TEXTS), expected(server, TEXTS), atol=1e-6)
            server.requests.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        grown(2)
        assert grown(10) < 50_000  # a tenth of what the answers of one round take
    finally:
        tracemalloc.stop()
