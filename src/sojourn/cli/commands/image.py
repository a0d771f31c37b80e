"""`sojourn image`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from sojourn import clouds
from sojourn.cli.session import display_options, opened
from sojourn.cli.taskoptions import PATH, machine_fields
from sojourn.core.images import MADE

if TYPE_CHECKING:
    from sojourn.core.interfaces import MadeImage
    from sojourn.taskfiles.changes import Fields

_CLOUD = click.option("--cloud", required=True, help=f"Cloud, {clouds.any_of()}.")


@click.group()
def image() -> None:
    """Make machine images, for machines that start with everything installed.

    \b
    sojourn image make tools --cloud CLOUD --script setup.sh
    sojourn run --cloud CLOUD --image sojourn:tools train.sh
    sojourn image list
    """


@image.command()
@click.argument("name")
@_CLOUD
@click.option("--script", type=PATH, required=True, help="Script that installs what is needed.")
@click.option("--image", help="Machine image to start from (default: ubuntu).")
@click.option("--machine", help="Machine type, such as m, l, xl or m+t4 (default: m).")
@click.option("--region", help="Cloud region (default: us-west).")
@click.option("--disk-size", type=int, metavar="GB", help="Disk size (default: automatic).")
@click.option("--workdir", type=PATH, help="Folder to upload and run in (default: none).")
@display_options
def make(name: str, script: str, as_json: bool, **options: Any) -> None:
    """Run a script on a machine, and make its disk an image.

    Tasks and machines in the same region can use it as image sojourn:NAME. Removes the machine in
    any case. The image has nothing of the workdir unless the script copies it elsewhere.

    \b
    sojourn image make tools --cloud CLOUD --script setup.sh
    sojourn image make cuda --cloud CLOUD --machine m+t4 --script cuda.sh
    """
    from sojourn.api import images, rows
    from sojourn.taskfiles.reading import read_text

    with opened(as_json=as_json) as session:
        fields = cast("Fields", machine_fields(options))
        made = images.make(name, read_text(Path(script)), ctx=session.ctx, **fields)
        session.renderer.result(rows.image(options["cloud"], made), f"{MADE}{made.name}")


@image.command("list")
@display_options
def list_(as_json: bool) -> None:
    """List all images that were made.

    \b
    sojourn image list
    """
    from sojourn.api import images, rows
    from sojourn.cli.rows import table

    with opened(as_json=as_json) as session:
        found = images.list(ctx=session.ctx)
        if as_json:
            for cloud, made in found:
                session.renderer.result(rows.image(cloud, made), "")
        elif found:
            session.renderer.result({}, table([_HEADER, *(_columns(*each) for each in found)]))
        else:
            session.ctx.note("No images found. Run `sojourn image make --help` to make one.")


@image.command()
@click.argument("name")
@_CLOUD
@click.option("--region", default="", help="Cloud region (default: where it is).")
@display_options
def delete(name: str, cloud: str, region: str, as_json: bool) -> None:
    """Delete an image. Tasks that run keep running; they cannot get new machines.

    \b
    sojourn image delete tools --cloud CLOUD
    """
    from sojourn.api import images

    with opened(as_json=as_json) as session:
        images.delete(name, cloud=cloud, region=region, ctx=session.ctx)
        row = {"type": "image-deleted", "name": name, "cloud": cloud}
        session.renderer.result(row, f"Deleted {name}")


_HEADER = ("IMAGE", "STATE", "CLOUD", "REGION", "CREATED", "BASE")


def _columns(cloud: str, made: MadeImage) -> tuple[str, ...]:
    state = "ready" if made.ready else "unfinished"
    return (
        f"{MADE}{made.name}",
        state,
        cloud,
        made.region,
        made.created[:10] or "-",
        made.base or "-",
    )
