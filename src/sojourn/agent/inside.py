"""Commands beside the script: with its environment, and in its folder."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["INSIDE", "inside"]

INSIDE = "inside"  # the name of a file with it, for a shell that has a command as its arguments
# Variables that shells do not let be set, or take for their own.
_SHELLS_OWN = re.compile(
    r"BASH.*|DIRSTACK|EPOCH(SECONDS|REALTIME)|EUID|FUNCNAME|GROUPS|HISTCMD|IFS|LINENO|OLDPWD|OPTIND"
    r"|PPID|PWD|S?RANDOM|SECONDS|SHELLOPTS|UID|_"
)


def inside(workdir: Path, environment: Mapping[str, str]) -> str:
    """What a shell does in place of being a command that runs as the script does."""
    lines, special = [], []
    for name, value in environment.items():
        if _SHELLS_OWN.fullmatch(name):
            special.append(f"{name}={value}")
        else:
            lines.append(f"export {name}={shlex.quote(value)}")
    # One that it has no locale for would make bash say so in the script's log.
    exports = "{ :\n" + "\n".join(lines) + "\n} 2>/dev/null\n"
    command = f'{shlex.join(["env", *special])} "$@"' if special else '"$@"'
    return f"{exports}cd {shlex.quote(str(workdir))} || exit 126\nexec {command}\n"
