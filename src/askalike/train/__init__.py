"""Training: a forum's texts and marks to an encoder's model; with ``encode.networks`` the only place with torch.

Enters: questions, marked pairs, answers, a recipe. Leaves: ``encode.Model``.
May import: types, errors, durable, text, encode, evaluate.
"""
