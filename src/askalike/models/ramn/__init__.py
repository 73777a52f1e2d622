"""RAMN, the reduced attentive matching network: an unsupervised ranker over the hidden states of an autoencoder."""
