"""The pages of Terraform Provider Iterative: what they show, as it is written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

__all__ = ["FOLDER", "NAMES", "page", "role", "uncommented"]

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.tf"))


def page(name: str) -> str:
    """A configuration, whole."""
    return (FOLDER / f"{name}.tf").read_text()


def uncommented(name: str) -> str:
    """The same with the line that a comment says to uncomment."""
    text, changed = re.subn(r"# +(instance_gpu +=)", r"\1", page(name))
    assert changed == 1, name
    return text


def role() -> list[dict[str, Any]]:
    """The objects for an account in a cluster."""
    return list(yaml.safe_load_all((FOLDER / "role.yaml").read_text()))
