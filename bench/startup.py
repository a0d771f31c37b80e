"""How long commands take to start, beside bare Python and a peer's command line."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

_BAR = 5.0  # times `python3 -c pass`
_SCRIPTS = Path(sysconfig.get_path("scripts"))


def main(*, quick: bool = False) -> None:
    commands = {
        "python3 -c pass": [sys.executable, "-c", "pass"],
        "sojourn --help": [str(_SCRIPTS / "sojourn"), "--help"],
        "sojourn list": [str(_SCRIPTS / "sojourn"), "list"],
    }
    aws = shutil.which("aws", path=f"{_SCRIPTS}{os.pathsep}{os.environ.get('PATH', '')}")
    if aws:
        commands["aws --version"] = [aws, "--version"]
    rounds = 3 if quick else 30
    times: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as empty:
        homes = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
        environment = {**os.environ, **dict.fromkeys(homes, empty)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in commands.values():  # an installed program has been compiled before
            _timed(command, environment)
        for _ in range(rounds):  # side by side, so that noise falls on all alike
            for name, command in commands.items():
                times[name].append(_timed(command, environment))
    bare = statistics.median(times["python3 -c pass"])
    print(f"{'command':<18} {'ms':>7} {'x python3':>10}")
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name:<18} {middle * 1000:7.0f} {middle / bare:10.1f}")
    for name in ("sojourn --help", "sojourn list"):
        ratio = statistics.median(times[name]) / bare
        print(f"bar: {name} under {_BAR}x: {'met' if ratio < _BAR else 'NOT met'}")


def _timed(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, env=environment, capture_output=True, check=True)
    return time.perf_counter() - began
