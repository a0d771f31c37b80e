"""Where secrets are, and are not, while a task runs on a machine and afterwards."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import ssl
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import AzureStore

import sojourn
from tests.contract.clouds import az_kit
from tests.contract.clouds.az_kit import AzureKit
from tests.simcloud.az_user import User
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.vm.az_side import AzureSide
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SCRIPT = """#!/bin/bash
[ -n "$GIVEN" ] && [ -n "$IMPORTED" ] && [ -n "$GLOB_ONE" ] && echo all are here
mkdir -p output; echo result > output/file
touch /dev/shm/waiting
until [ -e /dev/shm/go ]; do sleep 0.1; done
"""
VALUES = {
    "GIVEN": "s3cr3t-given-5a1f",
    "IMPORTED": "s3cr3t-imported-77bc",
    "GLOB_ONE": "s3cr3t-matched-90de",
}
ENVIRONMENT = {"GIVEN": VALUES["GIVEN"], "IMPORTED": "", "GLOB_*": ""}
IMDS = "http://169.254.169.254/metadata"
PROGRAM = re.compile(rb"<<'END'\n(.*?)\nEND\n", re.DOTALL)


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AzureKit]:
    kit = az_kit.make(tmp_path_factory)
    for name, value in {**kit.environment(), **VALUES}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GIVEN")
    try:
        yield kit
    finally:
        kit.close()


_AGENT = "sojourn.clouds.vm.on_machine.agent"


def test_secrets_are_in_the_store_and_in_the_scripts_environment_alone(
    kit: AzureKit, tmp_path: Path
) -> None:
    said: list[Any] = []
    task = sojourn.Task(
        SCRIPT,
        cloud="az",
        name="secrets",
        tags={"project": "open"},
        environment=ENVIRONMENT,
        storage=sojourn.Storage(workdir=str(tmp_path), output="output"),
    )
    handle = sojourn.create(task, on_event=said.append)
    machine = waiting_machine(kit)
    user = User(kit.environment())
    try:
        secrets = Secrets(kit)
        secrets.check("processes", list(processes(machine)))
        secrets.check("the account", list(in_account(kit, handle.id)))
        secrets.check("the store", list(in_store(user, handle.id)))
        secrets.check("files, while it runs", list(files(machine)))
        check_role(kit, machine, user, handle.id)
        kit.appear("go")
        assert handle.wait().exit_code == 0
        assert "all are here" in [line.text for line in handle.logs()]
        secrets.check("events", [*said, *handle.events(), handle.status(), handle.task()])
        handle.delete()
        secrets.check("files", list(files(machine)))
        secrets.check("the console", [machine.console()])
    finally:
        user.close()


class Secrets:
    """The values of the task, and the laptop's own secret."""

    def __init__(self, kit: AzureKit) -> None:
        own = kit.environment()
        self._values = [value.encode() for value in (*VALUES.values(), own["AZURE_CLIENT_SECRET"])]

    def check(self, where: str, things: list[Any]) -> None:
        assert things, f"{where}: nothing to look at"
        for thing in things:
            text = thing if isinstance(thing, bytes) else repr(thing).encode()
            found = [value for value in self._values if value in text]
            assert not found, f"{where}: {found} in {text[:500]!r}"


def waiting_machine(kit: AzureKit) -> RunningMachine:
    def machines() -> list[RunningMachine]:
        return [i.machine for i in kit.account.instances() if i.machine]

    def waits() -> bool:
        return any(path.name == "waiting" for each in machines() for path in each.files())

    until(waits, 60)
    [machine] = machines()
    return machine


def processes(machine: RunningMachine) -> Iterator[tuple[Any, ...]]:
    """Arguments of all, and environments of all that are not in the session of the script."""
    found = machine.processes()
    secret = {_session(each.pid) for each in found if "GIVEN" in each.environ}
    [agent] = {_session(each.pid) for each in found if _AGENT in each.argv}
    assert len(secret) == 1
    assert agent not in secret
    for process in found:
        yield process.argv
        if _session(process.pid) not in secret:
            yield (process.environ,)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def files(machine: RunningMachine) -> Iterator[bytes]:
    found = list(machine.files())
    assert "settings.json" in {path.name for path in found}
    for path in found:
        with suppress(FileNotFoundError):
            yield path.read_bytes()


