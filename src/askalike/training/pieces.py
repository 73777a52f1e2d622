"""The bundled encoder in torch, to be trained on: texts as pieces → vectors, with gradient.

The equations are those of ``models.transformer_graph``; the vector of a text is the mean of its pieces' states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from askalike.models.graph_weights import in_float32
from askalike.training.corpus import Texts

EPSILON: Final = 1e-12
PADDED_TO: Final = 8
CHUNK: Final = 16
"""Texts of like length that are padded together."""
_MASKED: Final = -1e4


class PieceNetwork(nn.Module):
    """A transformer over the pieces of texts; word vectors stay as they are.

    Args:
        numbers: constants of a graph as ``transformer_graph`` builds it, in 8 bits.
        ends: the ids that begin and end a text.
        max_pieces: texts are cut here, these two included.
    """

    def __init__(self, numbers: Mapping[str, NDArray[Any]], ends: tuple[int, int], max_pieces: int) -> None:
        super().__init__()
        self.dropout = 0.0
        self._ends, self._room = ends, max_pieces - len(ends)
        self._heads, self._size = (int(size) for size in numbers["split"][2:])
        weights = {name: torch.from_numpy(values) for name, values in in_float32(numbers).items()}
        self._layers = sum(name.endswith("_query_weight") for name in weights)
        self.fixed = nn.ParameterDict(
            {name: nn.Parameter(value, requires_grad=False) for name, value in weights.items() if _is_fixed(name)}
        )
        self.learned = nn.ParameterDict({name: value for name, value in weights.items() if not _is_fixed(name)})

    @property
    def device(self) -> torch.device:
        """Return where the parameters are."""
        device: torch.device = self.fixed["words"].device
        return device

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return all weights, by the names of ``in_float32``."""
        return {
            name: value.detach().cpu().numpy() for part in (self.fixed, self.learned) for name, value in part.items()
        }

    def views(self, texts: Texts, sides: NDArray[np.int64]) -> Tensor:
        """Return the vector of each view: of its text, or of its two texts read as one.  # (B, D)

        Args:
            sides: rows of texts, -1 for none.  # (B, 2)
        """
        pieces = [np.concatenate([texts[row] for row in side if row >= 0])[: self._room] for side in sides]
        order = np.argsort([-len(text) for text in pieces], kind="stable")
        parts = [order[start : start + CHUNK] for start in range(0, len(order), CHUNK)]
        vectors = torch.cat([self._padded([pieces[place] for place in part]) for part in parts])
        places = torch.from_numpy(np.argsort(order)).to(vectors.device)
        return vectors.index_select(0, places)

    def questions(self, texts: Texts, questions: NDArray[np.int64], _: object = None) -> Tensor:
        """Return the vector of each question, whose title and body are read as one text.  # (B, D)"""
        return self.views(texts, np.stack([2 * questions, 2 * questions + 1], axis=1))

    def question_dropout(self, *_: object) -> None:
        """Return None: nothing is left out of questions."""

    def all_questions(self, texts: Texts) -> NDArray[np.float32]:
        """Return the vectors of all questions, title in row 2i and body in row 2i + 1, read as one.  # (N, D)"""
        with torch.no_grad():
            return np.asarray(self.questions(texts, np.arange(len(texts) // 2)).cpu().numpy())

    def _padded(self, pieces: list[NDArray[np.int32]]) -> Tensor:
        first, last = self._ends
        width = -(-max(len(text) + 2 for text in pieces) // PADDED_TO) * PADDED_TO
        ids = np.zeros((len(pieces), width), np.int64)  # (B, T)
        mask = np.zeros((len(pieces), width), np.bool_)
        for row, text in enumerate(pieces):
            ids[row, : len(text) + 2] = [first, *text, last]
            mask[row, : len(text) + 2] = True
        vectors: Tensor = self(torch.from_numpy(ids).to(self.device), torch.from_numpy(mask).to(self.device))
        return vectors

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of texts, by products in bfloat16 where float32 is allowed to be that imprecise.

        Args:
            ids, mask: pieces, and which of them are there.  # (B, T)
        """
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=_is_bfloat16_fast(ids.device)):
            states = self._states(ids, mask)
        present = mask.unsqueeze(2).float()
        return functional.normalize((states.float() * present).sum(1) / present.sum(1))

    def _states(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the states of the last layer.  # (B, T, D)"""
        bias = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, _MASKED)[:, None, None, :]
        words = functional.embedding(ids, self.fixed["words"]) + self.learned["places"][: ids.shape[1]]
        states = self._norm(words, "embedded")  # (B, T, D)
        name = "embedded"
        for layer in range(self._layers):
            at = f"layer{layer}_"
            query, key, value = (
                self._linear(states, at + part, name).view(*ids.shape, self._heads, self._size).transpose(1, 2)
                for part in ("query", "key", "value")
            )  # (B, H, T, D / H); queries are scaled by their weights
            weights = torch.softmax(query @ key.transpose(2, 3) + bias, dim=3)  # (B, H, T, T)
            attended = weights @ value
            joined = self._linear(attended.transpose(1, 2).flatten(2), at + "joined", at + "attended_joined")
            states = self._norm(joined + states, at + "norm")
            inner = functional.gelu(self._linear(states, at + "inner", at + "norm"))
            states = self._norm(self._linear(inner, at + "outer", at + "active") + states, at + "states")
            name = at + "states"
        return states

    def _linear(self, states: Tensor, name: str, states_name: str) -> Tensor:
        inverse = self.fixed.get(f"{states_name}_inverse")
        states = states if inverse is None else states * inverse
        return functional.linear(states, self.learned[f"{name}_weight"].T, self.learned[f"{name}_bias"])

    def _norm(self, states: Tensor, name: str) -> Tensor:
        weight, bias = self.learned[f"{name}_weight"], self.learned[f"{name}_bias"]
        return functional.layer_norm(states, weight.shape, weight, bias, EPSILON)


def _is_bfloat16_fast(device: torch.device) -> bool:
    """Return whether products may be in bfloat16, and are no slower so: processors without AVX-512 emulate it."""
    is_allowed = torch.get_float32_matmul_precision() == "medium"
    return is_allowed and (device.type != "cpu" or torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2"))


def _is_fixed(name: str) -> bool:
    return name == "words" or name.endswith("_inverse")
