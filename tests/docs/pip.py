"""pip where the libraries are there already: looks whether it could do what it is told.

A venv that a document makes has a real one.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import metadata
from pathlib import Path


def main() -> int:
    verb, *packages = (word for word in sys.argv[1:] if not word.startswith("-"))
    known = metadata("sojourn")
    for package in packages:
        found = re.fullmatch(r"(\.|sojourn)(?:\[([\w,]+)\])?", package)
        assert found, f"what is {package}?"
        assert found[1] != "." or Path("pyproject.toml").exists(), "this is no clone"
        extras = set((found[2] or "").split(",")) - {""}
        assert extras <= set(known.get_all("Provides-Extra") or ()), f"unknown: {extras}"
    assert packages
    assert verb in ("install", "uninstall")
    return 0


if __name__ == "__main__":
    sys.exit(main())
