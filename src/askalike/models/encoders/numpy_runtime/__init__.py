"""Trained encoders in NumPy: the same vectors as torch gives, without torch."""
