"""The encoders as torch modules, to be trained; the only part of ``encode`` that needs torch.

Enters: an ``EncoderConfig`` and a seed. Leaves: a module, and its parameters as NumPy arrays.
May import: config, errors, torch.
"""

from askalike.models.encoders.networks.build import build, from_arrays, to_arrays
from askalike.models.encoders.networks.encoder import Encoder
from askalike.models.encoders.networks.packing import Packing

__all__ = ["Encoder", "Packing", "build", "from_arrays", "to_arrays"]
