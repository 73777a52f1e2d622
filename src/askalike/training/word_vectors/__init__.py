"""Vectors of words: trained on a forum's own text, read from files, and made ready for an encoder.

Modules are imported by name, so that gensim is loaded only where vectors are trained.
"""
