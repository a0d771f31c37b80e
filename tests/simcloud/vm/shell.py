"""Our command line as a user types it: each command is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.contract.clouds.vm_kit import python_of_machines
from tests.simcloud.vm.sides import Side
from tests.support.waiting import patience

__all__ = ["Shell"]

# The command line, with images that have the Python of this computer.
_COMMAND = """
import sys
from dataclasses import replace
from importlib import import_module

generic = import_module(f"sojourn.clouds.{sys.argv[1]}.machines")._GENERIC
generic["ubuntu"] = replace(generic["ubuntu"], pythons=(sys.argv[2],))
del sys.argv[1:3]
from sojourn.cli import main

main()
"""


class Shell:
    """Runs commands in a folder."""

    def __init__(self, side: Side, folder: Path) -> None:
        self.cloud = str(side.kit.cloud)
        self._folder = folder

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = (sys.executable, "-c", _COMMAND, self.cloud, python_of_machines(), *words)
        return subprocess.Popen(
            command,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        printed, errors = process.communicate(timeout=patience(180))
        return process.returncode, printed, errors

    def ok(self, *words: str) -> str:
        code, printed, errors = self.run(*words)
        assert code == 0, errors
        return printed

    def rows(self, *words: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.ok(*words, "--json").splitlines()]
        return [row for row in found if row["type"] != "note"]
