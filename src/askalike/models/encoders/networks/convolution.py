"""Convolutions over words: the CNN of neighbours, and patterns of words that lie apart with a constant decay.

Source: Lei et al. 2016 (NAACL), section 4.2 for the CNN, a comparison encoder; section 4.1 for the constant decay with
which it begins, that of Lei et al. 2015 (EMNLP).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from askalike.models.encoders.networks.packing import Packing
from askalike.models.encoders.settings import EncoderConfig


class Cnn(nn.Module):
    """One convolution of width n: ``h_t = tanh(W [x_{t-n+1} … x_t] + b)``, words before the text being zero.

    Args:
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


class Patterns(nn.Module):
    """The patterns of n words with a constant decay, which Lei et al. 2016 set out from; order 2 as they write it.

    ::

        c_t = Σ_{t' < t} λ^(t - t' - 1) (W_1 x_t' + W_2 x_t),    h_t = tanh(c_t + b)

    Of more words, the same again: a^1_t = W_1 x_t of m^1_t = 1 pattern, and

    ::

        a^k_t = s^{k-1}_{t-1} + p^{k-1}_{t-1} W_k x_t     s^k_t = λ s^k_{t-1} + a^k_t,   c_t = a^n_t
        m^k_t = p^{k-1}_{t-1}                             p^k_t = λ p^k_{t-1} + m^k_t

    A text of fewer than n words has no pattern: its c is zero.

    Source: Lei et al. 2016 (NAACL), section 4.1, after Lei et al. 2015 (EMNLP).
    Reading: "a bigram pattern" as a sum of two products is what section 4.1 prints; Lei et al. 2015 have it also as a
    product of them.

    Args:
        values: ``input`` (n·D, D_in), ``output_bias`` (D,).

    >>> config = EncoderConfig("rcnn", 1, 1, gate="constant", decay=0.5)  # W_1 = 1, W_2 = 10
    >>> network = Patterns(config, {"input": torch.tensor([[1.0], [10.0]]), "output_bias": torch.zeros(1)})
    >>> states = network(torch.tensor([[0.01], [0.02], [0.03]]), Packing.of(torch.tensor([3])))
    >>> states.detach().atanh().round(decimals=4).flatten().tolist()  # 0; .01 + .2; .02 + .3 + (.01 + .3) / 2
    [0.0, 0.20999999344348907, 0.4749999940395355]
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        self.input = nn.Parameter(values["input"])
        self.output_bias = nn.Parameter(values["output_bias"])

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        order, decay = self.config.order, self.config.decay
        shares = functional.linear(words, self.input).view(len(words), order, -1)
        sums = [shares.new_zeros(len(packing.order), shares.shape[2]) for _ in range(order - 1)]  # s of each k
        weights, states = [0.0] * (order - 1), []  # p of each k
        for step in torch.split(shares, list(packing.counts)):
            state, count = step[:, 0], 1.0
            for k in range(order - 1):
                before, passed = sums[k][: len(step)], weights[k]
                sums[k], weights[k] = before * decay + state, passed * decay + count
                state, count = before + passed * step[:, k + 1], passed
            states.append(state)
        return (torch.cat(states) + self.output_bias).tanh()
