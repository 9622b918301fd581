"""Lets `python -m msstab` do what `msstab` does."""

from msstab.cli import main

main()
