"""What an image of Google's does when it boots: it fetches the startup script and runs it.

On Google Cloud this happens at every boot. The script runs as root, and what it prints goes to the
serial port, with a prefix. The shutdown script runs when the machine shuts down in order. Before
all this, the guest agent makes the users whose keys are in the metadata.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simcloud.machines.spec import Login

ADDRESS = "169.254.169.254"
PORT = 80

SCRIPT = rb"""#!/bin/bash
# In place of google-guest-agent and its units for startup and shutdown scripts.
root=http://metadata.google.internal/computeMetadata/v1/instance/attributes
folder=$(mktemp -d /tmp/metadata-scripts.XXXXXX)
fetch() { curl -sf -H 'Metadata-Flavor: Google' "$root/$1" -o "$folder/$1"; }
if fetch shutdown-script; then
  chmod 700 "$folder/shutdown-script"
  systemd-run --quiet --unit google-shutdown-scripts --property RemainAfterExit=yes \
    --property "ExecStop=$folder/shutdown-script" --property TimeoutStopSec=infinity true
fi
if ! fetch startup-script; then
  echo 'google_metadata_script_runner: No startup scripts to run.'
  exit 0
fi
echo 'google_metadata_script_runner: Found startup-script in metadata.'
chmod 700 "$folder/startup-script"
(cd / && "$folder/startup-script") 2>&1 | sed -u 's/^/startup-script: /'
echo "google_metadata_script_runner: startup-script exit status ${PIPESTATUS[0]}"
"""


def logins(attribute: Callable[[str], str | None]) -> tuple[Login, ...]:
    """The users of an instance with these attributes. The project has no keys here, so there is
    nothing that block-project-ssh-keys could keep out."""
    if (attribute("enable-oslogin") or "").upper() == "TRUE":
        return ()  # who may log in is a matter of roles then
    keys: dict[str, list[str]] = {}
    for line in (attribute("ssh-keys") or "").splitlines():
        user, colon, key = line.strip().partition(":")
        if user and colon and key.strip():
            keys.setdefault(user, []).append(key.strip())
    return tuple(Login(user, tuple(each)) for user, each in keys.items())
