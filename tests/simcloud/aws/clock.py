"""How long things take in a simulated AWS account."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Timing:
    """Seconds. In AWS most of these are minutes; a test may change them at any time."""

    profile_ready: float = 0.0  # how long a new instance profile is unknown to EC2
    bucket_ready: float = 0.0  # how long a new bucket is not found
    bucket_gone: float = 0.0  # how long there can be none of the name of a deleted one
    group_ready: float = 0.0  # how long EC2 does not know a new security group
    group_usable: float = 0.0  # how long nothing can be launched with it
    instance_ready: float = 0.0  # how long EC2 does not tell of a new instance
    image_ready: float = 0.0  # how long an image that was taken is pending
    launch: float = 0.0  # how long an instance is pending before its machine boots
    respawn: float = 0.1  # how long a group takes to replace what it lost
    rebalance: float = 0.1  # how long a group lets its zones be uneven
    retry: float = 0.3  # how long a group waits after a launch that failed in all zones
    give_up: float = 24 * 3600.0  # how long a group that cannot launch goes on trying
    shutdown: float = 10.0  # how long a machine has to shut down in order
    deletion: float = 0.1  # how long a group without instances is being deleted
    last_words: float = 0.0  # how long an instance without a machine holds up its termination
    notice: float = 2.0  # from the notice of an interruption to the interruption
    keys_ready: float = 0.0  # how long after its launch an instance has no keys of its role
    credentials: float = 6 * 3600.0  # how long those of a machine are good
