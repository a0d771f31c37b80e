"""Imported first by our programs, never by the library: a start that loads less.

`dataclasses` imports `inspect`, which takes longer to load than all of `core`, and hardly uses it.
"""

from sojourn.core.lazy import lazily

with lazily("inspect"):
    import dataclasses  # noqa: F401
