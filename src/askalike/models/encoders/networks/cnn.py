"""The convolution over words as a module.

::

    h_t = tanh(W [x_{t-n+1} … x_t] + b),   words before the text are zero

Source: Lei et al. 2016 (NAACL), the comparison encoders after section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.settings import EncoderConfig


class Cnn(nn.Module):
    """One convolution of width n.

    Args:
        config: sizes and width.
        values: ``weight`` (D, n·D_in), the oldest word first, and ``bias`` (D,).
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.width = config.order
        self.weight = nn.Parameter(values["weight"])
        self.bias = nn.Parameter(values["bias"])

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        before = words.new_zeros(len(packing.order), words.shape[1])
        window = [words]
        for _ in range(self.width - 1):
            window.insert(0, torch.cat([before, window[0]]).index_select(0, packing.previous()))
        return functional.linear(torch.cat(window, dim=1), self.weight, self.bias).tanh()
