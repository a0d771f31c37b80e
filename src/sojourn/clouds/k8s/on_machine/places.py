"""Where things are in the pods of a task, for those who make them and those who run in them."""

from __future__ import annotations

from sojourn.storage import layout

__all__ = [
    "ACCOUNT",
    "FOLDER",
    "KEYS",
    "LIBRARY",
    "LOCKS",
    "MOST_PARTS",
    "OBJECTS",
    "PROGRAM",
    "SETTINGS",
    "SIGNS",
    "STORE_OPTIONS",
    "TASK",
    "VOLUME",
    "left",
]

FOLDER = "/sojourn"  # of both containers: the workdir, the script, the pipes
TASK = "/opt/sojourn/task"  # the Secret
PROGRAM = "/opt/sojourn/program"  # the ConfigMap, with the agent
MOST_PARTS = 20  # ConfigMaps, if one cannot hold it
LIBRARY = "/tmp/sojourn/library"  # noqa: S108 -- a container of our own
VOLUME = "/opt/sojourn/store"  # the claim, for the agent's container alone
ACCOUNT = "/opt/sojourn/account"  # a token, for the agent's container alone
KEYS = "/opt/sojourn/keys"  # of an MPI program, for the script's container
# In the task's folder of the claim:
OBJECTS = "store"
LOCKS = "locks"  # each held by a machine for as long as it lives
# Keys of the Secret, beside the task's own:
SETTINGS = "settings.json"
STORE_OPTIONS = "store-options.json"
SIGNS = "/tmp/sojourn"  # noqa: S108 -- of laptops: see `storage.served.signs`


def left(machine: str) -> str:
    """An object in the store that tells that a pod is no machine any more, and serves the store.

    The cluster takes a second or two longer to tell.
    """
    return f"{layout.machine_path(machine)}.left"
