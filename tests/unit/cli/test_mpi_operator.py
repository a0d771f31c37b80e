"""`sojourn mpi`: what it says, and its exit codes. Real operators are in tests/kube."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sojourn import clouds
from sojourn.cli.commands.mpi import mpi
from sojourn.core.context import Context
from sojourn.core.errors import Conflict
from sojourn.core.operators import Operator
from tests.unit.cli.shell import Shell

_OURS = Operator("mpi", "example.com/mpi-operator:1", "1", ready=True, ours=True)


class _Fake:
    """Remembers what it was asked."""

    def __init__(self, found: Operator | None) -> None:
        self.found = found
        self.asked: list[Any] = []

    def look(self, ctx: Context) -> Operator | None:
        return self.found

    def install(self, ctx: Context, namespace: str = "", image: str = "") -> Operator:
        self.asked.append((namespace, image))
        return self.found or _OURS

    def uninstall(self, ctx: Context, *, force: bool = False) -> bool:
        self.asked.append(force)
        if not force:
            raise Conflict("in use by a/b", hint="Delete these MPIJobs first.")
        return self.found is not None


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> _Fake:
    made = _Fake(None)
    monkeypatch.setattr(clouds, "mpi_operator", lambda cloud: made)
    return made


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(mpi, arguments)


def test_install(fake: _Fake) -> None:
    done = _run("install", "--namespace", "mpi", "--image", "x:1")
    assert (done.exit_code, done.stdout) == (0, "Installed mpi-operator 1 in namespace mpi\n")
    assert fake.asked == [("mpi", "x:1")]
    fake.found = Operator("theirs", "y:2", "2")
    assert _run("install").stdout == "Found mpi-operator 2 in namespace theirs\n"
    assert fake.asked[-1] == ("", "")


@pytest.mark.parametrize(
    ("found", "code", "state"),
    [
        (_OURS, 0, "ready"),
        (Operator("mpi", "x:1", "1"), 1, "not ready"),
        (Operator(), 0, "unknown"),
    ],
)
def test_status(fake: _Fake, found: Operator, code: int, state: str) -> None:
    fake.found = found
    done = _run("status")
    assert done.exit_code == code
    lines = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert lines["state"].strip() == state
    assert lines["installed by"].strip() == ("Sojourn" if found.ours else "another tool")
    row = json.loads(_run("status", "--json").stdout)
    assert row == {"type": "mpi-operator", "installed": True, **found.to_dict()}


def test_status_without_one(fake: _Fake) -> None:
    done = _run("status")
    assert (done.exit_code, done.stdout) == (1, "mpi-operator is not installed\n")
    row = json.loads(_run("status", "--json").stdout)
    assert row == {"type": "mpi-operator", "installed": False}


def test_uninstall(fake: _Fake) -> None:
    refused = json.loads(_run("uninstall", "--json").stdout)
    assert (refused["error"], refused["message"]) == ("Conflict", "in use by a/b")
    done = _run("uninstall", "--force")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "mpi-operator is not installed" in done.stderr
    fake.found = _OURS
    assert _run("uninstall", "--force").stdout == "Removed mpi-operator\n"
    row = json.loads(_run("uninstall", "--force", "--json").stdout)
    assert row == {"type": "mpi-operator-removed", "removed": True}


def test_without_a_cluster(shell: Shell) -> None:
    said = shell("mpi", "install")
    assert said.returncode != 0
    assert "No kubeconfig found" in said.stderr
