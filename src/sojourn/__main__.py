"""`python -m sojourn`: the command line, where there is no `sojourn` on the path."""

from sojourn.cli import main

main()
