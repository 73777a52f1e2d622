"""Endpoints of other dialects, by their official clients and a Discourse's requests, over a running service."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import huggingface_hub
import numpy as np
import openai
import pytest
from numpy.typing import NDArray
from tests.integration.test_server_process import serving

from askalike import Forum, Question
from askalike.index.encoder_settings import EncoderSettings
from askalike.models.remote import RemoteEncoder
from askalike.schemas import MOST_TEXTS
from askalike.server.guards import Keys

MINILM = EncoderSettings("minilm", precision="float32", query_prompt="question: ", document_prompt="")
TEXTS = ["Wifi drops every evening", "Which battery lasts longest?", "Wireless goes down at night\nSince the update."]
TITLES = [*TEXTS, "Printer prints blank pages", "How do I cook rice?", "Best way to learn Spanish"]


@dataclass(frozen=True)
class Served:
    """A service with a key, and what its forum gives in this process."""

    address: str
    key: str
    model: str
    documents: NDArray[np.float32]
    query: NDArray[np.float32]
    scores: list[float]

    def post(self, path: str, body: object, key: str | None = None, **headers: str) -> tuple[int, Any]:
        """Return status and JSON of a request as a Discourse sends it."""
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key if key is None else key}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), sent, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("endpoints") / "f.forum"
    with Forum.create(folder, encoder=MINILM) as forum:
        forum.add(Question(str(number), title) for number, title in enumerate(TITLES))
        forum.encode()
        model, documents = forum.encoder, forum.embed(TEXTS)
        query, scores = forum.embed(TEXTS[:1], is_query=True)[0], forum.score(TEXTS[0], TITLES[1:])
    _, key = Keys(folder).add("discourse", "read")
    with serving(folder, "--allow-host", "askalike.example.org") as (_, client):
        yield Served(f"http://127.0.0.1:{client._port}", key, model, documents, query, scores)


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.address}/v1", api_key=served.key, max_retries=0) as made:
        yield made


def test_the_official_client_of_openai_gets_the_forums_vectors(served: Served, client: openai.OpenAI) -> None:
    found = client.embeddings.create(model="any", input=TEXTS)  # the client asks for base64 and decodes it
    assert [one.index for one in found.data] == [0, 1, 2]
    np.testing.assert_allclose([one.embedding for one in found.data], served.documents, atol=1e-5)
    assert found.model == served.model
    assert found.usage.prompt_tokens == found.usage.total_tokens == 4 + 5 + 9
    numbers = client.embeddings.create(model=served.model, input=TEXTS, encoding_format="float")
    np.testing.assert_allclose(
        [one.embedding for one in numbers.data], [one.embedding for one in found.data], atol=1e-7
    )


def test_one_text_dimensions_and_the_side_of_a_search_are_taken(served: Served, client: openai.OpenAI) -> None:
    (found,) = client.embeddings.create(
        model="any", input=TEXTS[0], dimensions=64, extra_body={"input_type": "query"}
    ).data
    cut = served.query[:64] / np.linalg.norm(served.query[:64])
    np.testing.assert_allclose(found.embedding, cut, atol=1e-5)
    assert np.linalg.norm(found.embedding) == pytest.approx(1, abs=1e-5)
    (document,) = client.embeddings.create(model="any", input=TEXTS[0], dimensions=384).data
    assert float(np.dot(document.embedding, served.query)) < 0.999  # the prompt of queries is not read


def test_refusals_are_errors_of_the_official_client_with_a_message(served: Served, client: openai.OpenAI) -> None:
    stranger = client.with_options(api_key="ask_wrong")
    with pytest.raises(openai.AuthenticationError, match="the key is not known") as refused:
        stranger.embeddings.create(model="any", input="wifi")
    assert refused.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError, match=r"encoded by 'minilm:all-MiniLM-L6-v2@") as missing:
        client.embeddings.create(model="minilm:all-MiniLM-L6-v2@000000000000", input="wifi")
    assert (missing.value.code, missing.value.type) == ("model_not_found", "invalid_request_error")
    with pytest.raises(openai.UnprocessableEntityError, match="gives 384"):
        client.embeddings.create(model="any", input="wifi", dimensions=385)
    with pytest.raises(openai.UnprocessableEntityError, match="text 2 of 2 is blank"):
        client.embeddings.create(model="any", input=["wifi", "  "])
    for unfit in ([], [""], [1, 2], [[1, 2]], ["x"] * (MOST_TEXTS + 1)):
        with pytest.raises(openai.UnprocessableEntityError, match=r"input.*the fields are input, model"):
            client.embeddings.create(model="any", input=unfit)
    with pytest.raises(openai.APIStatusError, match="larger than 1000000 bytes") as large:
        client.embeddings.create(model="any", input="x" * 1_000_001)
    assert large.value.status_code == 413


def test_the_official_client_of_text_embeddings_inference_gets_the_same_vectors(served: Served) -> None:
    client = huggingface_hub.InferenceClient(f"{served.address}/embed", token=served.key)
    found = client.feature_extraction(TEXTS, normalize=True, truncate=True, truncation_direction="right")  # type: ignore[arg-type]
    np.testing.assert_allclose(found, served.documents, atol=1e-5)
    asked = client.feature_extraction(TEXTS[0], prompt_name="query", dimensions=384)
    np.testing.assert_allclose(asked, served.query[None], atol=1e-5)
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match="422"):
        client.feature_extraction(TEXTS[0], normalize=False)
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match="401"):
        huggingface_hub.InferenceClient(f"{served.address}/embed", token="ask_wrong").feature_extraction("wifi")


def test_a_discourse_gets_vectors_by_both_of_its_dialects(served: Served) -> None:
    more = {"Referer": "https://forum.example.org", "X_API_KEY": served.key}
    status, rows = served.post("/embed", {"inputs": TEXTS[1], "truncate": True}, **more)
    assert (status, len(rows)) == (200, 1)
    np.testing.assert_allclose(rows[0], served.documents[1], atol=1e-5)
    status, found = served.post("/v1/embeddings", {"model": "minilm", "input": TEXTS[1], "dimensions": 384})
    assert (status, len(found["data"])) == (200, 1)
    np.testing.assert_allclose(found["data"][0]["embedding"], rows[0], atol=1e-6)


def test_a_discourse_gets_its_candidates_reranked_by_the_forums_probability(served: Served) -> None:
    status, ranks = served.post("/rerank", {"query": TEXTS[0], "texts": TITLES[1:], "truncate": True})
    assert status == 200
    assert [one["index"] for one in ranks] == sorted(range(5), key=lambda place: -served.scores[place])
    assert TITLES[1:][ranks[0]["index"]] == TEXTS[2]  # the same asked in other words
    assert all(0 < one["score"] < 1 and one["text"] is None for one in ranks)
    asked = {"query": TEXTS[0], "texts": TITLES[1:], "raw_scores": True, "return_text": True}
    status, raw = served.post("/rerank", asked)
    assert [one["text"] for one in raw] == [TITLES[1:][one["index"]] for one in ranks]
    logistic = [1 / (1 + np.exp(-one["score"])) for one in raw]
    np.testing.assert_allclose(logistic, [one["score"] for one in ranks], rtol=1e-4)


def test_an_answer_in_base64_is_of_little_endian_float32(served: Served) -> None:
    _, found = served.post("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"})
    rows = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in found["data"]]
    np.testing.assert_allclose(rows, served.documents, atol=1e-5)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/embed", "/rerank"])
def test_every_endpoint_asks_for_a_key_and_refuses_what_it_does_not_know(served: Served, path: str) -> None:
    status, refused = served.post(path, {}, key="")
    assert status == 401
    status, unknown = served.post(path, {"inputs": "x", "nonsense": 1})
    assert status == 422
    for one in (refused, unknown):
        assert set(one) == ({"error"} if path.startswith("/v1") else {"error", "hint"})
        assert one["error"]["message"] if path.startswith("/v1") else one["error"]


def test_one_askalike_encodes_for_another(served: Served) -> None:
    for dialect, address in (("openai", f"{served.address}/v1"), ("tei", served.address)):
        encoder = RemoteEncoder(dialect, address, served.model, served.key)  # type: ignore[arg-type]
        np.testing.assert_allclose(encoder.encode_document(TEXTS), served.documents, atol=1e-5)
