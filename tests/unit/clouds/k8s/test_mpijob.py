"""The MPIJob of a task and what is beside it, field by field."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.account import AgentAccount
from sojourn.clouds.k8s.cloud import KubernetesCloud
from sojourn.clouds.k8s.gangs import GangPolicy, GangService
from sojourn.clouds.k8s.jobs import rank_of
from sojourn.clouds.k8s.listing import states
from sojourn.clouds.k8s.mpijob import given_up, may_have_started, mpijob, paused
from sojourn.clouds.k8s.mpiscaler import MpiScaler
from sojourn.clouds.k8s.objects import TaskObjects
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.pod import Place, machine_template
from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.gang import Mpi
from sojourn.core.ids import TaskId
from sojourn.core.report import Outcome, Report
from sojourn.core.status import State
from sojourn.core.task import Task
from tests.unit.clouds.k8s.cluster import MemoryApi

_ID = TaskId.deterministic("a name that is as long as names can be")
_CLAIM = Place(claim="the-claim", folder="x")
_LONGEST_LABEL = 63


def _task(**fields: Any) -> Task:
    given = {"parallelism": 3, "mpi": Mpi(2), "cloud": "k8s", **fields}
    return Task(script="#!/bin/sh\nmpirun true\n", **given)


def _mpijob(task: Task | None = None, *, restricted: bool = False) -> dict[str, Any]:
    return mpijob(_ID, task or _task(), _CLAIM, suspend=True, spot=False, restricted=restricted)


def _template(made: dict[str, Any], role: str) -> dict[str, Any]:
    found = made["spec"]["mpiReplicaSpecs"][role]["template"]
    assert isinstance(found, dict)
    return found


def _objects(api: MemoryApi, task: Task | None = None) -> TaskObjects:
    return TaskObjects(api, _ID, task or _task())  # type: ignore[arg-type]


def test_what_an_mpijob_has() -> None:
    made = _mpijob()
    spec = made["spec"]
    assert (made["apiVersion"], made["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    assert spec["slotsPerWorker"] == 2
    assert spec["runLauncherAsWorker"] is True
    assert spec["mpiImplementation"] == "OpenMPI"
    assert spec["launcherCreationPolicy"] == "AtStartup"
    assert spec["sshAuthMountPath"] == places.KEYS
    assert spec["runPolicy"]["suspend"] is True
    # Agents end by themselves: whoever cleans up pods would take away what they still store.
    assert spec["runPolicy"]["cleanPodPolicy"] == "None"
    replicas = spec["mpiReplicaSpecs"]
    assert {role: found["replicas"] for role, found in replicas.items()} == {
        "Launcher": 1,
        "Worker": 2,
    }
    # With OnFailure, the pod of a launcher that failed is deleted, with all that it can tell.
    assert {found["restartPolicy"] for found in replicas.values()} == {"Never"}


@pytest.mark.parametrize(
    ("ours", "theirs"), [("openmpi", "OpenMPI"), ("intel", "Intel"), ("mpich", "MPICH")]
)
def test_implementations_have_the_operators_names(ours: str, theirs: str) -> None:
    made = _mpijob(_task(mpi=Mpi(1, ours)))
    assert made["spec"]["mpiImplementation"] == theirs


def test_names_of_pods_are_labels_of_the_dns() -> None:
    """mpi-operator says nothing of one that is not but in an event, and does nothing."""
    name = _mpijob()["metadata"]["name"]
    assert name[0].isalpha()
    assert len(f"{name}-worker-9999") <= _LONGEST_LABEL


def test_one_machine_has_no_workers() -> None:
    """mpi-operator refuses none of them."""
    assert set(_mpijob(_task(parallelism=1))["spec"]["mpiReplicaSpecs"]) == {"Launcher"}


def test_the_scripts_container_is_the_first() -> None:
    """mpi-operator gives keys and variables to the first alone."""
    for role in ("Launcher", "Worker"):
        first, second = _template(_mpijob(), role)["spec"]["containers"]
        assert (first["name"], second["name"]) == (names.SCRIPT, names.AGENT)
        assert first["command"]  # else mpi-operator would run its own


def test_ranks_of_workers_come_from_the_operators_label() -> None:
    launcher, worker = (_template(_mpijob(), role) for role in ("Launcher", "Worker"))
    ranks = [
        next(
            item for item in made["spec"]["containers"][1]["env"] if item["name"] == "SOJOURN_RANK"
        )
        for made in (launcher, worker)
    ]
    assert ranks[0]["value"] == "0"
    path = ranks[1]["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.labels['training.kubeflow.org/replica-index']"
    assert rank_of({"metadata": launcher["metadata"]}) == 0
    labels = {**worker["metadata"]["labels"], "training.kubeflow.org/replica-index": "2"}
    assert rank_of({"metadata": {"labels": labels}}) == 2


@pytest.mark.parametrize("restricted", [False, True])
def test_only_the_agent_has_a_token(restricted: bool) -> None:
    for role in ("Launcher", "Worker"):
        spec = _template(_mpijob(restricted=restricted), role)["spec"]
        script, agent = spec["containers"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["serviceAccountName"] == str(_ID)
        assert "account" not in {mount["name"] for mount in script["volumeMounts"]}
        assert "account" in {mount["name"] for mount in agent["volumeMounts"]}


def test_no_patch_gives_the_token_to_the_script() -> None:
    mounts = [{"name": "account", "mountPath": "/x"}]
    patch = {"spec": {"containers": [{"name": "script", "volumeMounts": mounts}]}}
    with pytest.raises(InvalidInput, match="for the container agent alone"):
        _mpijob(_task(options={"pod": yaml.safe_dump(patch)}))


def test_others_have_neither_account_nor_token() -> None:
    spec = machine_template(
        _ID, _task(mpi=None, gang=True), 0, _CLAIM, spot=False, restricted=False
    )["spec"]
    assert "serviceAccountName" not in spec
    assert "account" not in {volume["name"] for volume in spec["volumes"]}


def test_a_gang_has_names_and_is_rather_in_one_zone() -> None:
    def made(**fields: Any) -> dict[str, Any]:
        template = machine_template(
            _ID, _task(mpi=None, **fields), 0, _CLAIM, spot=False, restricted=False
        )
        return dict(template["spec"])

    spec = made(gang=True)
    assert spec["subdomain"] == str(_ID)
    [term] = spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "topology.kubernetes.io/zone"
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"][names.ID] == str(_ID)
    alone = made()
    assert "subdomain" not in alone
    assert "podAffinity" not in alone["affinity"]


def _created(api: MemoryApi) -> dict[str, dict[str, Any]]:
    return dict(api.created)


def _taking(*kinds: str) -> MemoryApi:
    api = MemoryApi()
    api.answers = dict.fromkeys(kinds, lambda body: body)
    return api


def test_only_machines_of_the_task_reach_those_of_a_gang() -> None:
    api = _taking("NetworkPolicy", "Service")
    GangPolicy(_objects(api)).create(Context())
    GangService(_objects(api)).create(Context())
    made = _created(api)
    own = {"matchLabels": {names.ID: str(_ID), names.ROLE: names.MACHINES}}
    policy = made["NetworkPolicy"]["spec"]
    assert policy["podSelector"] == own
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [{"from": [{"podSelector": own}]}]
    service = made["Service"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["selector"] == own["matchLabels"]
    assert made["Service"]["metadata"]["name"] == str(_ID)


def test_the_account_may_delete_its_own_pods_alone() -> None:
    api = _taking("ServiceAccount", "Role", "RoleBinding")
    AgentAccount(_objects(api)).create(Context())
    assert [kind for kind, _ in api.created] == ["ServiceAccount", "Role", "RoleBinding"]
    made = _created(api)
    deleting = [rule for rule in made["Role"]["rules"] if "delete" in rule["verbs"]]
    assert {name for rule in deleting for name in rule["resourceNames"]} == {
        f"{_ID}-launcher",
        f"{_ID}-worker-0",
        f"{_ID}-worker-1",
    }
    assert {verb for rule in made["Role"]["rules"] for verb in rule["verbs"]} == {"delete", "list"}
    [who] = made["RoleBinding"]["subjects"]
    assert (who["name"], who["namespace"]) == (str(_ID), "test")


def test_an_account_of_the_users_is_only_given_the_role() -> None:
    api = _taking("Role", "RoleBinding")
    task = _task(permission_set="robot")
    AgentAccount(_objects(api, task)).create(Context())
    assert _created(api)["RoleBinding"]["subjects"][0]["name"] == "robot"
    assert _template(_mpijob(task), "Worker")["spec"]["serviceAccountName"] == "robot"


def test_resources_of_gangs_and_of_others() -> None:
    cloud = KubernetesCloud()

    def titles(**fields: Any) -> list[str]:
        resources = cloud.resources(_ID, _task(**fields))
        stages = [resource.stage for resource in resources]
        assert stages == sorted(stages)
        return [resource.title.split()[0] for resource in resources][3:]

    assert titles() == ["NetworkPolicy", "account", "MPIJob"]
    assert titles(mpi=None, gang=True) == ["NetworkPolicy", "Service", "Job"]
    assert titles(mpi=None) == ["Job"]


def test_uploads_go_through_a_pod_of_their_own() -> None:
    """All machines come together: none could wait for an upload that goes through another."""
    from sojourn.core.task import Storage

    storage = Storage(workdir=".", output="output")
    assert not _objects(MemoryApi(), _task(storage=storage)).holds
    assert _objects(MemoryApi(), _task(storage=storage, mpi=None, gang=True)).holds


def _found(*, suspend: bool = False, generation: int = 2, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": str(_ID), "generation": generation},
        "spec": {"runPolicy": {"suspend": suspend}},
        "status": status,
    }


def test_an_eviction_is_no_end() -> None:
    """mpi-operator says `Failed` of it, and goes on."""
    failed = [{"type": "Failed", "status": "True", "reason": "MPIJobEvicted"}]
    assert given_up(_found(conditions=failed)) is None
    ended = given_up(_found(conditions=failed, completionTime="2026-01-01T00:00:00Z"))
    assert ended
    assert ended["type"] == "Failed"


def test_one_that_was_never_started_has_stored_nothing() -> None:
    assert not may_have_started(_found(suspend=True, generation=1))
    assert not may_have_started(_found(generation=2))  # its pods tell
    assert may_have_started(_found(suspend=True, generation=3))
    assert paused(_found(suspend=True))


def _scaler(api: MemoryApi) -> MpiScaler:
    return MpiScaler(_objects(api))


def test_a_fleet_is_all_ranks_or_none() -> None:
    api = MemoryApi()
    with pytest.raises(NotFound):
        _scaler(api).scale(Context(), 3)
    assert _scaler(api).fleet(Context()) is None
    for suspend, wanted in ((True, 0), (False, 3)):
        api.add("MPIJob", str(_ID), **_found(suspend=suspend))
        fleet = _scaler(api).fleet(Context())
        assert fleet is not None
        assert (fleet.wanted, fleet.stuck) == (wanted, False)
    failed = [{"type": "Failed", "status": "True"}]
    api.add("MPIJob", str(_ID), **_found(conditions=failed, completionTime="now"))
    fleet = _scaler(api).fleet(Context())
    assert fleet is not None
    assert (fleet.wanted, fleet.stuck) == (0, True)


def test_why_an_mpijob_makes_no_pods() -> None:
    api = MemoryApi()
    scaler = _scaler(api)
    assert scaler.obstacle(Context()) == ""
    api.add("MPIJob", str(_ID), **_found())
    assert "mpi-operator has not looked at" in scaler.obstacle(Context())
    event = {
        "involvedObject": {"name": str(_ID)},
        "reason": "ValidationError",
        "message": "Found validation errors: name too long",
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
    }
    api.add("Event", "x", **event)
    assert "name too long" in scaler.obstacle(Context())
    api.objects.pop(("Event", "x"))
    made = [{"type": "Created", "status": "True"}]
    api.add("MPIJob", str(_ID), **_found(conditions=made))
    assert scaler.obstacle(Context()) == ""


def test_a_list_tells_how_an_mpi_program_ended_from_its_pods() -> None:
    import json

    api = MemoryApi()
    for rank in range(3):
        report = Report(rank, 1, Outcome.SUCCEEDED, "", exit_code=0)
        told = {"terminated": {"message": json.dumps(report.to_dict())}}
        labels = {names.ID: str(_ID), names.RANKS: "3", names.INDEX: str(rank)}
        status = {"containerStatuses": [{"name": names.AGENT, "state": told}]}
        api.add("Pod", f"pod-{rank}", metadata={"labels": labels}, status=status)
        found = states(api, [_ID])  # type: ignore[arg-type]
        assert (_ID in found) == (rank == 2)
    assert found[_ID].state is State.SUCCEEDED


def test_a_cluster_without_mpi_operator_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is made, and with what to do."""
    cloud = KubernetesCloud()
    monkeypatch.setattr(cloud._api, "version", lambda: (1, 36))
    monkeypatch.setattr(cloud._api, "serves", lambda kind: kind != "MPIJob")
    with pytest.raises(InvalidInput, match="sojourn mpi install"):
        list(cloud.check(Context(), _task()))
