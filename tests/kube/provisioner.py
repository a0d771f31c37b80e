"""Makes the volumes that claims ask for, as folders of this computer, and removes them.

Class `node`, the default one: a folder of the node that the scheduler chose, for one node at a
time. Class `shared`: a folder that all nodes see. What becomes of claims is up to Kubernetes.
"""

from __future__ import annotations

import http.client
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.kube import layout, node_files
from tests.kube.api import Api, ApiError

__all__ = ["CLASSES", "main"]

_NAME = "sojourn.test/folders"
_INTERVAL = 0.5
_CHOSEN_NODE = "volume.kubernetes.io/selected-node"
_MADE_BY = "pv.kubernetes.io/provisioned-by"
_VOLUMES = "/api/v1/persistentvolumes"
_FOR_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}


def _class(name: str, binding: str, default: str) -> dict[str, Any]:
    mark = {"storageclass.kubernetes.io/is-default-class": default}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": mark},
        "provisioner": _NAME,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": binding,
    }


CLASSES = (_class("node", "WaitForFirstConsumer", "true"), _class("shared", "Immediate", "false"))


def main() -> None:
    """Look at all claims and volumes, again and again; what fails now is tried again."""
    api = Api(layout.KUBECONFIG)
    told: set[str] = set()
    while True:
        try:
            _create_volumes(api, told)
            _remove_volumes(api)
        except (ApiError, OSError, http.client.HTTPException) as error:
            sys.stderr.write(f"{error}\n")
            sys.stderr.flush()
            time.sleep(1)
        time.sleep(_INTERVAL)


def _create_volumes(api: Api, told: set[str]) -> None:
    for claim in api.get("/api/v1/persistentvolumeclaims")["items"]:
        spec, metadata = claim["spec"], claim["metadata"]
        node = metadata.get("annotations", {}).get(_CHOSEN_NODE)
        ours = spec.get("storageClassName") in {each["metadata"]["name"] for each in CLASSES}
        if not ours or spec.get("volumeName") or "deletionTimestamp" in metadata:
            continue
        if spec["storageClassName"] == "shared":
            _create_volume(api, claim, None)
        elif node and set(spec["accessModes"]) <= _FOR_ONE_NODE:
            _create_volume(api, claim, node)
        elif node and metadata["uid"] not in told:
            _refuse(api, claim)
            told.add(metadata["uid"])


def _create_volume(api: Api, claim: dict[str, Any], node: str | None) -> None:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    folder = _folder(name, node)
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)  # whatever user a pod runs as
    owner = {key: metadata[key] for key in ("name", "namespace", "uid")}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_MADE_BY: _NAME}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **owner},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"],
            "volumeMode": "Filesystem",
            **(_on_node(name, node) if node else _on_all(name)),
        },
    }
    with _if_absent():
        api.create(_VOLUMES, volume)


def _on_node(name: str, node: str) -> dict[str, Any]:
    needed = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [needed]}]}
    path = str(node_files.VOLUMES / name)
    return {"local": {"path": path}, "nodeAffinity": {"required": terms}}


def _on_all(name: str) -> dict[str, Any]:
    return {"hostPath": {"path": str(node_files.SHARED / name), "type": "Directory"}}


def _folder(name: str, node: str | None) -> Path:
    """Where it is on this computer."""
    return (layout.node(node).disk / "volumes" if node else layout.STATE / "shared") / name


def _refuse(api: Api, claim: dict[str, Any]) -> None:
    metadata = claim["metadata"]
    modes = ", ".join(claim["spec"]["accessModes"])
    about = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    event = {
        "metadata": {"name": f"{metadata['name']}.{metadata['uid'][:8]}"},
        "involvedObject": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **about},
        "type": "Warning",
        "reason": "ProvisioningFailed",
        "message": "failed to provision volume with StorageClass "
        f'"node": only ReadWriteOnce is supported, got {modes}',
        "source": {"component": _NAME},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    with _if_absent():
        api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)


def _remove_volumes(api: Api) -> None:
    for volume in api.get(_VOLUMES)["items"]:
        metadata, spec = volume["metadata"], volume["spec"]
        ours = metadata.get("annotations", {}).get(_MADE_BY) == _NAME
        released = volume["status"]["phase"] in ("Released", "Failed")
        if ours and released and spec["persistentVolumeReclaimPolicy"] == "Delete":
            folder = _folder(metadata["name"], _node_of(spec))
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)  # fails while a pod that ends still writes
            api.delete(f"{_VOLUMES}/{metadata['name']}")


def _node_of(spec: dict[str, Any]) -> str | None:
    if "nodeAffinity" not in spec:
        return None
    term = spec["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    return str(term["matchExpressions"][0]["values"][0])


class _if_absent(suppress):  # noqa: N801
    """Another round may have created it."""

    def __init__(self) -> None:
        super().__init__(ApiError)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return isinstance(error, ApiError) and error.status == 409


if __name__ == "__main__":
    main()
