"""The RCNN, a convolution over words that may lie apart with a learned decay, forward and backward by hand; the CNN.

::

    λ_t    = σ(W^λ x_t + U^λ h_{t-1} + b^λ)                              vector or scalar; or a fixed λ
    c¹_t   = λ_t ⊙ c¹_{t-1} + (1 - λ_t) ⊙ (W_1 x_t)
    cᵏ_t   = λ_t ⊙ cᵏ_{t-1} + (1 - λ_t) ⊙ (cᵏ⁻¹_{t-1} + W_k x_t)        k = 2 … n
    h_t    = tanh(cⁿ_t + b)

Why by hand: autograd keeps every intermediate result, adds the gradients of the weights up step by step and allocates
anew for each operation, which costs more than the arithmetic. Here the input projections of several steps (candidates
and gate together) are one GEMM into a buffer that stays in the cache, each step is one GEMM and element-wise operations
in place, and backward needs only λ, c and h. With a^k = cᵏ⁻¹_{t-1} + W_k x_t, u^k = W_k x_t, z_t the gate before σ, and
gradients written d:

::

    dcⁿ_t  += dh_t ⊙ (1 - h_t²)
    dz_t    = λ_t ⊙ Σ_k dcᵏ_t ⊙ (cᵏ_{t-1} - cᵏ_t)        since λ(1 - λ)(c_{t-1} - a) = λ(c_{t-1} - c_t)
    da^k    = (1 - λ_t) ⊙ dcᵏ_t = du^k
    dcᵏ_{t-1} = λ_t ⊙ dcᵏ_t + da^{k+1}
    dh_{t-1}  = dz_t U^λ

b is added to u^n and to cⁿ_0: as λ and 1 - λ sum to one, every cⁿ_t then holds it, and no step has to add it.

Source: Lei et al. 2016 (NAACL), section 4.1; after section 4.2 for the CNN, a comparison encoder. The constant decay
that section 4.1 begins with is that of Lei et al. 2015 (EMNLP).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from askalike.models.encoders.networks.cpu import empty, is_rounding, round_up, side_by_side, with_more
from askalike.models.encoders.networks.packing import Lane, Packing
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
        weights, found = [0.0] * (order - 1), []  # p of each k
        for step in torch.split(shares, list(packing.lanes[0].counts)):
            found_now, count = step[:, 0], 1.0
            for k in range(order - 1):
                before, passed = sums[k][: len(step)], weights[k]
                sums[k], weights[k] = before * decay + found_now, passed * decay + count
                found_now, count = before + passed * step[:, k + 1], passed
            found.append(found_now)
        return (torch.cat(found) + self.output_bias).tanh()


CHUNK_WORDS: Final = 1024
"""Words whose projections are computed at once, in one lane."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run of the recurrence.

    Args:
        decay: the fixed λ, or None where gates are computed.
    """

    packing: Packing
    order: int
    decay: float | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive steps of a lane, and the rows of their words, counted from the first word of the lane."""

    steps: range
    words: slice

    @property
    def size(self) -> int:
        """Return how many words the chunk has."""
        return int(self.words.stop - self.words.start)


def chunks(counts: Sequence[int]) -> list[Chunk]:
    """Return the steps of a lane in groups of at most ``CHUNK_WORDS`` words, but at least one step each."""
    found: list[Chunk] = []
    first = top = bottom = 0
    for step, count in enumerate(counts):
        if step > first and bottom + count - top > CHUNK_WORDS:
            found.append(Chunk(range(first, step), slice(top, bottom)))
            first, top = step, bottom
        bottom += count
    return [*found, Chunk(range(first, len(counts)), slice(top, bottom))] if counts else []


def previous(start: Tensor, blocks: Sequence[Tensor]) -> list[Tensor]:
    """Return for every step the rows of the step before it, cut to the texts that have a word: ``start`` comes first.

    >>> import torch
    >>> [rows.tolist() for rows in previous(torch.tensor([7, 8]), [torch.tensor([1, 2]), torch.tensor([3])])]
    [[7, 8], [1]]
    """
    before = [start, *blocks[:-1]]
    return [rows if len(rows) == len(own) else rows[: len(own)] for rows, own in zip(before, blocks, strict=True)]


class Weights(NamedTuple):
    """The parameters of the RCNN.

    Args:
        projection: W_1 … W_n stacked, then W^λ.  # (n·D + G, D_in)
        recurrent: U^λ.  # (G, D), G = 0 where λ is fixed
        gate_bias: b^λ.  # (G,)
        output_bias: b.  # (D,)
    """

    projection: Tensor
    recurrent: Tensor
    gate_bias: Tensor
    output_bias: Tensor


