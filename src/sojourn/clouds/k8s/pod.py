"""The pod of a machine: the user's image with the script, and the agent beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.machines import (
    GPU,
    node_affinity,
    node_selector,
    parse_machine,
    tolerations,
)
from sojourn.clouds.k8s.merging import merged
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.options import Options, image_of, options_of
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["GRACE", "Place", "machine_template", "python_of", "store_template"]

GRACE = 30  # seconds for the script after SIGTERM
_STORING = 570  # and for the agent to store the last of its work
_SLACK = 2 * 3600  # seconds of a pod beyond the task's timeout: pulling, restoring, storing
_USER = 65532  # where a cluster allows no root
_AGENT_REQUESTS = {"cpu": "50m", "memory": "64Mi"}
_AGENT_LIMITS = {"memory": "1Gi"}
_SCRIPT_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
# Pods that cannot even start would be replaced at once, again and again.
_BOOT = """\
command -v python3 >/dev/null || {
    echo 'no python3 in the image of the agent' | tee /dev/termination-log; sleep 30; exit 70
}
exec python3 -c "$SOJOURN_BOOT" "$@"
"""
_UNPACK = f"""\
import io, os, platform, runpy, shutil, sys, zipfile
library = {places.LIBRARY!r}
name = f"agent-{{platform.machine()}}.zip"
if not os.path.isdir(library):
    whole = zipfile.ZipFile(os.path.join({places.PROGRAM!r}, name))
    whole.extractall(library + ".new")
    for wheel in [item for item in whole.namelist() if item.endswith(".whl")]:
        zipfile.ZipFile(io.BytesIO(whole.read(wheel))).extractall(library + ".new")
    os.rename(library + ".new", library)
sys.path.insert(0, library)
os.environ["PYTHONPATH"] = library
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
_TAG = re.compile(r"python:(3)\.(\d+)")


@dataclass(frozen=True)
class Place:
    """Where the store of a task is: a folder of a claim, or a bucket."""

    claim: str = ""
    folder: str = ""  # in the claim
    url: str = ""


def python_of(options: Options) -> str:
    """The Python of the agent's image, as its tag says it: "313"."""
    found = _TAG.search(options.agent_image)
    return f"{found[1]}{found[2]}" if found else "313"


def machine_template(
    id: TaskId, task: Task, rank: int, place: Place, *, spot: bool, restricted: bool
) -> dict[str, Any]:
    """The template of the pods of a rank, with the user's own patch applied."""
    options = options_of(task)
    metadata = names.metadata(id, "", task, role=names.MACHINES, rank=str(rank))
    del metadata["name"]
    metadata.setdefault("annotations", {})["kubectl.kubernetes.io/default-container"] = names.SCRIPT
    amounts = parse_machine(task.machine)
    spec = {
        **_common(task, options, restricted=restricted),
        "activeDeadlineSeconds": task.timeout + _SLACK,
        "terminationGracePeriodSeconds": GRACE + _STORING,
        "containers": [
            _script_container(task, options),
            _agent_container(id, options, place, ["sojourn.clouds.k8s.on_machine.life"], rank),
        ],
        "volumes": [*_volumes(id, place), *_script_volumes(options)],
        "tolerations": tolerations(amounts, spot=task.spot >= 0),
        "affinity": node_affinity(amounts, spot=spot),
    }
    if restricted:
        spec["containers"] = [_restricted(item) for item in spec["containers"]]
    template = merged({"metadata": metadata, "spec": spec}, options.pod)
    _refuse_broken(template, spec)
    return dict(template)


def store_template(
    id: TaskId, task: Task, place: Place, *, spot: bool, restricted: bool
) -> dict[str, Any]:
    """A pod that has the store and does nothing; where the machines of the task may be, too."""
    options = options_of(task)
    amounts = parse_machine(task.machine)
    agent = _agent_container(id, options, place, ["sojourn.clouds.k8s.on_machine.life", "store"], 0)
    spec = {
        **_common(task, options, restricted=restricted),
        "activeDeadlineSeconds": 24 * 3600,
        "terminationGracePeriodSeconds": 5,
        "containers": [_restricted(agent) if restricted else agent],
        "volumes": _volumes(id, place),
        "tolerations": tolerations(amounts, spot=task.spot >= 0),
        "affinity": node_affinity(amounts, spot=spot),
    }
    kept = {"imagePullSecrets", "nodeSelector", "tolerations", "priorityClassName", "affinity"}
    patch = {key: value for key, value in (options.pod.get("spec") or {}).items() if key in kept}
    metadata = names.metadata(id, names.store_pod(id), task, role=names.STORE)
    return {"metadata": metadata, "spec": merged(spec, patch)}


