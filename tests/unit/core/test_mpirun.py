"""How many processes commands and inputs ask for."""

from __future__ import annotations

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.gang import Mpi
from sojourn.core.mpirun import check_grids, check_processes, with_launcher
from sojourn.core.task import Task
from tests.support.hpl import HPL

_TASK = Task("#!/bin/sh", parallelism=3, mpi=Mpi(2))


def test_programs_get_a_launcher() -> None:
    assert with_launcher(["xhpl", "-v"], 6) == ("mpirun", "-np", "6", "xhpl", "-v")
    for launcher in ("mpirun", "mpirun.openmpi", "/opt/intel/bin/mpiexec.hydra"):
        assert with_launcher([launcher, "x"], 6) == (launcher, "x")


@pytest.mark.parametrize(
    "command",
    [
        "mpirun -np 6 xhpl",
        "mpirun xhpl",
        "mpirun xhpl -np 4",  # the program's own
        "mpirun --map-by slot -n 6 xhpl",
        "mpirun --mca btl tcp,self --allow-run-as-root -np=6 xhpl",
        "/usr/bin/mpiexec -n 2 one : -n 4 two",
        "mpirun -np 2 one : two",
        "mpirun -np $N xhpl",
        "xhpl -np 4",
    ],
)
def test_commands_that_fit(command: str) -> None:
    check_processes(_TASK, command.split())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("mpirun -np 4 xhpl", "mpirun asks for 4 processes, but 3 machines x 2 slots = 6; change"),
        ("/a/mpiexec --bind-to core -n 8 x", "mpiexec asks for 8 processes, but 3 machines x 2"),
        ("mpirun -np 2 one : -np 3 two", "asks for 5 processes"),
    ],
)
def test_commands_that_do_not_fit(command: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_processes(_TASK, command.split())


def test_one_machine_in_words() -> None:
    with pytest.raises(InvalidInput, match="but 1 machine x 1 slot = 1;"):
        check_processes(Task("#!/bin/sh", mpi=Mpi()), ["mpirun", "-np", "2", "x"])


@pytest.mark.parametrize(
    ("count", "ps", "qs"),
    [(1, "2", "3"), (1, "2 9", "3 9"), (2, "2 1", "3 6"), (2, "1 2", "2 3"), (0, "9", "9")],
)
def test_grids_that_fit(count: int, ps: str, qs: str) -> None:
    check_grids(_TASK, "HPL.dat", HPL.format(count=count, ps=ps, qs=qs))


@pytest.mark.parametrize(
    ("count", "ps", "qs", "said"),
    [
        (1, "2", "2", "2 x 2 = 4 processes"),
        (1, "2", "4", "2 x 4 = 8 processes"),
        (2, "2 4", "3 4", "4 x 4 = 16 processes"),
    ],
)
def test_grids_that_do_not_fit(count: int, ps: str, qs: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_grids(_TASK, "in/HPL.dat", HPL.format(count=count, ps=ps, qs=qs))
    assert f"in/HPL.dat has a grid of {said}, but 3 machines x 2 slots = 6" in str(caught.value)


@pytest.mark.parametrize("text", ["", "no input\n" * 20, "x\n" * 9 + "1\nmany\n2\n"])
def test_what_is_no_input_is_not_judged(text: str) -> None:
    check_grids(_TASK, "HPL.dat", text)
