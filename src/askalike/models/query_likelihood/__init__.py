"""Query likelihood: texts as term ids, and how likely a candidate makes a query by its words, smoothed."""
