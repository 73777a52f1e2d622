"""Training a siamese network from questions and their answers: what is learned from, the loss, and the recipe.

Source: Das et al. 2016 (ACL), section 4.
"""
