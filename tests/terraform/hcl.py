"""Configurations as tests need them."""

from __future__ import annotations

import json
from textwrap import dedent

SLEEPS = "#!/bin/sh\nsleep 600\n"
STORAGE = 'storage {\n workdir = "work"\n output = "results"\n }'


def quoted(text: str) -> str:
    """A text as Terraform writes it."""
    return json.dumps(text).replace("${", "$${").replace("%{", "%%{")


def task(script: str = SLEEPS, *more: str, name: str = "example") -> str:
    """A task on the local cloud, with more arguments and blocks."""
    lines = "\n  ".join(more)
    return f"""
resource "iterative_task" "{name}" {{
  cloud  = "local"
  script = {quoted(dedent(script).lstrip())}
  {lines}
}}
"""
