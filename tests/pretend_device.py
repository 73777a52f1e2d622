"""A device that is not there: tensors that say they are elsewhere, are computed on the CPU, and refuse to be mixed.

What a GPU refuses, a CPU lets pass: an operation on tensors of two devices, a NumPy array of a tensor that is away.
Within ``PretendDevice`` whatever is moved to or made on ``AWAY`` behaves as on a GPU, with the numbers that the CPU
gives. As on a GPU, numbers without dimensions and indices may stay on the CPU, and copies go both ways.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the encoders are trained with torch, which is not installed")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

AWAY = torch.device("meta")  # torch's own name for a device without memory
_ATEN = torch.ops.aten
_COPIES = (_ATEN._to_copy.default, _ATEN.copy_.default)
_INDEXED = (_ATEN.index.Tensor, _ATEN.index_put.default, _ATEN.index_put_.default, _ATEN._index_put_impl_.default)


class Away(torch.Tensor):  # type: ignore[misc]
    """A tensor on ``AWAY``; ``held`` has its numbers."""

    held: Any

    @staticmethod
    def __new__(cls, held: Any) -> Away:
        found: Away = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=AWAY
        )
        found.held = held
        return found

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(operation, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl


class PretendDevice(TorchDispatchMode):  # type: ignore[misc]
    """Where ``AWAY`` can be moved to."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(operation, args, kwargs or {})


def moved(module: Any) -> Any:
    """Return a module with its parameters and buffers on ``AWAY``."""
    with PretendDevice():
        for part in module.modules():
            for name, value in part.named_parameters(recurse=False):
                part._parameters[name] = torch.nn.Parameter(value.detach().to(AWAY), value.requires_grad)
            for name, value in part.named_buffers(recurse=False):
                part._buffers[name] = value.to(AWAY)
            if isinstance(part, torch.nn.RNNBase):
                part._flat_weights = [getattr(part, name) for name in part._flat_weights_names]
    return module


def _run(operation: Any, args: Any, kwargs: Any) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    is_away = any(isinstance(tensor, Away) for tensor in tensors)
    if is_away and operation not in _COPIES:
        _refuse_a_mixture(operation, (args[0], *args[2:]) if operation in _INDEXED else tensors)
    held_args, held = tree_map(lambda leaf: leaf.held if isinstance(leaf, Away) else leaf, (args, kwargs))
    if held.get("device") is not None:
        is_away = torch.device(held["device"]) == AWAY
        held["device"] = torch.device("cpu")
    found = operation(*held_args, **held)
    if operation._schema.is_mutable:
        return _written(operation, args, kwargs)
    return tree_map(lambda leaf: Away(leaf) if is_away and isinstance(leaf, torch.Tensor) else leaf, found)


def _refuse_a_mixture(operation: Any, values: Any) -> None:
    for value in values:
        if isinstance(value, torch.Tensor) and value.ndim and not isinstance(value, Away):
            raise RuntimeError(f"{operation} of tensors on two devices: {tuple(value.shape)} is on the CPU")


def _written(operation: Any, args: Any, kwargs: Any) -> Any:
    """Return the argument that was written to."""
    written = [
        kwargs.get(argument.name, args[place] if place < len(args) else None)
        for place, argument in enumerate(operation._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    if len(written) != 1:
        raise NotImplementedError(f"{operation} writes to {len(written)} tensors")
    return written[0] if operation._schema.returns else None
