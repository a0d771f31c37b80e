"""A simulated Azure subscription whose machines really run. Tests need nothing else of here.

All of it is our own, checked against the model of Azure's packages. Clients and machines ask for
the addresses that the real Azure has: see `environment`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from tests.simcloud.az import firewall, inventory, roles
from tests.simcloud.az.authorization import Authorization
from tests.simcloud.az.autoscale import Autoscale
from tests.simcloud.az.blobs import BlobService
from tests.simcloud.az.calls import Call
from tests.simcloud.az.compute import Compute
from tests.simcloud.az.entra import Principal
from tests.simcloud.az.gate import AzureGate, FaultError
from tests.simcloud.az.groups import PROVIDERS, Groups
from tests.simcloud.az.identities import Identities
from tests.simcloud.az.instances import Instance
from tests.simcloud.az.metadata import ADDRESS, PORT, Metadata
from tests.simcloud.az.network import Network
from tests.simcloud.az.offers import Offers, Refusal
from tests.simcloud.az.parts import Parts
from tests.simcloud.az.placement import Placement
from tests.simcloud.az.roles import Assignment
from tests.simcloud.az.server import Server
from tests.simcloud.az.shop import Shop
from tests.simcloud.az.storage import ACCOUNT, Storage
from tests.simcloud.az.taken import Taking
from tests.simcloud.az.timing import Timing
from tests.simcloud.az.tls import BLOBS, DIAGNOSTICS, LOGIN, MANAGEMENT, Authority
from tests.simcloud.az.vms import Machines
from tests.simcloud.common.account import SimAccount
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.life import Lives
from tests.simcloud.common.wire import CUT
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.serving import forward, http
from tests.simcloud.machines.spec import Endpoint

_INSIDE = "127.0.0.2"  # where a machine has Azure's names


class SimAzure(SimAccount[Call, Refusal]):
    """One subscription with all its locations; a context manager.

    Machines of its instances run on the host and are gone when this is closed; without a host
    there are none, and instances just say that they run. What the simulation could not do is an
    AssertionError at the end.
    """

    def __init__(self, host: Host | None = None, timing: Timing | None = None) -> None:
        clock, changed = Clock(), threading.Condition(threading.RLock())
        defects: list[BaseException] = []
        self._offers = offers = Offers()
        self.timing = timing or Timing()
        self._parts = parts = Parts(clock, self.timing, changed, defects)
        parts.registered |= {each.lower() for each in PROVIDERS}
        self._lives = Lives(host, changed, clock)
        self._lives.firewall = partial(firewall.connects, parts)
        accepted: set[str] = set()
        self._storage = Storage(parts)
        self._compute = Compute(parts, self._lives, offers, self._prepare, accepted)
        self._autoscale = Autoscale(parts, self._compute)
        handlers = {
            **Groups(parts).handlers(),
            **Authorization(parts).handlers(),
            **Identities(parts).handlers(),
            **self._storage.handlers(),
            **Network(parts).handlers(),
            **Placement(parts).handlers(),
            **self._compute.handlers(),
            **Machines(parts).handlers(),
            **Taking(parts, self._compute, self._lives).handlers(),
            **Shop(parts, self._compute, accepted).handlers(),
            **self._autoscale.handlers(),
        }
        self.blobs = BlobService(parts, self._storage)
        gate = AzureGate(parts, handlers, self.blobs, defects)
        super().__init__(clock, changed, offers, gate)
        self._open = ExitStack()
        self._users: set[str] = set()
        self._administrator: dict[str, str] = {}

    def __enter__(self) -> SimAzure:
        self._authority = self._open.enter_context(Authority())
        self._server = Server(self._gate.answer, self._knows, self._authority, self._clock.now)
        self._administrator = self.user({"actions": ["*"], "dataActions": ["*"]}, "administrator")
        self._server.start()
        self._open.callback(self._server.close)
        self._open.callback(self._lives.settle)
        self._open.callback(self._take_machines)
        with self._changed:
            self._autoscale.start()
        self._parts.schedule.start()
        self._open.callback(self._parts.schedule.close)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._open.close()
        if kind is None:
            assert not self._gate.defects, self._gate.defects

    # What a user has

    @property
    def subscription(self) -> str:
        return self._parts.subscription

    def environment(self) -> dict[str, str]:
        """The variables of a laptop whose user may do everything.

        The four of Azure, and those that lead to the simulation: a proxy and an authority to
        trust, for httpx and obstore (SSL_CERT_FILE) and for azure-identity (REQUESTS_CA_BUNDLE).
        """
        return dict(self._administrator)

    def user(self, role: Mapping[str, Any], name: str = "", scope: str = "") -> dict[str, str]:
        """The variables of another user, who may do what this role definition allows.

        `role` has actions, notActions, dataActions and notDataActions; `scope` is the subscription
        unless said.
        """
        name = name or f"user-{len(self._users)}"
        secret = f"secret-of-{uuid.uuid4()}"
        with self._changed:
            principal = self._parts.directory.add(Principal(name, secret=secret))
            self._users.add(principal.object_id)
            definition = {"roleName": f"test: {name}", "permissions": [role]}
            made = roles.from_properties(str(uuid.uuid4()), definition)
            self._parts.roles.definitions[made.id] = made
            where = scope or self._parts.scope
            self._parts.roles.assignments.append(
                Assignment(str(uuid.uuid4()), where, made.id, principal.object_id)
            )
        bundle = str(self._authority.bundle)
        return {
            "AZURE_CLIENT_ID": principal.client_id,
            "AZURE_CLIENT_SECRET": secret,
            "AZURE_TENANT_ID": self._parts.directory.tenant,
            "AZURE_SUBSCRIPTION_ID": self._parts.subscription,
            "HTTPS_PROXY": f"http://127.0.0.1:{self._server.port}",
            "https_proxy": f"http://127.0.0.1:{self._server.port}",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "SSL_CERT_FILE": bundle,
            "REQUESTS_CA_BUNDLE": bundle,
        }

    def change_role(self, name: str, role: Mapping[str, Any]) -> None:
        """Have a user of this name be allowed something else from now on."""
        definition = {"roleName": f"test: {name}", "permissions": [role]}
        with self._changed:
            known = self._parts.roles.definitions
            [own] = [each.id for each in known.values() if each.name == f"test: {name}"]
            known[own] = roles.from_properties(own, definition)

    def federate(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The same user without a secret: with a token of a CI system, in a file, instead."""
        token = f"assertion-{uuid.uuid4()}"
        path = self._authority.folder / token
        path.write_text(token)
        with self._changed:
            self._parts.directory.federated[environment["AZURE_CLIENT_ID"]] = token
        rest = {name: v for name, v in environment.items() if name != "AZURE_CLIENT_SECRET"}
        return {**rest, "AZURE_FEDERATED_TOKEN_FILE": str(path)}

    def principal(self, client_id: str) -> str:
        """The id that roles are assigned to, of a user or an identity."""
        with self._changed:
            return self._parts.directory.by_client(client_id).object_id

    def expire_tokens(self) -> None:
        """Have all tokens run out that there are. Time that is put forward does not do it:
        clients go by their own clock."""
        with self._changed:
            self._parts.directory.valid_since = time.time()

    # What shall go wrong with calls

    def fail(
        self,
        operation: str,
        *,
        nth: int = 1,
        after: bool = False,
        code: str = "InternalServerError",
        status: int = 500,
        times: int = 1,
        who: str = "*",
        cut: bool = False,
    ) -> None:
        """Have the n-th next call of `virtualMachineScaleSets.delete`, or `blobs.*`, fail.

        `after`: what was asked for happens, and the answer is an error all the same. `times`: as
        many calls in a row. `who`: only calls of the user or identity of this name, which may have
        wildcards. `cut`: there is no answer, the connection is cut.
        """
        error = FaultError(CUT if cut else status, code)
        self._fail(operation, error, nth=nth, after=after, times=times, who=who)

    @property
    def impatient(self) -> list[str]:
        """Operations that were asked for before the time that Retry-After had told was over."""
        return self._parts.operations.impatient

    # What there is elsewhere

    def foreign_account(self, name: str) -> None:
        """Have somebody else own a storage account of this name."""
        with self._changed:
            self._storage.foreign.add(name)

    def unregister(self, namespace: str) -> None:
        """Have the subscription not use a provider yet."""
        with self._changed:
            self._parts.registered.discard(namespace.lower())

    def lock(self, scope: str, *, on: bool = True) -> None:
        """Have a lock of somebody keep everything in a scope from being deleted."""
        with self._changed:
            (self._parts.locks.add if on else self._parts.locks.discard)(scope)

    def registered(self) -> set[str]:
        """The providers that it uses, in lower case."""
        with self._changed:
            return set(self._parts.registered)

    def quota(self, name: str, location: str, limit: int) -> None:
        """Have a quota of cores: `cores`, `lowPriorityCores` or a family."""
        with self._changed:
            self._compute.quotas.set(name, location, limit)

    def spot_price(self, size: str, dollars: float) -> None:
        """Have spot machines of this size cost so much an hour."""
        with self._changed:
            self._offers.set_price(size, dollars)

    # What happens to instances

    def instances(self) -> list[Instance]:
        """All that were ever made, in that order."""
        with self._changed:
            return list(self._compute.made)

    def admits(self, instance: Instance, port: int, source: str) -> bool:
        """Whether a connection from an address outside gets through to an instance, by TCP."""
        with self._changed:
            return firewall.admits(self._parts, instance, port, source)

    def interrupt(self, instance_id: str, *, notice: bool) -> None:
        """Evict the instance of this id, as on other clouds."""
        with self._changed:
            found = [each for each in self._compute.made if each.id == instance_id]
        assert found, f"there is no instance {instance_id}"
        self.evict(found[0], notice=notice)

    def evict(self, instance: Instance, *, notice: bool) -> None:
        """Take a spot instance away: at once, or `timing.notice` seconds after its notice."""
        with self._changed:
            assert instance.spot, f"{instance.name} is no spot instance"
            before = instance.times_down
            instance.set.evict(instance, notice)
        if not notice:  # it may be up again before anybody looks
            down = ("gone", "deallocated")
            self.wait(lambda: instance.times_down > before or instance.state in down)

    def panic(self, instance: Instance) -> None:
        """Have its computer break down: Azure starts it again, without a word to anybody."""
        with self._changed:
            former = instance.life.panic()
        former.kill()
        self.wait(lambda: instance.machine is not former)

    # What is stored

    def age_blobs(self, seconds: float) -> None:
        """Make all that is stored this much older."""
        with self._changed:
            for account in self._parts.resources.of_type(ACCOUNT):
                for container in account.inner.containers.values():
                    for name, blob in container.blobs.items():
                        container.blobs[name] = replace(blob, modified=blob.modified - seconds)

    # What is left

    def inventory(self) -> list[str]:
        """Every resource that is in the subscription and is not in a fresh one, in words."""
        with self._changed:
            return inventory.found(self._parts, self._compute.made, self._users)

    def _knows(self, host: str) -> bool:
        """Whether a name resolves: those of storage accounts do while they are there."""
        if host in (DIAGNOSTICS, LOGIN, MANAGEMENT):
            return True
        with self._changed:
            found = self._storage.account(host.removesuffix(BLOBS))
            there = found is not None and found.inner.resolves <= self._clock.now()
        return host.endswith(BLOBS) and there

    def _prepare(self, instance: Instance) -> None:
        metadata = Metadata(instance, self._parts)
        accounts = self._parts.resources.of_type(ACCOUNT)
        names = [LOGIN, MANAGEMENT, *(f"{each.name}{BLOBS}" for each in accounts)]
        instance.hosts = dict.fromkeys(names, _INSIDE)
        instance.certificates = self._authority.certificate
        instance.endpoints = (
            Endpoint(ADDRESS, PORT, http(metadata.answer)),
            Endpoint(_INSIDE, 443, forward("127.0.0.1", self._server.port)),
        )

    def _take_machines(self) -> None:
        with self._changed:
            for instance in self._compute.made:
                if not instance.gone:
                    instance.life.end(0.0)
