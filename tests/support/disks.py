"""A small disk that can be filled up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["small_disk"]


@contextmanager
def small_disk(at: Path, size: str = "1m") -> Iterator[Path]:
    """Mount a tmpfs; needs root."""
    if os.geteuid() != 0:
        pytest.skip("mounts a small tmpfs: run the tests as root to enable it")
    at.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs ({mounted.stderr.strip()}): enable CAP_SYS_ADMIN")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)
