"""The general encoder: its recipe, its sources, its command ``python -m recipes.general``."""
