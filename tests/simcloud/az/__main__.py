"""`python -m tests.simcloud.az`: a subscription to try things on by hand, until Ctrl-C.

Prints the variables that another shell needs. With machines, where these can be had.
"""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import ExitStack

from tests.simcloud.az.account import SimAzure
from tests.simcloud.machines.host import Host


def main() -> None:
    without = Host.unavailable()
    with ExitStack() as opened:
        host = None if without else opened.enter_context(Host())
        account = opened.enter_context(SimAzure(host))
        variables = account.environment().items()
        lines = [f"export {name}={shlex.quote(value)}" for name, value in variables]
        if without:
            lines.append(f"# Instances only seem to run: {without}")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
