"""Training a siamese network from questions and their answers: what is learned from, the loss, and the recipe.

Enters: questions, answers, a recipe. Leaves: ``siamese.SiameseModel``. ``objective`` and ``fit`` need torch.
May import: siamese, encode's words, types, errors, its neighbours in train.

Source: Das et al. 2016 (ACL), section 4.
"""
