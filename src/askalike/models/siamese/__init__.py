"""A siamese network from texts as letter trigrams to vectors: SCQA, and DSQA, whose two sides share nothing.

Enters: questions, answers. Leaves: vectors of length 1, compared by cosine. It is trained in ``train.siamese``; with
that, ``network`` and ``block`` are the only files that need torch.
May import: types, errors, text, encode (words, folders).

Source: Das et al. 2016 (ACL), "Together We Stand: Siamese Networks for Similar Question Retrieval".
"""

from askalike.models.siamese.config import SIAMESE_KINDS, SiameseConfig
from askalike.models.siamese.model import SiameseModel
from askalike.models.siamese.settings import SiameseSettings

__all__ = ["SIAMESE_KINDS", "SiameseConfig", "SiameseModel", "SiameseSettings"]
