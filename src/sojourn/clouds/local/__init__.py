"""The local cloud: machines are agents on this computer, the store is a folder.

It is a full citizen: the same agent, store and life cycle as everywhere, no mock. What does not
belong here: shortcuts that a cloud far away could not take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.about import About

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud

__all__ = ["ABOUT", "examine", "make_cloud"]

ABOUT = About(title="The local cloud")  # needs nothing: it is this computer


def make_cloud() -> Cloud:
    """The cloud, with its folders where this user's environment puts them."""
    # Imported here: the supervisor lives in this package too, and has no use for the cloud.
    from sojourn.clouds.local.cloud import LocalCloud

    return LocalCloud.from_environment()


def examine() -> Iterator[Finding]:
    """What there is to tell of its folders."""
    from sojourn.clouds.local.checkup import look  # for check-ups only

    yield from look()
