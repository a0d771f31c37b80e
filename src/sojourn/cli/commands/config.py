"""`sojourn config`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sojourn.cli.session import display_options, opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.taskfiles.defaults import Default


class _Setting(NamedTuple):
    """A value, the file and line that it stands on, and those of the one that replaces it."""

    name: str
    value: Any
    origin: str
    replaced: str = ""

    def row(self) -> dict[str, Any]:
        return {
            "type": "setting",
            "name": self.name,
            "value": self.value,
            "origin": self.origin,
            "replaced_by": self.replaced or None,
        }

    def columns(self) -> tuple[str, str, str]:
        value = self.value if isinstance(self.value, str) else json.dumps(self.value)
        replaced = f" (replaced by {self.replaced})" if self.replaced else ""
        return (self.name, value, f"{self.origin}{replaced}")


@click.command()
@click.option("--profile", metavar="NAME", help="Show what counts with this profile.")
@display_options
def config(profile: str | None, as_json: bool) -> None:
    """Show the settings: named clouds, defaults and profiles, and where each value is from.

    Settings are in ~/.config/sojourn/config.toml, and in sojourn.toml of the project, which comes
    first. Profiles come before defaults, task files before both, and options before all.

    \b
    sojourn config
    sojourn config --profile big
    """
    from sojourn.cli.rows import table
    from sojourn.settings import documents, ignored_file, user_file

    with opened(as_json=as_json) as session:
        if ignored := ignored_file():
            session.ctx.warn(f"Ignoring {ignored}: it belongs to another user")
        if not documents():
            session.ctx.note(f"No settings found. Create {user_file()}, or sojourn.toml here.")
        found = [*_clouds(), *_defaults(profile or "")]
        if found and not as_json:
            session.renderer.result({}, table([each.columns() for each in found]))
        for each in found if as_json else ():
            session.renderer.result(each.row(), "")


def _clouds() -> Iterator[_Setting]:
    from sojourn import clouds

    for name, cloud in clouds.named_clouds().items():
        yield _Setting(f"clouds.{name}.kind", cloud.kind, cloud.origin_of("kind"))
        for key, value in cloud.settings.items():
            yield _Setting(f"clouds.{name}.{key}", value, cloud.origin_of(key))


def _defaults(profile: str) -> Iterator[_Setting]:
    from sojourn.taskfiles import defaults

    for chosen in [profile] if profile else ["", *defaults.profiles()]:
        every = defaults.every_default(chosen)
        shown = every if profile or not chosen else [each for each in every if each.profile]
        for place, each in enumerate(shown):
            yield _Setting(
                ".".join((*each.table, each.name)),
                each.value,
                each.origin,
                _replaced(each, shown[place + 1 :]),
            )


def _replaced(default: Default, stronger: Sequence[Default]) -> str:
    """The origin of what counts instead. Variables of the environment add up."""
    if default.name == "environment":
        return ""
    found = [each.origin for each in stronger if each.name == default.name]
    return found[-1] if found else ""
