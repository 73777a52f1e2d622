"""Training: a forum's texts and marks to a model; with ``encode.networks`` and ``siamese.network`` what needs torch.

Enters: questions, marked pairs, answers, a recipe. Leaves: models: encoders, language models, siamese ones.
May import: types, errors, durable, progress, text, encode, language, siamese, evaluate.
"""
