"""A real Gitea for tests, on loopback, with a fresh data folder for each run.

Its own runner program is not part of it: Go's module proxy has Gitea, but not the program. What
stands in for it speaks Gitea's own protocol, see `tests/simforge/programs/gitea`.
"""
