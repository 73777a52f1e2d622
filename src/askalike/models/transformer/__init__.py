"""Sentence transformers of BERT's family, without torch: MiniLM, BGE, E5, GTE, MPNet and their like."""
