"""Sentence transformers in ONNX Runtime give the vectors of sentence-transformers, for every family and pooling."""

# ruff: noqa: E402 - the packages are imported where they are installed
from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

for _name in ("sentence_transformers", "onnx", "tokenizers"):
    pytest.importorskip(_name, reason=f"{_name} is not installed")

import tokenizers
import torch
import transformers
from sentence_transformers import CrossEncoder as OracleCrossEncoder
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as parts

from askalike import Forum, Question
from askalike.data import general_folder
from askalike.errors import DamagedModelError, ModelError, ModelNotFoundError
from askalike.models.general import VOCABULARY_FILE, general_encoder
from askalike.models.transformer import CrossEncoder, Transformer, session
from askalike.models.transformer_folder import layer_names, read_folder
from askalike.models.transformer_graph import largest_inputs, serialized_graph
from askalike.models.wordpiece import WordPiece

TEXTS = [
    "How do I reset my router?",
    "",
    "wifi drops every evening " * 40,
    "Größe, naïve, 你好, <b>HTML</b> & C++17",
    "x",
    "Video calls stutter only over wifi, not over cable",
]
SIZES: dict[str, Any] = {"vocab_size": 30522, "max_position_embeddings": 66}
BERT: dict[str, Any] = {
    **SIZES,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
FAMILIES: dict[str, tuple[type, type, dict[str, Any]]] = {
    "bert": (transformers.BertConfig, transformers.BertModel, BERT),
    "bert-relu": (transformers.BertConfig, transformers.BertModel, {**BERT, "hidden_act": "relu"}),
    "bert-tanh": (transformers.BertConfig, transformers.BertModel, {**BERT, "hidden_act": "gelu_new"}),
    "roberta": (transformers.RobertaConfig, transformers.RobertaModel, BERT),
    "xlm-roberta": (transformers.XLMRobertaConfig, transformers.XLMRobertaModel, BERT),
    "mpnet": (transformers.MPNetConfig, transformers.MPNetModel, BERT),
    "distilbert": (
        transformers.DistilBertConfig,
        transformers.DistilBertModel,
        {**SIZES, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
}


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that are compared with
        yield


def vocabulary_file() -> Path:
    folder = general_folder()
    assert folder is not None
    return folder / VOCABULARY_FILE


def fast_tokenizer(**settings: Any) -> Any:
    """Return the library's tokenizer with the bundled vocabulary."""
    pieces = tokenizers.BertWordPieceTokenizer(str(vocabulary_file()), lowercase=True)
    return transformers.BertTokenizerFast(tokenizer_object=pieces._tokenizer, **settings)


def saved(folder: Path, family: str, pooling: str = "mean", has_dense: bool = False) -> Path:
    """Write a small model with drawn weights as sentence-transformers does."""
    configuration, kind, sizes = FAMILIES[family]
    torch.manual_seed(1)
    inner = folder / "inner"
    kind(configuration(**sizes)).save_pretrained(inner)
    fast_tokenizer().save_pretrained(inner)
    first = parts.Transformer(str(inner), max_seq_length=60)
    modules: list[Any] = [first, parts.Pooling(32, pooling_mode=pooling)]
    if has_dense:
        modules.append(parts.Dense(32, 12))
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "saved"))
    return folder / "saved"


def assert_same(folder: Path) -> None:
    oracle = SentenceTransformer(str(folder), device="cpu")
    expected = oracle.encode(TEXTS, normalize_embeddings=True)
    vectors = Transformer.load(folder).encode_document(TEXTS)
    assert vectors.shape == expected.shape
    assert (vectors * expected).sum(axis=1).min() > 0.9999


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_the_vectors_of_sentence_transformers(tmp_path: Path, family: str) -> None:
    assert_same(saved(tmp_path, family))


@pytest.mark.parametrize("pooling", ["cls", "max", "mean_sqrt_len_tokens", "lasttoken"])
def test_a_pooling_has_the_vectors_of_sentence_transformers(tmp_path: Path, pooling: str) -> None:
    assert_same(saved(tmp_path, "bert", pooling))


def test_a_layer_behind_the_pooling_is_applied(tmp_path: Path) -> None:
    assert_same(saved(tmp_path, "bert", has_dense=True))


CLASSIFIERS = {
    "bert": transformers.BertForSequenceClassification,
    "roberta": transformers.RobertaForSequenceClassification,
    "xlm-roberta": transformers.XLMRobertaForSequenceClassification,
    "mpnet": transformers.MPNetForSequenceClassification,
    "distilbert": transformers.DistilBertForSequenceClassification,
}


def saved_cross_encoder(folder: Path, family: str, labels: int = 1) -> Path:
    """Write a small cross-encoder with drawn weights, its head so large that scores differ, as transformers does."""
    configuration, _, sizes = FAMILIES[family]
    torch.manual_seed(1)
    network = CLASSIFIERS[family](configuration(**sizes, num_labels=labels))
    for layer in network.modules():
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.normal_(layer.weight, std=0.3)
    network.save_pretrained(folder)
    fast_tokenizer(model_max_length=60).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("family", CLASSIFIERS)
@pytest.mark.parametrize("activation", [None, torch.nn.Identity()])
def test_a_cross_encoder_has_the_scores_of_sentence_transformers(tmp_path: Path, family: str, activation: Any) -> None:
    plain = saved_cross_encoder(tmp_path / "plain", family)
    oracle = OracleCrossEncoder(str(plain), device="cpu", activation_fn=activation)
    oracle.save_pretrained(str(tmp_path / "saved"))
    expected = oracle.predict([(TEXTS[0], text) for text in TEXTS])
    assert np.ptp(expected) > 0.01
    for folder in (tmp_path / "saved", *([plain] if activation is None else [])):
        scores = CrossEncoder(read_folder(folder, is_of_pairs=True)).score_texts(TEXTS[0], TEXTS)
        np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_a_folder_of_a_cross_encoder_orders_the_best_hits_as_sentence_transformers_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words_alone: None
) -> None:
    folder = saved_cross_encoder(tmp_path / "model", "bert")
    monkeypatch.setenv("ASKALIKE_ENCODERS", f"cross-encoder:{folder}")
    with Forum.create(tmp_path / "forum") as forum:
        forum.add(Question(f"n{number}", "Wifi drops", text) for number, text in enumerate(TEXTS))
        forum.models.use_reranker(f"cross-encoder:{folder}")
    with Forum.open(tmp_path / "forum") as forum:  # it is kept with the forum
        hits = forum.similar("wifi drops", k=9)
        read = [f"Wifi drops\n{TEXTS[int(hit.question.id[1:])]}".strip() for hit in hits]
    expected = OracleCrossEncoder(str(folder), device="cpu").predict([("wifi drops", text) for text in read])
    assert len(hits) == len(TEXTS)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose([hit.components["reranker"] for hit in hits], expected, atol=1e-4)
    assert all(np.diff(expected) < 1e-4)


