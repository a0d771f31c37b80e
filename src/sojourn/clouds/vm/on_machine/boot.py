"""The first minute of a machine: fetch the agent, and start it as a unit of systemd.

It comes with the first script. Nothing is installed yet, so it needs Python and systemd alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import sys
import time
import urllib.error
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sojourn.clouds.vm.on_machine.settings import BootData

__all__ = ["boot"]

D = TypeVar("D", bound="BootData")

_FOLDER = Path("/opt/sojourn")
_UNITS = Path("/etc/systemd/system")  # and not in /run: after a reboot, nobody else starts it
_PAUSE = 5.0
# It comes after the network, so that in a shutdown it is stopped before: it has work to store.
# The same goes for Docker, if the script is in a container.
# A process of the script that is killed for lack of memory is the script's affair, and no reason
# to end all: the script fails of it, and has its exit code.
_UNIT_TEXT = """\
[Unit]
Description=Sojourn
Wants=network-online.target
After=network.target network-online.target nss-lookup.target docker.service
[Service]
Environment=PYTHONPATH={folder}/lib HOME=/root
WorkingDirectory={folder}
ExecStart={python} -m {package}.life {folder}/settings.json
KillMode=mixed
OOMPolicy=continue
TimeoutStopSec=600
Restart=on-failure
RestartSec=5
StandardOutput=journal+console
StandardError=inherit
[Install]
WantedBy=multi-user.target
"""
# What the first script set with `shutdown` does not survive a reboot. This counts from each boot.
_TIMER_TEXT = """\
[Unit]
Description=The end of this machine, whatever happens
[Timer]
OnBootSec={minutes}min
Unit=poweroff.target
[Install]
WantedBy=timers.target
"""
_APT_TIMERS = ("apt-daily.timer", "apt-daily-upgrade.timer")
_NEEDRESTART = Path("/etc/needrestart")
_SPARED = "$nrconf{override_rc}{qr(^sojourn)} = 0;\n"


def boot(settings: D, fetch: Callable[[D, str], bytes], package: str) -> None:
    """Until the agent runs, or the tries are over.

    `fetch` has the content of a file beside the agent; what is not there is an HTTPError with 404.
    """
    _FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    _unpack(_patiently(settings, fetch), _FOLDER / "lib", settings["wheels"])
    (_FOLDER / "settings.json").write_text(json.dumps(settings))
    _link(_FOLDER / "python", sys.executable)  # for commands from elsewhere
    _keep_away_upgrades()
    units = {
        "sojourn-end.timer": _TIMER_TEXT.format(minutes=settings["minutes"]),
        "sojourn.service": _UNIT_TEXT.format(
            folder=_FOLDER, python=sys.executable, package=package
        ),
    }
    for name, text in units.items():
        (_UNITS / name).write_text(text)
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    subprocess.run(["systemctl", "enable", "--now", *units], check=True)


def _link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _keep_away_upgrades() -> None:
    """Upgrades hold the lock that `apt-get` in scripts needs, and restart what uses a library."""
    subprocess.run(["systemctl", "mask", "--now", *_APT_TIMERS], check=False, capture_output=True)
    if _NEEDRESTART.is_dir():
        (_NEEDRESTART / "conf.d").mkdir(exist_ok=True)
        (_NEEDRESTART / "conf.d" / "sojourn.conf").write_text(_SPARED)


def _unpack(content: bytes, folder: Path, known: Sequence[str]) -> None:
    """`known`: hashes, which came by another way than the wheels."""
    zipfile.ZipFile(io.BytesIO(content)).extractall(folder)
    for wheel in sorted((folder / "wheels").iterdir()):
        if hashlib.sha256(wheel.read_bytes()).hexdigest() not in known:
            sys.exit(f"{wheel.name} in the store is not what was uploaded: its hash is unknown")
        zipfile.ZipFile(wheel).extractall(folder)


def _patiently(settings: D, fetch: Callable[[D, str], bytes]) -> bytes:
    """The agent. Its rights may not be known everywhere yet; what is not there will not come."""
    name = f"agent-{platform.machine()}-{sys.version_info[0]}{sys.version_info[1]}.zip"
    give_up = time.monotonic() + settings["patience"]
    while True:
        try:
            return fetch(settings, name)
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code == 404:
                sys.exit(
                    f"{name} not found in the store: this image has an unexpected Python version; "
                    f"specify the image in full, as in {settings['page']}, to use any version"
                )
            if time.monotonic() > give_up:
                sys.exit(f"could not fetch {name}: {error}")
            _say(f"could not fetch {name}, retrying: {error}")
            time.sleep(_PAUSE)


def _say(text: str) -> None:
    sys.stdout.write(f"sojourn: {text}\n")
    sys.stdout.flush()
