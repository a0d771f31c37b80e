"""What all services of the simulated project share: its names, its state, its clock.

Nothing is done here. What services do about it is in their own modules.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simcloud.common.clock import Clock
from tests.simcloud.gcp.accounts import Accounts
from tests.simcloud.gcp.policies import Policies, Resource
from tests.simcloud.gcp.roles import Roles
from tests.simcloud.gcp.timing import Timing

PROJECT = "simulated-project"
NUMBER = "123456789012"
AGENT = f"{NUMBER}@cloudservices.gserviceaccount.com"  # makes the instances of groups
DEFAULT_ACCOUNT = f"{NUMBER}-compute@developer.gserviceaccount.com"
ROOT = "https://www.googleapis.com/compute/v1/"
SERVICES = {
    "cloudresourcemanager": "Cloud Resource Manager API",
    "compute": "Compute Engine API",
    "iamcredentials": "IAM Service Account Credentials API",
    "iam": "Identity and Access Management (IAM) API",
    "policytroubleshooter": "Policy Troubleshooter API",
    "serviceusage": "Service Usage API",
    "storage": "Cloud Storage API",
}
OFF = {"policytroubleshooter"}  # until somebody enables it


@dataclass
class Project:
    """The one project that there is."""

    clock: Clock
    timing: Timing
    changed: threading.Condition
    roles: Roles = field(default_factory=Roles)
    enabled_at: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(SERVICES.keys() - OFF, 0.0)
    )
    accounts: Accounts = field(init=False)
    policies: Policies = field(init=False)
    groups_have_names: bool = True
    """Whether conditions see names of instance group managers. Google's list of resource types with
    names does not have them; what others rely on says that they have."""

    def __post_init__(self) -> None:
        self.accounts = Accounts(self.clock, self.timing)
        self.policies = Policies(self.roles, self.clock, self.timing)

    @property
    def itself(self) -> Resource:
        return Resource(f"projects/{PROJECT}", "cloudresourcemanager.googleapis.com/Project")

    def enabled(self, service: str) -> bool:
        return self.enabled_at.get(service, float("inf")) <= self.clock.now()


def timestamp(clock: Clock) -> str:
    """As Compute Engine writes times: milliseconds, and the time zone of California."""
    return clock.today().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+00:00"


def new_id() -> str:
    """A number such as resources have."""
    return str(secrets.randbelow(8 * 10**18) + 10**18)


def random_name(length: int, taken: Callable[[str], bool] = lambda _: False) -> str:
    while True:
        name = "".join(secrets.choice("0123456789bcdfghjklmnpqrstvwxz") for _ in range(length))
        if not taken(name):
            return name
