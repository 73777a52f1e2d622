"""The sections of ``docs/results.md``: one function a results file, from its JSON to lines of Markdown."""
