"""The startup script of Compute Engine machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm.first_script import first_script

if TYPE_CHECKING:
    from sojourn.clouds.gcp.on_machine.settings import Settings

__all__ = ["LONGEST", "ON_MACHINE", "startup_script"]

LONGEST = 256 * 1024  # bytes, as Compute Engine has it
ON_MACHINE = "sojourn.clouds.gcp.on_machine"
_MODULES = ("metadata.py",)
_LEAVE = r"""metadata() {{
    curl -fsS -H 'Metadata-Flavor: Google' \
        "http://metadata.google.internal/computeMetadata/v1/instance/$1"
}}
google() {{ # the token goes by way of a pipe: others can see arguments
    printf 'header = "Authorization: Bearer %s"\n' "$token" | curl -fsS -K - "$@"
}}
leave() {{
    token=$(metadata service-accounts/default/token |
        sed -n 's/.*"access_token" *: *"\([^"]*\)".*/\1/p')
    google -X PUT --data-binary "$1" -H 'Content-Type: text/plain' \
        {problems}"$(metadata id)"
    google -H 'Content-Type: application/json' \
        --data "{{\"instances\": [\"zones/{zone}/instances/$(metadata name)\"]}}" \
        {group}/deleteInstances
}}"""


def startup_script(settings: Settings) -> str:
    """The script of machines with these settings."""
    return first_script(settings, _LEAVE, ON_MACHINE, _MODULES, LONGEST)
