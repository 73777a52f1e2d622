"""Programs for the project's own upkeep; not part of the package."""
