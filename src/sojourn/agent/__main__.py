"""Start an agent: `python -m sojourn.agent FILE`, where FILE holds its JSON document."""

import sojourn.core.quickstart  # noqa: F401, I001 -- before all that uses dataclasses

import os
import sys
from pathlib import Path

from sojourn.agent.background import say
from sojourn.agent.config import TROUBLE, Config
from sojourn.agent.work import Agent
from sojourn.core.errors import SojournError


def main() -> int:
    """Read the document (`-`: from standard input) and live."""
    if len(sys.argv) != 2:
        say("usage: python -m sojourn.agent FILE")
        return 2
    text = sys.stdin.read() if sys.argv[1] == "-" else Path(sys.argv[1]).read_text()
    try:
        return Agent(Config.parse(text)).run()
    except SojournError as error:
        say(str(error))
        return TROUBLE


if __name__ == "__main__":
    # At once: all is stored and told, and while Python takes itself apart, a signal would kill it.
    os._exit(main())
