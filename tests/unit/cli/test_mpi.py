"""`sojourn mpi run`: what it runs, what it writes, and what it refuses before anything is made."""

from __future__ import annotations

import pytest

from tests.support import openmpi
from tests.support.hpl import HPL
from tests.unit.cli.shell import Shell

# One machine, so that nothing but the launcher itself is needed: it tells how it was called.
_LAUNCHER = """#!/bin/sh
echo "mpirun $*"
shift 2
exec "$@"
"""


@pytest.fixture
def with_mpi(shell: Shell) -> Shell:
    program = shell.file("bin/mpirun", _LAUNCHER)
    program.chmod(0o755)
    shell.environment["PATH"] = f"{program.parent}:{shell.environment['PATH']}"
    return shell


def test_a_program_runs_in_all_slots_and_its_log_comes_home(with_mpi: Shell) -> None:
    shell = with_mpi
    words = ("--slots", "2", "--no-output", "--", "sh", "-c", "cat HPL.dat; exit 3")
    text = HPL.format(count=1, ps="1", qs="2")
    shell.file("mine.dat", text)
    result = shell("mpi", "run", "hpl", "--file", "HPL.dat=@mine.dat", *words)
    assert result.returncode == 3
    said = f"mpirun -np 2 sh -c cat HPL.dat; exit 3\n{text}"
    assert result.stdout == said
    assert (shell.cwd / "results/hpl.txt").read_text() == said
    assert "Wrote the log of rank 0 to results/hpl.txt" in result.stderr
    assert shell.tasks() == []


def test_former_results_are_kept_and_so_is_everything_else_there(with_mpi: Shell) -> None:
    shell = with_mpi
    shell.file("results/hpl.1.txt", "mine")
    for number in (1, 2, 3):
        shell.ok("mpi", "run", "hpl", "--no-output", "--", "echo", str(number))
    found = {path.name: path.read_text() for path in (shell.cwd / "results").iterdir()}
    assert found == {
        "hpl.txt": "mpirun -np 1 echo 3\n3\n",
        "hpl.1.txt": "mine",
        "hpl.2.txt": "mpirun -np 1 echo 1\n1\n",
        "hpl.3.txt": "mpirun -np 1 echo 2\n2\n",
    }


def test_scripts_and_launchers_run_as_they_are(with_mpi: Shell) -> None:
    shell = with_mpi
    shell.file("work/job.sh", "#!/bin/sh\nmpirun -n 2 echo from $1\n")
    said = shell.ok(
        "mpi", "run", "--slots", "2", "two", "--workdir", "work", "--no-output",
        "work/job.sh", "script",
    )  # fmt: skip
    assert said == "mpirun -n 2 echo from script\nfrom script\n"
    assert (shell.cwd / "work/results/two.txt").read_text() == said
    said = shell.ok("mpi", "run", "three", "--no-output", "--", "mpirun", "-n", "1", "echo", "x")
    assert said == "mpirun -n 1 echo x\nx\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "true"], "missing NAME"),
        (["hpl"], "script: required"),
        (["a/b", "--", "true"], "name: must be usable as a file name, results/NAME.txt, got 'a/b'"),
        ([".hidden", "--", "true"], "name: must be usable as a file name"),
        (["hpl", "--machines", "0", "--", "true"], "parallelism: must be a whole number from 1"),
        (["hpl", "--slots", "-1", "--", "true"], "mpi.slots: must be a whole number from 1"),
        (
            ["hpl", "--machines=3", "--slots=2", "--", "mpirun", "-np", "4", "x"],
            "arguments: mpirun asks for 4 processes, but 3 machines x 2 slots = 6",
        ),
        (
            ["hpl", "--machines=3", "--slots=2", "--file", "in/HPL.dat=@grid.dat", "--", "xhpl"],
            "files: in/HPL.dat has a grid of 2 x 4 = 8 processes, but 3 machines x 2 slots = 6",
        ),
        (
            ["hpl", "--machines=3", "--slots=2", "--workdir", "work", "--", "xhpl"],
            "HPL.dat has a grid of 2 x 4 = 8 processes, but 3 machines x 2 slots = 6",
        ),
    ],
)
def test_refused_before_anything_is_made(shell: Shell, words: list[str], said: str) -> None:
    grid = HPL.format(count=1, ps="2", qs="4")
    shell.file("grid.dat", grid)
    shell.file("work/HPL.dat", grid)
    result = shell("mpi", "run", *words)
    assert result.returncode == 2
    assert said in result.stderr
    assert shell.tasks() == []
    assert not (shell.cwd / "results").exists()


def test_a_computer_without_a_launcher(shell: Shell) -> None:
    shell.environment["PATH"] = str(shell.cwd)
    result = shell("mpi", "run", "hello", "--no-output", "--", "hostname")
    assert (result.returncode, result.stdout) == (2, "")
    assert "mpi: mpirun not found on this computer; install Open MPI: `sudo apt" in result.stderr
    assert shell.tasks() == []
    assert "local mpirun" in shell("doctor").stdout
    shell.file("job.sh", "#!/bin/sh\nmpirun hostname || echo none\n")
    for words in (("mpi", "run", "job"), ("run", "--mpi")):
        result = shell(*words, "--no-output", "job.sh")
        assert result.returncode == 0
        assert "mpirun not found on this computer: unless the script brings it" in result.stderr


def test_a_file_of_the_task_hides_that_of_the_workdir(with_mpi: Shell) -> None:
    shell = with_mpi
    shell.file("work/HPL.dat", HPL.format(count=1, ps="2", qs="4"))
    shell.file("small.dat", HPL.format(count=1, ps="1", qs="1"))
    file = ("--file", "HPL.dat=@small.dat")
    shell.ok("mpi", "run", "hpl", "--workdir", "work", "--dry-run", *file, "--", "xhpl")
    assert shell.tasks() == []


def test_a_result_that_cannot_be_written_keeps_the_task(with_mpi: Shell) -> None:
    shell = with_mpi
    shell.file("results", "not a folder")
    result = shell("mpi", "run", "hpl", "--no-output", "--", "true")
    assert result.returncode == 1
    assert "Could not write results/hpl.txt: " in result.stderr
    [task] = shell.tasks()
    assert f"`sojourn delete {task}`" in result.stderr


def test_with_a_real_mpirun_on_three_machines(shell: Shell) -> None:
    variables = openmpi.environment()
    if variables is None:
        pytest.skip("there is no Open MPI; see tests/support/openmpi.py")
    shell.environment |= variables
    shell.file("work/job.sh", "#!/bin/sh\nmpirun.openmpi sh rank.sh | sort\n")
    shell.file("rank.sh", "echo process $OMPI_COMM_WORLD_RANK on $SOJOURN_RANK\n")
    names = [word for name in variables for word in ("--env", name)]
    given = ("--machines", "3", "--slots", "2", "--file", "rank.sh=@rank.sh", "--no-output")
    shell.ok("mpi", "run", "all", *given, *names, "work/job.sh")
    # Open MPI may warn of a race of its own.
    lines = (shell.cwd / "results/all.txt").read_text().splitlines()
    printed = [line for line in lines if line.startswith("process")]
    assert printed == [f"process {number} on {number // 2}" for number in range(6)]
