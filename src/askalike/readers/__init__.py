"""Files of a forum → questions, answers and links: one file per format, and how a format is recognised."""
