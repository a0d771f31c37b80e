"""Images made once, for tasks and machines that come after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import clouds, engine
from sojourn.api import creating
from sojourn.api.finding import each_cloud, of_all
from sojourn.api.machine import machine_task
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.errors import InvalidInput
from sojourn.core.images import MADE

if TYPE_CHECKING:
    import builtins

    from typing_extensions import Unpack

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Cloud, MadeImage
    from sojourn.taskfiles.changes import Fields

__all__ = ["delete", "garbage", "list", "make"]

_LIFETIME = 6 * 3600  # seconds; a machine whose maker was killed ends then


def make(
    name: str,
    script: str,
    /,
    *,
    gitignore: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **fields: Unpack[Fields],
) -> MadeImage:
    """Run a script on a machine, and make its disk the image `sojourn:NAME`.

    `script` is its text. `fields`: those of a task, such as `cloud`, `image`, `machine`, `region`
    and `workdir`; the script runs in the workdir, which is not in the image.
    """
    ctx = ctx or context_for(on_event)
    if not script.strip():
        raise InvalidInput("script", "required")
    given: Fields = {"timeout": _LIFETIME, **fields}
    given["idle_timeout"] = 0  # its maker waits for a script that may be waiting, too
    given["output"] = ""
    given["parallelism"] = 1
    given.pop("script", None)
    task = clouds.placed(machine_task("", given))
    cloud = clouds.load(task.cloud)
    engine.imaging.check(cloud, name)
    given["name"] = engine.imaging.maker_name(name, task.region)
    launch = creating.launch_of(ctx, machine_task("", given), None, gitignore)
    return engine.imaging.make(ctx, cloud, launch, name, script)


def list(  # noqa: A001 -- as in `sojourn image list`
    *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> builtins.list[tuple[str, MadeImage]]:
    """All images with the names of their clouds, of all clouds that can be asked."""
    ctx = ctx or context_for(on_event)

    def found(cloud: Cloud) -> builtins.list[tuple[str, MadeImage]]:
        return [(cloud.name, image) for image in engine.imaging.list_images(ctx, cloud)]

    return of_all(ctx, found)


def delete(
    name: str,
    *,
    cloud: str,
    region: str = "",
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
) -> None:
    """Remove an image. `region`: where it is, if the same name is in several."""
    ctx = ctx or context_for(on_event)
    engine.imaging.delete(ctx, clouds.load(cloud), name.removeprefix(MADE), region)


def garbage(
    *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> builtins.list[tuple[str, MadeImage]]:
    """Images that were never finished, with the names of their clouds."""
    ctx = ctx or context_for(on_event)

    def found(cloud: Cloud) -> builtins.list[tuple[str, MadeImage]]:
        return [(cloud.name, image) for image in engine.imaging.garbage(ctx, cloud)]

    return [*each_cloud(found, [])]  # whoever looks for garbage is told of the others by tasks
