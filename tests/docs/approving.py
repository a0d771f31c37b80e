"""Terraform, with somebody who says yes: `python -m tests.docs.approving ARGUMENTS`."""

from __future__ import annotations

import os
import sys

from tests.terraform.project import program


def main() -> None:
    # The folder with the stand-ins comes first in PATH, and would be found again.
    os.environ["PATH"] = os.environ["PATH"].partition(os.pathsep)[2]
    started, (verb, *others) = program(), sys.argv[1:]
    assert started
    answers = ["-auto-approve"] if verb in ("apply", "destroy") else []
    os.execvp(started[0], [*started, verb, *answers, *others])


if __name__ == "__main__":
    main()
