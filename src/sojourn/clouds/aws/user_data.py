"""The user data of EC2 machines: their first script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm.first_script import first_script

if TYPE_CHECKING:
    from sojourn.clouds.aws.on_machine.settings import Settings

__all__ = ["LONGEST", "ON_MACHINE", "user_data"]

LONGEST = 16 * 1024  # bytes, as EC2 has it
ON_MACHINE = "sojourn.clouds.aws.on_machine"
_MODULES = ("metadata.py", "signing.py")
_LEAVE = r"""metadata() {{
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
}}"""


def user_data(settings: Settings) -> str:
    """The script of machines with these settings."""
    return first_script(settings, _LEAVE, ON_MACHINE, _MODULES, LONGEST)
