"""What systemd does in a machine, as files: little, so that it boots fast and touches nothing else.

User-data runs as cloud-init runs it: by root, once, with the folder / and no HOME, after the
machine is up, and what it leaves in the background goes on. The bus, logind (for timed shutdowns)
and journald start when something needs them. There is no udev and no getty. The network is there
from the start, and goes in a shutdown.
"""

from __future__ import annotations

from collections.abc import Mapping

USER_DATA = "var/lib/cloud/instance/scripts/part-001"

FILES: Mapping[str, str] = {
    "etc/systemd/system.conf": """\
[Manager]
LogColor=no
LogTarget=console
ShowStatus=no
""",
    "etc/systemd/journald.conf": """\
[Journal]
Audit=no
ForwardToConsole=yes
RateLimitIntervalSec=0
ReadKMsg=no
RuntimeMaxUse=16M
Storage=volatile
""",
    "etc/systemd/system/cloud-init.target": """\
[Unit]
Description=Cloud-init target
After=multi-user.target
""",
    # In place of a network manager, which takes the network with it when it is stopped.
    "etc/systemd/system/network-manager.service": """\
[Unit]
Description=Network
Wants=network.target
Before=network.target

[Service]
Type=oneshot
ExecStart=true
RemainAfterExit=yes
ExecStop=ip link set lo down
ExecStop=-ip link set eth0 down
""",
    "etc/systemd/system/cloud-final.service": f"""\
[Unit]
Description=Execute user-data
After=network-online.target multi-user.target
ConditionPathExists=/{USER_DATA}

[Service]
Type=oneshot
ExecStart=/{USER_DATA}
RemainAfterExit=yes
TimeoutSec=0
KillMode=process
TasksMax=infinity
StandardOutput=file:/dev/console
StandardError=inherit
""",
}

LINKS: Mapping[str, str] = {
    "etc/systemd/system/default.target": "/usr/lib/systemd/system/multi-user.target",
    "etc/systemd/system/multi-user.target.wants/cloud-init.target": "../cloud-init.target",
    "etc/systemd/system/multi-user.target.wants/network-manager.service": (
        "../network-manager.service"
    ),
    "etc/systemd/system/cloud-init.target.wants/cloud-final.service": "../cloud-final.service",
    **{
        f"etc/systemd/system/sockets.target.wants/{name}": f"/usr/lib/systemd/system/{name}"
        for name in ("dbus.socket", "systemd-journald.socket", "systemd-journald-dev-log.socket")
    },
    **{
        f"etc/systemd/system/{masked}": "/dev/null"
        for masked in (
            "modprobe@.service",
            "systemd-journald-audit.socket",
            "systemd-remount-fs.service",
            "tmp.mount",
        )
    },
}

# Folders below /usr that are to be empty: what packages of the host want to be started.
SILENCED = (
    "lib/systemd/system/*.wants",
    "lib/systemd/system/*.requires",
    "lib/systemd/system-generators",
    "lib/systemd/system-environment-generators",
)
