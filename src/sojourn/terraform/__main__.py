"""`python -m sojourn.terraform`: the provider's process, started by Terraform."""

from __future__ import annotations

import os
import sys

import sojourn.core.quickstart  # noqa: F401 -- before all that uses dataclasses
from sojourn.terraform import pending
from sojourn.terraform.plugin.log import Log
from sojourn.terraform.plugin.server import serve
from sojourn.terraform.provider import IterativeProvider

__all__ = ["main"]


def main() -> None:
    """Serve Terraform until it is done."""
    code = serve(IterativeProvider(), Log("provider.iterative"), settled=pending.settle)
    sys.stdout.flush()
    # Threads that wait for nothing any more would make an orderly end take its time.
    os._exit(code)


if __name__ == "__main__":
    main()
