"""A forum in other frameworks keeps what these frameworks ask of their parts, by their own contract tests."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from askalike import Forum
from askalike.data import bundled_forum, default_model
from askalike.integrations.sklearn import QuestionVectorizer

LAWS = (
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_valid_tag_types",
    "check_estimator_tags_renamed",
)
"""Those of scikit-learn's checks that give an estimator no numbers."""


def _module(name: str) -> Any:
    """Return a module; one that is not installed has nothing, so that a class of tests can be made of it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_LANGCHAIN = _module("langchain_tests.integration_tests")
_CONTRACT: Any = _LANGCHAIN.RetrieversIntegrationTests if _LANGCHAIN else object


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("integrations") / "homenet.forum"
    with Forum.create(path) as forum:
        forum.load(bundled_forum())
    return path


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio  # its plugins of pytest are switched off in pyproject.toml: one of them warns at each start
@pytest.mark.skipif(_LANGCHAIN is None, reason="langchain-tests is not installed")
class TestLangChain(_CONTRACT):
    """LangChain's own tests of a retriever."""

    @pytest.fixture(autouse=True)
    def _open(self, folder: Path) -> Iterator[None]:
        with Forum.open(folder) as type(self).forum:
            yield

    @property
    def retriever_constructor(self) -> Any:
        return importlib.import_module("askalike.integrations.langchain").AskalikeRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"forum": type(self).forum}

    @property
    def retriever_query_example(self) -> str:
        return "ssh asks for the passphrase of my key"

    def test_a_document_has_the_question_its_best_answer_and_where_it_is(self) -> None:
        retriever = self.retriever_constructor(**self.retriever_constructor_params, k=2)
        documents = retriever.invoke("ssh asks for the passphrase of my key every single time")
        assert {one.id for one in documents} == {"q1045", "q1156"}
        assert "Answer: " in documents[0].page_content
        assert "ssh" in documents[0].metadata["tags"]


def test_a_haystack_pipeline_finds_stores_and_loads_the_retriever(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")  # it is read when haystack is imported
    haystack = pytest.importorskip("haystack")
    retriever = importlib.import_module("askalike.integrations.haystack").AskalikeRetriever
    importlib.import_module("haystack.core.serialization").allow_deserialization_module(retriever.__module__)
    pipeline = haystack.Pipeline()
    pipeline.add_component("forum", retriever(str(folder), top_k=3))
    again = haystack.Pipeline.from_dict(pipeline.to_dict())
    asked = {"forum": {"query": "ssh asks for the passphrase of my key every single time"}}
    for one in (pipeline, again):
        documents = one.run(asked)["forum"]["documents"]
        assert len(documents) == 3
        assert documents[0].id in ("q1045", "q1156")
        assert documents[0].score >= documents[1].score
        one.get_component("forum").close()
    with_tags = again.run({"forum": {"query": "ssh", "top_k": 9, "tags": ["printer"]}})["forum"]["documents"]
    assert all("printer" in one.meta["tags"] for one in with_tags)
    again.get_component("forum").close()


@pytest.mark.skipif(default_model() is None, reason="the package carries no general model")
def test_the_vectorizer_keeps_the_laws_of_a_scikit_learn_estimator() -> None:
    for law in LAWS:  # check_estimator runs none for texts
        getattr(estimator_checks, law)("QuestionVectorizer", QuestionVectorizer())


@pytest.mark.skipif(default_model() is None, reason="the package carries no general model")
def test_texts_become_vectors_in_a_pipeline() -> None:
    texts = ["printer offline", "scanner silent", "printer jams", "scanner lamp", ""]
    vectors = QuestionVectorizer().fit_transform(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 1, 0], atol=1e-5)
    assert len(QuestionVectorizer().get_feature_names_out()) == vectors.shape[1]
    made = make_pipeline(QuestionVectorizer(), LogisticRegression()).fit(texts[:4], [0, 1, 0, 1])
    assert made.predict(["the printer"]).tolist() == [0]
    for odd in ("one text", [1], [None]):
        with pytest.raises(ValueError, match="expected"):
            QuestionVectorizer().transform(odd)
