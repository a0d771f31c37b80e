"""`python -m sojourn.cli`, where there is no `sojourn` on the path."""

from sojourn.cli import main

main()
