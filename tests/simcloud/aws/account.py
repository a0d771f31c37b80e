"""A simulated AWS account whose machines really run. Tests use this and need nothing else of here.

moto answers for S3, IAM and EC2, behind a gate that makes it strict; Auto Scaling and the metadata
service are our own. moto keeps its state in the process, so there is one account at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from tests.simcloud.aws import backends, callers, firewall, images, inventory, models
from tests.simcloud.aws.autoscaling import AutoScaling
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.fleet import Fleet, Instance
from tests.simcloud.aws.gate import Gate
from tests.simcloud.aws.groups import Groups
from tests.simcloud.aws.launch import Profiles
from tests.simcloud.aws.market import Market, Refusal
from tests.simcloud.aws.metadata import ADDRESS, PORT, Metadata
from tests.simcloud.aws.quotas import answer_quotas
from tests.simcloud.aws.scaler import Scaler
from tests.simcloud.aws.server import MotoHandler
from tests.simcloud.aws.strict_ec2 import EC2
from tests.simcloud.aws.strict_iam import IAM, answer_sts
from tests.simcloud.aws.strict_s3 import S3
from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.account import SimAccount
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.server import Server
from tests.simcloud.common.wire import CUT
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.serving import forward, http
from tests.simcloud.machines.spec import Endpoint

models.read_once()
_one_at_a_time = threading.Lock()


class SimAWS(SimAccount[Call, Refusal | str]):
    """One account with all its regions; a context manager.

    Machines of its instances run on the host and are gone when this is closed; without a host
    there are none, and instances just say that they run. What the simulation could not do is an
    AssertionError at the end.
    """

    def __init__(self, host: Host | None = None, timing: Timing | None = None) -> None:
        self.timing = timing or Timing()
        clock, changed, market = Clock(), threading.Condition(threading.RLock()), Market()
        self._users: set[str] = set()
        self._groups = Groups()
        self._host = host
        self._fleet = Fleet(host, changed, clock, self.timing, self._endpoints)
        profiles = Profiles(clock)
        self._scaler = Scaler(
            self._groups, self._fleet, market, profiles, changed, clock, self.timing
        )
        self._s3 = S3(clock, self.timing)
        services = {
            "autoscaling": AutoScaling(self._groups, self._scaler, profiles, clock).answer,
            "ec2": EC2(self._fleet, profiles, clock, self.timing).answer,
            "iam": IAM(profiles, self.timing).answer,
            "s3": self._s3.answer,
            "servicequotas": answer_quotas,
            "sts": answer_sts,
        }
        super().__init__(clock, changed, market, Gate(services, self._groups, changed))
        self._aws_market = market
        self._server = Server(self._gate.answer, MotoHandler)
        self._open = ExitStack()
        self._administrator: dict[str, str] = {}

    def __enter__(self) -> SimAWS:
        assert _one_at_a_time.acquire(blocking=False), "there is an account in this process already"
        self._open.callback(_one_at_a_time.release)
        self._open.enter_context(images.instead_of_motos())
        self._open.callback(backends.reset)
        backends.reset()
        self._administrator = self.user(
            {"Version": "2012-10-17", "Statement": [callers.EVERYTHING]}, "administrator"
        )
        self._server.start()
        self._open.callback(self._server.close)
        self._open.callback(self._fleet.settle)
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

    def environment(self) -> dict[str, str]:
        """The variables of a laptop whose user may do everything."""
        return dict(self._administrator)

    def user(self, policy: Mapping[str, Any], name: str = "") -> dict[str, str]:
        """The variables of another user, who may do exactly what this policy allows."""
        name = name or f"user-{len(self._users)}"
        with self._changed:
            self._users.add(name)
            key_id, secret = callers.make_user(name, policy)
        return {
            "AWS_ACCESS_KEY_ID": key_id,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    # What shall go wrong with calls

    def fail(
        self,
        operation: str,
        *,
        nth: int = 1,
        after: bool = False,
        code: str = "InternalError",
        status: int = 500,
        times: int = 1,
        who: str = "*",
        cut: bool = False,
    ) -> None:
        """Have the n-th next call of `autoscaling:CreateAutoScalingGroup`, or `s3:*`, fail.

        `after`: what was asked for happens, and the answer is an error all the same. `times`: as
        many calls in a row. `who`: only calls of this ARN, which may have wildcards. `cut`: there
        is no answer, the connection is cut.
        """
        error = AWSError(code, "A test made this call fail.", CUT if cut else status)
        self._fail(operation, error, nth=nth, after=after, times=times, who=who)

    # What can be had

    def spot_price(self, instance_type: str, dollars: float) -> None:
        """Have spot instances of this type cost so much an hour."""
        with self._changed:
            self._aws_market.set_price(instance_type, dollars)

    def foreign_bucket(self, name: str, *, open: bool = False) -> None:
        """Have somebody else own a bucket of this name; `open`: everybody may use it."""
        with self._changed:
            if open:
                backends.s3().create_bucket(name, "us-west-1")
            (self._s3.open if open else self._s3.foreign).add(name)

    # What happens to instances

    def instances(self) -> list[Instance]:
        """All that were launched, in that order, also those that were terminated."""
        with self._changed:
            return list(self._fleet.instances)

    def admits(self, instance: Instance, port: int, source: str) -> bool:
        """Whether a connection from an address outside gets through to an instance, by TCP."""
        with self._changed:
            return firewall.admits(instance, port, source)

    def interrupt(self, instance_id: str, *, notice: bool) -> None:
        """Take a spot instance away: at once, or `timing.notice` seconds after its notice."""
        with self._changed:
            instance = self._known(instance_id)
            assert instance.spot, f"{instance_id} is no spot instance"
            if notice:
                instance.notice = self._clock.today() + timedelta(seconds=self.timing.notice)
                instance.ends_at = instance.notice.timestamp()
                self._changed.notify_all()
                return
            self._fleet.take(instance)
        self.wait(lambda: instance.state == "terminated")

    def panic(self, instance_id: str) -> None:
        """Have the kernel of its machine break down and start again, without a word to anybody."""
        with self._changed:
            instance = self._known(instance_id)
            assert instance.life
            former = instance.life.panic()
        former.kill()
        self.wait(lambda: instance.machine is not former)

    def recommend_rebalance(self, instance_id: str) -> None:
        """Warn a spot instance that it is more likely than others to be taken away."""
        with self._changed:
            self._known(instance_id).rebalance = self._clock.today()

    def expire_credentials(self) -> None:
        """Have those of all machines run out; they get new ones."""
        with self._changed:
            callers.expire_all()

    # What is left

    def inventory(self) -> list[str]:
        """Every resource that is in the account and is not in a fresh one, in words."""
        with self._changed:
            return inventory.found(self._groups, self._users)

    def _known(self, instance_id: str) -> Instance:
        instance = self._fleet.find(instance_id)
        assert instance is not None, f"there is no instance {instance_id}"
        return instance

    def _endpoints(self, instance: Instance) -> tuple[Endpoint, ...]:
        metadata = Metadata(instance, self.timing, self._changed)
        port = self._server.port
        return (
            Endpoint(ADDRESS, PORT, http(metadata.answer)),
            Endpoint("127.0.0.1", port, forward("127.0.0.1", port)),
        )

    def _take_machines(self) -> None:
        with self._changed:
            for instance in self._fleet.instances:
                self._fleet.take(instance)
