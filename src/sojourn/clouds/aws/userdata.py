"""The first script of a machine. It carries no secret, and has to stay under 16 KB."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from importlib import resources
from typing import Any

__all__ = ["LONGEST", "user_data"]

LONGEST = 16 * 1024
_PACKAGE = "sojourn.clouds.aws.onboard"
_MODULES = ("boot.py", "metadata.py", "signing.py")
_SCRIPT = """\
#!/bin/sh
# Whatever happens, this machine ends by itself.
shutdown -P +{minutes} >/dev/null 2>&1 || systemd-run --on-active={minutes}m systemctl poweroff
for python in python3 python3.13 python3.12 python3.11 python3.10 none; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && break
done
if [ "$python" = none ]; then
    echo 'sojourn: this image has no python3 of version 3.10 or later' | tee /dev/console
    exit 1
fi
base64 -d >/run/sojourn-boot.zip <<'END'
{program}
END
exec "$python" /run/sojourn-boot.zip
"""
_MOMENT = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same contents


def user_data(settings: dict[str, Any], minutes: int) -> str:
    """The script of machines with these settings, which end after so many minutes at the latest."""
    program = base64.encodebytes(_program(settings)).decode().strip()
    return _SCRIPT.format(minutes=minutes, program=program)


def _program(settings: dict[str, Any]) -> bytes:
    """A zip that Python runs: the modules at their places, in packages that are empty."""
    buffer = io.BytesIO()
    given = repr(json.loads(json.dumps(settings)))
    files = {"__main__.py": f"from {_PACKAGE}.boot import boot\nboot({given})\n"}
    parts = _PACKAGE.split(".")
    for depth in range(1, len(parts) + 1):
        files["/".join(parts[:depth]) + "/__init__.py"] = ""
    folder = resources.files(_PACKAGE)
    files |= {f"{'/'.join(parts)}/{name}": (folder / name).read_text() for name in _MODULES}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name, text in files.items():
            target.writestr(zipfile.ZipInfo(name, _MOMENT), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
