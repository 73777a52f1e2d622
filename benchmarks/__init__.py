"""Measurements of speed, memory and quality on real data; each writes one file under ``results/``."""
