"""The examples, as far as they are not run by `make demo`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_DEMO = Path(__file__).parents[2] / "examples" / "demo.sh"


def test_the_demo_has_no_colours_in_pipes() -> None:
    saying = re.search(r"^bold=.*?^say\(\).*?$", _DEMO.read_text(), re.MULTILINE | re.DOTALL)
    assert saying
    shown = subprocess.check_output(["bash", "-c", f"{saying[0]}\nsay hello"], text=True)
    assert shown == "\nhello\n"
