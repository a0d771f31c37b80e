"""How long things take in the simulated subscription."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Timing:
    """Seconds. In Azure most of these are minutes; a test may change them at any time."""

    retry_after: int = 0  # what clients are told to wait before they ask again
    storage: float = 0.05  # how long a storage account is being made
    network: float = 0.05  # the same of networks and security groups
    scale_set: float = 0.05  # how long a change of a scale set takes, beside its instances
    image: float = 0.05  # how long a disk is copied, and an image is made of the copy
    group_gone: float = 0.1  # how long a group is being deleted, beside what is in it
    registration: float = 0.1  # how long a provider is being registered
    principal_ready: float = 0.0  # how long a new identity is unknown to role assignments
    role_ready: float = 0.0  # how long a role assignment has no effect
    role_gone: float = 0.0  # how long a deleted one still has
    listed: float = 0.0  # how long a new resource is missing in lists over groups
    account_ready: float = 0.0  # how long the name of a new storage account does not resolve
    container_gone: float = 0.0  # how long there can be none of the name of a deleted container
    launch: float = 0.0  # how long an instance is being made before its machine boots
    events_ready: float = 0.0  # how long after it first asked a machine is told of no events
    metadata_rate: int = 0  # requests a second that a machine may ask about itself; 0: any, else 5
    identity_ready: float = 0.0  # how long after its launch an instance has no tokens
    shutdown: float = 10.0  # how long a machine has to shut down in order
    deletion: float | None = None  # from the notice of one to it; None: as its scale set says
    notice: float = 2.0  # from the notice of an eviction to the eviction; 30 in Azure
    restore: float = 0.1  # how long until an evicted instance is tried to be restored
    autoscale: float = 0.1  # how often the number of instances is compared with the settings
    token: float = 3600.0  # how long a token of a user is good
    identity_token: float = 86400.0  # the same of a machine's; it is handed out until half of it
