"""The wheels that travel with the agent."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sojourn
from sojourn.agent import bundle

_ON_MACHINES = sorted(Path(sojourn.__file__).parent.glob("clouds/*/on_machine"))


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


@pytest.mark.parametrize("kind", [each.parent.name for each in _ON_MACHINES])
def test_all_that_runs_on_machines_imports_no_more_than_they_have(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bundle, "_wheels", lambda python, architecture: [])
    own = f"sojourn.clouds.{kind}.on_machine"
    packages = (own,) if kind == "k8s" else ("sojourn.clouds.vm.on_machine", own)
    with zipfile.ZipFile(io.BytesIO(bundle.bundle("312", "x86_64", packages))) as opened:
        names = opened.namelist()
        opened.extractall(tmp_path)
    modules = [name.removesuffix(".py").replace("/", ".") for name in names if name[-3:] == ".py"]
    run = [name for name in modules if "on_machine" in name or ".workloads." in name]
    code = f"for each in {run}: import_module(each.removesuffix('.__init__'))"
    program = f"import sys; sys.path[:0] = ['{tmp_path}']; from importlib import import_module"
    command = [sys.executable, "-I", "-c", f"{program}\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(run) > 10
