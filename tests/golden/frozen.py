"""What others rely on, as files: a change of it shows in the diff of a commit, or is a mistake.

`SOJOURN_GOLDEN=write` writes the files anew instead of comparing.
"""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

import pytest

__all__ = ["FOLDER", "same_json", "same_text"]

FOLDER = Path(__file__).parent
_WRITING = os.environ.get("SOJOURN_GOLDEN") == "write"
_AT_MOST = 60  # lines of a difference


def same_text(name: str, text: str) -> None:
    """Fail if the golden file of this name says something else."""
    file = FOLDER / name
    if _WRITING:
        file.write_text(text)
    golden = file.read_text()
    if text == golden:
        return
    lines = difflib.unified_diff(
        golden.splitlines(), text.splitlines(), f"tests/golden/{name}", "now", lineterm="", n=1
    )
    shown = "\n".join(list(lines)[:_AT_MOST])
    pytest.fail(
        f"{shown}\n\nIf this is meant, run `SOJOURN_GOLDEN=write .venv/bin/python -m pytest "
        "tests/golden` and commit the file.",
        pytrace=False,
    )


def same_json(name: str, data: Any) -> None:
    """The same for what is no text."""
    same_text(name, json.dumps(data, indent=1, sort_keys=True) + "\n")
