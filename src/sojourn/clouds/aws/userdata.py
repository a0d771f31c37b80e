"""The first script of a machine. It carries no secret, and has to stay under 16 KB."""

from __future__ import annotations

import base64
import io
import json
import shlex
import zipfile
from importlib import resources
from typing import Any

__all__ = ["LONGEST", "user_data"]

LONGEST = 16 * 1024
_PACKAGE = "sojourn.clouds.aws.on_machine"
_MODULES = ("boot.py", "metadata.py", "signing.py")
_SCRIPT = r"""#!/bin/sh
# Whatever happens, this machine ends by itself.
shutdown -P +{minutes} >/dev/null 2>&1 || systemd-run --on-active={minutes}m systemctl poweroff

metadata() {{
    curl -fsS -H "X-aws-ec2-metadata-token: $token" "http://169.254.169.254/latest/meta-data/$1"
}}
key() {{
    printf %s "$keys" | tr '{{,}}' '\n\n\n' | sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p'
}}
aws() {{ # the keys go by way of a pipe: others can see arguments
    printf 'user = "%s:%s"\nheader = "x-amz-security-token: %s"\n' \
        "$(key AccessKeyId)" "$(key SecretAccessKey)" "$(key Token)" | curl -fsS -K - "$@"
}}
leave() {{
    token=$(curl -fsS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 600' \
        http://169.254.169.254/latest/api/token)
    machine=$(metadata instance-id)
    keys=$(metadata "iam/security-credentials/$(metadata iam/security-credentials/)")
    aws --aws-sigv4 aws:amz:{bucket_region}:s3 -X PUT --data-binary "$1" \
        -H 'Content-Type: text/plain' -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' \
        {problems}"$machine"
    aws --aws-sigv4 aws:amz:{region}:autoscaling --data "Action=TerminateInstanceInAutoScalingGroup\
&Version=2011-01-01&ShouldDecrementDesiredCapacity=true&InstanceId=$machine" {autoscaling}
}}
fail() {{ # tell why, and leave the group for good: the next machine would fare no better
    echo "sojourn: $1" | tee /dev/console
    for pause in 0 30 60; do # its keys may be late; without any, the group has to replace it
        sleep "$pause"
        leave "$1" && break
    done
    shutdown -P now || systemctl poweroff # rather than wait for the hook: it has nothing to store
    exit 1
}}

for python in python3 python3.13 python3.12 python3.11 python3.10 none; do
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
_MOMENT = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same contents


def user_data(settings: dict[str, Any]) -> str:
    """The script of machines with these settings."""
    program = base64.encodebytes(_program(settings)).decode().strip()
    quoted = {name: shlex.quote(str(value)) for name, value in settings.items()}
    return _SCRIPT.format(program=program, **quoted)


def _program(settings: dict[str, Any]) -> bytes:
    """A zip that Python runs: the modules at their locations, in packages that are empty."""
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
