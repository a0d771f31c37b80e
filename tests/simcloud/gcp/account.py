"""A simulated Google Cloud project whose machines really run. Tests need nothing else of here.

Requests and answers are checked by Google's discovery documents. A client is pointed at it by
`SOJOURN_GCP_ENDPOINT`: the host of a service becomes the first part of the path, such as
`http://127.0.0.1:PORT/compute.googleapis.com/compute/v1/...`, on this computer and in machines.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.simcloud.common.account import SimAccount
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.life import Lives, Phase
from tests.simcloud.common.server import Server
from tests.simcloud.common.wire import CUT
from tests.simcloud.gcp import boot, firewall, networks
from tests.simcloud.gcp.calls import FEDERATION, TOKENS, Call
from tests.simcloud.gcp.compute import Compute
from tests.simcloud.gcp.gate import Gate
from tests.simcloud.gcp.iam import IAM
from tests.simcloud.gcp.instances import Fleet, Instance
from tests.simcloud.gcp.inventory import Inventory
from tests.simcloud.gcp.market import Market, Refusal
from tests.simcloud.gcp.metadata import Metadata
from tests.simcloud.gcp.operations import Failure, Operations
from tests.simcloud.gcp.project import AGENT, DEFAULT_ACCOUNT, PROJECT, SERVICES, Project
from tests.simcloud.gcp.quotas import Quotas
from tests.simcloud.gcp.roles import Custom
from tests.simcloud.gcp.scaler import Scaler
from tests.simcloud.gcp.storage_model import Buckets
from tests.simcloud.gcp.store import Store
from tests.simcloud.gcp.timing import Timing
from tests.simcloud.gcp.wire import GCPError
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.serving import forward, http
from tests.simcloud.machines.spec import Endpoint

_LAPTOPS = "laptops.iam.gserviceaccount.com"  # accounts of users are in another project


class SimGCP(SimAccount[Call, Refusal | Failure]):
    """One project; a context manager.

    Machines of its instances run on the host and are gone when this is closed; without a host there
    are none, and instances just say that they run. What the simulation could not do is an
    AssertionError at the end.
    """

    project_id = PROJECT

    def __init__(self, host: Host | None = None, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        clock, changed = Clock(), threading.Condition(threading.RLock())
        market = Market()
        self.project = Project(clock, self.timing, changed)
        self._store = Store()
        self.buckets = Buckets(clock, self.timing)
        self._operations = Operations(clock, self.timing)
        self._quotas = Quotas(self._store)
        self._lives = Lives(host, changed, clock)
        self._lives.firewall = partial(firewall.connects, self._store)
        self._fleet = Fleet(self.project, self._store, self._lives, self._endpoints)
        self._scaler = Scaler(
            self.project, self._store, self._fleet, market, self._operations, self._quotas
        )
        compute = Compute(
            self.project, self._store, self._fleet, self._scaler, self._operations, self._quotas
        )
        policies = lambda: [bucket.policy for bucket in self.buckets.all.values()]  # noqa: E731
        iam = IAM(self.project, policies)
        gate = Gate(self.project, self._store, self.buckets, compute, iam, lambda: self.token_uri)
        super().__init__(clock, changed, market, gate)
        self._server = Server(gate.answer)
        self._inventory = Inventory(self.project, self._store, self.buckets)
        self._open = ExitStack()
        self._folder = Path()
        self._users = 0
        self._administrator: dict[str, str] = {}

    def __enter__(self) -> SimGCP:
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        networks.furnish(self._store)
        for email in (AGENT, DEFAULT_ACCOUNT):
            self.project.accounts.add(email, PROJECT)
            self._bind("roles/editor", f"serviceAccount:{email}")
        self._administrator = self._laptop("administrator", "roles/owner")
        self._inventory.accept()
        self._server.start()
        self._open.callback(self._server.close)
        self._open.callback(self._lives.settle)
        self._open.callback(self._take_machines)
        self._scaler.start()
        self._open.callback(self._scaler.close)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._open.close()
        if kind is None:
            assert not self._gate.defects, self._gate.defects

    # What a user has

    @property
    def endpoint(self) -> str:
        """The URL of all services, on this computer and in machines."""
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def token_uri(self) -> str:
        return f"{self.endpoint}/{TOKENS}/token"

    def environment(self) -> dict[str, str]:
        """The variables of a laptop whose user may do everything."""
        return dict(self._administrator)

    def user(
        self, permissions: Iterable[str], name: str = "", condition: str = ""
    ) -> dict[str, str]:
        """The variables of another user, who has exactly these permissions on the project."""
        with self._changed:
            self._users += 1
            name = name or f"user-{self._users}"
            role = f"projects/{PROJECT}/roles/laptop{self._users}"
            self.project.roles.custom[role] = Custom(role, set(permissions), name)
            self._inventory.tolerate(f"role {role}", f"binding {role} of {_member(name)}")
            return self._laptop(name, role, condition)

    def federated(self, permissions: Iterable[str], name: str = "ci") -> dict[str, str]:
        """The variables of a CI job that logs in with a token of its own provider.

        It acts as a service account with these permissions, as keyless log-ins of CI do.
        """
        environment = self.user(permissions, name)
        with self._changed:
            account = self.project.accounts.all[f"{name}@{_LAPTOPS}"]
            pool = self.project.accounts.federation
            audience, subject, member = pool.add(name)
            binding = {"role": "roles/iam.workloadIdentityUser", "members": [member]}
            account.policy.write([binding], 1, 0.0)
        token = self._folder / f"{name}.jwt"
        token.write_text(subject)
        credentials = "iamcredentials.googleapis.com/v1/projects/-/serviceAccounts"
        settings = {
            "type": "external_account",
            "audience": audience,
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{self.endpoint}/{FEDERATION}/v1/token",
            "service_account_impersonation_url": (
                f"{self.endpoint}/{credentials}/{account.email}:generateAccessToken"
            ),
            "credential_source": {"file": str(token)},
        }
        Path(environment["GOOGLE_APPLICATION_CREDENTIALS"]).write_text(json.dumps(settings))
        return environment

    def token(self, environment: dict[str, str] | None = None) -> str:
        """An access token of a user, for requests by hand; of the administrator, unless said."""
        path = (environment or self._administrator)["GOOGLE_APPLICATION_CREDENTIALS"]
        email = json.loads(Path(path).read_text())["client_email"]
        with self._changed:
            account = self.project.accounts.all[email]
            scope = "https://www.googleapis.com/auth/cloud-platform"
            return self.project.accounts.make_token(account, (scope,))[0]

    # What shall go wrong with calls

    def fail(
        self,
        operation: str,
        *,
        nth: int = 1,
        after: bool = False,
        code: str = "backendError",
        status: int = 503,
        times: int = 1,
        who: str = "*",
        cut: bool = False,
    ) -> None:
        """Have the n-th next call of `compute:instances.delete`, or `storage:*`, fail.

        `after`: what was asked for happens, and the answer is an error all the same. `times`: as
        many calls in a row. `who`: only calls of this address, which may have wildcards. `cut`:
        there is no answer, the connection is cut.
        """
        error = GCPError(code, "A test made this call fail.", CUT if cut else status)
        self._fail(operation, error, nth=nth, after=after, times=times, who=who)

    def fail_operation(self, operation: str, failure: Failure) -> None:
        """Have the operation that the next such call begins end with an error."""
        with self._changed:
            self._operations.failures.append((operation, failure))

    def disable(self, service: str) -> None:
        """Have an API, such as `compute`, be disabled in the project."""
        assert service in SERVICES
        with self._changed:
            self.project.enabled_at[service] = float("inf")

    def quota(self, place: str, metric: str, limit: float) -> None:
        """Set a quota of a region, or of the project (`global`)."""
        with self._changed:
            self._quotas.set(place, metric, limit)
            self._changed.notify_all()

    def foreign_bucket(self, name: str, *, open: bool = False) -> None:
        """Have somebody else own a bucket of this name; `open`: everybody may use it."""
        with self._changed:
            if open:
                uniform = {"uniformBucketLevelAccess": {"enabled": True}}
                labels = {"sojourn-zone": "us-west1-b"}
                self.buckets.make(name, {"iamConfiguration": uniform, "labels": labels})
            (self.buckets.open if open else self.buckets.foreign).add(name)

    def network(self, name: str, subnets: Mapping[str, str]) -> None:
        """Have another network of the project, with subnets of these names, by region."""
        with self._changed:
            networks.add_network(self._store, name, subnets, automatic=False)
            self._inventory.tolerate(f"network {name}")
            for region, subnet in subnets.items():
                self._inventory.tolerate(f"subnetwork {subnet} in {region}")

    def remove_default_network(self) -> None:
        """Have a project without it, as many organizations do."""
        with self._changed:
            for collection in ("firewalls", "networks", "subnetworks"):
                for path, _ in list(self._store.everywhere(collection)):
                    self._store.remove(path)

    # What happens to instances

    def instances(self) -> list[Instance]:
        """All that were created, in that order, also those that were deleted."""
        with self._changed:
            return list(self._fleet.instances)

    def admits(self, instance: Instance, port: int, source: str) -> bool:
        """Whether a connection from an address outside gets through to an instance, by TCP."""
        with self._changed:
            return firewall.admits(self._store, instance, port, source)

    def preempt(self, instance_id: str, *, notice: bool) -> None:
        """Take a spot instance away: at once, or `timing.notice` seconds after it was told."""
        with self._changed:
            instance = self._known(instance_id)
            assert instance.spot, f"{instance.name} is no spot instance"
            if notice:
                instance.preempt(self._clock.now())
                self._changed.notify_all()
                return
            self._scaler.end_by_itself(instance, 0.0)
        self.wait(lambda: instance.gone or instance.status == "TERMINATED")

    interrupt = preempt

    def announce_maintenance(self, instance_id: str) -> None:
        """Tell an instance with GPUs, or a spot one, that its host will be maintained."""
        with self._changed:
            self._known(instance_id).maintenance = "TERMINATE_ON_HOST_MAINTENANCE"
            self._changed.notify_all()

    def panic(self, instance_id: str) -> None:
        """Have the kernel of its machine break down and start again, without a word to anybody."""
        with self._changed:
            instance = self._known(instance_id)
            assert instance.life
            former = instance.life.panic()
        former.kill()
        self.wait(lambda: instance.machine is not former)

    # What is left

    def settle(self) -> None:
        """Wait until no operation is under way any more."""
        self.wait(lambda: all(each.done for each in self._operations.all.values()))

    def inventory(self) -> list[str]:
        """Every resource that is in the project and is not in a fresh one, in words."""
        with self._changed:
            self._fleet.settle_gone()
            return self._inventory.found()

    def _known(self, instance_id: str) -> Instance:
        """By its number, or the newest of its name."""
        for instance in reversed(self._fleet.instances):
            if instance_id in (instance.id, instance.name):
                return instance
        raise AssertionError(f"there is no instance {instance_id}")

    def _endpoints(self, instance: Instance) -> tuple[Endpoint, ...]:
        metadata = Metadata(instance, self.project)
        port = self._server.port
        return (
            Endpoint(boot.ADDRESS, boot.PORT, http(metadata.answer)),
            Endpoint("127.0.0.1", port, forward("127.0.0.1", port)),
        )

    def _take_machines(self) -> None:
        with self._changed:
            for instance in self._fleet.instances:
                assert instance.life
                if instance.life.phase is not Phase.STOPPED:
                    instance.life.end(0.0)

    def _laptop(self, name: str, role: str, condition: str = "") -> dict[str, str]:
        account = self.project.accounts.add(f"{name}@{_LAPTOPS}", "laptops")
        key = self.project.accounts.make_key(account, self.token_uri)
        path = self._folder / f"{name}.json"
        path.write_text(json.dumps({**key, "project_id": PROJECT}))
        path.chmod(0o600)
        self._bind(role, account.member, condition)
        return {
            "GOOGLE_APPLICATION_CREDENTIALS": str(path),
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "SOJOURN_GCP_ENDPOINT": self.endpoint,
            "CLOUDSDK_CONFIG": str(self._folder / "no-gcloud"),
            "NO_GCE_CHECK": "true",
        }

    def _bind(self, role: str, member: str, condition: str = "") -> None:
        policy = self.project.policies.project
        binding = {"role": role, "members": [member]}
        with_condition = {**binding, "condition": {"title": "given", "expression": condition}}
        made = with_condition if condition else binding
        policy.write([*policy.bindings, made], 3 if condition else 1, 0.0)


def _member(name: str) -> str:
    return f"serviceAccount:{name}@{_LAPTOPS}"
