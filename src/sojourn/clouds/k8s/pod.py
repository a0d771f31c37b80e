"""The pod of a machine: the user's image with the script, and the agent beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.agent.neighbour import launcher
from sojourn.agent.wheels import hashes
from sojourn.clouds.k8s import files, names
from sojourn.clouds.k8s.machines import (
    GPU,
    Amounts,
    nearby,
    node_affinity,
    node_selector,
    parse_machine,
    preferred_affinity,
    tolerations,
)
from sojourn.clouds.k8s.merging import merged
from sojourn.clouds.k8s.mpipod import add_account, rank_variable
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.options import Options, image_of, options_of
from sojourn.clouds.k8s.patched import refuse_broken

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["GRACE", "Place", "machine_template", "python_of", "store_template"]

GRACE = 30  # seconds for the script after SIGTERM
_STORING = 570  # and for the agent to store the last of its work
_SLACK = 2 * 3600  # seconds of a pod beyond the task's timeout: pulling, restoring, storing
_LONGEST = 2**31 - 1  # seconds, as Kubernetes has it
_USER = 65532  # where a cluster allows no root
_LIFE = "sojourn.clouds.k8s.on_machine.life"
_AGENT_REQUESTS = {"cpu": "50m", "memory": "64Mi"}
_AGENT_LIMITS = {"memory": "1Gi"}
_SCRIPT_REQUESTS = (100, 128)  # thousandths of a CPU, and megabytes
# Pods that cannot even start would be replaced at once, again and again. The script's container
# waits for the agent unless it is told.
_BOOT = f"""\
command -v python3 >/dev/null || {{
    echo 'no python3 in the image of the agent' | tee /dev/termination-log
    sleep 30
    mkdir -p {places.FOLDER}/run/over # no file: it would be written through a symlink
    exit 70
}}
# As process 1, Python would not hear a signal that comes before it listens.
trap 'kill -TERM "$agent" 2>/dev/null' TERM
python3 -c "$SOJOURN_BOOT" "$@" &
agent=$!
while :; do
    wait "$agent"
    code=$?
    kill -0 "$agent" 2>/dev/null || exit "$code"
done
"""
_HASHES = hashes()  # of the wheels of all machines
_UNPACK = f"""\
import glob, hashlib, io, os, platform, runpy, shutil, sys, zipfile
library = {places.LIBRARY!r}
name = os.path.join({places.PROGRAM!r}, f"agent-{{platform.machine()}}.zip")
if not os.path.isdir(library):
    parts = sorted(glob.glob(name + "*"))
    whole = zipfile.ZipFile(io.BytesIO(b"".join(open(part, "rb").read() for part in parts)))
    whole.extractall(library + ".new")
    for wheel in [item for item in whole.namelist() if item.endswith(".whl")]:
        if hashlib.sha256(whole.read(wheel)).hexdigest() not in {_HASHES!r}:
            sys.exit(wheel + " is not what was uploaded: its hash is unknown")
        zipfile.ZipFile(io.BytesIO(whole.read(wheel))).extractall(library + ".new")
    os.rename(library + ".new", library)
sys.path.insert(0, library)
os.environ["PYTHONPATH"] = library
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
# What a patch says of all pods of a task, and of all their agents.
_OF_ALL_PODS = (
    "affinity",
    "dnsConfig",
    "dnsPolicy",
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "tolerations",
)
_OF_ALL_AGENTS = ("env", "imagePullPolicy", "name", "resources", "securityContext")
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
    """The template of the pods of a rank, with the user's own patch applied.

    -1: of all ranks of an MPI program but the first.
    """
    options = options_of(task)
    labels = {"ranks": str(task.parallelism)} if task.mpi else {}
    labels |= {"rank": str(rank)} if rank >= 0 else {}
    metadata = names.metadata(id, "", task, role=names.MACHINES, **labels)
    del metadata["name"]
    metadata.setdefault("annotations", {})["kubectl.kubernetes.io/default-container"] = names.SCRIPT
    amounts = parse_machine(task.machine)
    spec = {
        **_common(task, options, restricted=restricted),
        "activeDeadlineSeconds": min((task.timeout or _LONGEST) + _SLACK, _LONGEST),
        "terminationGracePeriodSeconds": GRACE + _STORING,
        "containers": [
            _script_container(task, options),
            _agent_container(id, options, place, [_LIFE], rank),
        ],
        "volumes": [*_volumes(id, place), *_script_volumes(options), *files.volumes(id, task)],
        "tolerations": tolerations(amounts, spot=task.spot >= 0),
        "affinity": node_affinity(amounts, spot=spot),
    }
    if task.gang:
        spec["subdomain"] = str(id)  # with the host name that its Job gives it, a name in the DNS
        spec["affinity"] |= nearby(names.machines(id))
    if task.mpi:
        add_account(spec, id, task)
    if options.queue:
        spec["schedulerName"] = "volcano"
        metadata["annotations"] |= _queued(id, task, options.queue)
    if restricted:
        spec["containers"] = [_restricted(item) for item in spec["containers"]]
    ours = {"metadata": metadata, "spec": spec}
    template = dict(merged(ours, options.pod))
    refuse_broken(template, ours)
    return template


