"""Patches of the pod template, merged as kubectl does."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.clouds.k8s.merging import merged
from sojourn.core.errors import InvalidInput

_scalars = st.one_of(st.integers(), st.text(max_size=5), st.booleans())
_keys = st.sampled_from(["a", "b", "labels", "spec", "containers", "args"])
_names = st.sampled_from(["x", "y", "z"])


def _items(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(
        st.fixed_dictionaries({"name": _names, "value": values}),
        max_size=3,
        unique_by=lambda item: str(item["name"]),
    )


def _maps(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    values = st.recursive(
        leaves, lambda inner: st.dictionaries(_keys, inner, max_size=3), max_leaves=8
    )
    plain = st.dictionaries(_keys.filter(lambda key: key != "containers"), values, max_size=3)
    named = st.fixed_dictionaries({"containers": _items(plain)})
    return st.one_of(plain, st.builds(lambda a, b: {**a, **b}, plain, named))


_templates = _maps(_scalars)
_patches = _maps(st.one_of(_scalars, st.none()))


@settings(max_examples=40)
@given(_templates, _patches)
def test_a_patch_applied_twice_is_a_patch_applied_once(base: Any, patch: Any) -> None:
    before = copy.deepcopy((base, patch))
    once = merged(base, patch)
    assert merged(once, patch) == once
    assert (base, patch) == before


@settings(max_examples=40)
@given(_templates)
def test_nothing_and_oneself_change_nothing(base: Any) -> None:
    assert merged(base, {}) == base
    assert merged(base, base) == base


@settings(max_examples=40)
@given(_templates, _patches)
def test_null_never_stays(base: Any, patch: Any) -> None:
    def nulls(value: Any) -> bool:
        if isinstance(value, dict):
            return any(nulls(item) for item in value.values())
        return any(nulls(item) for item in value) if isinstance(value, list) else value is None

    assert not nulls(merged(base, patch))


@given(_items(_scalars), _items(_scalars))
def test_named_items_are_all_there(base: list[Any], patch: list[Any]) -> None:
    found = merged({"containers": base}, {"containers": patch})["containers"]
    values = {item["name"]: item["value"] for item in [*base, *patch]}
    assert {item["name"]: item["value"] for item in found} == values
    assert [item["name"] for item in found[: len(base)]] == [item["name"] for item in base]


def _yaml(base: str, patch: str) -> Any:
    return merged(yaml.safe_load(base), yaml.safe_load(patch))


def test_the_examples_of_kubectl() -> None:
    """From the page "Update API Objects in Place Using kubectl patch"."""
    base = """
    spec:
      containers: [{name: patch-demo-ctr, image: nginx}]
      tolerations: [{effect: NoSchedule, key: dedicated, value: test-team}]
    """
    found = _yaml(base, "spec: {containers: [{name: patch-demo-ctr-2, image: redis}]}")
    assert [item["image"] for item in found["spec"]["containers"]] == ["nginx", "redis"]
    found = _yaml(base, "spec: {containers: [{name: patch-demo-ctr, image: redis}]}")
    assert found["spec"]["containers"] == [{"name": "patch-demo-ctr", "image": "redis"}]
    found = _yaml(
        "spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 30%}}}",
        "spec: {strategy: {$retainKeys: [type], type: Recreate}}",
    )
    assert found == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        ("{a: 1, b: 2}", "{a: null}", "{b: 2}"),
        ("{a: {b: 1}}", "{a: {$patch: replace, c: 2}}", "{a: {c: 2}}"),
        ("{a: {b: 1}}", "{a: {$patch: delete}}", "{a: {}}"),
        ("{a: {b: 1}}", "{c: {d: null, e: {f: null}}}", "{a: {b: 1}, c: {e: {}}}"),
        ("{args: [a, b]}", "{args: [c]}", "{args: [c]}"),
        (
            "{env: [{name: A}, {name: B}]}",
            "{env: [{name: A, $patch: delete}]}",
            "{env: [{name: B}]}",
        ),
        ("{env: [{name: A}]}", "{env: [{name: C, $patch: delete}]}", "{env: [{name: A}]}"),
        ("{env: [{name: A}]}", "{env: [{$patch: replace}, {name: B}]}", "{env: [{name: B}]}"),
        (
            "{tolerations: [{key: a}]}",
            "{tolerations: [{key: b}]}",
            "{tolerations: [{key: a}, {key: b}]}",
        ),
        ("{x: [a, b]}", "{$deleteFromPrimitiveList/x: [a]}", "{x: [b]}"),
        ("{env: [{name: A}]}", "{$setElementOrder/env: [{name: A}]}", "{env: [{name: A}]}"),
        (
            "{volumeMounts: [{mountPath: /a, name: x}]}",
            "{volumeMounts: [{mountPath: /a, readOnly: true}]}",
            "{volumeMounts: [{mountPath: /a, name: x, readOnly: true}]}",
        ),
    ],
)
def test_directives(base: str, patch: str, result: str) -> None:
    assert _yaml(base, patch) == yaml.safe_load(result)


def test_items_without_a_name_are_refused() -> None:
    for patch in ("{env: [{value: x}]}", "{env: [x]}"):
        with pytest.raises(InvalidInput, match="each item of env must have name"):
            _yaml("{env: [{name: A}]}", patch)
