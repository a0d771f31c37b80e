"""MPI: the script runs once, on rank 0, and its processes on the machines of all ranks."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn import Handle, Mpi, State
from tests.contract.clouds.lab import Lab, log_of
from tests.support.waiting import until

HPL = """\
HPLinpack benchmark input file
Sojourn
HPL.out output file name (if any)
6 device out (6=stdout,7=stderr,file)
1 # of problems sizes (N)
240 Ns
1 # of NBs
40 NBs
0 PMAP process mapping (0=Row-,1=Column-major)
1 # of process grids (P x Q)
2 Ps
3 Qs
16.0 threshold
1 # of panel fact
2 PFACTs (0=left, 1=Crout, 2=Right)
1 # of recursive stopping criterium
4 NBMINs (>= 1)
1 # of panels in recursion
2 NDIVs
1 # of recursive panel fact.
1 RFACTs (0=left, 1=Crout, 2=Right)
1 # of broadcast
1 BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1 # of lookahead depth
1 DEPTHs (>=0)
2 SWAP (0=bin-exch,1=long,2=mix)
64 swapping threshold
0 L1 in (0=transposed,1=no-transposed) form
0 U  in (0=transposed,1=no-transposed) form
1 Equilibration (0=no,1=yes)
8 memory alignment in double (> 0)
"""


def mpi(lab: Lab, script: str, **more: Any) -> Handle:
    variables = lab.kit.mpi()
    if variables is None:
        pytest.skip("machines have no Open MPI; see tests/support/openmpi.py")
    settings = {"parallelism": 3, "mpi": Mpi(slots=2), "environment": variables, **more}
    return lab.create(script, **settings)


def test_processes_run_on_all_machines_without_any_option(lab: Lab) -> None:
    handle = mpi(lab, "mpirun.openmpi sh -c 'echo process $OMPI_COMM_WORLD_RANK on $SOJOURN_RANK'")
    assert handle.wait().status is State.SUCCEEDED
    printed = sorted(line for line in log_of(handle) if "process" in line)
    assert printed == [f"process {number} on {number // 2}" for number in range(6)]
    handle.delete()


def test_the_code_of_the_program_counts(lab: Lab) -> None:
    handle = mpi(lab, "mpirun.openmpi sh -c 'exit 3'", parallelism=2)
    result = handle.wait()
    assert (result.status, result.exit_code) == (State.FAILED, 3)
    handle.delete()


def test_a_machine_that_is_lost_is_no_failure_of_the_program(lab: Lab) -> None:
    script = """
    step=$(cat step 2>/dev/null || echo 0)
    echo "from $step"
    if [ "$step" = 0 ]; then
      echo 1 > step
      "$SOJOURN_MARK" 1
      echo marked
      exec mpirun.openmpi sleep 300
    fi
    mpirun.openmpi sh -c 'echo process on $SOJOURN_RANK'
    """
    handle = mpi(lab, script, parallelism=2, mpi=Mpi(slots=1))
    until(lambda: "marked" in log_of(handle))
    lab.kit.lose_agent(handle, rank=1)
    assert handle.wait().status is State.SUCCEEDED
    lines = [line for line in log_of(handle) if line.startswith(("from", "process"))]
    assert sorted(lines) == ["from 0", "from 1", "process on 0", "process on 1"]
    handle.delete()


@pytest.mark.slow
def test_a_real_benchmark(lab: Lab) -> None:
    (lab.workdir / "hpccinf.txt").write_text(HPL)
    script = "mpirun.openmpi hpcc && mkdir -p output && mv hpccoutf.txt output"
    handle = mpi(lab, script)
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    text = lab.output()["hpccoutf.txt"]
    assert "PASSED" in text
    assert "CommWorldProcs=6" in text
