"""askalike finds the questions in a community forum that ask the same thing."""

from askalike._version import __version__

__all__ = ["__version__"]
