"""Students of a large encoder: sums of rows of a table that put a text where the teacher would, without torch."""
