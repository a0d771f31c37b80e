"""Gitea from the command line: `build` it once, or run one (`up`) until it is interrupted."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.forge import binaries
from tests.forge.server import running, unavailable


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.forge", description=__doc__)
    parser.add_argument("command", choices=("build", "up"))
    try:
        if parser.parse_args().command == "build":
            binaries.build()
        else:
            _up()
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _up() -> None:
    if why := unavailable():
        raise RuntimeError(why)
    with running() as gitea:
        ends = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # now, as Gitea must not inherit it
        sys.stdout.write(f"export GITEA_SERVER_URL={gitea.url} GITEA_TOKEN={gitea.token}\n")
        sys.stdout.flush()
        signal.sigwait(ends)


if __name__ == "__main__":
    sys.exit(main())
