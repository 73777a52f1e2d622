"""What writes a text again from an encoder's states: one decoder per file.

Enters: an encoder's config, what it read, words. Leaves: states. May import: encode's networks, torch.
"""
