"""A rank that ends does not have AWS end another one, only to even out the zones."""

from __future__ import annotations

import sojourn
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User
from tests.support.waiting import until


def test_machines_at_work_stay_when_zones_become_uneven(laptop: SimAWS, user: User) -> None:
    laptop.timing.rebalance = 0
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="aws", parallelism=4))
    user.in_service(4)
    zone = laptop.instances()[0].zone
    staying = {each.id for each in laptop.instances() if each.zone != zone}
    assert len(staying) == 2
    for instance in [each for each in laptop.instances() if each.zone == zone]:
        user.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=instance.id, ShouldDecrementDesiredCapacity=True
        )
    until(lambda: set(user.members()) == staying)
    assert {each.id for each in laptop.instances() if each.state == "running"} == staying
    assert len(laptop.instances()) == 4
    handle.delete(fetch=False)
    assert laptop.inventory() == []
