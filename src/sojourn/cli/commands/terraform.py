"""`sojourn terraform`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sojourn.cli.session import display_options, opened

if TYPE_CHECKING:
    from sojourn.terraform.install import Installed, Uninstalled

_NEXT = """\

Add this to your main.tf:

  terraform {{
    required_providers {{
      iterative = {{ source = "{source}" }}
    }}
  }}

Then run `terraform init` (or `tofu init`) in its folder.
If .terraform.lock.hcl there names another version, run `terraform init -upgrade`."""

# Checksums of the same version are not replaced by `init -upgrade`, so that hint has to be another.
_SAME_VERSION = """
If it names this version with the checksums of another program, remove that block from it."""


@click.group()
def terraform() -> None:
    """Install the provider that lets Terraform and OpenTofu run `iterative_task` blocks.

    \b
    sojourn terraform install
    sojourn terraform uninstall
    """


@terraform.command()
@click.option("--version", help="Version to install, if main.tf requires an exact one.")
@click.option(
    "--force", is_flag=True, help="Overwrite existing files, even if they are not Sojourn's."
)
@display_options
def install(version: str | None, force: bool, as_json: bool) -> None:
    """Install the provider for `terraform init` and `tofu init`; works offline.

    The provider uses the Python that runs this command. Run it again from another Python, or after
    an upgrade.

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
                    f"Unexpected file {other}: lock files from other computers will not match"
                )
        text = _told(done) + _NEXT.format(source=provider.SOURCE)
        text += "" if done.version == provider.PROVIDER_VERSION else _SAME_VERSION
        session.renderer.result(_row(done), text)


@terraform.command()
@display_options
def uninstall(as_json: bool) -> None:
    """Remove all versions of the provider that Sojourn installed.

    \b
    sojourn terraform uninstall
    """
    from sojourn.terraform import install as provider

    with opened(as_json=as_json) as session:
        done = provider.uninstall()
        session.renderer.result(_removed_row(done), _removed(done))
        if not done.files:
            session.ctx.note("Nothing to remove.")


def _told(done: Installed) -> str:
    from sojourn.cli.rows import table

    rows = [(f"  {placed.tool}", placed.change.value, str(placed.path)) for placed in done.wrappers]
    rows.append(("  Python", done.record_change.value, done.python))
    if done.old:
        rows.append(("  Terraform Provider Iterative", "served", "0.1.0 to 0.11.29"))
    head = "Installed" if done.changed else "Already installed:"
    shown = "\n".join(table(rows))
    return f"{head} provider version {done.version}\n{shown}\n"


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


def _removed(done: Uninstalled) -> str:
    """A line for each version of the old provider would be a thousand lines."""
    old = set(done.old)
    lines = [f"Removed {path}" for path in done.files if path not in old]
    if old:
        lines.append(f"Removed {len(old)} files for versions of Terraform Provider Iterative")
    return "\n".join(lines)


def _removed_row(done: Uninstalled) -> dict[str, object]:
    return {
        "type": "uninstalled",
        "files": [str(path) for path in done.files],
        "folders": [str(path) for path in done.folders],
    }
