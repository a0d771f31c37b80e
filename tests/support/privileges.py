"""Running a program as somebody whom modes of files stop, which root is not."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

__all__ = ["stopped_by_modes"]

_DROPPED = "-dac_override,-dac_read_search"


def stopped_by_modes() -> list[str]:
    """What to put before a command; nothing, unless the tests run as root."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root may read everything: install setpriv, or run the tests as another user")
    prefix = ["setpriv", f"--bounding-set={_DROPPED}", f"--inh-caps={_DROPPED}"]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(
            f"setpriv does not work here ({tried.stderr.strip()}): run the tests as another user"
        )
    return prefix
