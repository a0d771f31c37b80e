"""A strategic merge of pod templates, as `kubectl patch` does it.

Maps are merged, lists of named things by their names; null removes, and so does `$patch: delete`.
"""

from __future__ import annotations

from typing import Any

from sojourn.core.errors import InvalidInput

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
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_ADDED = ("tolerations", "envFrom")  # whose items have no name: to replace ours would break them
_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_REMOVE = "$deleteFromPrimitiveList/"


def merged(base: Any, patch: Any, key: str = "") -> Any:
    """The base with the patch applied; neither is changed."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return _merged_maps(base, patch)
    if isinstance(base, list) and isinstance(patch, list):
        if any(_directive(item) == "replace" for item in patch):
            return _plain([item for item in patch if _directive(item) != "replace"])
        if key in _ADDED:
            return [*base, *_plain(patch)]
        if key in _KEYS:
            return _merged_items(base, patch, key)
    return _plain(patch)


def _directive(item: Any) -> Any:
    return item.get(_DIRECTIVE) if isinstance(item, dict) else None


def _merged_maps(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _directive(patch) == "replace":
        return dict(_plain(patch))
    if _directive(patch) == "delete":
        return {}
    result = dict(base)
    if isinstance(patch.get(_RETAIN), list):
        result = {name: value for name, value in result.items() if name in patch[_RETAIN]}
    for name, value in patch.items():
        if isinstance(name, str) and name.startswith(_REMOVE):
            field = name.removeprefix(_REMOVE)
            result[field] = [item for item in result.get(field) or () if item not in value]
        elif _is_directive(name):
            continue
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value, name)
    return result


def _merged_items(base: list[Any], patch: list[Any], key: str) -> list[Any]:
    name = _KEYS[key]
    result = list(base)
    for item in patch:
        if not isinstance(item, dict) or item.get(name) is None:
            raise InvalidInput("options.pod", f"each item of {key} must have {name}")
        index = next((i for i, old in enumerate(result) if old.get(name) == item[name]), None)
        if _directive(item) == "delete":
            if index is not None:
                del result[index]
        elif index is None:
            result.append(_plain(item))
        else:
            result[index] = merged(result[index], item)
    return result


def _plain(value: Any) -> Any:
    """What a patch leaves where nothing was: neither null nor directives."""
    if isinstance(value, dict):
        return {
            name: _plain(item)
            for name, item in value.items()
            if item is not None and not _is_directive(name)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if _directive(item) != "delete"]
    return value


def _is_directive(name: object) -> bool:
    return isinstance(name, str) and name.startswith("$")
