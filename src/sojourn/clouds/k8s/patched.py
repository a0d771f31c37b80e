"""What a user's patch of the pod template must leave as it is: a task would not work without."""

from __future__ import annotations

from typing import Any

from sojourn.clouds.k8s import names
from sojourn.core.errors import InvalidInput

__all__ = ["refuse_broken"]

# With these, process 1 of the script's container is not ours: its signals would go to others.
_SHARED_PROCESSES = ("hostPID", "shareProcessNamespace")
_AGENTS_OWN = ("account", "program", "store", "task")  # volumes
_FIELD = "options.pod"


def refuse_broken(template: dict[str, Any], ours: dict[str, Any]) -> None:
    """A patch may add and change, but not take away what a task is made of."""
    spec = template["spec"]
    labels = template["metadata"].get("labels") or {}
    for key, value in ours["metadata"]["labels"].items():
        if labels.get(key) != value and key.startswith(("sojourn/", "app.kubernetes.io/managed")):
            raise InvalidInput(_FIELD, f"must keep the label {key}")
    if spec.get("restartPolicy") != "Never":
        raise InvalidInput(_FIELD, "must keep restartPolicy")
    for name in _SHARED_PROCESSES:
        if spec.get(name):
            raise InvalidInput(_FIELD, f"must not set {name}")
    _refuse_containers(spec, ours["spec"])
    _refuse_volumes(spec, ours["spec"])


def _refuse_containers(spec: dict[str, Any], ours: dict[str, Any]) -> None:
    containers = _by_name(spec, "containers")
    for item in ours["containers"]:
        name = item["name"]
        changed = containers.get(name, {})
        if changed.get("command") != item["command"]:
            raise InvalidInput(_FIELD, f"must keep the command of the container {name}")
        if changed.get("restartPolicy"):
            raise InvalidInput(_FIELD, f"must not restart the container {name}")
        mounted = [(m.get("name"), m.get("mountPath")) for m in changed.get("volumeMounts") or ()]
        for mount in item["volumeMounts"]:
            if (mount["name"], mount["mountPath"]) not in mounted:
                raise InvalidInput(_FIELD, f"must keep the volumeMounts of the container {name}")
        if name == names.SCRIPT and any(volume in _AGENTS_OWN for volume, _ in mounted):
            raise InvalidInput(
                _FIELD, f"the volumes {', '.join(_AGENTS_OWN)} are for the container agent alone"
            )
    added = [name for name in containers if name not in (names.SCRIPT, names.AGENT)]
    if added:
        raise InvalidInput(
            _FIELD,
            f"the container {added[0]} would keep the pod from ending: "
            "make it an init container with restartPolicy: Always",
        )


def _refuse_volumes(spec: dict[str, Any], ours: dict[str, Any]) -> None:
    volumes = _by_name(spec, "volumes")
    for item in ours["volumes"]:
        name = item["name"]
        if name not in volumes or (name in _AGENTS_OWN and volumes[name] != item):
            raise InvalidInput(_FIELD, f"must keep the volume {name}")


def _by_name(spec: dict[str, Any], key: str) -> dict[str, dict[str, Any]]:
    items = spec.get(key) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidInput(_FIELD, f"spec.{key} must be a list of maps")
    return {str(item.get("name")): item for item in items}
