"""What training makes smaller: one file per objective.

Enters: a corpus, a network, batches. Leaves: losses. May import: encode's networks, its neighbours in train, torch.
"""
