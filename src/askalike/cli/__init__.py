"""The command line: one file per command, thin over the library. ``main`` is its composition root."""
