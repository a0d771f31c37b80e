"""Tasks with `mpi`: MPIJobs of a real mpi-operator, with real Open MPI."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

import sojourn
from sojourn.clouds.k8s import names
from sojourn.core.gang import Mpi
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab, log_of
from tests.contract.clouds.test_mpi import HPL
from tests.kube import mpi_images, oci
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until

_RANKS, _SLOTS = 3, 2

pytestmark = pytest.mark.usefixtures("mpi_operator")


def _create(lab: Lab, script: str, **more: Any) -> sojourn.Handle:
    given = {"parallelism": _RANKS, "mpi": Mpi(_SLOTS), "image": mpi_images.MPI, **more}
    return lab.create(script, **given)


def _hosts(id: object) -> Counter[str]:
    """Where processes run, if all machines have as many as they have slots."""
    machines = [f"{id}-launcher", *(f"{id}-worker-{number}" for number in range(_RANKS - 1))]
    return Counter(dict.fromkeys(machines, _SLOTS))


@pytest.mark.parametrize("image", [mpi_images.MPI, mpi_images.MPI_AS_USER])
def test_processes_run_on_all_machines(lab: Lab, image: str) -> None:
    """Without any option; for Open MPI 5, a host file that is not found runs all on the first."""
    (lab.workdir / "data").write_text("mine\n")
    handle = _create(lab, "cat data; mkdir -p output; mpirun hostname | tee output/x", image=image)
    ended = handle.wait()
    lines = log_of(handle)
    assert ended.status is sojourn.State.SUCCEEDED, lines
    assert lines[0] == "mine"
    assert Counter(lines[1:]) == _hosts(handle.id)
    handle.delete()
    assert Counter(lab.output()["x"].split()) == _hosts(handle.id)


_SUM = """
import os
from mpi4py import MPI
total, maker = MPI.COMM_WORLD.allreduce(1), MPI.Get_library_version().split()[0]
os.write(1, f"{MPI.Get_processor_name()} {total} {maker}\\n".encode())
"""
_INTEL = mpi_images.INTEL


@pytest.mark.parametrize(
    ("implementation", "maker", "mpirun", "library"),
    [
        ("openmpi", "Open", "mpirun.openmpi", "libmpi.so.40"),
        ("mpich", "MPICH", "mpirun.mpich", "libmpich.so.12"),
        ("intel", "Intel(R)", f"PATH={_INTEL}/bin:$PATH mpirun", f"{_INTEL}/lib/libmpi.so.12"),
    ],
)
def test_other_implementations(
    lab: Lab, implementation: str, maker: str, mpirun: str, library: str
) -> None:
    """Open MPI 5 and those that Kubernetes alone has: their processes meet on all machines."""
    if implementation == "intel" and oci.architecture() != "amd64":
        pytest.skip("Intel MPI exists for x86_64 alone: run the tests there")
    (lab.workdir / "sum.py").write_text(_SUM)
    handle = _create(
        lab,
        f"{mpirun} python3 sum.py",
        image=mpi_images.OTHERS,
        mpi=Mpi(_SLOTS, implementation),
        environment={"MPI4PY_LIBMPI": library},
    )
    ended = handle.wait()
    lines = log_of(handle)
    assert ended.status is sojourn.State.SUCCEEDED, lines
    expected = {f"{host} {_RANKS * _SLOTS} {maker}": n for host, n in _hosts(handle.id).items()}
    # Open MPI 5 may warn of a race of its own.
    assert Counter(line for line in lines if line.endswith(maker)) == expected
    handle.delete()


# Counts steps, in each of which all machines take part; after each, its state is stored.
_STEPPING = """
step=$(cat state 2>/dev/null || echo 0)
echo "starts at $step"
while [ $step -lt $STEPS ]; do
    mpirun hostname >hosts || exit 1
    step=$((step + 1))
    echo $step >state
    "$SOJOURN_MARK" $step && echo "marked $step"
    sleep 0.5
