"""A strategic merge of pod templates, as `kubectl patch` does it.

Maps are merged, lists of named things by their names; null removes, and so does `$patch: delete`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["merged"]

# By which key the items of a list are told apart; all other lists are replaced.
_KEYS = {
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_ADDED = ("tolerations", "envFrom")  # whose items have no name: to replace ours would break them
_DIRECTIVE = "$patch"


def merged(base: Any, patch: Any, key: str = "") -> Any:
    """The base with the patch applied; neither is changed."""
    if isinstance(base, dict) and isinstance(patch, dict):
        result = dict(base)
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
            elif name != _DIRECTIVE:
                result[name] = merged(result.get(name), value, name)
        return result
    if isinstance(base, list) and isinstance(patch, list):
        if key in _ADDED:
            return [*base, *patch]
        if key in _KEYS:
            return _merged_items(base, patch, _KEYS[key])
    if isinstance(patch, dict):
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    return patch


def _merged_items(base: list[Any], patch: list[Any], name: str) -> list[Any]:
    result = list(base)
    for item in patch:
        given = item.get(name) if isinstance(item, dict) else None
        index = next((i for i, old in enumerate(result) if old.get(name) == given), None)
        if isinstance(item, dict) and item.get(_DIRECTIVE) == "delete":
            if index is not None:
                del result[index]
        elif index is None:
            result.append(item)
        else:
            result[index] = merged(result[index], item)
    return result
