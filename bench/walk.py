"""How much of our code one `sojourn run` on this computer goes through: modules and functions.

The command's own process, with its threads; not the supervisor and the agent that it starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import sojourn

_ROOT = Path(sojourn.__file__).parent
_WALK = """
import json, sys, threading
called = set()
def look(frame, event, argument):
    if event == "call":
        code = frame.f_code
        called.add((code.co_filename, code.co_firstlineno, code.co_name))
threading.setprofile(look)
sys.setprofile(look)
from sojourn.cli import main
sys.argv = sys.argv[1:]
try:
    main()
finally:
    sys.setprofile(None)
    threading.setprofile(None)
    with open({file!r}, "w") as told:
        json.dump(sorted(called), told)
"""


def main(*, quick: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        called = _called(Path(folder), ["run", "--", "true"])
    ours = [file for file, _, name in called if _ROOT in Path(file).parents and name[0] != "<"]
    print("| command | modules | functions |\n|---|---|---|")
    print(f"| sojourn run -- true | {len(set(ours))} | {len(ours)} |")


def _called(folder: Path, arguments: list[str]) -> list[tuple[str, int, str]]:
    homes = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
    environment = {**os.environ, **dict.fromkeys(homes, str(folder / "home"))}
    told = folder / "called.json"
    program = _WALK.format(file=str(told))
    command = [sys.executable, "-c", program, "sojourn", *arguments]
    subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
    return [tuple(each) for each in json.loads(told.read_text())]
