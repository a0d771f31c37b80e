"""Texts of docstrings as people are shown them."""

from __future__ import annotations

__all__ = ["cleandoc"]


def cleandoc(doc: str) -> str:
    """As `inspect.cleandoc`, which takes as long to load as all of click."""
    first, *rest = doc.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip(" ")) for line in rest if line.strip()), default=0)
    lines = [first.lstrip(" "), *(line[margin:] for line in rest)]
    return "\n".join(lines).strip("\n")
