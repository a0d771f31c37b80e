"""The wheels that travel with the agent."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sojourn.agent import bundle


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
