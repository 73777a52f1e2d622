"""The systems of the mission, a folder each."""