def _common(task: Task, options: Options, *, restricted: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "automountServiceAccountToken": bool(task.permission_set),
        "nodeSelector": node_selector(task.region),
    }
    if task.permission_set:
        spec["serviceAccountName"] = task.permission_set
    if restricted:
        spec["securityContext"] = {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    return spec


def _restricted(container: dict[str, Any]) -> dict[str, Any]:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**container, "securityContext": context}


def _script_container(task: Task, options: Options) -> dict[str, Any]:
    amounts = parse_machine(task.machine)
    limits: dict[str, str] = {"cpu": str(amounts.cpu), "memory": f"{amounts.memory}M"}
    if amounts.count:
        limits[GPU] = str(amounts.count)
    launcher = resources.files("sojourn.clouds.k8s.on_machine").joinpath("launcher.sh").read_text()
    mounts: list[dict[str, Any]] = [
        {"name": "shared", "mountPath": places.FOLDER},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 -- of the script's own container
    ]
    for number, mount in enumerate(options.mounts):
        made = {"name": f"data-{number}", "mountPath": mount.at, "readOnly": mount.readonly}
        mounts.append({**made, "subPath": mount.path} if mount.path else made)
    return {
        "name": names.SCRIPT,
        "image": image_of(task),
        "command": ["/bin/sh", "-c", launcher],
        "resources": {"limits": limits, "requests": _SCRIPT_REQUESTS},
        "volumeMounts": mounts,
    }


def _agent_container(
    id: TaskId, options: Options, place: Place, arguments: list[str], rank: int
) -> dict[str, Any]:
    mounts = [
        {"name": "shared", "mountPath": places.FOLDER},
        {"name": "task", "mountPath": places.TASK, "readOnly": True},
        {"name": "program", "mountPath": places.PROGRAM, "readOnly": True},
    ]
    if place.claim:
        mounts.append({"name": "store", "mountPath": places.VOLUME})
    return {
        "name": names.AGENT,
        "image": options.agent_image,
        "command": ["/bin/sh", "-c", _BOOT, "sojourn", *arguments],
        "env": [
            {"name": "SOJOURN_BOOT", "value": _UNPACK},
            {"name": "SOJOURN_RANK", "value": str(rank)},
            {
                "name": "SOJOURN_MACHINE",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
            },
        ],
        "resources": {"limits": _AGENT_LIMITS, "requests": _AGENT_REQUESTS},
        "volumeMounts": mounts,
    }


def _volumes(id: TaskId, place: Place) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "shared", "emptyDir": {}},
        {"name": "task", "secret": {"secretName": str(id), "defaultMode": 0o440}},
        {"name": "program", "configMap": {"name": str(id)}},
    ]
    if place.claim:
        volumes.append({"name": "store", "persistentVolumeClaim": {"claimName": place.claim}})
    return volumes


def _script_volumes(options: Options) -> list[dict[str, Any]]:
    data = [
        {"name": f"data-{number}", **mount.volume} for number, mount in enumerate(options.mounts)
    ]
    return [{"name": "shm", "emptyDir": {"medium": "Memory"}}, *data]


def _refuse_broken(template: dict[str, Any], ours: dict[str, Any]) -> None:
    """A patch may add and change, but not take away what a task is made of."""
    spec = template["spec"]
    containers = {item.get("name"): item for item in spec.get("containers", ())}
    for item in ours["containers"]:
        changed = containers.get(item["name"], {})
        if changed.get("command") != item["command"]:
            raise InvalidInput(
                "options.pod", f"must keep the command of the container {item['name']}"
            )
    added = [name for name in containers if name not in (names.SCRIPT, names.AGENT)]
    if added:
        raise InvalidInput(
            "options.pod",
            f"the container {added[0]} would keep the pod from ending: "
            "make it an init container with restartPolicy: Always",
        )
    if spec.get("restartPolicy") != "Never" or spec.get("shareProcessNamespace"):
        raise InvalidInput(
            "options.pod", "must keep restartPolicy, and not set shareProcessNamespace"
        )
    volumes = {item.get("name") for item in spec.get("volumes", ())}
    for item in ours["volumes"]:
        if item["name"] not in volumes:
            raise InvalidInput("options.pod", f"must keep the volume {item['name']}")
