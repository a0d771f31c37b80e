"""Who gets in to machines by SSH, as the firewalls of an account decide it.

This is the test of each cloud, which calls it with an account of its own.
"""

from __future__ import annotations

from typing import Any

import sojourn

_HOME, _OFFICE, _ANNEX = "198.51.100.7", "203.0.113.9", "192.0.2.1"
_ALL = {_HOME, _OFFICE, _ANNEX}
_SSH = 22
_ADMITTED = {
    "": _ALL,
    "none": set(),
    "203.0.113.0/24": {_OFFICE},
    "203.0.113.0/24, 192.0.2.1": {_OFFICE, _ANNEX},
}


def ssh_from_decides_who_gets_in(sim: Any, cloud: str) -> None:
    """And no other port is open to anybody."""
    for given, admitted in _ADMITTED.items():
        options = {"ssh_from": given}
        handle = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud=cloud, options=options))
        sim.wait(lambda: _running(sim))
        [instance] = _running(sim)
        assert {each for each in _ALL if sim.admits(instance, _SSH, each)} == admitted, given
        assert not any(sim.admits(instance, port, each) for port in (21, 80) for each in _ALL)
        handle.delete(fetch=False)


def _running(sim: Any) -> list[Any]:
    return [each for each in sim.instances() if each.state == "running"]
