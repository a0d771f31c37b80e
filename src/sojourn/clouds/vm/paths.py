"""Paths in a task's store beside those of `storage.layout`."""

from __future__ import annotations

from sojourn.storage.layout import LAPTOPS_WRITE, MACHINES, MACHINES_WRITE

__all__ = ["BOOT", "HOST_KEYS", "NAMES", "OWNER", "OWNERS", "PROBLEMS", "SEED"]

BOOT = "boot/"  # what machines fetch
PROBLEMS = f"{MACHINES}/problems/"  # and why some of them could not start
HOST_KEYS = f"{MACHINES}/host-keys/"  # of their SSH servers
OWNERS = "laptop/"  # for laptops alone: machines cannot read it
OWNER = f"{OWNERS}owner"  # whose store this is, in a bucket of the user's
SEED = f"{OWNERS}seed"  # of the task's SSH key
# All that a store has at its top.
NAMES = frozenset((*LAPTOPS_WRITE, *MACHINES_WRITE, BOOT.rstrip("/"), OWNERS.rstrip("/")))
