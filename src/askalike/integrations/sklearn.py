"""Questions as vectors for scikit-learn: a transformer by the general model, or by a model of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from askalike.data import default_model
from askalike.errors import NotLearnedError
from askalike.models.encoders.model import Model


class QuestionVectorizer(TransformerMixin, BaseEstimator):
    """Turns texts into vectors of length 1; a text without a known word has the zero vector.

    ::

        make_pipeline(QuestionVectorizer(), LogisticRegression()).fit(texts, labels)

    Args:
        model: the folder of a model; None takes the general one.
    """

    def __init__(self, model: str | None = None) -> None:
        self.model = model

    def fit(self, X: Any, y: object = None) -> QuestionVectorizer:  # noqa: N803 - scikit-learn's names
        """Read the model; nothing is learned from the texts.

        Raises:
            NotLearnedError: the package carries no general model.
            ModelError: the model cannot be read.
        """
        _checked(X)
        folder = self.model if self.model is not None else default_model()
        if folder is None:
            raise NotLearnedError("this package carries no general model", "name the folder of a model")
        self.model_ = Model.load(folder)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """Return the vectors of texts.  # (N, D) float32"""
        if not hasattr(self, "model_"):
            self.fit(X)
        found: NDArray[np.float32] = self.model_.encode_text(_checked(X))
        return found

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return a name for each dimension."""
        if not hasattr(self, "model_"):
            self.fit([])
        return np.array([f"askalike{place}" for place in range(self.model_.dimensions)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.requires_fit = False
        return tags


def _checked(texts: Any) -> list[str]:
    """Return the texts, or raise ValueError for what is none, as scikit-learn expects it."""
    if isinstance(texts, str):
        raise ValueError("expected several texts, and got one; put it into a list")
    listed = list(texts)
    if odd := next((type(one).__name__ for one in listed if not isinstance(one, str)), ""):
        raise ValueError(f"expected texts, and got a value of type {odd}")
    return listed
