"""What machines are told, for tests of what they do with it."""

from __future__ import annotations

from typing import Any

from sojourn.agent.wheels import pythons
from sojourn.clouds.vm.agent_files import Luggage
from sojourn.clouds.vm.machine_settings import machine_settings
from sojourn.core.task import Task
from sojourn.storage.store import StoreAddress

_ADDRESS = StoreAddress(
    "s3://bucket/folder", {"region": "ap-southeast-1", "client_options": {"allow_http": True}}
)
COMMON = machine_settings(
    "tpi-" + "x" * 46,
    _ADDRESS,
    Task("#!/bin/sh\n", timeout=24 * 3600),
    user="ubuntu",
    marks=True,
    page="docs/aws.md",
    wheels=Luggage(pythons(), "x86_64", "").hashes,
)
PLACES: dict[str, Any] = {
    "common": COMMON,
    "boot": "https://" + "b" * 63 + ".s3.ap-southeast-1.amazonaws.com/" + "f" * 500,
    "problems": "https://x/problems/",
}
