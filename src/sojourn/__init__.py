"""Sojourn: a script goes to a bigger machine with its data and comes home with its results."""

__version__ = "0.1.0"
