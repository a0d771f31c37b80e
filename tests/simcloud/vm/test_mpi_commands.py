"""`sojourn mpi run` as a user types it, on machines that boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simcloud.vm.shell import Shell
from tests.simcloud.vm.sides import Side, sides

pytestmark = pytest.mark.slow
_PROGRAM = """\
#!/bin/sh
echo "$(cat /srv/input) on $SOJOURN_RANK"
"""


@sides("aws", full=("az", "gcp"))
def test_one_input_and_another_on_the_same_machines(side: Side, tmp_path: Path) -> None:
    """Results come home each time, and at the end nothing is left."""
    variables = side.kit.mpi()
    if variables is None:
        pytest.skip("machines have no Open MPI; see tests/support/openmpi.py")
    shell = Shell(side, tmp_path)
    results, program, given = tmp_path / "results", tmp_path / "program", tmp_path / "input"
    program.write_text(_PROGRAM)
    names = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    options = ["--machines", "2", "--slots", "2", "--warm", "30m", "--no-output", *names]
    files = ["--file", "/srv/input=@input", "--file", "/srv/program=@program"]
    machines = []
    for text in ("one", "two"):
        given.write_text(text)
        command = ["--cloud", shell.cloud, *options, *files, "--", "mpirun.openmpi"]
        shell.ok("mpi", "run", "bench", *command, "sh", "/srv/program")
        # Open MPI may warn of a race of its own.
        lines = [
            line for line in (results / "bench.txt").read_text().splitlines() if " on " in line
        ]
        assert sorted(lines) == [f"{text} on {rank}" for rank in (0, 0, 1, 1)]
        machines.append(sorted(each.id for each in side.account.instances()))
    assert machines[0] == machines[1]
    assert len(machines[0]) == 2
    assert "one on 0\n" in (results / "bench.1.txt").read_text()
    shell.ok("delete", "bench")


_SETUP = """\
#!/bin/sh
set -e
printf '#!/bin/sh\\necho "solved on $SOJOURN_RANK"\\n' >/usr/local/bin/solver
chmod +x /usr/local/bin/solver
"""


@sides("gcp", full=("aws", "az"))
def test_a_base_machine_becomes_an_image_whose_copies_run_the_job(
    side: Side, tmp_path: Path
) -> None:
    """One command for the base machine and its image, one for the copies, the job and the file."""
    variables = side.kit.mpi()
    if variables is None:
        pytest.skip("machines have no Open MPI; see tests/support/openmpi.py")
    shell = Shell(side, tmp_path)
    (tmp_path / "setup.sh").write_text(_SETUP)
    shell.ok("image", "make", "bench", "--cloud", shell.cloud, "--script", "setup.sh")
    names = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    copies = ["--image", "sojourn:bench", "--machines", "2", "--slots", "2"]
    job = ["--", "mpirun.openmpi", "solver"]
    shell.ok("mpi", "run", "solve", "--cloud", shell.cloud, *copies, "--no-output", *names, *job)
    printed = (tmp_path / "results" / "solve.txt").read_text()
    solved = [line for line in printed.splitlines() if line.startswith("solved on ")]
    assert sorted(solved) == [f"solved on {rank}" for rank in (0, 0, 1, 1)]
    assert shell.ok("list", "--quiet") == ""
    shell.ok("image", "delete", "bench", "--cloud", shell.cloud)
