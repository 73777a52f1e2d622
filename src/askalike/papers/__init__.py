"""The tables of papers, reproduced row by row: one harness, and a folder of data and rules for each paper."""
