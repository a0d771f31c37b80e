"""The local cloud: machines are agents on this computer, the store is a folder.

It is a full citizen: the same agent, store and life cycle as everywhere, no mock. What does not
belong here: shortcuts that a cloud far away could not take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.about import About, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud

__all__ = ["ABOUT", "examine", "make_cloud"]

ABOUT = About(  # needs nothing: it is this computer
    title="The local cloud",
    settings=(Setting("folder", "folder of all tasks and machines", path=True),),
)


def make_cloud(name: str, settings: Mapping[str, str]) -> Cloud:
    """The cloud, with its folders where settings, or this user's environment, put them."""
    # Imported here: the supervisor lives in this package too, and has no use for the cloud.
    from sojourn.clouds.local.cloud import LocalCloud
    from sojourn.clouds.local.locations import Roots

    return LocalCloud(Roots.of(settings.get("folder", "")), name)


def examine(settings: Mapping[str, str]) -> Iterator[Finding]:
    """What there is to tell of its folders."""
    from sojourn.clouds.local.checkup import look  # for check-ups only
    from sojourn.clouds.local.locations import Roots

    yield from look(Roots.of(settings.get("folder", "")))
