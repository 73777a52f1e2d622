"""Table 2 of Das et al. 2016 (ACL): language models, topic models and siamese networks, learned from answers."""
