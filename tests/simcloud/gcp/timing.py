"""How long things take in a simulated Google Cloud project."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Timing:
    """Seconds. In Google Cloud most of these are minutes; a test may change them at any time."""

    operation: float = 0.02  # how long operations take that have nothing to wait for
    account_ready: float = 0.0  # how long policies do not know a new service account
    policy_ready: float = 0.0  # how long a changed policy has no effect
    bucket_ready: float = 0.0  # how long a new bucket is not found
    bucket_gone: float = 0.0  # how long a deleted bucket's name is taken
    image_ready: float = 0.0  # how long an image that was taken is pending
    launch: float = 0.0  # how long an instance is provisioned before its machine boots
    respawn: float = 0.1  # how long a group takes to replace what it lost
    retry: float = 0.3  # how long a group waits after an instance could not be created
    shutdown: float = 10.0  # how long a machine has to shut down in order
    notice: float = 2.0  # how long a machine has after it was told that it is preempted
    token: float = 3600.0  # how long access tokens are good
    api_ready: float = 0.0  # how long an API that was enabled still says that it is not
    object_rate: float = 0.0  # how long an object cannot be changed again; in Google Cloud 1