def in_account(kit: AzureKit, name: str) -> Iterator[Any]:
    """All that the services keep beside the store; last the program in the first script."""
    yield from AzureSide(kit).in_account(name)
    [instance] = kit.account.instances()
    program = PROGRAM.search(instance.custom_data)
    assert program
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(program[1])))
    for file in archive.namelist():
        yield archive.read(file)


def account_of(user: User, name: str) -> str:
    path = f"resourceGroups/{name}/providers/Microsoft.Storage/storageAccounts"
    [found] = user.get(path)["value"]
    return str(found["name"])


def in_store(user: User, name: str) -> Iterator[bytes]:
    """All objects but the one that is for secrets."""
    store = user.store(account_of(user, name), "task")
    paths = [item["path"] for page in obstore.list(store) for item in page]
    assert {"task.json", "environment.json"} <= set(paths)
    for path in paths:
        content = bytes(obstore.get(store, path).bytes())
        if path == "environment.json":
            assert {**VALUES, **json.loads(content)} == json.loads(content)
        else:
            yield content


def check_role(kit: AzureKit, machine: RunningMachine, user: User, name: str) -> None:
    """With the machine's own tokens, all that is not its business is refused."""
    other = user.make_group("other")
    user.make_container(other)
    other_set = user.make_set(other, 0)["id"]
    identity = user.get(
        f"resourceGroups/{name}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
    )["id"]
    token = token_of(machine, "https://storage.azure.com/", identity)
    account = account_of(user, name)
    own = AzureStore("task", account_name=account, bearer_token=token)
    foreign = AzureStore("box", account_name="anaccount", bearer_token=token)
    assert obstore.get(own, "task.json").bytes()
    assert [item["path"] for page in obstore.list(own, "attempts") for item in page]
    obstore.put(own, "machines/mine", b"")
    obstore.delete(own, "machines/mine")
    for act in (
        lambda: obstore.get(own, "laptop/seed").bytes(),
        lambda: obstore.put(own, "laptop/seed", b""),
        lambda: obstore.put(own, "task.json", b""),
        lambda: obstore.put(own, "workdir/objects/x", b""),
        lambda: obstore.delete(own, "task.json"),
        lambda: obstore.put(own, "machinesx", b""),
        lambda: list(obstore.list(foreign)),
        lambda: obstore.put(foreign, "machines/x", b""),
    ):
        with pytest.raises(BaseError, match="not authorized"):
            act()
    arm = token_of(machine, "https://management.azure.com/", identity)
    base = f"/subscriptions/{user.subscription}/resourceGroups"
    own_set = f"{base}/{name}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
    assert asked(kit, arm, "GET", f"{own_set}/virtualMachines", "2024-11-01") == 200
    for method, path, version in (
        ("GET", base, "2025-04-01"),
        ("DELETE", f"{base}/{name}", "2025-04-01"),
        ("GET", f"{other_set}", "2024-11-01"),
        ("GET", f"{other_set}/virtualMachines", "2024-11-01"),
        ("DELETE", other_set, "2024-11-01"),
        ("GET", f"{base}/{name}/providers/Microsoft.Storage/storageAccounts", "2024-01-01"),
        ("GET", identity, "2024-11-30"),
        ("DELETE", identity, "2024-11-30"),
    ):
        status = asked(kit, arm, method, path, version)
        assert status == 403 or (path == base and status == 200), (method, path, status)
    user.delete("resourceGroups/other")


def token_of(machine: RunningMachine, resource: str, identity: str) -> str:
    query = f"api-version=2018-02-01&resource={resource}&msi_res_id={identity}"
    url = f"{IMDS}/identity/oauth2/token?{query}"
    said = machine.run("curl", "-sf", "-H", "Metadata: true", url).stdout
    return str(json.loads(said)["access_token"])


def asked(kit: AzureKit, token: str, method: str, path: str, version: str) -> int:
    own = kit.environment()
    context = ssl.create_default_context(cafile=own["SSL_CERT_FILE"])
    with httpx.Client(proxy=own["HTTPS_PROXY"], verify=context, trust_env=False) as client:
        return client.request(
            method,
            f"https://management.azure.com{path}",
            params={"api-version": version},
            headers={"Authorization": f"Bearer {token}"},
        ).status_code
