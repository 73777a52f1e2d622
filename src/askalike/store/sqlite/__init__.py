"""A forum's store, and the likely pairs beside it, in SQLite files."""