def test_a_folder_that_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the folder of a cross-encoder with one label"):
        read_folder(saved(tmp_path / "sentences", "bert"), is_of_pairs=True)
    with pytest.raises(ModelError, match=r"\(3, 32\) as classifier.weight, expected \(1, 32\)"):
        read_folder(saved_cross_encoder(tmp_path, "bert", labels=3), is_of_pairs=True)


def test_eight_bits_change_a_vector_little(tmp_path: Path) -> None:
    folder = saved(tmp_path, "bert")
    exact = Transformer.load(folder).encode_query(TEXTS)
    rounded = Transformer.load(folder, precision="int8").encode_query(TEXTS)
    assert (exact * rounded).sum(axis=1).min() > 0.98


def test_products_of_bytes_are_exact_on_every_processor() -> None:
    import onnx

    states, weights = np.full((2, 64), 255, np.uint8), np.full((64, 32), 127, np.int8)  # 255 · 127 · 2 > 2¹⁵
    constants = {"weights": weights, "step": np.float32(1), "steps": np.ones(32, np.float32), "zero": np.uint8(128)}
    node = onnx.helper.make_node(
        "MatMulIntegerToFloat", ["x", "weights", "step", "steps", "zero"], ["y"], domain="com.microsoft"
    )
    graph = onnx.helper.make_graph(
        [node],
        "product",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [2, 64])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 32])],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    operators = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=operators, ir_version=10)
    [product] = session(model.SerializeToString()).run(None, {"x": states})
    np.testing.assert_array_equal(product, np.full((2, 32), 64 * (255 - 128) * 127, np.float32))


def test_eight_bits_with_balanced_columns_have_the_states_of_float32(tmp_path: Path) -> None:
    folder = read_folder(saved(tmp_path, "bert"))
    names, weights = layer_names(folder.shape, 0), {name: np.array(row) for name, row in folder.weights.items()}
    weights[f"{names['joined_norm']}.weight"][3] *= 50  # one column is far larger than the others
    weights[f"{names['inner']}.weight"][:, 3] /= 50
    folder = replace(folder, weights=weights)
    texts = np.random.default_rng(0).integers(0, 50, (8, 12))
    inputs = {"positions": np.arange(12), "bias": np.zeros((1, 1, 1, 12), np.float32)}

    def states(graph: bytes) -> Any:
        return session(graph).run(["states"], {"ids": texts, **inputs})[0]

    exact = states(serialized_graph(folder, "float32"))
    largest = largest_inputs(folder, texts.tolist(), session)
    assert len(largest) == 4 * folder.shape.layers
    balanced = states(serialized_graph(folder, "int8", largest))
    assert np.abs(balanced - exact).mean() < 0.01 * np.abs(exact).mean()