done
mkdir -p output
cp hosts output/hosts
"""
_SMALL_DISK = """
spec:
  containers:
    - name: script
      resources: {limits: {ephemeral-storage: 20Mi}}
"""


def _marked(handle: sojourn.Handle) -> int:
    lines = [line.split() for line in log_of(handle)]
    return max((int(words[1]) for words in lines if words[:1] == ["marked"]), default=0)


def _starts(handle: sojourn.Handle) -> list[int]:
    lines = [line.split() for line in log_of(handle)]
    return [int(words[2]) for words in lines if words[:1] == ["starts"]]


def _machines(kit: KubernetesKit) -> dict[str, str]:
    """The pods that run by the roles that they have."""
    pods = kit.api.list("Pod", f"{names.ROLE}={names.MACHINES}")
    return {
        pod["spec"]["hostname"].rsplit("-", 1)[-1]: pod["metadata"]["name"]
        for pod in pods
        if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
    }


def _phases(kit: KubernetesKit) -> list[str]:
    return [pod["status"]["phase"] for pod in kit.api.list("Pod", names.OURS)]


def test_lost_pods_are_made_anew_without_any_laptop(lab: Lab, kit: KubernetesKit) -> None:
    """mpi-operator itself replaces no worker that failed, and waits after each lost launcher."""
    handle = _create(lab, _STEPPING, environment={"STEPS": "16"})
    waits = {}
    losses = (("0", False), ("launcher", False), ("1", True), ("launcher", True))
    for loss, (role, notice) in enumerate(losses, 1):
        until(lambda loss=loss: len(_starts(handle)) == loss, 120)  # type: ignore[misc]
        until(lambda: _marked(handle) > _starts(handle)[-1] + 1, 60)
        began = time.monotonic()
        kit.api.delete("Pod", _machines(kit)[role], grace=None if notice else 0)
        until(lambda loss=loss: len(_starts(handle)) == loss + 1, 120)  # type: ignore[misc]
        waits[f"{loss}. {role}"] = round(time.monotonic() - began, 1)
    print("seconds from each loss to the script running again:", waits)  # noqa: T201
    assert handle.wait().status is sojourn.State.SUCCEEDED
    starts = _starts(handle)
    assert starts == sorted(starts)
    assert starts[1] > 0
    handle.delete()
    assert Counter(lab.output()["hosts"].split()) == _hosts(handle.id)


def test_an_evicted_worker_is_made_anew(lab: Lab, kit: KubernetesKit) -> None:
    """By its node; mpi-operator says that the job failed, and leaves all others where they are."""
    handle = _create(lab, _STEPPING, environment={"STEPS": "12"}, options={"pod": _SMALL_DISK})
    until(lambda: _marked(handle) > 1, 120)
    worker = _machines(kit)["0"]
    before = kit.api.get("Pod", worker)["metadata"]["uid"]
    kit._run(worker, names.SCRIPT, "dd", "if=/dev/zero", "of=/tmp/large", "bs=1M", "count=50")
    until(lambda: len(_starts(handle)) == 2, 240)
    assert kit.api.get("Pod", worker)["metadata"]["uid"] != before
    assert any("vict" in event.code for event in handle.events())
    assert handle.wait().status is sojourn.State.SUCCEEDED
    until(lambda: _phases(kit) == ["Succeeded"] * _RANKS, 60)  # nothing holds a node any more
    handle.delete()


def test_a_stopped_program_has_no_pods_and_resumes(lab: Lab, kit: KubernetesKit) -> None:
    handle = _create(lab, _STEPPING, environment={"STEPS": "6"})
    until(lambda: _marked(handle) > 1, 120)
    handle.stop()
    assert _machines(kit) == {}
    assert handle.status().state is sojourn.State.STOPPED
    handle.start()
    assert handle.wait().status is sojourn.State.SUCCEEDED
    assert _starts(handle)[1] > 1
    assert [item.id for item in sojourn.list_tasks()] == [handle.id]
    handle.delete()
    assert Counter(lab.output()["hosts"].split()) == _hosts(handle.id)


def test_a_program_that_fails_is_not_run_again(lab: Lab, kit: KubernetesKit) -> None:
    handle = _create(lab, "echo once; mpirun sh -c 'exit 7'; exit 7")
    ended = handle.wait()
    assert ended.status is sojourn.State.FAILED
    assert ended.exit_code == 7
    assert log_of(handle).count("once") == 1
    handle.delete()


def test_an_image_without_ssh_says_so(lab: Lab) -> None:
    from tests.kube import images

    handle = _create(lab, "true", image=images.PYTHON)
    assert handle.wait().status is sojourn.State.FAILED
    assert any("the image has no ssh" in line for line in log_of(handle))
    handle.delete()


_APART = """
spec:
  topologySpreadConstraints:
    - topologyKey: kubernetes.io/hostname
      maxSkew: 1
      whenUnsatisfiable: DoNotSchedule
      labelSelector: {matchLabels: {sojourn/role: machine}}
