"""How calls to a simulated Google Cloud project are checked, and how they fail."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import google.auth
import google.auth.exceptions
import httpx
import pytest
from google.auth.transport.requests import Request

from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.project import NUMBER, PROJECT
from tests.simcloud.gcp_user import ZONE, GoogleError, User, properties, refused


def _raw(gcp: SimGCP, path: str, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.get(f"{gcp.endpoint}/{path}", headers=headers, trust_env=False)


_ZONES = f"compute.googleapis.com/compute/v1/projects/{PROJECT}/zones"


def test_google_auth_logs_in_with_a_key(gcp: SimGCP, googler: User) -> None:
    assert googler.get("zones")["items"]
    assert [call.name for call in gcp.calls] == ["oauth2:token", "compute:zones.list"]
    assert gcp.calls[-1].who == "administrator@laptops.iam.gserviceaccount.com"


def test_a_key_of_somebody_else_is_refused(gcp: SimGCP) -> None:
    one, other = gcp.user([]), gcp.user([])
    keys = [Path(each["GOOGLE_APPLICATION_CREDENTIALS"]) for each in (one, other)]
    mixed = keys[0].read_text().replace("user-1@", "user-2@")
    keys[1].write_text(mixed)
    user = User(other)
    with pytest.raises(google.auth.exceptions.RefreshError, match="Invalid JWT Signature"):
        user.token()
    user.close()


def test_tokens(gcp: SimGCP) -> None:
    response = _raw(gcp, _ZONES)
    assert response.status_code == 401
    assert response.json()["error"]["status"] == "UNAUTHENTICATED"
    assert _raw(gcp, _ZONES, "ya29.made-up").status_code == 401
    token = gcp.token()
    assert _raw(gcp, _ZONES, token).status_code == 200
    gcp.advance(3600)
    assert _raw(gcp, _ZONES, token).status_code == 401


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"colour": "red"}, "badRequest"),
        ({"machineType": 5}, "invalid"),
        ({"disks": {}}, "invalid"),
        ({"scheduling": {"provisioningModel": "CHEAP"}}, "invalid"),
        ({"scheduling": {"provisioningModel": "SPOT"}}, "invalid"),
        ({"scheduling": {"maxRunDuration": {"seconds": "3600"}}}, "invalid"),
        ({"scheduling": {"instanceTerminationAction": "DELETE"}}, "invalid"),
        (
            {
                "scheduling": {
                    "maxRunDuration": {"seconds": "29"},
                    "instanceTerminationAction": "DELETE",
                }
            },
            "invalid",
        ),
        ({"labels": {"Task": "one"}}, "invalid"),
        ({"labels": {"task": "One"}}, "invalid"),
        ({"labels": {"task": "x" * 64}}, "invalid"),
        ({"labels": {f"l{number}": "" for number in range(65)}}, "invalid"),
        ({"tags": {"items": ["UP"]}}, "invalid"),
        ({"metadata": {"items": [{"key": "a b", "value": ""}]}}, "invalid"),
        ({"metadata": {"items": [{"key": "a", "value": "x" * 262145}]}}, "invalid"),
        ({"metadata": {"items": [{"key": "a", "value": ""}] * 2}}, "invalid"),
        ({"networkInterfaces": []}, "invalid"),
        ({"networkInterfaces": [{"network": "global/networks/missing"}]}, "notFound"),
        ({"machineType": f"zones/{ZONE}/machineTypes/e2-medium"}, "invalid"),
        ({"serviceAccounts": [{"email": "a@b", "scopes": ["x"]}]}, "invalid"),
        (
            {
                "machineType": "n1-standard-4",
                "guestAccelerators": [
                    {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}
                ],
            },
            "invalid",
        ),
        (
            {
                "scheduling": {"onHostMaintenance": "TERMINATE"},
                "guestAccelerators": [
                    {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}
                ],
            },
            "badRequest",
        ),
        ({"kind": "compute#instanceProperties"}, "badRequest"),
    ],
)
def test_templates_that_are_wrong(googler: User, change: dict[str, Any], reason: str) -> None:
    body = {"name": "a-template", "properties": {**properties(), **change}}
    with pytest.raises(GoogleError) as caught:
        googler.post("global/instanceTemplates", body)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "disk",
    [
        {"diskSizeGb": "9"},
        {"diskSizeGb": "70000"},
        {"sourceImage": "projects/ubuntu-os-cloud/global/images/family/ubuntu-2004-lts"},
        {"diskType": f"zones/{ZONE}/diskTypes/pd-ssd"},
        {"labels": {"A": "b"}},
    ],
)
def test_disks_that_are_wrong(googler: User, disk: dict[str, Any]) -> None:
    given = properties()
    given["disks"][0]["initializeParams"] |= disk
    refused(400, "invalid", googler.make_template, disks=given["disks"])


@pytest.mark.parametrize(
    "change",
    [
        {"priority": 65536},
        {"allowed": [{"ports": ["22"]}]},
        {"allowed": [{"IPProtocol": "http"}]},
        {"allowed": [{"IPProtocol": "icmp", "ports": ["22"]}]},
        {"allowed": [{"IPProtocol": "tcp", "ports": ["22-21"]}]},
        {"allowed": []},
        {"denied": [{"IPProtocol": "all"}]},
        {"sourceRanges": ["1.2.3.4/8"]},
        {"name": "Up"},
        {"direction": "EGRESS"},
        {"id": "1"},
    ],
)
def test_firewalls_that_are_wrong(googler: User, change: dict[str, Any]) -> None:
    rule = {
        "name": "a-rule",
        "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}],
        "sourceRanges": ["0.0.0.0/0"],
        "targetTags": ["a-task"],
    }
    with pytest.raises(GoogleError) as caught:
        googler.post("global/firewalls", {**rule, **change})
    assert caught.value.status == 400


def test_firewalls(gcp: SimGCP, googler: User) -> None:
    rule = {"name": "a-rule", "allowed": [{"IPProtocol": "tcp", "ports": ["22"]}]}
    googler.post("global/firewalls", rule)
    refused(409, "alreadyExists", googler.post, "global/firewalls", rule)
    found = googler.get("global/firewalls/a-rule")
    assert found["sourceRanges"] == ["0.0.0.0/0"]
    assert (found["priority"], found["direction"]) == (1000, "INGRESS")
    assert found["network"].endswith("/global/networks/default")
    assert len(googler.get("global/firewalls")["items"]) == 5
    assert gcp.inventory() == ["firewall a-rule"]
    googler.delete("global/firewalls/a-rule")
    refused(404, "notFound", googler.get, "global/firewalls/a-rule")


def test_what_google_offers(googler: User) -> None:
    assert googler.get(f"zones/{ZONE}")["status"] == "UP"
    by_number = googler.call("GET", "compute", f"compute/v1/projects/{NUMBER}/zones/{ZONE}")
    assert by_number["name"] == ZONE
    assert refused(400, "invalid", googler.get, "zones/us-west9-z").endswith("Unknown zone.")
    kind = f"zones/{ZONE}/machineTypes"
    assert googler.get(f"{kind}/e2-custom-8-32768")["guestCpus"] == 8
    assert googler.get(f"{kind}/g1-small")["memoryMb"] == 1740
    for wrong in ("e2-custom-7-32768", "e2-custom-8-999999", "m5.large", "n1-standard-3"):
        with pytest.raises(GoogleError):
            googler.get(f"{kind}/{wrong}")
    googler.get(f"zones/{ZONE}/acceleratorTypes/nvidia-tesla-t4")
    refused(404, "notFound", googler.get, f"zones/{ZONE}/acceleratorTypes/nvidia-tesla-k80")
    images = "compute/v1/projects/ubuntu-os-cloud/global/images"
    newest = googler.call("GET", "compute", f"{images}/family/ubuntu-2404-lts-amd64")
    assert newest["name"] == "ubuntu-2404-lts-amd64-v20261024"
    assert googler.call("GET", "compute", f"{images}/{newest['name']}")["diskSizeGb"] == "10"
    old = refused(404, "notFound", googler.call, "GET", "compute", f"{images}/family/ubuntu-1804")
    assert old.endswith("was not found")
    assert googler.get("global/networks/default")["autoCreateSubnetworks"]
    assert googler.get("regions/us-west1/subnetworks/default")["ipCidrRange"]
    found = googler.call("GET", "compute", f"compute/v1/projects/{PROJECT}")
    assert found["name"] == PROJECT


def test_unknown_parameters_are_refused(googler: User) -> None:
    refused(400, "badRequest", googler.get, "zones", colour="red")
    with pytest.raises(GoogleError):
        googler.get("zones", maxResults="many")
    with pytest.raises(GoogleError):
        googler.get("zones", maxResults="501")


def test_the_nth_call_fails_before_or_after_its_effect(gcp: SimGCP, googler: User) -> None:
    gcp.fail("compute:instanceTemplates.insert", nth=2, times=2, status=500)
    googler.make_template(name="first")
    for name in ("second", "third"):
        assert "A test made" in refused(500, "backendError", googler.make_template, name=name)
        refused(404, "notFound", googler.get, f"global/instanceTemplates/{name}")
    gcp.fail("compute:instanceTemplates.insert", after=True)
    refused(503, "backendError", googler.make_template, name="fourth")
    gcp.wait(lambda: "template fourth" in gcp.inventory())
    gcp.fail("compute:zones.list", who="nobody@*")
    googler.get("zones")
    gcp.fail("compute:zones.*", cut=True)
    gcp.heal()
    gcp.fail("compute:zones.list", cut=True)
    with pytest.raises(httpx.RemoteProtocolError):
        googler.get("zones")
    googler.get("zones")


def test_throttling_and_delays(gcp: SimGCP, googler: User) -> None:
    gcp.throttle("compute:*")
    refused(403, "rateLimitExceeded", googler.get, "zones")
    gcp.throttle("storage:*")
    path = ("GET", "storage", "storage/v1/b")
    refused(429, "rateLimitExceeded", googler.call, *path, project=PROJECT)
    gcp.throttle("iam:*")
    path = ("GET", "iam", f"v1/projects/{PROJECT}/serviceAccounts")
    refused(429, "RESOURCE_EXHAUSTED", googler.call, *path)
    seen: list[str] = []
    gcp.watch(lambda call: seen.append(call.name))
    gcp.delay(0.2)
    start = time.monotonic()
    googler.get("zones")
    assert time.monotonic() - start >= 0.2
    assert seen == ["compute:zones.list"]


def test_an_api_that_is_not_enabled(gcp: SimGCP, googler: User) -> None:
    gcp.disable("compute")
    message = refused(403, "accessNotConfigured", googler.get, "zones")
    assert "Compute Engine API has not been used in project" in message
    gcp.timing.api_ready = 60
    path = f"v1/projects/{PROJECT}/services/compute.googleapis.com"
    assert googler.call("GET", "serviceusage", path)["state"] == "DISABLED"
    googler.call("POST", "serviceusage", f"{path}:enable", {})
    refused(403, "accessNotConfigured", googler.get, "zones")
    gcp.advance(60)
    googler.get("zones")
    assert googler.call("GET", "serviceusage", path)["state"] == "ENABLED"


def _ask_for_too_much(gcp: SimGCP) -> None:
    with gcp:
        user = User(gcp.environment())
        with pytest.raises(GoogleError):
            user.post(f"zones/{ZONE}/instances/x/suspend")
        user.close()


def test_what_the_simulation_cannot_do_fails_the_test() -> None:
    with pytest.raises(AssertionError, match=r"compute:instances\.suspend"):
        _ask_for_too_much(SimGCP())


def test_labels_and_metadata_of_an_instance(gcp: SimGCP, googler: User) -> None:
    googler.make_template("#!/bin/sh\n", labels={"task": "one"})
    googler.make_group(1)
    gcp.wait(lambda: gcp.instances())
    path = f"zones/{ZONE}/instances/{gcp.instances()[0].name}"
    found = googler.get(path)
    change = {"labels": {"task": "two"}}
    refused(400, "required", googler.post, f"{path}/setLabels", change)
    wrong = {**change, "labelFingerprint": "AAAAAAAAAAA="}
    refused(412, "conditionNotMet", googler.post, f"{path}/setLabels", wrong)
    right = {**change, "labelFingerprint": found["labelFingerprint"]}
    googler.post(f"{path}/setLabels", right)
    assert googler.get(path)["labels"] == {"task": "two"}
    metadata = found["metadata"]
    items = [*metadata["items"], {"key": "more", "value": "yes"}]
    body = {"items": items, "fingerprint": metadata["fingerprint"]}
    googler.post(f"{path}/setMetadata", body)
    refused(412, "conditionNotMet", googler.post, f"{path}/setMetadata", body)
    assert gcp.instances()[0].attribute("more") == "yes"


def test_a_job_of_a_ci_logs_in_without_a_key(gcp: SimGCP, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = gcp.federated(["compute.zones.list"])
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found: Any = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    credentials, project = found
    request = Request()
    request.session.trust_env = False
    credentials.refresh(request)
    request.session.close()
    assert project == PROJECT
    assert _raw(gcp, _ZONES, credentials.token).status_code == 200
    assert [call.name for call in gcp.calls] == [
        "sts:token",
        "iamcredentials:projects.serviceAccounts.generateAccessToken",
        "compute:zones.list",
    ]
    assert gcp.calls[1].who.startswith("principal://")
    assert gcp.inventory() == []


def test_scopes_limit_what_a_token_is_good_for(gcp: SimGCP) -> None:
    account = gcp.project.accounts.all["administrator@laptops.iam.gserviceaccount.com"]
    storage = "https://www.googleapis.com/auth/devstorage.read_write"
    token, _ = gcp.project.accounts.make_token(account, (storage,))
    response = _raw(gcp, _ZONES, token)
    assert response.status_code == 403
    assert "insufficient authentication scopes" in response.text
    path = f"storage.googleapis.com/storage/v1/b?project={PROJECT}"
    assert _raw(gcp, path, token).status_code == 200


def test_maintenance_preempts_spot_instances(gcp: SimGCP, googler: User) -> None:
    googler.make_template(spot=True)
    googler.make_group(1)
    gcp.wait(lambda: [each for each in gcp.instances() if each.status == "RUNNING"])
    [instance] = gcp.instances()
    path = f"zones/{ZONE}/instances/{instance.name}"
    googler.post(f"{path}/simulateMaintenanceEvent")
    gcp.wait(lambda: instance.gone)
    assert instance.preempted
