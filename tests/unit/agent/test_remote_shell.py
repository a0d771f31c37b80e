"""Commands from one machine on another, where both are on one computer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "sojourn.agent.remote_shell"]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    """A file that has one machine, far below: longer than what a socket's path can have."""
    folder = tmp_path / ("x" * 100)
    workdir = tmp_path / "workdir"
    folder.mkdir()
    workdir.mkdir()
    server = subprocess.Popen([*PROGRAM, "serve", str(folder)], cwd=workdir)  # whoever asks waits
    try:
        file = tmp_path / "machines"
        file.write_text(f"127.64.0.2 {folder}\n")
        yield file
    finally:
        server.kill()
        server.wait()


def ask(file: Path, *words: str, address: str = "127.64.0.2") -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "run", str(file), address, *words]
    return subprocess.run(command, capture_output=True, text=True, input="typed")


def test_a_command_has_the_streams_of_whoever_asks(machine: Path) -> None:
    done = ask(machine, "cat;", "echo", "aside", ">&2;", "basename", '"$PWD";', "exit", "3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "typedworkdir\n", "aside\n")


def test_a_command_that_is_killed(machine: Path) -> None:
    assert ask(machine, "kill -9 $$").returncode == 137


def test_a_machine_that_is_not_there(machine: Path, tmp_path: Path) -> None:
    done = ask(machine, "true", address="127.64.0.3")
    assert done.returncode == 255
    assert "could not reach the machine at 127.64.0.3" in done.stderr
