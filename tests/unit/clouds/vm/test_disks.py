"""The size of a machine's disk."""

from __future__ import annotations

import pytest

from sojourn.clouds.vm.disks import disk_size, note_on_disk
from sojourn.core.task import Task


@pytest.mark.parametrize(
    ("wanted", "least", "size"), [(-1, 30, -1), (10, 30, 30), (50, 30, 50), (10, 0, 10)]
)
def test_what_the_image_needs(wanted: int, least: int, size: int) -> None:
    task = Task("#!/bin/sh", disk_size=wanted)
    assert disk_size(task, least) == size
    note = ["disk_size: using 30 GB, which the image 'ubuntu' needs"]
    assert note_on_disk(task, least, "ubuntu") == (note if size != wanted else [])
