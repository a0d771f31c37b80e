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
