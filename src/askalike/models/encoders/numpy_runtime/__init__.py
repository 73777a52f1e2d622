"""Trained encoders in NumPy: the same vectors as torch gives, without torch.

Enters: parameters and word vectors. Leaves: pooled vectors, states, gates. May import: config, errors.
"""

from askalike.models.encoders.numpy_runtime.runtime import NETWORKS, Runtime

__all__ = ["NETWORKS", "Runtime"]
