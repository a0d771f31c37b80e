"""AWS's descriptions of its own services, which botocore reads from files: here only once.

Every session reads them anew, and each test has a few sessions: that was a fifth of its time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from botocore.loaders import JSONFileLoader

_read = JSONFileLoader.load_file


@cache
def _once(path: str) -> Any:
    return _read(JSONFileLoader(), path)


def _load_file(_: JSONFileLoader, file_path: str) -> Any:
    return _once(file_path)


def read_once() -> None:
    """From now on, in this process. Whoever reads them changes nothing in them."""
    JSONFileLoader.load_file = _load_file  # type: ignore[method-assign, assignment]
