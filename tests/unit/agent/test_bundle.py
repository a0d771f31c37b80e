"""The wheels that travel with the agent."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sojourn.agent import bundle
from sojourn.core.errors import Transient


def _pip(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """One that writes a wheel and half of another, and then succeeds or not."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--dest") + 1])
        for name in ("blake3", "obstore"):
            (folder / f"{name}-1.0-py3-none-any.whl").write_bytes(b"wheel")
        return subprocess.CompletedProcess(command, code, "", "killed")

    monkeypatch.setattr(subprocess, "run", run)


def test_what_a_broken_off_download_left_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pip(monkeypatch, 1)
    with pytest.raises(Transient, match=r"pip could not download the wheels for .*: killed"):
        bundle.fetch("312", "x86_64", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    _pip(monkeypatch, 0)
    found = bundle.fetch("312", "x86_64", tmp_path)
    assert [wheel.name.partition("-")[0] for wheel in found] == ["blake3", "obstore"]


def test_a_bundle_has_our_packages_and_those_of_a_cloud(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bundle, "_wheels", lambda python, architecture: [])
    made = bundle.bundle("312", "x86_64", ("sojourn.clouds.local",))
    with zipfile.ZipFile(io.BytesIO(made)) as opened:
        names = opened.namelist()
        opened.extractall(tmp_path)
    assert len(names) == len(set(names))
    assert {"sojourn/__init__.py", "sojourn/clouds/__init__.py", "sojourn/agent/work.py"} < {*names}
    assert "sojourn/clouds/local/cloud.py" in names
    assert not [name for name in names if name.startswith(("sojourn/cli", "sojourn/engine"))]
    code = "import sojourn.clouds.local; print(sojourn.__path__)"
    command = [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = ['{tmp_path}']; {code}"]
    assert str(tmp_path) in subprocess.check_output(command, text=True)
    assert bundle.bundle("312", "x86_64", ("sojourn.clouds.local",)) == made
