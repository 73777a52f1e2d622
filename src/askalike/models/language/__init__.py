"""Language models of retrieval as a whole: which there are, what one has learned, and its folder."""