class Tape(NamedTuple):
    """What a forward pass leaves. The last c has b added.

    Args:
        states: h of every word.  # (N, D)
        gates: λ of every word; of no word where nothing was to be kept.  # (N, G)
        opening: c¹ … cⁿ before the first word, or where nothing was to be kept, at the end of each text.  # (R, n, D)
        memory: c¹ … cⁿ of every word; of no word where nothing was to be kept.  # (N, n, D)
    """

    states: Tensor
    gates: Tensor
    opening: Tensor
    memory: Tensor


@dataclass(frozen=True, slots=True)
class _Run:
    """Everything that enters the recurrence.

    Args:
        start: c¹ … cⁿ and h before the first word of each text, (R, n + 1, D).
    """

    plan: Plan
    words: Tensor
    weights: Weights
    start: Tensor

    def forward(self, is_kept: bool) -> Tape:
        """Run all steps, the lanes side by side; keep λ and c of every word where backward needs them."""
        words, size, kept = self.words, len(self.weights.output_bias), len(self.words) if is_kept else 0
        tape = Tape(
            empty(words, len(words), size),
            empty(words, kept, len(self.weights.gate_bias)),
            self.start[:, :-1].clone(memory_format=torch.contiguous_format),
            empty(words, kept, self.plan.order, size),
        )
        tape.opening[:, -1] += self.weights.output_bias
        side_by_side([partial(_forward_lane, self, tape, lane) for lane in self.plan.packing.lanes], words.device)
        return tape

    def carry(self, tape: Tape) -> Tensor:
        """Return c¹ … cⁿ at the end of each text.  # (R, n, D)"""
        carry = tape.memory.index_select(0, self.plan.packing.last()) if len(tape.memory) else tape.opening
        carry[:, -1] -= self.weights.output_bias
        return carry

    def backward(
        self, tape: Tape, d_states: Tensor | None, d_carry: Tensor | None, is_for_words: bool
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of words (where they are wanted), the four parameters and start.

        Args:
            d_states: the gradient arriving at the states (N, D); None for zero.
            d_carry: the gradient arriving at c¹ … cⁿ at the end of each text (R, n, D); None for zero.
            is_for_words: whether the gradient of the words is wanted.
        """
        d_start = torch.zeros_like(self.start, memory_format=torch.contiguous_format)
        if d_carry is not None:
            d_start[:, :-1] = d_carry
        d_words = empty(self.words, *self.words.shape) if is_for_words else None
        lanes = self.plan.packing.lanes
        works = [partial(_backward_lane, self, tape, lane, d_states, d_start, d_words) for lane in lanes]
        found = side_by_side(works, self.words.device) or [self.zeros()]
        projection, recurrent, biases = (torch.stack(parts).sum(0) for parts in zip(*found, strict=True))
        d_output_bias, d_gate_bias = torch.split(biases, [len(self.weights.output_bias), len(self.weights.gate_bias)])
        d_output_bias += d_start[:, -2].sum(0)
        if d_carry is not None:
            d_output_bias -= d_carry[:, -1].sum(0)
        return d_words, projection, recurrent, d_gate_bias, d_output_bias, d_start

    def zeros(self) -> list[Tensor]:
        """Return zero gradients of projection, recurrent and both biases, b and b^λ in one."""
        weights = self.weights
        biases = weights.projection.new_zeros(len(weights.output_bias) + len(weights.gate_bias))
        return [torch.zeros_like(weights.projection), torch.zeros_like(weights.recurrent), biases]


@dataclass(frozen=True, slots=True)
class _Memory:
    """Where c¹ … cⁿ lie, step by step: a view takes as long as a tenth of an operation on it, so all are taken at once.

    Args:
        own: c of the step, to be written.  # (b, n, D) each
        last: cⁿ of the step.  # (b, D)
        before: c of the step before.  # (b, n, D)
        before_shorter: c¹ … cⁿ⁻¹ of the step before.  # (b, n - 1, D)
    """

    own: Sequence[Tensor]
    last: Sequence[Tensor]
    before: Sequence[Tensor]
    before_shorter: Sequence[Tensor]

    @classmethod
    def of(cls, tape: Tape, lane: Lane, counts: list[int]) -> _Memory:
        """Return the places of a lane: a row for every word, or where nothing is to be kept, one for every text."""
        opening = tape.opening[lane.texts]
        if len(tape.memory):
            memory = tape.memory[lane.words]
            own, shorter = torch.split(memory, counts), torch.split(memory[:, :-1], counts)
            last = torch.split(memory[:, -1], counts)
            return cls(own, last, previous(opening, own), previous(opening[:, :-1], shorter))
        parts = {count: opening[:count] for count in set(counts)}
        lasts = {count: part[:, -1] for count, part in parts.items()}
        shorter_parts = {count: part[:, :-1] for count, part in parts.items()}
        own_parts = [parts[count] for count in counts]
        return cls(own_parts, [lasts[count] for count in counts], own_parts, [shorter_parts[c] for c in counts])


class _More:
    """Products of steps with a round number of rows."""

    def __init__(self, words: Tensor, states: Tensor, scratch: Tensor, gate_size: int) -> None:
        self._states = states
        self._found = empty(words, len(scratch), gate_size)

    def product(self, h: Tensor, recurrent: Tensor, *, is_first: bool) -> Tensor:
        """Return U^λ h of the texts of a step, h being consecutive rows of the states but for the first step."""
        rows = h if is_first else with_more(h, self._states)
        return torch.mm(rows, recurrent, out=self._found[: len(rows)])[: len(h)]


def _forward_lane(run: _Run, tape: Tape, lane: Lane) -> None:
    """Run the steps of a lane into its rows of the tape."""
    plan, words, weights, start = run.plan, run.words, run.weights, run.start
    counts, inputs, size, gate_size = list(lane.counts), words[lane.words], start.shape[2], len(weights.gate_bias)
    h = torch.split(tape.states[lane.words], counts)
    before_h = previous(start[lane.texts, -1], h)
    c = _Memory.of(tape, lane, counts)
    bias = torch.cat([words.new_zeros((plan.order - 1) * size), weights.output_bias, weights.gate_bias])
    recurrent = weights.recurrent.t().contiguous()  # 5 % faster in the small products of a step
    groups = chunks(counts)
    scratch = empty(words, round_up(max(chunk.size for chunk in groups)), len(bias))
    more = _More(words, tape.states, scratch, gate_size) if is_rounding(words) else None
    decay = words.new_full((1, 1, 1), plan.decay or 0.0)
    for chunk in groups:
        own, taken = counts[chunk.steps.start : chunk.steps.stop], inputs[chunk.words]
        taken = taken if more is None else with_more(taken, words)
        projected = torch.addmm(bias, taken, weights.projection.t(), out=scratch[: len(taken)])[: chunk.size]
        rows, raw = projected.split_with_sizes([plan.order * size, gate_size], 1)
        candidates = rows.view(-1, plan.order, size)
        candidate_blocks, later_blocks = torch.split(candidates, own), torch.split(candidates[:, 1:], own)
        raw_blocks = torch.split(raw, own)
        kept = tape.gates[lane.words][chunk.words] if len(tape.gates) else raw
        gate_blocks, wide_blocks = torch.split(kept, own), torch.split(kept[:, None], own)
        for i, step in enumerate(chunk.steps):
            if gate_size:
                if more is None:
                    raw_blocks[i].addmm_(before_h[step], recurrent)
                else:
                    raw_blocks[i].add_(more.product(before_h[step], recurrent, is_first=step == 0))
                torch.sigmoid(raw_blocks[i], out=gate_blocks[i])
            if plan.order > 1:
                later_blocks[i].add_(c.before_shorter[step])
            torch.lerp(candidate_blocks[i], c.before[step], wide_blocks[i] if gate_size else decay, out=c.own[step])
            torch.tanh(c.last[step], out=h[step])


class _Walk:
    """The running gradients of c (R, n, D) and h (R, D) in a lane, from the last step to the first."""

    def __init__(self, run: _Run, tape: Tape, lane: Lane, start: Tensor) -> None:
        counts = list(lane.counts)
        self.recurrent = run.weights.recurrent
        self.h = torch.split(tape.states[lane.words], counts)
        self.before_h = previous(run.start[lane.texts, -1], self.h)
        self.c = torch.split(tape.memory[lane.words], counts)
        self.before_c = previous(tape.opening[lane.texts], self.c)
        self.gates = torch.split(tape.gates[lane.words], counts)
        self.fixed = start.new_full((1, 1), run.plan.decay or 0.0)
        self.dc, self.dh = start[lane.texts, :-1], start[lane.texts, -1]
        self._change = torch.empty_like(self.dc)
        self._total = torch.empty_like(self.dh)
        self._more = start.new_empty(round_up(len(self.dh)), start.shape[2]) if is_rounding(start) else None

    def step_back(self, step: int, arriving: Tensor | None, candidates: Tensor, raw: Tensor, raws: Tensor) -> None:
        """Take the gradient arriving at h_t; leave du¹ … duⁿ in ``candidates`` (b, n, D) and dz in ``raw`` (b, G).

        ``raw`` is a part of ``raws``.
        """
        count = len(self.h[step])
        dh, dc, total = self.dh[:count], self.dc[:count], self._total[:count]
        if arriving is not None:
            dh.add_(arriving)
        dc[:, -1].add_(torch.ops.aten.tanh_backward.grad_input(dh, self.h[step], grad_input=total))
        gate = self.fixed
        if len(self.recurrent):
            gate = self.gates[step]
            change = torch.sub(self.before_c[step], self.c[step], out=self._change[:count])
            torch.sum(change.mul_(dc), 1, out=total)
            torch.mul(total if raw.shape[1] == total.shape[1] else total.sum(1, keepdim=True), gate, out=raw)
            if self._more is None:
                torch.mm(raw, self.recurrent, out=dh)
            else:
                rows = with_more(raw, raws)
                dh.copy_(torch.mm(rows, self.recurrent, out=self._more[: len(rows)])[:count])
        else:
            dh.zero_()
        gate = gate[:, None]
        torch.addcmul(dc, dc, gate, value=-1, out=candidates)
        dc.mul_(gate)
        if dc.shape[1] > 1:
            dc[:, :-1].add_(candidates[:, 1:])

    def before(self, chunk: Chunk, whole: Tensor, room: Tensor | None) -> Tensor:
        """Return h_{t-1} for the words of a chunk, without a copy where they lie one below the other.

        Args:
            whole: the states of all words, of which those before a step are a part.
            room: where a copy is put; more rows may follow then, up to a round number. None for neither.
        """
        blocks = self.before_h[chunk.steps.start : chunk.steps.stop]
        count = len(blocks[-1])
        if chunk.steps.start and len(self.h[chunk.steps.start - 1]) == count:
            rows = blocks[0].as_strided((chunk.size, blocks[0].shape[1]), blocks[0].stride())
            return rows if room is None else with_more(rows, whole)
        if room is None:
            return blocks[0] if len(blocks) == 1 else torch.cat(blocks)
        torch.cat(blocks, out=room[: chunk.size])
        return room[: round_up(chunk.size)]


def _backward_lane(
    run: _Run, tape: Tape, lane: Lane, d_states: Tensor | None, d_start: Tensor, d_words: Tensor | None
) -> list[Tensor]:
    """Return a lane's share in the gradients of projection, recurrent and biases.

    Its rows of ``d_start``, which hold the gradient of the carry, and of ``d_words`` are overwritten.
    """
    counts, order, size = list(lane.counts), run.plan.order, d_start.shape[2]
    walk = _Walk(run, tape, lane, d_start)
    inputs, projection = run.words[lane.words], run.weights.projection
    arriving = None if d_states is None else torch.split(d_states[lane.words], counts)
    leaving = None if d_words is None else d_words[lane.words]
    _, d_recurrent, d_biases = run.zeros()
    d_projection = torch.zeros_like(projection.t())  # 7 % faster this way round
    groups = chunks(counts)
    rounds = is_rounding(d_start)
    most = max(chunk.size for chunk in groups)
    scratch = empty(d_start, round_up(most) if rounds else most, len(projection))
    room = d_start.new_zeros(len(scratch), size) if rounds and len(d_recurrent) else None
    d_taken = empty(d_start, len(scratch), inputs.shape[1]) if rounds and leaving is not None else None
    for chunk in reversed(groups):
        own, taken = counts[chunk.steps.start : chunk.steps.stop], inputs[chunk.words]
        taken = with_more(taken, run.words) if rounds else taken
        slopes = scratch[: len(taken)]
        slopes[chunk.size :].zero_()  # so that what follows the chunk's words adds nothing
        candidates, raws = slopes.split_with_sizes([order * size, len(d_recurrent)], 1)
        blocks = torch.split(candidates[: chunk.size].view(-1, order, size), own)
        raw_blocks = torch.split(raws[: chunk.size], own)
        for i, step in reversed(list(enumerate(chunk.steps))):
            walk.step_back(step, None if arriving is None else arriving[step], blocks[i], raw_blocks[i], raws)
        d_projection.addmm_(taken.t(), slopes)
        d_biases.add_(slopes[: chunk.size, (order - 1) * size :].sum(0))
        if len(d_recurrent):
            before = walk.before(chunk, tape.states, room)
            both = min(len(before), len(raws))
            d_recurrent.addmm_(raws[:both].t(), before[:both])
        if leaving is not None and d_taken is not None:
            leaving[chunk.words] = torch.mm(slopes, projection, out=d_taken[: len(slopes)])[: chunk.size]
        elif leaving is not None:
            torch.mm(slopes, projection, out=leaving[chunk.words])
    return [d_projection.t(), d_recurrent, d_biases]


class Result(NamedTuple):
    """What a run of the recurrence leaves.

    Args:
        states: h of every packed word.  # (N, D)
        gates: λ of every packed word, without gradient; of no word where nothing was kept for backward.  # (N, G)
        carry: c¹ … cⁿ and h at the end of each text: the start of a run that goes on.  # (R, n + 1, D)
    """

    states: Tensor
    gates: Tensor
    carry: Tensor


def recur(words: Tensor, weights: Weights, plan: Plan, start: Tensor | None = None, is_kept: bool = False) -> Result:
    """Run the RCNN over packed words; gradients flow to words, weights and start.

    Args:
        start: c¹ … cⁿ and h before the first word, texts in the order of the packing, (R, n + 1, D); None for zero.
        is_kept: return the gates too, of every word.
    """
    if start is None:
        start = words.new_zeros(len(plan.packing.order), plan.order + 1, len(weights.output_bias))
    tensors = (words, *weights, start)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        states, gates, carry = _Recurrence.apply(plan, *tensors)  # type: ignore[no-untyped-call]
    else:
        run = _Run(plan, words, weights, start)
        tape = run.forward(is_kept)
        states, gates, carry = tape.states, tape.gates, run.carry(tape)
    last = states.index_select(0, plan.packing.last())
    return Result(states, gates if is_kept else gates[:0], torch.cat([carry, last[:, None]], dim=1))


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        words, *parameters, start = tensors
        run = _Run(plan, words, Weights(*parameters), start)
        tape = run.forward(is_kept=True)
        ctx.plan = plan
        ctx.save_for_backward(*tensors, *tape)
        ctx.mark_non_differentiable(tape.gates)
        ctx.set_materialize_grads(False)
        return tape.states, tape.gates, run.carry(tape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *arriving: Tensor | None) -> tuple[Tensor | None, ...]:
        words, *parameters, start, states, gates, opening, memory = ctx.saved_tensors
        d_states, _, d_carry = arriving
        run = _Run(ctx.plan, words, Weights(*parameters), start)
        tape = Tape(states, gates, opening, memory)
        return None, *run.backward(tape, d_states, d_carry, ctx.needs_input_grad[1])


class Rcnn(nn.Module):
    """A gated convolution of order n.

    Args:
        values: ``input`` (n·D + G, D_in), ``recurrent`` (G, D), ``gate_bias`` (G,), ``output_bias`` (D,).
    """

    def __init__(self, config: EncoderConfig, values: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        for name, value in values.items():
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, words: Tensor, packing: Packing) -> Tensor:
        """Return the states (N, D) of packed words (N, D_in)."""
        return self.run(words, packing).states

    def go_on(self, words: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return states, and c¹ … cⁿ and h at the end of each text, (R, n + 1, D), to start another run with."""
        found = self.run(words, packing, start)
        return found.states, found.carry

    def run(self, words: Tensor, packing: Packing, start: Tensor | None = None, *, is_kept: bool = False) -> Result:
        """Return states, gates and carry of packed words (N, D_in).

        Args:
            start: the carry of another run, (R, n + 1, D), texts in the order of the packing; None for zero.
            is_kept: return the gates although no gradient is wanted.
        """
        own = dict(self.named_parameters())
        size, none = self.config.hidden_size, words.new_zeros(0)
        weights = Weights(
            own["input"], own.get("recurrent", none.view(0, size)), own.get("gate_bias", none), own["output_bias"]
        )
        decay = {"fixed": float(self.config.decay), "none": 0.0}.get(self.config.gate)
        return recur(words, weights, Plan(packing, self.config.order, decay), start, is_kept)


def gated(config: EncoderConfig, values: Mapping[str, Tensor]) -> Rcnn | Patterns:
    """Return the network of a gate."""
    return Patterns(config, values) if config.gate == "constant" else Rcnn(config, values)
