"""Encoders: from word vectors to one vector for a text.

Enters: sequences of word vectors. Leaves: vectors. The networks in torch live in ``encode.networks``, which is not
imported here: trained encoders run without torch, and importing this package loads neither torch nor a framework.
May import: types, errors.
"""