def _queued(id: TaskId, task: Task, queue: str) -> dict[str, str]:
    """How Volcano knows where a pod waits, and that a gang waits for room for all of it."""
    group = {"scheduling.k8s.io/group-name": names.group(id)} if task.gang else {}
    return {names.QUEUE: queue, **group}


def store_template(
    id: TaskId, task: Task, place: Place, *, spot: bool, restricted: bool
) -> dict[str, Any]:
    """A pod that has the store and does nothing.

    Rather where the machines of the task may be; but if no node is fit for them, it comes all the
    same: the volume itself says where it can be used.
    """
    options = options_of(task)
    amounts = parse_machine(task.machine)
    agent = _agent_container(id, options, place, [_LIFE, "store"], 0)
    spec = {
        **_common(task, options, restricted=restricted),
        "activeDeadlineSeconds": 24 * 3600,
        "terminationGracePeriodSeconds": 5,
        "containers": [_restricted(agent) if restricted else agent],
        "volumes": _volumes(id, place),
        "tolerations": tolerations(amounts, spot=task.spot >= 0),
        "affinity": preferred_affinity(amounts, task.region, spot=spot),
    }
    del spec["nodeSelector"]
    metadata = names.metadata(id, names.store_pod(id), task, role=names.STORE)
    return dict(merged({"metadata": metadata, "spec": spec}, _patch_of_store(options)))


def _patch_of_store(options: Options) -> dict[str, Any]:
    """What of the user's patch is about where a pod may be and what its agent may do."""
    given = options.pod.get("spec") or {}
    spec = {key: value for key, value in given.items() if key in _OF_ALL_PODS}
    agents = [item for item in given.get("containers") or () if item.get("name") == names.AGENT]
    if agents:
        spec["containers"] = [
            {key: value for key, value in item.items() if key in _OF_ALL_AGENTS} for item in agents
        ]
    metadata = options.pod.get("metadata") or {}
    told = {key: metadata[key] for key in ("annotations", "labels") if key in metadata}
    return {"metadata": told, "spec": spec}


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
    limits: dict[str, str] = {"cpu": str(amounts.cpu), "memory": f"{amounts.memory}{amounts.unit}"}
    if amounts.count:
        limits[GPU] = str(amounts.count)
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
        "command": ["/bin/sh", "-c", launcher(Path(places.FOLDER))],
        "resources": {"limits": limits, "requests": _requests(amounts)},
        "volumeMounts": [*mounts, *files.mounts(task)],
    }


def _requests(amounts: Amounts) -> dict[str, str]:
    """Little, and no more than the limits."""
    cpu, megabytes = _SCRIPT_REQUESTS
    most = amounts.memory if amounts.unit == "M" else megabytes  # a size has more than that
    return {"cpu": f"{cpu}m", "memory": f"{min(megabytes, most)}M"}


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
            rank_variable(rank),
            # The host name of a Job's pod is not its name, and another one may have it later.
            _of_pod("SOJOURN_MACHINE", "metadata.name"),
            _of_pod("SOJOURN_ADDRESS", "status.podIP"),
            _of_pod("SOJOURN_POD", "metadata.uid"),
        ],
        "resources": {"limits": _AGENT_LIMITS, "requests": _AGENT_REQUESTS},
        "volumeMounts": mounts,
    }


def _of_pod(variable: str, path: str) -> dict[str, Any]:
    """A variable with something that is known when the pod starts."""
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _volumes(id: TaskId, place: Place) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "shared", "emptyDir": {}},
        # For all users there: the agent's image may have any, and nobody else has this volume.
        {"name": "task", "secret": {"secretName": str(id), "defaultMode": 0o444}},
        {"name": "program", **_program(id, place)},
    ]
    if place.claim:
        volumes.append({"name": "store", "persistentVolumeClaim": {"claimName": place.claim}})
    return volumes


def _program(id: TaskId, place: Place) -> dict[str, Any]:
    """The ConfigMaps with the agent. Those that there may be are there before any pod."""
    if not place.url:
        return {"configMap": {"name": str(id)}}
    parts = [
        {"configMap": {"name": names.program(id, number), "optional": bool(number)}}
        for number in range(places.MOST_PARTS)
    ]
    return {"projected": {"sources": parts}}


def _script_volumes(options: Options) -> list[dict[str, Any]]:
    data = [
        {"name": f"data-{number}", **mount.volume} for number, mount in enumerate(options.mounts)
    ]
    return [{"name": "shm", "emptyDir": {"medium": "Memory"}}, *data]
