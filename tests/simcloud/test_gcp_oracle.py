"""What the discovery documents say of requests and answers, without a project."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simcloud.gcp import discovery, masks, oracle
from tests.simcloud.gcp.discovery import Method
from tests.simcloud.gcp.wire import GCPError

_COMPUTE = "compute.googleapis.com"
_ZONE = "/compute/v1/projects/p/zones/z"


def _method(host: str, verb: str, path: str) -> Method:
    found = discovery.find(host, verb, path)
    assert found
    return found


@pytest.mark.parametrize(
    ("host", "verb", "path", "method", "places"),
    [
        (_COMPUTE, "GET", f"{_ZONE}/instances/i", "instances.get", {"instance": "i"}),
        (_COMPUTE, "POST", f"{_ZONE}/operations/o/wait", "zoneOperations.wait", {"operation": "o"}),
        (
            "cloudresourcemanager.googleapis.com",
            "POST",
            "/v1/projects/p:setIamPolicy",
            "projects.setIamPolicy",
            {"resource": "p"},
        ),
        (
            "cloudresourcemanager.googleapis.com",
            "POST",
            "/v3/projects/p:getIamPolicy",
            "projects.getIamPolicy",
            {"resource": "projects/p"},
        ),
        (
            "iam.googleapis.com",
            "GET",
            "/v1/projects/p/serviceAccounts/a@b.c",
            "projects.serviceAccounts.get",
            {"name": "projects/p/serviceAccounts/a@b.c"},
        ),
        (
            "storage.googleapis.com",
            "GET",
            "/storage/v1/b/bucket/o/a%2Fb",
            "objects.get",
            {"object": "a/b"},
        ),
        (
            "storage.googleapis.com",
            "POST",
            "/upload/storage/v1/b/bucket/o",
            "objects.insert",
            {"bucket": "bucket"},
        ),
    ],
)
def test_which_method_a_path_means(
    host: str, verb: str, path: str, method: str, places: dict[str, str]
) -> None:
    found = _method(host, verb, path)
    assert found.operation == method
    assert places.items() <= found.places(path).items()


def test_paths_that_mean_nothing() -> None:
    assert discovery.find(_COMPUTE, "GET", "/compute/v2/projects/p") is None
    assert discovery.find("example.com", "GET", "/") is None
    assert discovery.find("storage.googleapis.com", "GET", "/bucket/key") is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"name": "g", "targetSize": 1}, ""),
        ({"name": "g", "targetSize": "1"}, "invalid"),
        ({"name": "g", "targetSize": True}, "invalid"),
        ({"name": "g", "targetSize": 2**31}, "invalid"),
        ({"name": "g", "labels": {}}, "badRequest"),
        ({"name": "g", "id": "5"}, "invalid"),
        ({"name": "g", "updatePolicy": {"type": "SLOWLY"}}, "invalid"),
        ({"name": "g", "description": None}, "invalid"),
        ([], "invalid"),
    ],
)
def test_bodies(body: Any, reason: str) -> None:
    method = _method(_COMPUTE, "POST", f"{_ZONE}/instanceGroupManagers")
    if not reason:
        oracle.check_body(method, body)
        return
    with pytest.raises(GCPError) as caught:
        oracle.check_body(method, body)
    assert caught.value.code == reason


def test_numbers_may_be_text_or_not_where_google_has_long_ones() -> None:
    method = _method(_COMPUTE, "POST", "/compute/v1/projects/p/global/instanceTemplates")
    for seconds in ("30", 30):
        given = {"machineType": "m", "scheduling": {"maxRunDuration": {"seconds": seconds}}}
        oracle.check_body(method, {"name": "t", "properties": given})


def test_wrong_answers_are_the_simulations_fault() -> None:
    method = _method(_COMPUTE, "GET", f"{_ZONE}/instances/i")
    oracle.check_answer(method, {"id": "1", "status": "RUNNING"})
    for wrong in ({"id": 1}, {"status": "ALIVE"}, {"colour": "red"}):
        with pytest.raises(AssertionError):
            oracle.check_answer(method, wrong)


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ("", {"a": 1, "b": [{"c": 2, "d": {"e": 3, "f": 4}}]}),
        ("a", {"a": 1}),
        ("b/c", {"b": [{"c": 2}]}),
        ("b(c,d/e)", {"b": [{"c": 2, "d": {"e": 3}}]}),
        ("a,b/*/f", {"a": 1, "b": [{"c": 2, "d": {"f": 4}}]}),
    ],
)
def test_partial_answers(fields: str, left: Any) -> None:
    assert masks.masked({"a": 1, "b": [{"c": 2, "d": {"e": 3, "f": 4}}]}, fields) == left


@pytest.mark.parametrize("fields", ["a(", "a)", "/a", "a,,b"])
def test_masks_that_are_wrong(fields: str) -> None:
    with pytest.raises(GCPError):
        masks.masked({"a": 1}, fields)
