"""Encoders: from word vectors to one vector for a text; ``networks`` needs torch, a trained model does not."""
