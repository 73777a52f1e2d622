"""Training: models made from a forum's texts, answers and labelled pairs."""
