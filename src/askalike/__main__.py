"""``python -m askalike``: the command line where no shell finds its name."""

from askalike.cli.main import main

main()
