"""Fetch what machines need, before the tests run: `python -m tests.simcloud.wheels FOLDER`."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from sojourn.agent.wheels import fetch, locked, pythons


def main(folder: Path) -> None:
    architecture = platform.machine().replace("arm64", "aarch64")
    for python in pythons():
        fetch(locked(python, architecture), folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