"""


@pytest.mark.full
def test_a_real_benchmark_with_one_input_and_another(lab: Lab, kit: KubernetesKit) -> None:
    """HPL, among others, on 2 nodes: 3 machines with 2 processes each, in a grid of 2 x 3."""
    for size in (240, 120):
        handle = _create(
            lab,
            "mpirun hpcc && cat hpccoutf.txt",
            files={"hpccinf.txt": HPL.replace("240 Ns", f"{size} Ns")},
            options={"pod": _APART},
            environment={"OMPI_MCA_mpi_yield_when_idle": "1"},
        )
        until(lambda: len(_machines(kit)) == _RANKS, 60)
        pods = kit.api.list("Pod", f"{names.ROLE}={names.MACHINES}")
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
        ended = handle.wait()
        log = "\n".join(log_of(handle))
        assert ended.status is sojourn.State.SUCCEEDED, log
        assert "PASSED" in log
        assert "FAILED" not in log
        assert f"HPL_N={size}" in log
        assert f"CommWorldProcs={_RANKS * _SLOTS}" in log
        handle.delete()
        assert kit._objects() == []


@pytest.mark.alone
def test_a_node_is_killed(lab: Lab, kit: KubernetesKit, kube_cluster: KubeCluster) -> None:
    """Its pods are never said to have ended, and a worker has the same name wherever it is."""
    spread = _APART.replace("DoNotSchedule", "ScheduleAnyway")
    handle = _create(lab, _STEPPING, environment={"STEPS": "8"}, options={"pod": spread})
    until(lambda: _marked(handle) > 1, 120)
    operator = kube_cluster.api.get("/api/v1/namespaces/mpi-operator/pods")["items"]
    spared = {pod["spec"]["nodeName"] for pod in operator}
    pods = kit.api.list("Pod", f"{names.ROLE}={names.MACHINES}")
    node = next(name for pod in pods if (name := pod["spec"]["nodeName"]) not in spared)
    began = time.monotonic()
    kube_cluster.kill_node(node)
    try:
        until(lambda: len(_starts(handle)) >= 2, 240)
        print("seconds until the program ran again:", round(time.monotonic() - began))  # noqa: T201
        assert handle.wait().status is sojourn.State.SUCCEEDED
        pods = kit.api.list("Pod", f"{names.ROLE}={names.MACHINES}")
        alive = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        assert node not in {pod["spec"]["nodeName"] for pod in alive}
        handle.delete()
    finally:
        kube_cluster.revive_node(node)
    assert Counter(lab.output()["hosts"].split()) == _hosts(handle.id)


def test_scripts_have_keys_and_no_token(lab: Lab) -> None:
    """On no machine; the agents' containers have one."""
    look = "ls /opt/sojourn; ls /var/run/secrets/kubernetes.io /run/secrets 2>/dev/null; :"
    handle = _create(lab, f"mpirun sh -c '{look}'", mpi=Mpi(1))
    assert handle.wait().status is sojourn.State.SUCCEEDED
    assert set(log_of(handle)) - {""} == {"keys"}, log_of(handle)
    handle.delete()
