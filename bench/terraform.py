"""A plan that changes nothing: our provider beside the resource that Terraform has built in."""

from __future__ import annotations

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_OURS = """
terraform {
  required_providers { iterative = { source = "iterative/iterative" } }
}
resource "iterative_task" "example" {
  cloud  = "local"
  script = "#!/bin/sh\\ntrue"
}
"""
_BUILT_IN = """
resource "terraform_data" "example" {
  input = "#!/bin/sh\\ntrue"
}
"""

_BAR = 8.0


@dataclass(frozen=True)
class _Project:
    folder: Path
    starts: Path  # a line for every start of our provider
    environment: dict[str, str]

    def run(self, *arguments: str) -> float:
        began = time.perf_counter()
        subprocess.run(
            ["terraform", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        return time.perf_counter() - began


def main(*, quick: bool = False) -> None:
    if not shutil.which("terraform"):
        print("skipped: put `terraform` on the PATH to compare with it")
        return
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        _install(base)
        projects = {
            "terraform_data": _project(base, "built-in", _BUILT_IN),
            "iterative_task": _project(base, "ours", _OURS),
        }
        try:
            _compare(projects, rounds=2 if quick else 10)
        finally:
            for project in projects.values():
                project.run("destroy", "-auto-approve")


def _compare(projects: dict[str, _Project], rounds: int) -> None:
    for project in projects.values():
        project.run("init")
        project.run("apply", "-auto-approve")
        project.starts.write_text("")
    times: dict[str, list[float]] = {name: [] for name in projects}
    for _ in range(rounds):  # side by side, so that noise falls on all alike
        for name, project in projects.items():
            times[name].append(project.run("plan"))
    bare = statistics.median(times["terraform_data"])
    print("| plan without changes | ms | ratio | starts of the provider |\n|---|---:|---:|---:|")
    for name, project in projects.items():
        middle = statistics.median(times[name])
        starts = len(project.starts.read_text().splitlines()) / rounds
        print(f"| {name} | {middle * 1000:.0f} | {middle / bare:.1f} | {starts:.0f} |")
    ratio = statistics.median(times["iterative_task"]) / bare
    print(f"\nBar: under {_BAR}x of terraform_data: {'met' if ratio < _BAR else 'NOT met'}")


def _install(base: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "sojourn.cli", "terraform", "install"],
        env={**os.environ, "HOME": str(base)},
        check=True,
        capture_output=True,
    )


def _project(base: Path, name: str, hcl: str) -> _Project:
    folder = base / name
    folder.mkdir()
    (folder / "main.tf").write_text(hcl)
    starts = base / f"{name}.starts"
    counting = base / f"{name}.python"
    counting.write_text(
        f'#!/bin/sh\necho >>{shlex.quote(str(starts))}\nexec {shlex.quote(sys.executable)} "$@"\n'
    )
    counting.chmod(0o755)
    empty = base / "terraformrc"
    empty.touch()
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("TF_")},
        "HOME": str(base),
        "XDG_DATA_HOME": str(base / "data"),
        "XDG_CACHE_HOME": str(base / "cache"),
        "XDG_STATE_HOME": str(base / "state"),
        "TF_CLI_CONFIG_FILE": str(empty),
        "CHECKPOINT_DISABLE": "1",
        "SOJOURN_PYTHON": str(counting),
    }
    return _Project(folder, starts, environment)
