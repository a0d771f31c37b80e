"""The first script of a machine: it fetches the agent, and ends the machine if it cannot.

It carries no secret. What differs between clouds, they supply: how a machine tells why it fails
and leaves its group, in shell, and how it fetches a file of its store, in Python.
"""

from __future__ import annotations

import base64
import io
import json
import shlex
import zipfile
from importlib import resources
from typing import TYPE_CHECKING, Any

from sojourn.agent.bundle import PYTHONS
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.vm.on_machine.settings import CloudSettings

__all__ = ["first_script"]

_PYTHONS = " ".join(f"python{each[0]}.{each[1:]}" for each in reversed(PYTHONS))
_BOOT = "sojourn.clouds.vm.on_machine"
_SCRIPT = r"""#!/bin/sh
# Whatever happens, this machine ends by itself.
shutdown -P +{minutes} >/dev/null 2>&1 || systemd-run --on-active={minutes}m systemctl poweroff
# Some clouds run this at every boot. Once the agent is there, it starts by itself.
systemctl is-enabled -q sojourn.service 2>/dev/null && exit

{leave}
fail() {{ # tell why, and leave the group for good: the next machine would fare no better
    echo "sojourn: $1" | tee /dev/console
    for pause in 0 30 60; do # its keys may be late; without any, the group has to replace it
        sleep "$pause"
        leave "$1"
        left=$?
        [ "$left" = 0 ] && break
    done
    # Refused (curl's 22), with rights of the user's: each machine after it would fare the same.
    if [ "$left" = 22 ] && [ {given} = True ]; then
        echo 'sojourn: permission_set lets no machine leave its group: staying, until the task is \
deleted' | tee /dev/console
        exit 1
    fi
    shutdown -P now || systemctl poweroff # rather than wait for the hook: it has nothing to store
    exit 1
}}

for python in python3 {pythons} none; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && break
done
[ "$python" != none ] || fail 'This image has no Python 3.10 or later'
base64 -d >/run/sojourn-boot.zip <<'END'
{program}
END
"$python" /run/sojourn-boot.zip 2>/run/sojourn-boot.errors && exit
cat /run/sojourn-boot.errors
fail "Could not start the agent: $(tail -n 1 /run/sojourn-boot.errors)"
"""
_MAIN = """\
from {boot}.boot import boot
from {package}.fetching import fetch
boot({settings}, fetch, {package!r})
"""
_MOMENT = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same contents


def first_script(
    settings: CloudSettings, leave: str, package: str, modules: Sequence[str], longest: int
) -> str:
    """The script of machines with these settings, which has at most `longest` bytes.

    `leave` defines the shell's function `leave REASON`, in which a setting's name in braces is its
    value. `package` has the modules `fetching`, which needs `modules` of it, and `life`.
    """
    data = settings.as_data()
    program = base64.encodebytes(_program(data, package, modules)).decode().strip()
    quoted = {name: shlex.quote(str(value)) for name, value in data.items()}
    leave = leave.format(**quoted)
    text = _SCRIPT.format(program=program, leave=leave, pythons=_PYTHONS, **quoted)
    if len(text.encode()) > longest:  # by the path of its store, which is in it
        raise InvalidInput("storage.container", "too long; use a shorter path")
    return text


def _program(settings: dict[str, Any], package: str, modules: Sequence[str]) -> bytes:
    """A zip that Python runs: the modules at their places, in packages that are empty."""
    given = repr(json.loads(json.dumps(settings)))
    files = {"__main__.py": _MAIN.format(boot=_BOOT, package=package, settings=given)}
    for place, names in ((_BOOT, ("boot.py",)), (package, ("fetching.py", *modules))):
        parts = place.split(".")
        for depth in range(1, len(parts) + 1):
            files["/".join(parts[:depth]) + "/__init__.py"] = ""
        folder = resources.files(place)
        files |= {f"{'/'.join(parts)}/{name}": (folder / name).read_text() for name in names}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name, text in files.items():
            target.writestr(zipfile.ZipInfo(name, _MOMENT), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
