"""What there is to tell of a cluster: why pods wait, how ranks ended, what doctor finds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest
import yaml

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.checkup import look
from sojourn.clouds.k8s.listing import final_reports, states
from sojourn.clouds.k8s.reasons import cannot_start, job_obstacle, waiting
from sojourn.clouds.k8s.roles import NEEDED, check_rights, role_text
from sojourn.clouds.k8s.storageclasses import check, default_class
from sojourn.core.errors import AuthError, InvalidInput, Transient
from sojourn.core.gang import Mpi
from sojourn.core.ids import TaskId
from sojourn.core.report import Outcome, Report
from sojourn.core.status import State
from sojourn.core.task import Storage, Task
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import Cluster, Login, User
from tests.unit.clouds.k8s.cluster import MemoryApi, Object

_ID = TaskId.deterministic("test")


@pytest.fixture
def memory() -> MemoryApi:
    return MemoryApi()


@pytest.fixture
def api(memory: MemoryApi) -> Api:
    return cast(Api, memory)


def _pod(phase: str = "Pending", **status: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {}, "status": {"phase": phase, **status}}


def _stuck(reason: str, message: str) -> Object:
    state = {"waiting": {"reason": reason, "message": message}}
    return _pod(containerStatuses=[{"name": "script", "image": "no/such", "state": state}])


def _unscheduled(**spec: Any) -> Object:
    told = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes: 2 Insufficient cpu"}
    return {**_pod(conditions=[told]), "spec": spec}


def _event(memory: MemoryApi, of: str, reason: str, message: str, when: str = "1") -> None:
    memory.add(
        "Event",
        f"{of}.{reason}.{when}",
        involvedObject={"name": of},
        reason=reason,
        message=message,
        lastTimestamp=f"2026-01-01T00:00:0{when}Z",
    )


def test_pods_that_run_wait_for_nothing(api: Api) -> None:
    assert waiting(api, _pod("Running")) == ""
    assert waiting(api, _pod()) == ""


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("ImagePullBackOff", "could not pull image no/such: back-off"),
        ("ErrImagePull", "could not pull image no/such: back-off"),
        ("CreateContainerConfigError", "could not start container script: back-off"),
        ("ContainerCreating", ""),
    ],
)
def test_images(api: Api, reason: str, told: str) -> None:
    assert waiting(api, _stuck(reason, "back-off")) == told


def test_images_that_never_will(api: Api) -> None:
    assert "invalid image 'no/such'" in cannot_start(api, _stuck("InvalidImageName", "no"))
    assert cannot_start(api, _stuck("ErrImagePull", "no")) == ""


def test_nodes_and_claims(memory: MemoryApi, api: Api) -> None:
    assert waiting(api, _unscheduled()) == "no node fits: 0/2 nodes: 2 Insufficient cpu"
    pod = _unscheduled(volumes=[{"name": "x"}, {"persistentVolumeClaim": {"claimName": "c"}}])
    assert waiting(api, pod) == "claim c not found"
    memory.add("PersistentVolumeClaim", "c", status={"phase": "Pending"})
    assert waiting(api, pod).startswith("no node fits")
    _event(memory, "c", "ProvisioningFailed", "first", "1")
    _event(memory, "c", "ProvisioningFailed", "no such\n  class " + "x" * 999, "2")
    found = waiting(api, pod)
    assert found.startswith("claim c is not bound: no such class x")
    assert len(found) < 400
    memory.errors["PersistentVolumeClaim"] = AuthError("no")
    assert waiting(api, pod).startswith("no node fits")


def test_volumes(memory: MemoryApi, api: Api) -> None:
    _event(memory, "p", "FailedMount", "timed out")
    assert waiting(api, _pod()) == "could not mount a volume: timed out"
    memory.errors["Event"] = AuthError("no")
    assert waiting(api, _pod()) == ""


def test_jobs_that_make_no_pods(memory: MemoryApi, api: Api) -> None:
    job: Object = {"metadata": {"name": "j"}, "status": {}}
    assert job_obstacle(api, job) == ""
    _event(memory, "j", "FailedCreate", "exceeded quota")
    assert job_obstacle(api, job) == "exceeded quota"
    assert job_obstacle(api, {**job, "status": {"active": 1}}) == ""  # it is over
    failed = {"type": "Failed", "status": "True", "message": "deadline"}
    assert "deadline" in job_obstacle(api, {**job, "status": {"conditions": [failed]}})


def _ended(rank: int, attempt: int, outcome: Outcome, **labels: str) -> Object:
    report = Report(rank, attempt, outcome, "", started="2026-01-01T00:00:00Z")
    return _told(rank, json.dumps(report.to_dict()), name=f"pod-{rank}-{attempt}", **labels)


def _told(rank: int, message: str, name: str = "pod", **labels: str) -> Object:
    own = {names.ID: str(_ID), names.RANK: str(rank), **labels}
    state = {"terminated": {"exitCode": 0, "message": message}}
    status = {"containerStatuses": [{"name": names.AGENT, "state": state}]}
    return {"metadata": {"name": name, "labels": own}, "status": status}


def test_reports_in_pods() -> None:
    pods = [
        _ended(0, 2, Outcome.SUCCEEDED),
        _ended(0, 1, Outcome.FAILED),
        _ended(1, 1, Outcome.PREEMPTED),
        _ended(2, 1, Outcome.FAILED, **{names.RANK: "3"}),  # of a rank that is not its own
        _told(4, "nonsense"),
        _told(5, "[]"),
        _told(6, '{"rank": 6}'),
        {"metadata": {"name": "new", "labels": {}}},
    ]
    found = final_reports(pods)
    assert {rank: report.attempt for rank, (_, report) in found.items()} == {0: 2}
    assert found[0][0] == "pod-0-2"


def test_states_of_tasks_that_have_ended(memory: MemoryApi, api: Api) -> None:
    def job(rank: int) -> None:
        labels = {names.ID: str(_ID), names.RANK: str(rank)}
        memory.add("Job", f"j{rank}", metadata={"labels": labels})

    def pod(made: Object) -> None:
        memory.objects["Pod", made["metadata"]["name"]] = made

    assert states(api, [_ID]) == {}
    job(0)
    job(1)
    pod(_ended(0, 1, Outcome.SUCCEEDED))
    assert states(api, [_ID]) == {}
    pod(_ended(1, 1, Outcome.SUCCEEDED))
    assert states(api, [_ID])[_ID].state is State.SUCCEEDED
    del memory.objects["Job", "j0"]  # whose rank is not known any more
    assert states(api, [_ID]) == {}


def _class(name: str, provisioner: str = "x", made: str = "1", **annotations: str) -> Object:
    when = f"2026-01-0{made}T00:00:00Z"
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": when}
    return {"metadata": metadata, "provisioner": provisioner}


_IS_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def test_default_classes() -> None:
    assert default_class([]) is None
    assert default_class([_class("a")]) is None
    found = default_class([_class("a", made="2", **_IS_DEFAULT), _class("b", **_IS_DEFAULT)])
    assert found is not None
    assert found["metadata"]["name"] == "a"
    old = _class("c", **{"storageclass.beta.kubernetes.io/is-default-class": "true"})
    assert default_class([old]) == old


def test_classes_are_checked(memory: MemoryApi, api: Api) -> None:
    one, many = Task(script="#!/bin/sh\n"), Task(script="#!/bin/sh\n", parallelism=2)
    with pytest.raises(InvalidInput, match="no default storage class"):
        list(check(api, one, ""))
    memory.objects["StorageClass", "disk"] = _class("disk", "ebs.csi.aws.com", **_IS_DEFAULT)
    memory.objects["StorageClass", "shared"] = _class("shared", "nfs.csi.k8s.io")
    assert list(check(api, one, "")) == []
    assert list(check(api, many, "shared")) == []
    with pytest.raises(InvalidInput, match="cannot be shared by 2 machines") as caught:
        list(check(api, many, ""))
    assert caught.value.path == "parallelism"
    with pytest.raises(InvalidInput, match=r"'no' not found \(available: disk, shared\)"):
        list(check(api, one, "no"))
    memory.errors["StorageClass"] = AuthError("no")
    assert list(check(api, many, "no")) == []


class _Doctor(MemoryApi):
    login = Login(Cluster("https://example.com"), User(), "test", "here", "a file")
    missing: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def serves(self, kind: str) -> bool:
        self._fail("discovery")
        return kind in self.kinds

    def inside(self, namespace: str) -> _Doctor:
        return self

    def version(self) -> tuple[int, int]:
        self._fail("version")
        return (1, 36)

    def reviewed(self, body: Object) -> Object:
        asked = body["spec"]["resourceAttributes"]
        name = "/".join(asked[key] for key in ("resource", "subresource") if key in asked)
        return {"status": {"allowed": f"{asked['verb']} {name}" not in self.missing}}


def _looked(doctor: _Doctor) -> dict[str, tuple[str, str]]:
    doctor.answers = {
        "SelfSubjectAccessReview": doctor.reviewed,
        "SelfSubjectReview": lambda _: {"status": {"userInfo": {"username": "jane"}}},
    }
    return {item.subject: (item.verdict, item.detail) for item in look(cast(Api, doctor))}


def test_what_doctor_finds() -> None:
    doctor = _Doctor()
    doctor.objects["StorageClass", "disk"] = _class("disk", **_IS_DEFAULT)
    doctor.add("Node", "a", status={"allocatable": {"nvidia.com/gpu": "2"}})
    doctor.add("Node", "b", status={})
    found = _looked(doctor)
    assert {level for level, _ in found.values()} == {"ok"}
    assert "Kubernetes 1.36" in found["kubernetes"][1]
    assert found["kubernetes namespace"][1] == "test, as jane"
    assert found["kubernetes nodes"][1] == "2 nodes, 2 GPUs"
    assert "disk" in found["kubernetes storage"][1]
    asked = [body for kind, body in doctor.created if kind == "SelfSubjectAccessReview"]
    assert len(asked) == sum(len(verbs.split()) for verbs, _, _ in NEEDED)


def test_what_doctor_misses() -> None:
    doctor = _Doctor()
    doctor.missing = ("create pods/exec", "patch jobs")
    doctor.errors["Node"] = AuthError("no")
    found = _looked(doctor)
    assert found["kubernetes permissions"][0] == "note"
    assert "test: create pods/exec, patch jobs.batch;" in found["kubernetes permissions"][1]
    assert "no default storage class" in found["kubernetes storage"][1]
    assert found["kubernetes nodes"][1] == "not allowed to list nodes"
    doctor.errors["version"] = Transient("Could not reach it", hint="Check it.")
    assert _looked(doctor) == {"kubernetes": ("note", "Could not reach it Check it.")}


def test_missing_rights_are_all_named_before_anything_is_made() -> None:
    doctor = _Doctor()
    doctor.answers = {"SelfSubjectAccessReview": doctor.reviewed}
    task = Task("#!/bin/sh", cloud="k8s")
    check_rights(cast(Api, doctor), task)
    doctor.missing = ("create secrets", "watch pods", "get pods/exec", "create services")
    with pytest.raises(AuthError) as caught:
        check_rights(cast(Api, doctor), task)
    assert caught.value.message.endswith("test: create secrets, get pods/exec")
    assert "sojourn doctor --role k8s" in caught.value.hint
    with pytest.raises(AuthError, match="create services"):
        check_rights(cast(Api, doctor), Task("#!/bin/sh", cloud="k8s", gang=True))
    doctor.errors["SelfSubjectAccessReview"] = AuthError("no")
    check_rights(cast(Api, doctor), task)  # nobody knows


def test_a_role_allows_what_a_task_needs_and_no_more() -> None:
    def rules(*tasks: Task) -> dict[str, set[str]]:
        role = yaml.safe_load(role_text(tasks, "here"))
        assert role["metadata"] == {"name": "sojourn", "namespace": "here"}
        return {rule["resources"][0]: set(rule["verbs"]) for rule in role["rules"]}

    plain = Task("#!/bin/sh", cloud="k8s")
    assert rules() == rules(plain)
    assert rules(plain)["jobs"] == {"create", "list", "patch", "delete"}
    bucket = replace(plain, storage=Storage(container="s3://mine/x"))
    assert rules(plain).keys() - rules(bucket).keys() == {"persistentvolumeclaims"}
    gang = replace(plain, gang=True)
    assert rules(gang).keys() - rules(plain).keys() == {"services", "networkpolicies"}
    mpi = replace(plain, mpi=Mpi())
    assert "mpijobs" in rules(mpi, bucket)
    assert "services" not in rules(mpi)


_OPERATOR = ("CustomResourceDefinition", "mpijobs.kubeflow.org")
_OURS = {"labels": {"app.kubernetes.io/managed-by": "sojourn"}}


def test_what_doctor_finds_of_mpi() -> None:
    doctor = _Doctor()

    def found() -> tuple[str, str]:
        return _looked(doctor)["kubernetes mpi"]

    assert found()[0] == "ok"
    assert "not installed (optional); run `sojourn mpi install`" in found()[1]
    doctor.kinds = ("MPIJob",)
    assert found() == ("ok", "mpi-operator")  # of which we may see no more
    kind = doctor.add(*_OPERATOR, metadata=_OURS)
    kind["metadata"]["annotations"] = {"sojourn/namespace": "mpi"}
    assert found() == (
        "note",
        "mpi-operator in namespace mpi is not ready; run `sojourn mpi status`",
    )
    container = {"image": "example.com:5000/mpi-operator:0.8.2@sha256:1"}
    spec = {"template": {"spec": {"containers": [container]}}}
    made = doctor.add("Deployment", "mpi-operator", spec=spec, metadata={"namespace": "mpi"})
    assert found()[0] == "note"
    made["metadata"]["generation"] = 2
    made["status"] = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}
    made["status"]["availableReplicas"] = 1
    assert found()[0] == "note"
    made["status"]["observedGeneration"] = 2
    assert found() == ("ok", "mpi-operator 0.8.2 in namespace mpi")
    doctor.errors["discovery"] = Transient("Could not reach it", hint="Check it.")
    assert found() == ("note", "Could not reach it Check it.")
