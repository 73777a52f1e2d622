"""Every encoder as a plain loop in float64, one text at a time: what the fast ones are held against."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askalike.models.encoders.settings import EncoderConfig

Vector = list[float]
Arrays = Mapping[str, NDArray[np.float32]]


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def times(rows: Sequence[Sequence[float]], vector: Sequence[float]) -> Vector:
    return [sum(weight * value for weight, value in zip(row, vector, strict=True)) for row in rows]


def naive_rcnn(config: EncoderConfig, arrays: Arrays, words: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    d, n = config.hidden_size, config.order
    stacked = arrays["input"].tolist()
    layers = [stacked[k * d : (k + 1) * d] for k in range(n)]
    if config.gate == "constant":
        return naive_patterns(config, arrays, [[times(layer, word) for layer in layers] for word in words]), []
    sums = [[0.0] * d for _ in range(n)]
    state = [0.0] * d
    states, gates = [], []
    for word in words:
        if config.gate_size:
            from_word, from_state = times(stacked[n * d :], word), times(arrays["recurrent"].tolist(), state)
            bias = arrays["gate_bias"].tolist()
            gate = [sigmoid(a + b + c) for a, b, c in zip(from_word, from_state, bias, strict=True)]
            gates.append(gate)
            wide = gate if config.gate == "vector" else gate * d
        else:
            wide = [config.decay if config.gate == "fixed" else 0.0] * d
        new = []
        for k in range(n):
            share = times(layers[k], word)
            if k:
                share = [a + b for a, b in zip(share, sums[k - 1], strict=True)]
            new.append([g * old + (1 - g) * s for g, old, s in zip(wide, sums[k], share, strict=True)])
        sums = new
        state = [math.tanh(c + b) for c, b in zip(sums[-1], arrays["output_bias"].tolist(), strict=True)]
        states.append(state)
    return states, gates


def naive_patterns(config: EncoderConfig, arrays: Arrays, shares: list[list[Vector]]) -> list[Vector]:
    """Every choice of n words that ends at t, one after the other, as the sum is written."""
    d, n, states = config.hidden_size, config.order, []
    for t in range(len(shares)):
        total = arrays["output_bias"].astype(float)
        for earlier in combinations(range(t), n - 1):
            places = (*earlier, t)
            weight = math.prod(config.decay ** (b - a - 1) for a, b in pairwise(places))
            for k, place in enumerate(places):
                total = total + weight * np.array(shares[place][k])
        states.append([math.tanh(total[j]) for j in range(d)])
    return states


def naive_lstm(config: EncoderConfig, arrays: Arrays, words: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    d = config.hidden_size
    state, cell, states = [0.0] * d, [0.0] * d, []
    for word in words:
        sums = zip(
            times(arrays["weight_ih"].tolist(), word),
            times(arrays["weight_hh"].tolist(), state),
            arrays["bias_ih"].tolist(),
            arrays["bias_hh"].tolist(),
            strict=True,
        )
        z = [sum(parts) for parts in sums]
        i, f, g, o = z[:d], z[d : 2 * d], z[2 * d : 3 * d], z[3 * d :]
        cell = [sigmoid(f[j]) * cell[j] + sigmoid(i[j]) * math.tanh(g[j]) for j in range(d)]
        state = [sigmoid(o[j]) * math.tanh(cell[j]) for j in range(d)]
        states.append(state)
    return states, []


def naive_gru(config: EncoderConfig, arrays: Arrays, words: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    states = words
    parameters = [array.tolist() for array in arrays.values()]
    for layer in range(config.layers):
        states = naive_gru_layer(config.hidden_size, parameters[4 * layer : 4 * layer + 4], states)
    return states, []


def naive_gru_layer(d: int, parameters: list[list[Any]], words: list[Vector]) -> list[Vector]:
    weight_ih, weight_hh, bias_ih, bias_hh = parameters
    state, states = [0.0] * d, []
    for word in words:
        x = [a + b for a, b in zip(times(weight_ih, word), bias_ih, strict=True)]
        h = [a + b for a, b in zip(times(weight_hh, state), bias_hh, strict=True)]
        reset = [sigmoid(x[j] + h[j]) for j in range(d)]
        keep = [sigmoid(x[d + j] + h[d + j]) for j in range(d)]
        new = [math.tanh(x[2 * d + j] + reset[j] * h[2 * d + j]) for j in range(d)]
        state = [(1 - keep[j]) * new[j] + keep[j] * state[j] for j in range(d)]
        states.append(state)
    return states


def naive_cnn(config: EncoderConfig, arrays: Arrays, words: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    n = config.order
    padded = [[0.0] * config.input_size] * (n - 1) + words
    windows = [list(chain.from_iterable(padded[t : t + n])) for t in range(len(words))]
    sums = [times(arrays["weight"].tolist(), window) for window in windows]
    return [[math.tanh(s + b) for s, b in zip(row, arrays["bias"].tolist(), strict=True)] for row in sums], []


def naive_attention(config: EncoderConfig, arrays: Arrays, words: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    exact = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    d, states = config.hidden_size, [np.array(word) for word in words]
    for layer in range(1, config.layers + 1):
        to_query, to_key, to_value = exact[f"attention_{layer}"].reshape(3, d, d)
        layer_states = []
        for word in states:
            weights = [math.exp((to_query @ word) @ (to_key @ other) / math.sqrt(d)) for other in states]
            seen = sum(weight * (to_value @ other) for weight, other in zip(weights, states, strict=True))
            mixed = naive_norm(seen / sum(weights) + word, exact[f"attention_norm_{layer}"])
            inner = [max(0.0, value) for value in exact[f"inner_{layer}"] @ mixed + exact[f"inner_bias_{layer}"]]
            outer = exact[f"outer_{layer}"] @ np.array(inner) + exact[f"outer_bias_{layer}"]
            layer_states.append(naive_norm(outer + mixed, exact[f"outer_norm_{layer}"]))
        states = layer_states
    return [state.tolist() for state in states], []


def naive_norm(row: NDArray[np.float64], gain_and_bias: NDArray[np.float64]) -> NDArray[np.float64]:
    mean = sum(row) / len(row)
    variance = sum((value - mean) ** 2 for value in row) / len(row)
    scaled = [(value - mean) / math.sqrt(variance + 1e-5) for value in row]
    return np.array([gain * value + bias for value, gain, bias in zip(scaled, *gain_and_bias, strict=True)])


NAIVE: dict[str, Callable[[EncoderConfig, Arrays, list[Vector]], tuple[list[Vector], list[Vector]]]] = {
    "rcnn": naive_rcnn,
    "lstm": naive_lstm,
    "gru": naive_gru,
    "cnn": naive_cnn,
    "attention": naive_attention,
}


def naive_pooled(pooling: str, states: list[Vector], size: int) -> Vector:
    if not states:
        return [0.0] * size
    if pooling == "last":
        return states[-1]
    if pooling == "normalised-last":
        return [value / (math.hypot(*states[-1]) or 1) for value in states[-1]]
    if pooling == "max":
        return [max(column) for column in zip(*states, strict=True)]
    if pooling == "normalised-mean":
        states = [[value / math.hypot(*state) for value in state] for state in states]
    return [sum(column) / len(states) for column in zip(*states, strict=True)]
