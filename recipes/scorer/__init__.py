"""The scorer's weights: the judged pairs, the fit, its command ``python -m recipes.scorer``."""
