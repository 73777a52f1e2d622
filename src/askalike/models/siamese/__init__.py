"""Siamese networks from texts as letter trigrams to vectors: SCQA, and DSQA, whose two sides share nothing.

Vectors have length 1 and are compared by cosine. ``network`` alone needs torch, for training.

Source: Das et al. 2016 (ACL), "Together We Stand: Siamese Networks for Similar Question Retrieval".
"""
