"""Making an image: a machine, a script on it, and its disk; then the machine goes.

Whatever fails, what was made is removed again. What a killed command left, the next one for the
same name removes first: a machine that nobody watches, an image that was never finished.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.clock import utc_now
from sojourn.core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    SojournError,
    TaskFailed,
)
from sojourn.core.events import LogLine
from sojourn.core.ids import TaskId
from sojourn.core.images import MADE, check_name, container_image
from sojourn.engine import creation
from sojourn.engine.answering import until_it_answers
from sojourn.engine.lifecycle import exists
from sojourn.engine.observe import status
from sojourn.engine.reaching import follow
from sojourn.engine.removal import discard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Cloud, Images, MadeImage
    from sojourn.engine.creation import Launch

__all__ = ["check", "delete", "garbage", "list_images", "make", "maker_name"]

_REMOVED_WITHIN = 15 * 60.0  # seconds
_LINES = 10  # of the script's output, for an error
_LONGEST = 64 << 10  # bytes of a line; a longer one is cut
# Its file must not stay: it may have secrets, and images keep what is in folders. The folder has
# to allow programs, which /run often does not.
_RUN = """\
file=$(mktemp) && cat >"$file" && chmod 700 "$file" || exit
"$file" </dev/null
code=$?
rm -f "$file"
exit "$code"
"""


def check(cloud: Cloud, name: str) -> None:
    """Refuse, before anything is made, what could not be an image."""
    _images(cloud)
    check_name(name)


def _images(cloud: Cloud) -> Images:
    """Those of a cloud. They cannot be made there: raises InvalidInput."""
    if found := cloud.images():
        return found
    error = InvalidInput("cloud", f"{cloud.name} does not support making images")
    error.hint = cloud.features.instead_of_images
    raise error


def maker_name(name: str, region: str) -> str:
    """What the machine is called whose disk becomes an image: the same for each try."""
    return f"image-{name}-{region}"


def make(ctx: Context, cloud: Cloud, launch: Launch, name: str, script: str) -> MadeImage:
    """Run the script on a machine of this launch, and make its disk an image.

    A script that fails is an error with its last lines.
    """
    _check_launch(ctx, cloud, launch, name)
    images, region = _images(cloud), launch.task.region
    found = _find(ctx, cloud, name, region)
    if found and found.ready:
        return _finish(ctx, cloud, launch, found)
    if found:
        with ctx.step(f"Removing unfinished image {name}"):
            images.delete(ctx, name, region)
    if exists(ctx, cloud, launch.id):
        discard(ctx, cloud, launch.id)
    with ctx.whole():
        creation.create(ctx, cloud, launch)
        try:
            _prepare_and_take(ctx, cloud, launch, name, script)
        except BaseException as error:
            _clean_up(ctx.shielded().within(_REMOVED_WITHIN), cloud, launch, name, error)
            raise
    discard(ctx, cloud, launch.id)
    made = _find(ctx, cloud, name, region)
    if made is None:
        raise NotFound(f"Image {name} was deleted while its machine was being removed")
    return made


def _check_launch(ctx: Context, cloud: Cloud, launch: Launch, name: str) -> None:
    check(cloud, name)
    if container_image(launch.task.image):
        raise InvalidInput(
            "image", f"must be a machine image, such as ubuntu, got {launch.task.image!r}"
        )
    creation.check(ctx, cloud, launch.task)
    _images(cloud).check(ctx, launch.task)


def _finish(ctx: Context, cloud: Cloud, launch: Launch, found: MadeImage) -> MadeImage:
    """An image that is there, unless its machine is there too: then somebody was cut off."""
    if not exists(ctx, cloud, launch.id):
        error = Conflict(f"Image {found.name} already exists in {found.region}")
        error.hint = (
            f"Use it as image {MADE}{found.name}, or run `sojourn image delete {found.name} "
            f"--cloud {cloud.name}` first."
        )
        raise error
    discard(ctx, cloud, launch.id)
    return found


def _prepare_and_take(ctx: Context, cloud: Cloud, launch: Launch, name: str, script: str) -> None:
    until_it_answers(ctx, cloud, launch.id)
    # From here on it has to be this very one: another in its place has nothing of the script's.
    machine = _machine_of(ctx, cloud, launch.id)
    with ctx.step("Running the script"):
        _run_script(ctx, cloud, launch.id, machine, script)
    with ctx.step("Cleaning the machine"):
        _images(cloud).clean(ctx, launch.id, machine)
    with ctx.step(f"Making image {name}"):
        _images(cloud).take(ctx, launch.id, launch.task, machine, name)


def _machine_of(ctx: Context, cloud: Cloud, id: TaskId) -> str:
    [rank, *_] = status(ctx, cloud, id).ranks
    return rank.machine


def _run_script(ctx: Context, cloud: Cloud, id: TaskId, machine: str, script: str) -> None:
    process = cloud.reach(id, machine).run(ctx, ["/bin/sh", "-c", _RUN])
    last: deque[str] = deque(maxlen=_LINES)
    for line in _lines(follow(ctx, process, script.encode())):
        last.append(line)
        ctx.emit(LogLine(0, 1, utc_now(), line, id=str(id)))
    code = process.wait()
    if code:
        quoted = "".join(f"\n  {line}" for line in ["Its output ends with:", *last] if last)
        raise TaskFailed(f"The script failed with exit code {code}{quoted}", exit=code)


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > _LONGEST:
            whole, rest = [*whole, rest], b""
        for line in whole:
            yield line.decode(errors="surrogateescape").rstrip("\r")
    if rest:
        yield rest.decode(errors="surrogateescape")


def _clean_up(ctx: Context, cloud: Cloud, launch: Launch, name: str, error: BaseException) -> None:
    """Remove what there is. The machine first: it costs more."""
    left = []
    try:
        discard(ctx, cloud, launch.id)
    except (SojournError, OSError):
        # It has nothing to save, and perhaps no agent any more that could say so.
        left.append(f"sojourn delete --force {launch.id}")
    try:
        _images(cloud).delete(ctx, name, launch.task.region)
    except (SojournError, OSError):
        left.append(f"sojourn image delete {name} --cloud {cloud.name}")
    if left and isinstance(error, SojournError):
        commands = " and ".join(f"`{command}`" for command in left)
        error.hint = f"{error.hint}\nCould not remove everything. Run {commands}.".strip()


def _find(ctx: Context, cloud: Cloud, name: str, region: str) -> MadeImage | None:
    found = [image for image in _images(cloud).all(ctx, region) if image.name == name]
    return next((image for image in found if image.ready), found[0] if found else None)


def list_images(ctx: Context, cloud: Cloud) -> list[MadeImage]:
    """All images of a cloud, finished or not; none where they cannot be made."""
    images = cloud.images()
    return images.all(ctx) if images else []


def delete(ctx: Context, cloud: Cloud, name: str, region: str = "") -> None:
    """Remove an image, finished or not, and its machine if a killed command left one."""
    check(cloud, name)
    found = [image for image in _images(cloud).all(ctx, region) if image.name == name]
    regions = sorted({image.region for image in found})
    if not regions:
        where = f" in {region}" if region else ""
        raise NotFound(
            f"Image {name} not found{where}", hint="Run `sojourn image list` to see all images."
        )
    if len(regions) > 1:
        raise InvalidInput("region", f"required: {name} exists in {', '.join(regions)}")
    if not all(image.ready for image in found):
        _discard_makers(ctx, cloud, found)
    with ctx.step(f"Removing image {name}"):
        _images(cloud).delete(ctx, name, regions[0])


def _discard_makers(ctx: Context, cloud: Cloud, images: list[MadeImage]) -> None:
    for image in images:
        with suppress(InvalidInput):  # it has no tag
            maker = TaskId.parse(image.task)
            if exists(ctx, cloud, maker):
                discard(ctx, cloud, maker)


def garbage(ctx: Context, cloud: Cloud) -> list[MadeImage]:
    """Images that were never finished, and whose machines are gone: nobody makes them now."""
    found = []
    for image in list_images(ctx, cloud):
        if image.ready:
            continue
        try:
            alive = exists(ctx, cloud, TaskId.parse(image.task))
        except InvalidInput:
            alive = False
        if not alive:
            found.append(image)
    return found
