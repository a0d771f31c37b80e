"""A command in the script's container.

python3 -m sojourn.clouds.vm.on_machine.within FOLDER COMMAND... Which container it is, a file
beside the folder tells while the script runs: in the folder, the script could change it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

__all__ = ["MARK"]

MARK = "container"  # the name of the file
_CANNOT = 126  # as in a shell


def main() -> int:
    """Become the command; returns only if that cannot be."""
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    shown = os.isatty(0)
    try:
        found = json.loads((folder.parent / MARK).read_text())
    except (OSError, ValueError):
        # On a line of its own: in the first one, a command tells its number.
        sys.stderr.write(f"{'' if shown else chr(10)}the script does not run on this machine\n")
        return _CANNOT
    program = found["program"]
    terminal = ["--tty"] if shown else []
    words = [program, "exec", "--interactive", *terminal, found["name"], *command]
    try:
        os.execv(program, words)  # noqa: S606 -- that is what it is for
    except OSError as error:
        sys.stderr.write(f"{program}: {error.strerror}\n")
        return _CANNOT


if __name__ == "__main__":
    sys.exit(main())
