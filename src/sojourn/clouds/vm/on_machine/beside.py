"""A command beside the script: with its environment, and in its folder.

python3 -m sojourn.clouds.vm.on_machine.beside FOLDER COMMAND... The environment may have secrets,
so it is in no file: the kernel knows it of the script's process, whose number is in the folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["NUMBER", "environment_in"]

NUMBER = "script-number"  # the name of the file with the number of the script's process
_NOT_FOUND, _CANNOT = 127, 126  # as in a shell


def environment_in(data: bytes) -> dict[bytes, bytes]:
    """What the kernel tells of a process."""
    pairs = (item.partition(b"=") for item in data.split(b"\0") if item)
    return {name: value for name, _, value in pairs}


def main() -> int:
    """Become the command; returns only if that cannot be."""
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    try:
        number = int((folder / NUMBER).read_text())
        environment = environment_in(Path(f"/proc/{number}/environ").read_bytes())
        if not environment:
            raise ProcessLookupError
        os.chdir(folder / "workdir")
    except (OSError, ValueError):
        sys.stderr.write("the script does not run on this machine\n")
        return _CANNOT
    if os.isatty(0):
        environment[b"TERM"] = os.environb.get(b"TERM", b"xterm")
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 -- that is what it is for
    except FileNotFoundError:
        sys.stderr.write(f"{command[0]}: not found\n")
        return _NOT_FOUND
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return _CANNOT


if __name__ == "__main__":
    sys.exit(main())
