"""What a group holds its machines with, until they have stored their work."""

from __future__ import annotations

import sojourn
from sojourn.core.task import Task
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User


def test_a_group_waits_for_its_machines_and_for_a_silent_one_not_for_long(
    laptop: SimAWS, user: User
) -> None:
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws"))
    found = user.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=handle.id)
    [hook] = found["LifecycleHooks"]
    assert hook["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
    assert (hook["DefaultResult"], hook["HeartbeatTimeout"]) == ("CONTINUE", 120)
    assert hook["GlobalTimeout"] >= 3600  # so long it may take, see `lifecycle`
    handle.delete()
