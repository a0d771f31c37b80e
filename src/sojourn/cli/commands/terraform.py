"""`sojourn terraform`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import json_option, opened

if TYPE_CHECKING:
    from sojourn.terraform.install import Installed, Uninstalled

_NEXT = """\

Your main.tf needs:

  terraform {{
    required_providers {{
      iterative = {{ source = "{source}" }}
    }}
  }}

Then run, where it is: terraform init (or: tofu init)
If .terraform.lock.hcl there names another version: terraform init -upgrade"""

# Checksums of the same version are not replaced by `init -upgrade`, so that hint has to be another.
_SAME_VERSION = """
If it names this version, with the checksums of another program: remove that block from it"""


@click.group()
def terraform() -> None:
    """Install the provider that lets Terraform and OpenTofu run `iterative_task` blocks.

    \b
    sojourn terraform install
    sojourn terraform uninstall
    """


@terraform.command()
@click.option("--version", help="For a main.tf that asks for exactly this version.")
@click.option("--force", is_flag=True, help="Replace what is there, even if it is not Sojourn's.")
@json_option
def install(version: str | None, force: bool, as_json: bool) -> None:
    """Put the provider where `terraform init` and `tofu init` find it, also without a network.

    It runs with the Python that runs this command. Can be repeated, for instance from another
    Python, or after an upgrade.

    \b
    sojourn terraform install
    sojourn terraform install --version 0.11.20
    """
    from sojourn.terraform import install as provider

    with opened(as_json=as_json) as session:
        provider.check_extra()
        version = provider.PROVIDER_VERSION if version is None else version
        done = provider.install(version=version, force=force)
        for placed in done.wrappers:
            for other in placed.beside:
                session.ctx.warn(
                    f"{other} should not be there: lock files of other computers will not match"
                )
        text = _told(done) + _NEXT.format(source=provider.SOURCE)
        text += "" if done.version == provider.PROVIDER_VERSION else _SAME_VERSION
        session.renderer.result(_row(done), text)


@terraform.command()
@json_option
def uninstall(as_json: bool) -> None:
    """Remove the provider, in all versions that Sojourn has put there, and nothing else.

    \b
    sojourn terraform uninstall
    """
    from sojourn.terraform import install as provider

    with opened(as_json=as_json) as session:
        done = provider.uninstall()
        session.renderer.result(_removed_row(done), "\n".join(f"Removed {p}" for p in done.files))
        if not done.files:
            session.ctx.note("There is nothing to remove.")


def _told(done: Installed) -> str:
    from sojourn.cli.rows import table

    rows = [(f"  {placed.tool}", placed.change.value, str(placed.path)) for placed in done.wrappers]
    rows.append(("  Python", done.record_change.value, done.python))
    head = "Installed" if done.changed else "Already there:"
    return f"{head} version {done.version} of the provider\n{table(rows)}\n"


def _row(done: Installed) -> dict[str, object]:
    return {
        "type": "installed",
        "version": done.version,
        "python": done.python,
        "record": str(done.record),
        "changed": done.changed,
        "wrappers": [
            {"tool": placed.tool, "path": str(placed.path), "change": placed.change.value}
            for placed in done.wrappers
        ],
    }


def _removed_row(done: Uninstalled) -> dict[str, object]:
    return {
        "type": "uninstalled",
        "files": [str(path) for path in done.files],
        "folders": [str(path) for path in done.folders],
    }
