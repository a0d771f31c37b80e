"""How much memory a push and a restore take at their worst moment, each in its own process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import trees
from bench.server import started
from bench.tools import our_command, our_environment

__all__ = ["main"]

_MB = 1_000_000
# Run in between, so that what is measured is the peak of one child and of nothing before it.
_MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps([code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit, seconds]))
"""


def main(*, quick: bool = False) -> None:
    mib, count = (16, 1000) if quick else (1024, 1_000_000)
    print("| peak memory | push | restore | bar | |\n| --- | --- | --- | --- | --- |")
    large = f"{mib:,} MiB in one file"
    _measure(large, lambda root: trees.make_large(root, mib << 20), bar=200)
    many = f"{count:,} empty files"
    _measure(many, lambda root: trees.make_empty_files(root, count), bar=600)


def _measure(name: str, make: Callable[[Path], Path], bar: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as folder, started() as server:
        server.make_bucket("memory")
        environment = our_environment(server)
        source, target = make(Path(folder) / "source"), Path(folder) / "target"
        target.mkdir()
        cells = []
        peaks = []
        for verb, where in (("push", source), ("restore", target)):
            peak, seconds = _peak(our_command(verb, "s3://memory", str(where)), environment)
            peaks.append(peak)
            cells.append(f"{peak / _MB:.0f} MB in {seconds:.1f} s")
        verdict = "met" if max(peaks) < bar * _MB else "MISSED"
        print(f"| {name} | {' | '.join(cells)} | under {bar} MB | {verdict} |", flush=True)


def _peak(command: list[str], environment: dict[str, str]) -> tuple[int, float]:
    measured = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command], env=environment, capture_output=True, check=True
    )
    code, peak, seconds = json.loads(measured.stdout)
    if code:
        raise RuntimeError(f"{command}: {measured.stderr.decode(errors='replace')[-2000:]}")
    return peak, seconds
