"""Training: a forum's texts and marks to a model; with ``encode.networks`` and ``siamese.network`` what needs torch."""
