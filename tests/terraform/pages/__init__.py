"""The pages of Terraform Provider Iterative: what they show, as it is written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

__all__ = ["FOLDER", "NAMES", "on_cloud", "page", "role", "shortened", "uncommented"]

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.tf"))


def page(name: str) -> str:
    """A configuration, whole."""
    return (FOLDER / f"{name}.tf").read_text()


def on_cloud(name: str, cloud: str) -> str:
    """A page on tasks with another of the clouds that its comment lists."""
    text, changed = re.subn(r'(cloud +=) "aws"', rf'\1 "{cloud}"', page(name))
    assert changed == 1, name
    return text


def shortened(text: str) -> str:
    """The same with a loop that ends soon."""
    assert "1337" in text
    return text.replace("1337", "3").replace("sleep 1\n", "sleep 0.1\n")


def uncommented(name: str) -> str:
    """The same with the line that a comment says to uncomment."""
    text, changed = re.subn(r"# +(instance_gpu +=)", r"\1", page(name))
    assert changed == 1, name
    return text


def role() -> list[dict[str, Any]]:
    """The objects for an account in a cluster."""
    return list(yaml.safe_load_all((FOLDER / "role.yaml").read_text()))
