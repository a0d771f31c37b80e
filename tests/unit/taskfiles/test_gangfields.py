"""Gangs, MPI and small files, as task files and options say them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.gang import Mpi
from sojourn.core.task import Task
from sojourn.taskfiles import read_tasks
from sojourn.taskfiles.changes import changed

_YAML = """
script: '#!/bin/sh'
parallelism: 3
gang: true
gang_timeout: 10m
mpi: {slots: 2, implementation: mpich}
files:
  /etc/hpl/HPL.dat: {file: small.dat}
  inputs/seed.txt: 42
"""
_HCL = """
resource "iterative_task" "hpl" {
  cloud        = "local"
  script       = "#!/bin/sh"
  parallelism  = 3
  gang         = true
  gang_timeout = "10m"
  mpi          = { slots = "2", implementation = "mpich" }
  files = {
    "/etc/hpl/HPL.dat" = file("small.dat")
    "inputs/seed.txt"  = 42
  }
}
"""
_WANTED = Task(
    "#!/bin/sh",
    parallelism=3,
    gang=True,
    gang_timeout=600,
    mpi=Mpi(2, "mpich"),
    files={"/etc/hpl/HPL.dat": "HPL\n", "inputs/seed.txt": "42"},
)


def _read(folder: Path, name: str, text: str) -> Task:
    (folder / name).write_text(text)
    (folder / "small.dat").write_text("HPL\n")
    [found] = read_tasks(folder / name)
    return found.task


def _refused(folder: Path, name: str, text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        _read(folder, name, text)
    return [str(problem).partition(str(folder / name))[2] for problem in caught.value.problems]


@pytest.mark.parametrize(("name", "text"), [("task.yaml", _YAML), ("main.tf", _HCL)])
def test_all_of_it(tmp_path: Path, name: str, text: str) -> None:
    assert _read(tmp_path, name, text) == _WANTED


def test_booleans_of_hcl_can_be_written_as_texts(tmp_path: Path) -> None:
    text = _HCL.replace("gang         = true", 'gang = "true"\n  stay = false')
    assert _read(tmp_path, "main.tf", text) == _WANTED


def test_mpi_is_a_gang_and_has_defaults(tmp_path: Path) -> None:
    task = _read(tmp_path, "task.yaml", "script: '#!/bin/sh'\nmpi: {}\n")
    assert (task.gang, task.mpi) == (True, Mpi(1, "openmpi"))
    head = 'resource "iterative_task" "x" {\n  cloud = "local"\n  script = "#!/bin/sh"\n'
    task = _read(tmp_path, "main.tf", head + "  mpi = { implementation = null }\n}\n")
    assert (task.gang, task.mpi) == (True, Mpi(1, "openmpi"))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("mpi: 4", ":2: mpi: must be a map, got a whole number"),
        ("mpi: {slot: 4}", ":2: mpi.slot: unknown field; did you mean mpi.slots?"),
        ("mpi: {slots: many}", ":2: mpi.slots: must be a whole number, got a string"),
        (
            "mpi: {slots: 0}",
            ":2: mpi.slots: must be a whole number from 1 to 10000, got 0",
        ),
        (
            "mpi: {implementation: lam}",
            ":2: mpi.implementation: must be one of openmpi, intel, mpich, got 'lam'",
        ),
        ("{mpi: {}, gang: false}", ""),
        ("files: {a: {path: x}}", ":2: files.a: must be a string or `file: PATH`"),
        ("files: {a: true}", ":2: files.a: must be a string; put it in quotes: 'true'"),
        (
            "files: {../a: x}",
            ":2: files: must have absolute paths such as /etc/hpl/HPL.dat, or paths in the "
            "workdir without `..`, got '../a'",
        ),
    ],
)
def test_refused(tmp_path: Path, said: str, problem: str) -> None:
    if said.startswith("{"):
        said, problem = "mpi: {}\ngang: false", ":3: gang: must not be false with mpi"
    text = f"script: '#!/bin/sh'\n{said}\n"
    assert _refused(tmp_path, "task.yaml", text) == [problem]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    text = "script: '#!/bin/sh'\nfiles:\n  /a.dat: {file: no.dat}\n"
    [problem] = _refused(tmp_path, "task.yaml", text)
    assert problem.startswith(":3: files./a.dat: ")
    assert problem.endswith("no.dat: could not read file: No such file or directory")


def test_hcl_refuses_what_is_no_mpi(tmp_path: Path) -> None:
    text = _HCL.replace('slots = "2"', 'slots = "two", nodes = 3')
    assert _refused(tmp_path, "main.tf", text) == [
        ":8: iterative_task.hpl: mpi.slots: must be a whole number, got a string",
        ":8: iterative_task.hpl: mpi.nodes: unknown field",
    ]


def test_a_map_adds_to_what_a_file_says_of_mpi() -> None:
    assert changed(_WANTED, {"mpi": {"slots": 4}}).mpi == Mpi(4, "mpich")
    assert changed(Task("#!/bin/sh"), {"mpi": {"slots": 4}}).mpi == Mpi(4)
    assert changed(_WANTED, {"mpi": Mpi(4)}).mpi == Mpi(4, "openmpi")
    with pytest.raises(InvalidInput, match=r"mpi\.nodes: unknown field; use slots and"):
        changed(_WANTED, {"mpi": {"nodes": 4}})
