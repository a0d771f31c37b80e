"""Paths in a task's store beside those of `storage.layout`."""

from __future__ import annotations

from sojourn.storage import layout
from sojourn.storage.layout import LAPTOPS_WRITE, MACHINES, MACHINES_WRITE

__all__ = [
    "BOOT",
    "HOST_KEYS",
    "LISTED",
    "NAMES",
    "OWNER",
    "OWNERS",
    "PROBLEMS",
    "READ",
    "SEED",
]

BOOT = "boot/"  # what machines fetch
PROBLEMS = f"{MACHINES}/problems/"  # and why some of them could not start
HOST_KEYS = f"{MACHINES}/host-keys/"  # of their SSH servers
OWNERS = "laptop/"  # for laptops alone: machines cannot read it
OWNER = f"{OWNERS}owner"  # whose store this is, in a bucket of the user's
SEED = f"{OWNERS}seed"  # of the task's SSH key
# All that a store has at its top.
NAMES = frozenset((*LAPTOPS_WRITE, *MACHINES_WRITE, BOOT.rstrip("/"), OWNERS.rstrip("/")))

# What machines have to see of a store, where policies name it: files, and folders with a slash.
# Beside a task's own things in a bucket of the user's may be those of other tasks.
_FILES = frozenset((layout.TASK, layout.ENVIRONMENT, layout.UPLOADED, layout.FOLLOW))
READ = (*(name if name in _FILES else f"{name}/" for name in LAPTOPS_WRITE), BOOT)
LISTED = tuple(f"{name}/" for name in (*LAPTOPS_WRITE, *MACHINES_WRITE) if name not in _FILES)