def test_the_bundled_encoder_reads_pieces_as_the_library_does() -> None:
    words, library = WordPiece(vocabulary_file().read_text(encoding="utf-8").splitlines()), fast_tokenizer()
    texts = [
        *TEXTS,
        "naïve CAFÉ—it's 3.5mm\u00a0wide",
        "\u200bzero\u00adwidth\x07bell",
        "ﬁ ΟΔΟΣ straße Ǆ",
        "e\u0301tude",
        "#" * 50,
    ]
    texts += ["a" * 101 + " b", "".join(map(chr, range(0x20, 0x370))), "日本語 한국어 ไทย हिन्दी עברית"]
    for text in texts:
        assert words.encode(text, 60) == library(text, truncation=True, max_length=60)["input_ids"], text


def test_the_bundled_encoder_gives_a_text_its_vector_whatever_else_is_encoded_to_the_bit() -> None:
    folder = general_folder()
    assert folder is not None
    encoder = general_encoder(folder)
    together = encoder.encode_document(TEXTS * 20)
    for place, text in enumerate(TEXTS):
        np.testing.assert_array_equal(encoder.encode_query([text])[0], together[place])
    np.testing.assert_array_equal(together.reshape(20, len(TEXTS), -1), np.stack([together[: len(TEXTS)]] * 20))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_one_text_has_the_vector_that_it_has_among_others_to_the_bit(tmp_path: Path, precision: Any) -> None:
    model = Transformer.load(saved(tmp_path, "bert"), precision=precision)
    together = model.encode_query(TEXTS)
    np.testing.assert_array_equal(np.concatenate([model.encode_query([text]) for text in TEXTS]), together)
    with_others = model.encode_query([*TEXTS[::-1], "wifi drops " * 200, "x"])[: len(TEXTS)][::-1]
    np.testing.assert_array_equal(with_others, together)
    assert model.encode_query([]).shape == (0, 32)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_batches_side_by_side_have_the_same_vectors_to_the_bit(tmp_path: Path, precision: Any) -> None:
    folder = saved(tmp_path, "bert")
    texts = [f"{text} {number}" for number in range(60) for text in TEXTS]
    alone = Transformer.load(folder, precision=precision, threads=1).encode_document(texts)
    beside = Transformer.load(folder, precision=precision, threads=3).encode_document(texts)
    np.testing.assert_array_equal(beside, alone)


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_batches_of_pairs_side_by_side_have_the_same_scores(tmp_path: Path, family: str) -> None:
    folder = read_folder(saved_cross_encoder(tmp_path, family), is_of_pairs=True)
    texts = [f"{text} {number}" for number in range(60) for text in TEXTS]
    alone = CrossEncoder(folder, threads=1).score_texts(TEXTS[0], texts)
    assert CrossEncoder(folder, threads=3).score_texts(TEXTS[0], texts) == alone


def test_an_error_of_a_batch_reaches_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = Transformer.load(saved(tmp_path, "bert"), threads=2), iter(range(100))

    def failing(*_: Any) -> Any:
        if next(calls) == 2:
            raise RuntimeError("no memory for this batch")
        return np.zeros((len(_[0]), 32), dtype=np.float32)

    monkeypatch.setattr(model, "_pool", failing)
    with pytest.raises(RuntimeError, match="no memory for this batch"):
        model.encode_document(["wifi drops " * 300] * 40)


def test_prompts_are_written_before_queries_and_documents(tmp_path: Path) -> None:
    folder = saved(tmp_path, "bert")
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(json.dumps({"prompts": {"query": "query: ", "document": "passage: "}}), encoding="utf-8")
    prompted, plain = Transformer.load(folder), Transformer.load(saved(tmp_path / "other", "bert"))
    assert np.allclose(prompted.encode_query(["wifi"]), plain.encode_query(["query: wifi"]), atol=1e-5)
    assert np.allclose(prompted.encode_document(["wifi"]), plain.encode_query(["passage: wifi"]), atol=1e-5)
    assert prompted.name != plain.name


def damaged(folder: Path, name: str, change: Any) -> None:
    path = folder / name
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(change(content)), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("config.json", lambda content: {**content, "hidden_size": 64}, DamagedModelError),
        ("config.json", lambda content: {**content, "num_hidden_layers": 1 << 19}, DamagedModelError),
        ("config.json", lambda content: {**content, "num_hidden_layers": "many"}, DamagedModelError),
        ("config.json", lambda content: {**content, "model_type": "llama"}, ModelError),
        ("config.json", lambda content: [content], DamagedModelError),
        ("modules.json", lambda content: [{**content[0], "path": "../.."}, *content[1:]], DamagedModelError),
        ("modules.json", lambda content: [*content, {"type": "x.WordWeights", "path": ""}], ModelError),
        ("tokenizer.json", lambda content: {"version": "1.0"}, DamagedModelError),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path: Path, name: str, change: Any, error: type[Exception]) -> None:
    folder = saved(tmp_path, "bert")
    damaged(folder, name, change)
    with pytest.raises(error):
        Transformer.load(folder)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, "bert")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(DamagedModelError, match=r"model\.safetensors"):
        read_folder(folder)
    with pytest.raises(ModelNotFoundError):
        read_folder(tmp_path / "none")
