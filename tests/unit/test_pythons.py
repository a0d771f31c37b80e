"""A laptop with a newer Python: installed from the lock file, it runs a job on the local cloud."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import patience

pytestmark = [pytest.mark.slow, pytest.mark.full]

_ROOT = Path(__file__).parents[2]
_VERSIONS = ("3.14", "3.15")
_JOB = ["--output", "results", "--workdir", ".", "--", "sh", "-c"]
_SCRIPT = "mkdir results; echo done > results/it; echo printed"


def _python(version: str) -> str:
    """Its program: one of SOJOURN_TEST_PYTHONS, else from PATH; empty: there is none."""
    given = [path for path in os.environ.get("SOJOURN_TEST_PYTHONS", "").split(os.pathsep) if path]
    named = [path for path in given if Path(path).name == f"python{version}"]
    return next(iter(named), "") or shutil.which(f"python{version}") or ""


def _run(*words: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience(300),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("version", _VERSIONS)
def test_the_lock_file_installs_and_a_job_runs(version: str, tmp_path: Path) -> None:
    python = _python(version)
    if not python:
        pytest.skip(
            f"no python{version}: put it on PATH, or its path into SOJOURN_TEST_PYTHONS (with "
            f"{os.pathsep!r} between several)"
        )
    venv, workdir, home = tmp_path / "venv", tmp_path / "work", tmp_path / "home"
    workdir.mkdir()
    home.mkdir()
    _run(python, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    own = venv / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", own, "install", "--quiet"]
    locked = _ROOT / "requirements"
    _run(*pip, "--require-hashes", "-r", locked / "run.txt", cwd=tmp_path)
    _run(*pip, "--no-deps", "--no-build-isolation", "--editable", _ROOT, cwd=tmp_path)
    variables = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_STATE_HOME": str(home / "state"),
        "PYTHONPATH": "",
    }
    told = _run(own, "-c", "import sys; print('%d.%d' % sys.version_info[:2])", cwd=workdir)
    assert told == f"{version}\n"
    sojourn = venv / "bin" / "sojourn"
    assert "printed" in _run(sojourn, "run", *_JOB, _SCRIPT, cwd=workdir, **variables)
    assert (workdir / "results" / "it").read_text() == "done\n"
    assert _run(sojourn, "list", "--quiet", cwd=workdir, **variables) == ""
