"""`python -m tests.simcloud.aws`: an account to try things on by hand, until Ctrl-C.

Prints the variables that another shell needs. With machines, where these can be had.
"""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import ExitStack

from tests.simcloud.aws.account import SimAWS
from tests.simcloud.machines.host import Host

# The machines have the Python of this computer, and `ubuntu` would bring wheels for its own alone.
_IMAGE = "ubuntu@099720109477:x86_64:ubuntu/images/hvm-ssd*/ubuntu-noble-24.04-*-server-*"


def main() -> None:
    without = Host.unavailable()
    with ExitStack() as opened:
        host = None if without else opened.enter_context(Host())
        account = opened.enter_context(SimAWS(host))
        variables = account.environment().items()
        lines = [f"export {name}={shlex.quote(value)}" for name, value in variables]
        if without:
            lines.append(f"# Instances only seem to run: {without}")
        else:
            lines.append(f"# For tasks: --cloud aws --image {shlex.quote(_IMAGE)}")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
