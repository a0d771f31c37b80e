"""Who is on a machine."""

from __future__ import annotations

import pytest

from sojourn.clouds.vm.on_machine.visited import is_visit


@pytest.mark.parametrize(
    ("command", "visit"),
    [
        (b"sshd: ubuntu@pts/0", True),
        (b"sshd: ubuntu@notty\0\0", True),
        (b"sshd-session: ubuntu@pts/1", True),
        (b"sshd: ubuntu [priv]", False),
        (b"sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups", False),
        (b"python3\0train.py\0--to=a@b", False),
    ],
)
def test_a_visit_by_ssh(command: bytes, visit: bool) -> None:
    assert is_visit(command) is visit
