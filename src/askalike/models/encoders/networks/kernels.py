"""The element-wise arithmetic of the RCNN's recurrence as two Triton kernels: equations in ``recurrence``.

A program has one text of a lane and ``block`` of its D numbers, and takes the steps ``first`` … ``last`` - 1 in one
launch, as far as its text goes. A vector gate needs U^λ h_{t-1} of all numbers, so there a launch takes one step and
finds the product in z; with a scalar gate a program has all numbers and makes the product itself; without gates it
needs nothing of the others. u (order · size numbers a word) and z (``gate_size``) lie side by side, as do du and dz.

A step's c is written where the next step reads it, by other threads of the same program if the compiler likes: hence
a barrier after each step. Within a step every c is read once, before it is overwritten, by what overwrites it.

Differs: tanh(x) = 2σ(2x) - 1, which is as right as the true one to 1e-7 in float32, absolutely; Triton has no tanh that
all its releases share. A kernel's many parameters are the memory that it touches.

Enters: pointers. Leaves: nothing. May import: triton, which is there only where this module is wanted.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias

__all__ = ["backward_steps", "forward_steps"]

triton: Final = importlib.import_module("triton")
tl: Final = importlib.import_module("triton.language")

if TYPE_CHECKING:  # triton has no types, and knows none but its own where it compiles
    constexpr: TypeAlias = Any
    pointer: TypeAlias = Any
else:
    constexpr, pointer = tl.constexpr, tl.tensor


def _forward_steps(
    projected: pointer,  # u and z of every word, with their biases  # (N, n·D + G)
    recurrent: pointer,  # U^λ of a scalar gate  # (1, D)
    start: pointer,  # (R, n + 1, D)
    opening: pointer,  # c before the first word; where nothing is kept, c of the step before  # (R, n, D)
    memory: pointer,  # (N, n, D)
    states: pointer,  # (N, D)
    gates: pointer,  # (N, G)
    tops: pointer,  # packed row of the first word of every step
    lengths: pointer,  # words of every text  # (R,)
    first: int,
    last: int,
    order: constexpr,
    size: constexpr,
    gate_size: constexpr,
    decay: constexpr,
    is_kept: constexpr,
    block: constexpr,
) -> None:
    text = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    is_own = column < size
    h = tl.load(start + (text * (order + 1) + order) * size + column, mask=is_own, other=0.0)
    for step in range(first, tl.minimum(tl.load(lengths + text), last)):
        row = tl.load(tops + step) + text
        word = projected + row * (order * size + gate_size)
        if gate_size == 0:
            gate = tl.full((block,), decay, h.dtype)  # as such, a number would be one of 32 bits
        elif gate_size == 1:
            weights = tl.load(recurrent + column, mask=is_own, other=0.0)
            gate = tl.sigmoid(tl.load(word + order * size) + tl.sum(weights * h, axis=0))
            if is_kept:
                tl.store(gates + row, gate)
        else:
            gate = tl.sigmoid(tl.load(word + order * size + column, mask=is_own, other=0.0))
            if is_kept:
                tl.store(gates + row * size + column, gate, mask=is_own)
        before = opening + text * order * size + column
        after = before
        if is_kept:
            if step > 0:
                before = memory + (tl.load(tops + step - 1) + text) * order * size + column
            after = memory + row * order * size + column
        c = tl.load(before + (order - 1) * size, mask=is_own, other=0.0)
        for back in tl.static_range(order):
            candidate = tl.load(word + (order - 1 - back) * size + column, mask=is_own, other=0.0)
            if back + 1 < order:
                below = tl.load(before + (order - 2 - back) * size, mask=is_own, other=0.0)
                candidate += below
            new = gate * c + (1.0 - gate) * candidate
            tl.store(after + (order - 1 - back) * size, new, mask=is_own)
            if back == 0:
                h = 2.0 * tl.sigmoid(2.0 * new) - 1.0
                tl.store(states + row * size + column, h, mask=is_own)
            if back + 1 < order:
                c = below
        tl.debug_barrier()


def _backward_steps(
    d_states: pointer,  # the gradient arriving at h of every word  # (N, D)
    states: pointer,  # (N, D)
    gates: pointer,  # (N, G)
    opening: pointer,  # (R, n, D)
    memory: pointer,  # (N, n, D)
    recurrent: pointer,  # U^λ of a scalar gate  # (1, D)
    slopes: pointer,  # takes du and dz of every word  # (N, n·D + G)
    running: pointer,  # dc and dh, of the step after before, of the first step's start after  # (R, n + 1, D)
    tops: pointer,
    lengths: pointer,
    first: int,
    last: int,
    order: constexpr,
    size: constexpr,
    gate_size: constexpr,
    decay: constexpr,
    block: constexpr,
) -> None:
    text = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * block + tl.arange(0, block)
    is_own = column < size
    own = running + text * (order + 1) * size + column
    dh = tl.load(own + order * size, mask=is_own, other=0.0)
    end = tl.minimum(tl.load(lengths + text), last)
    for back in range(first, end):
        step = end - 1 - (back - first)
        row = tl.load(tops + step) + text
        slope = slopes + row * (order * size + gate_size)
        h = tl.load(states + row * size + column, mask=is_own, other=0.0)
        dh += tl.load(d_states + row * size + column, mask=is_own, other=0.0)
        top = tl.load(own + (order - 1) * size, mask=is_own, other=0.0) + dh * (1.0 - h * h)
        if gate_size == 0:
            gate = tl.full((block,), decay, h.dtype)  # as such, a number would be one of 32 bits
        elif gate_size == 1:
            gate = tl.load(gates + row)
        else:
            gate = tl.load(gates + row * size + column, mask=is_own, other=0.0)
        before = opening + text * order * size + column
        if step > 0:
            before = memory + (tl.load(tops + step - 1) + text) * order * size + column
        now = memory + row * order * size + column
        change = h * 0.0
        dc = top
        if order > 1:
            dc = tl.load(own, mask=is_own, other=0.0)
        for k in tl.static_range(order):
            let_in = (1.0 - gate) * dc
            tl.store(slope + k * size + column, let_in, mask=is_own)
            if gate_size > 0:
                was = tl.load(before + k * size, mask=is_own, other=0.0)
                change += dc * (was - tl.load(now + k * size, mask=is_own, other=0.0))
            held = gate * dc
            dc = tl.load(own + (k + 1) * size, mask=is_own, other=0.0) if k + 2 < order else top
            if k + 1 < order:
                held += (1.0 - gate) * dc
            tl.store(own + k * size, held, mask=is_own)
        if gate_size == 0:
            dh = h * 0.0
        elif gate_size == 1:
            dz = gate * tl.sum(change, axis=0)
            tl.store(slope + order * size, dz)
            dh = dz * tl.load(recurrent + column, mask=is_own, other=0.0)
        else:
            tl.store(slope + order * size + column, gate * change, mask=is_own)
        tl.debug_barrier()
    if gate_size <= 1:  # of a vector gate, dh is a product that is taken between two launches
        tl.store(own + order * size, dh, mask=is_own)


_STEPS: Final = ["first", "last"]  # whole numbers that change with every launch: no code of their own for 1 or 16

forward_steps: Final = triton.jit(_forward_steps, do_not_specialize=_STEPS)
backward_steps: Final = triton.jit(_backward_steps, do_not_specialize=_STEPS)
