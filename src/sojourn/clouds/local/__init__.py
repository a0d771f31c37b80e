"""The local cloud: machines are agents on this computer, the store is a folder.

It is a full citizen: the same agent, store and life cycle as everywhere, no mock. What does not
belong here: shortcuts that a cloud far away could not take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.core.interfaces import Cloud

__all__ = ["is_set_up", "make_cloud"]


def is_set_up() -> bool:
    """Always: it is this computer."""
    return True


def make_cloud() -> Cloud:
    """The cloud, with its folders where this user's environment puts them."""
    # Imported here: the supervisor lives in this package too, and has no use for the cloud.
    from sojourn.clouds.local.cloud import LocalCloud

    return LocalCloud.from_environment()
