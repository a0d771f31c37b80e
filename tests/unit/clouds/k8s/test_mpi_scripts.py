"""What runs in the pods of an MPI program in place of the user's script."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sojourn.clouds.k8s.on_machine import mpi, places
from sojourn.clouds.k8s.on_machine.mpi import mpi_launch, mpi_variables


class _Started:
    """Takes what is started in the script's container."""

    def __init__(self) -> None:
        self.calls: list[tuple[Path, Mapping[str, str], Sequence[str]]] = []

    def __call__(
        self,
        file: Path,
        workdir: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        wake: Any,
    ) -> Any:
        self.calls.append((file, environment, arguments))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the pod's."""
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("id_rsa", "authorized_keys"):
        (keys / name).write_text(f"{name}\n")
        (keys / name).chmod(0o644)
    for name in ("_LAUNCHER", "_WORKER"):
        text = getattr(mpi, name).replace(places.KEYS, str(keys))
        monkeypatch.setattr(mpi, name, text.replace(mpi._FOLDER, str(tmp_path / "mpi")))
    return tmp_path


def _start(here: Path, rank: int, implementation: str = "openmpi") -> tuple[Path, _Started]:
    file = here / "script"
    file.write_text('#!/bin/sh\necho "$@" in $PWD\n')
    started = _Started()
    launch = mpi_launch(started, rank, 2, implementation)
    launch(file, here, {"MINE": "x", **_alone(here)}, ("a", "b c"), lambda: None)
    return file, started


def _alone(here: Path) -> dict[str, str]:
    """There is no other machine whose server has to answer first."""
    (here / "alone").write_text("10.0.0.1\n")
    return {"SOJOURN_HOSTS": str(here / "alone")}


def _run(file: Path, here: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    file.chmod(0o755)
    hosts = here / "hosts"
    hosts.write_text("10.0.0.1\n10.0.0.2\n")
    environment = {"PATH": os.environ["PATH"], "SOJOURN_HOSTS": str(hosts), **variables}
    command = [str(file), "a", "b c"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=here)


def _with_ssh(here: Path) -> str:
    """A PATH in which there is an ssh."""
    (here / "ssh").write_text("#!/bin/sh\n")
    (here / "ssh").chmod(0o755)
    return f"{here}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("implementation", "hosts"),
    [
        ("openmpi", "10.0.0.1 slots=2\n10.0.0.2 slots=2\n"),
        ("mpich", "10.0.0.1:2\n10.0.0.2:2\n"),
        ("intel", "10.0.0.1:2\n10.0.0.2:2\n"),
    ],
)
def test_the_first_rank_has_hosts_and_keys_and_runs_the_script(
    here: Path, implementation: str, hosts: str
) -> None:
    file, started = _start(here, 0, implementation)
    [(_, environment, arguments)] = started.calls
    assert arguments == ("a", "b c")
    assert environment["MINE"] == "x"
    done = _run(file, here, PATH=_with_ssh(here))
    assert (done.returncode, done.stdout) == (0, f"a b c in {here}\n"), done.stderr
    assert (here / "mpi" / "hostfile").read_text() == hosts
    # Programs refuse a key that others can read.
    assert (here / "mpi" / "id_rsa").stat().st_mode & 0o777 == 0o600


def test_variables_of_old_and_new_open_mpi() -> None:
    """Version 5 ignores those of 4 without a word, and runs all processes on the launcher."""
    found = mpi_variables(2, "openmpi")
    for old, new in (
        ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
        ("OMPI_MCA_orte_keep_fqdn_hostnames", "PRTE_MCA_prte_keep_fqdn_hostnames"),
        ("OMPI_MCA_orte_set_default_slots", "PRTE_MCA_prte_set_default_slots"),
        ("OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args"),
    ):
        assert found[old] == found[new]


def test_a_variable_of_the_users_wins(here: Path) -> None:
    started = _Started()
    launch = mpi_launch(started, 0, 2, "openmpi")
    (here / "script").write_text("#!/bin/sh\n")
    given = {"OMPI_MCA_plm_rsh_args": "-v", **_alone(here)}
    launch(here / "script", here, given, (), lambda: None)
    assert started.calls[0][1]["OMPI_MCA_plm_rsh_args"] == "-v"


def test_other_ranks_serve_with_the_environment_of_a_script(here: Path) -> None:
    (here / "sshd").write_text("#!/bin/sh\necho served $@\n")
    (here / "sshd").chmod(0o755)
    file, started = _start(here, 1)
    assert started.calls[0][2] == ()
    path = f"{here}:{os.environ['PATH']}"
    done = _run(file, here, PATH=path, ODD="it's\nodd")
    config = here / "mpi" / "sshd_config"
    assert done.stdout == f"served -D -e -f {config}\n", done.stderr
    assert "Port 2222\n" in config.read_text()
    command = f"sh {here}/mpi/inside"
    asked = {"PATH": os.environ["PATH"], "SSH_ORIGINAL_COMMAND": 'echo "$ODD"; pwd'}
    inside = subprocess.run(command.split(), env=asked, capture_output=True, text=True)
    assert inside.stdout == f"it's\nodd\n{here}\n", inside.stderr


def test_an_image_without_ssh_is_told(here: Path) -> None:
    file, _ = _start(here, 0)
    tools = here / "bin"
    tools.mkdir()
    for name in ("sh", "id", "rm", "mkdir", "cp", "cat"):
        (tools / name).symlink_to(
            f"/bin/{name}" if Path(f"/bin/{name}").exists() else f"/usr/bin/{name}"
        )
    done = _run(file, here, PATH=str(tools))
    assert done.returncode == 1
    assert "the image has no ssh" in done.stderr


@pytest.mark.parametrize(("rank", "link"), [(1, "script"), (0, "script"), (0, "program")])
def test_scripts_are_not_written_through_links(here: Path, rank: int, link: str) -> None:
    """Of the image, whose shell runs beside the agent."""
    outside = here / "outside"
    outside.write_text("of the agent's container")
    if link == "script":
        (here / "there").mkdir()
        started = _Started()
        launch = mpi_launch(started, rank, 2, "openmpi")
        (here / "there/script").symlink_to(outside)
        with suppress(OSError):
            launch(here / "there/script", here, _alone(here), (), lambda: None)
    else:
        (here / link).symlink_to(outside)
        _start(here, rank)
    assert outside.read_text() == "of the agent's container"
    assert outside.stat().st_mode & 0o111 == 0
