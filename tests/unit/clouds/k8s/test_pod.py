"""The pods of a task, field by field."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.files import check as check_files
from sojourn.clouds.k8s.jobs import condition, ended, job, may_have_run, rank_of, suspended
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.options import Options, options_of
from sojourn.clouds.k8s.pod import GRACE, Place, machine_template, python_of, store_template
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.task import Task

_ID = TaskId.deterministic("test")
_CLAIM = Place(claim="the-claim", folder="x")
_BUCKET = Place(url="s3://bucket/x")
# https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
_VOLUMES |= {"projected", "secret"}


def _task(**fields: Any) -> Task:
    return Task(script="#!/bin/sh\ntrue\n", cloud="k8s", **fields)


def _template(
    task: Task | None = None, *, place: Place = _CLAIM, spot: bool = False, restricted: bool = False
) -> dict[str, Any]:
    return machine_template(_ID, task or _task(), 2, place, spot=spot, restricted=restricted)


def _containers(template: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    script, agent = template["spec"]["containers"]
    assert (script["name"], agent["name"]) == (names.SCRIPT, names.AGENT)
    return script, agent


def _patched(patch: Any, **fields: Any) -> dict[str, Any]:
    text = patch if isinstance(patch, str) else yaml.safe_dump(patch)
    return _template(_task(options={"pod": text}, **fields))


@pytest.mark.parametrize("store", [False, True])
def test_the_restricted_profile_fits_the_standard(store: bool) -> None:
    if store:
        made = store_template(_ID, _task(), _CLAIM, spot=False, restricted=True)
    else:
        made = _template(restricted=True)
    spec = made["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & {key for key, value in spec.items() if value}
    assert {key for volume in spec["volumes"] for key in volume if key != "name"} <= _VOLUMES
    pod = spec["securityContext"]
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
    assert not {"sysctls", "seLinuxOptions", "windowsOptions"} & set(pod)
    for container in spec["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "procMount", "seLinuxOptions"} & set(context)
        assert not any("hostPort" in port for port in container.get("ports", ()))


def test_without_restrictions_images_keep_their_users() -> None:
    spec = _template()["spec"]
    assert "securityContext" not in spec
    assert not any("securityContext" in item for item in spec["containers"])


@pytest.mark.parametrize("place", [_CLAIM, _BUCKET])
@pytest.mark.parametrize("restricted", [False, True])
def test_the_script_reaches_neither_secret_nor_store(place: Place, restricted: bool) -> None:
    template = _template(place=place, restricted=restricted)
    script, agent = _containers(template)
    assert {mount["name"] for mount in script["volumeMounts"]} == {"shared", "shm"}
    assert "env" not in script
    assert "envFrom" not in script
    wanted = {"shared", "task", "program", *(["store"] if place.claim else [])}
    assert {mount["name"] for mount in agent["volumeMounts"]} == wanted
    assert {volume["name"] for volume in template["spec"]["volumes"]} == wanted | {"shm"}


def test_a_token_only_for_an_account_that_was_named() -> None:
    spec = _template()["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    spec = _template(_task(permission_set="robot"))["spec"]
    assert spec["automountServiceAccountToken"] is True
    assert spec["serviceAccountName"] == "robot"


def test_amounts_are_limits_and_requests_are_small() -> None:
    script, agent = _containers(_template(_task(machine="m+t4")))
    assert script["resources"]["limits"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    assert script["resources"]["requests"] == {"cpu": "100m", "memory": "128M"}
    assert agent["resources"]["requests"] == {"cpu": "50m", "memory": "64Mi"}
    script, _ = _containers(_template(_task(machine="s")))
    assert "nvidia.com/gpu" not in script["resources"]["limits"]


def test_what_each_pod_has() -> None:
    template = _template(_task(timeout=100, region="a=b", spot=0), spot=True)
    spec, metadata = template["spec"], template["metadata"]
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > 100
    assert spec["terminationGracePeriodSeconds"] > GRACE
    assert spec["nodeSelector"] == {"a": "b"}
    assert spec["enableServiceLinks"] is False
    assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in spec["volumes"]
    assert "nodeAffinity" in spec["affinity"]
    assert metadata["labels"][names.ROLE] == names.MACHINES
    assert metadata["labels"][names.RANK] == "2"
    assert metadata["annotations"]["kubectl.kubernetes.io/default-container"] == names.SCRIPT
    assert "name" not in metadata
    script, agent = _containers(template)
    assert script["image"] == "ubuntu:24.04"
    assert script["command"][:2] == ["/bin/sh", "-c"]
    assert "args" not in script
    variables = {item["name"]: item.get("value") for item in agent["env"]}
    assert variables["SOJOURN_RANK"] == "2"
    # The host name of a Job's pod is another: machines are known by the names of their pods.
    named = [item["name"] for item in agent["env"] if "valueFrom" in item]
    assert named == ["SOJOURN_MACHINE", "SOJOURN_ADDRESS", "SOJOURN_POD"]
    compile(variables["SOJOURN_BOOT"] or "", "boot", "exec")
    assert f"{places.FOLDER}/run/over" in agent["command"][2]


def test_the_longest_timeout_is_one_that_kubernetes_takes() -> None:
    made = job(_ID, _task(timeout=2**63 - 1), 0, _CLAIM, suspend=True, spot=False, restricted=False)
    assert 0 < made["spec"]["activeDeadlineSeconds"] < 2**31
    assert 0 < made["spec"]["template"]["spec"]["activeDeadlineSeconds"] < 2**31


def test_mounts() -> None:
    mounts = {"/data": "claim:c/a/b:ro", "/nfs": "nfs:server:/export", "/all": "claim:d"}
    template = _template(_task(mounts=mounts))
    script, agent = _containers(template)
    made = {mount["mountPath"]: mount for mount in script["volumeMounts"]}
    assert made["/data"] == {
        "name": "data-1",
        "mountPath": "/data",
        "readOnly": True,
        "subPath": "a/b",
    }
    assert "subPath" not in made["/all"]
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    assert volumes["data-2"]["nfs"] == {"server": "server", "path": "/export"}
    assert volumes["data-0"]["persistentVolumeClaim"] == {"claimName": "d"}
    assert not any(mount["name"].startswith("data") for mount in agent["volumeMounts"])


def test_patches_add_and_change() -> None:
    template = _patched(
        {
            "metadata": {"annotations": {"a": "b"}, "labels": {"team": "x"}},
            "spec": {
                "imagePullSecrets": [{"name": "pull"}],
                "tolerations": [{"key": "mine", "operator": "Exists"}],
                "priorityClassName": "high",
                "containers": [
                    {"name": "script", "resources": {"requests": {"cpu": "8"}}, "env": []},
                    {"name": "agent", "resources": {"limits": {"cpu": "1"}}},
                ],
                "initContainers": [{"name": "proxy", "image": "x", "restartPolicy": "Always"}],
                "volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "1Gi"}}],
            },
        }
    )
    script, agent = _containers(template)
    assert script["resources"]["requests"] == {"cpu": "8", "memory": "128M"}
    assert agent["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    spec = template["spec"]
    assert len(spec["tolerations"]) == 3
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}} in spec["volumes"]
    assert template["metadata"]["labels"]["team"] == "x"
    assert template["metadata"]["annotations"]["a"] == "b"


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ({"spec": {"restartPolicy": "Always"}}, "restartPolicy"),
        ({"spec": {"shareProcessNamespace": True}}, "shareProcessNamespace"),
        ({"spec": {"hostPID": True}}, "hostPID"),
        ({"spec": {"containers": [{"name": "script", "command": ["x"]}]}}, "command of .* script"),
        ({"spec": {"containers": [{"name": "agent", "$patch": "delete"}]}}, "command of .* agent"),
        ({"spec": {"containers": None}}, "command of"),
        ({"spec": {"containers": "script"}}, "must be a list"),
        ({"spec": {"containers": [{"name": "more", "image": "x"}]}}, "more would keep the pod"),
        ({"spec": {"containers": [{"name": "script", "restartPolicy": "Always"}]}}, "not restart"),
        ({"spec": {"volumes": [{"name": "shared", "$patch": "delete"}]}}, "volume shared"),
        ({"spec": {"volumes": None}}, "volume shared"),
        ({"spec": {"volumes": [{"name": "task", "emptyDir": {}}]}}, "volume task"),
        ({"metadata": {"labels": {"sojourn/id": "other"}}}, "label sojourn/id"),
        ({"metadata": {"labels": None}}, "label"),
        ({"spec": []}, "spec must be a map"),
        ({"metadata": None}, "metadata must be a map"),
        ({"kind": "Pod"}, "metadata and spec alone"),
        ("- a", "metadata and spec alone"),
        ("{a: ", "not valid YAML"),
    ],
)
def test_patches_that_would_break_a_task(patch: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        _patched(patch)
    assert caught.value.path == "options.pod"


@pytest.mark.parametrize("volume", ["task", "store", "program"])
def test_patches_that_would_hand_the_script_what_is_the_agents(volume: str) -> None:
    mounts = [{"name": volume, "mountPath": "/x"}]
    with pytest.raises(InvalidInput, match="agent alone"):
        _patched({"spec": {"containers": [{"name": "script", "volumeMounts": mounts}]}})
    away = [{"mountPath": places.FOLDER, "$patch": "delete"}]
    with pytest.raises(InvalidInput, match="volumeMounts"):
        _patched({"spec": {"containers": [{"name": "script", "volumeMounts": away}]}})


def test_the_pod_of_the_store_goes_where_machines_go_if_it_can() -> None:
    patch = """
    metadata: {annotations: {mesh: "no"}}
    spec:
      hostNetwork: true
      nodeSelector: {a: b}
      priorityClassName: high
      securityContext: {fsGroup: 7}
      containers:
      - {name: agent, resources: {limits: {cpu: 1}}, volumeMounts: [{name: x, mountPath: /x}]}
      - {name: script, resources: {limits: {cpu: 1}}}
    """
    task = _task(options={"pod": patch}, region="c=d")
    made = store_template(_ID, task, _CLAIM, spot=False, restricted=True)
    spec = made["spec"]
    assert made["metadata"]["name"] == names.store_pod(_ID)
    assert made["metadata"]["labels"][names.ROLE] == names.STORE
    assert made["metadata"]["annotations"]["mesh"] == "no"
    assert spec["nodeSelector"] == {"a": "b"}  # the user's own word holds for all pods
    [wanted] = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    region = {"key": "c", "operator": "In", "values": ["d"]}
    assert wanted["preference"]["matchExpressions"] == [region]
    assert spec["securityContext"]["fsGroup"] == 7
    assert "hostNetwork" not in spec
    (agent,) = spec["containers"]
    assert agent["resources"]["limits"]["cpu"] == 1
    assert "x" not in {mount["name"] for mount in agent["volumeMounts"]}
    assert spec["activeDeadlineSeconds"] <= 86400


@pytest.mark.parametrize(
    ("made", "generation", "now", "status", "may"),
    [
        ("suspended", 1, True, {}, False),
        ("suspended", 2, False, {}, False),
        ("suspended", 3, True, {}, True),
        ("started", 1, False, {}, False),
        ("started", 2, True, {}, True),
        ("started", 1, False, {"failed": 1}, True),
        ("started", 1, False, {"completedIndexes": "0"}, True),
        ("again", 1, False, {}, True),
    ],
)
def test_jobs_tell_whether_a_pod_may_have_run(
    made: str, generation: int, now: bool, status: dict[str, Any], may: bool
) -> None:
    """A Job that is suspended forgets its pods, so one that was may have had some."""
    found = job(
        _ID,
        _task(),
        0,
        _CLAIM,
        suspend=made == "suspended",
        spot=False,
        restricted=False,
        again=made == "again",
    )
    found["metadata"]["generation"] = generation
    found["spec"]["suspend"] = now
    assert may_have_run({**found, "status": status}) is may


def test_jobs() -> None:
    made = job(_ID, _task(), 3, _CLAIM, suspend=True, spot=False, restricted=False)
    spec = made["spec"]
    assert made["metadata"]["name"] == f"{_ID}-3"
    assert rank_of(made) == rank_of(spec["template"]) == 3
    assert suspended(made)
    assert spec["completionMode"] == "Indexed"
    assert spec["parallelism"] == 1
    assert spec["backoffLimitPerIndex"] == 0
    assert spec["completions"] >= 100
    assert spec["successPolicy"] == {"rules": [{"succeededCount": 1}]}
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert "podFailurePolicy" not in spec  # which would wait for pods of nodes that are lost
    assert not ended(made)
    for kind, over in (("Complete", True), ("Failed", True), ("Suspended", False)):
        found = {**made, "status": {"conditions": [{"type": kind, "status": "True"}]}}
        assert ended(found) is over
    assert condition({"status": {"conditions": [{"type": "A", "status": "False"}]}}, "A") is None
    assert condition({"status": {"conditions": None}}, "A") is None


@pytest.mark.parametrize(
    ("image", "python"),
    [
        ("python:3.13-slim", "313"),
        ("python:3.10", "310"),
        ("registry:5000/x/python:3.12-bookworm", "312"),
        ("mine:1", "313"),
    ],
)
def test_the_python_of_an_image(image: str, python: str) -> None:
    assert python_of(Options(image, "", {}, (), 1)) == python


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options_of(_task()).agent_image.startswith("python:3")
    assert options_of(_task()).disk > 0
    assert options_of(_task(disk_size=7)).disk == 7
    monkeypatch.setenv("SOJOURN_K8S_AGENT_IMAGE", "mirror/python:3.12")
    assert options_of(_task()).agent_image == "mirror/python:3.12"
    assert options_of(_task(options={"agent_image": "x"})).agent_image == "x"
    with pytest.raises(InvalidInput) as caught:
        options_of(_task(options={"sise": "x"}))
    assert caught.value.path == "options.sise"


@pytest.mark.parametrize(
    ("at", "what"),
    [
        ("data", "claim:c"),
        ("/", "claim:c"),
        ("//", "claim:c"),
        ("/sojourn", "claim:c"),
        ("//sojourn/workdir/x", "claim:c"),
        ("/dev/shm", "claim:c"),
        ("/proc/x", "claim:c"),
        ("/a/../b", "claim:c"),
        ("/a:b", "claim:c"),
        ("/data", "claim:"),
        ("/data", "claim:C"),
        ("/data", "claim:c/../x"),
        ("/data", "claim:c:rw"),
        ("/data", "nfs:server"),
        ("/data", "nfs:server:export"),
        ("/data", "hostPath:/"),
        ("/data", ""),
    ],
)
def test_refused_mounts(at: str, what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        options_of(_task(mounts={at: what}))
    assert caught.value.path == "mounts"


def test_two_mounts_at_one_place() -> None:
    with pytest.raises(InvalidInput, match="one mount at /data"):
        options_of(_task(mounts={"/data": "claim:a", "/data/": "claim:b"}))


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nvidia", "nvidia/cuda:12.6.3-runtime-ubuntu24.04"),
        ("python:3.12", "python:3.12"),
        ("docker://python:3.12", "python:3.12"),
        ("docker://ubuntu", "ubuntu"),  # as everywhere else
    ],
)
def test_the_image_of_the_script(image: str, name: str) -> None:
    script, _ = _containers(_template(_task(image=image)))
    assert script["image"] == name


def test_an_image_that_can_be_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="image: must be docker://"):
        _template(_task(image="docker://Python"))


def test_a_machine_image_is_refused() -> None:
    with pytest.raises(InvalidInput, match="image: 'sojourn:lab' is a machine image, and Kube"):
        _template(_task(image="sojourn:lab"))


def test_files_are_mounted_one_by_one_into_the_script_alone() -> None:
    task = _task(files={"/home/u/HPL.dat": "b", "/etc/a": "a", "in/workdir": "c"})
    made = _template(task)
    script, agent = _containers(made)
    mounts = [item for item in script["volumeMounts"] if item["name"] == "files"]
    assert mounts == [
        {"name": "files", "mountPath": "/etc/a", "subPath": "0", "readOnly": True},
        {"name": "files", "mountPath": "/home/u/HPL.dat", "subPath": "1", "readOnly": True},
    ]
    assert {"name": "files", "configMap": {"name": f"{_ID}-files"}} in made["spec"]["volumes"]
    assert not [item for item in agent["volumeMounts"] if item["name"] == "files"]
    only_here = _template(_task(files={"in/workdir": "c"}))["spec"]["volumes"]
    assert "files" not in [volume["name"] for volume in only_here]


@pytest.mark.parametrize("path", ["/dev/a", "/sojourn/workdir/a", "/etc/a:b"])
def test_files_where_nothing_can_be_mounted(path: str) -> None:
    with pytest.raises(InvalidInput, match="files: must be outside /dev, /proc, /sojourn, /sys"):
        check_files(_task(files={path: ""}))
