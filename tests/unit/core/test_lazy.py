from __future__ import annotations

import subprocess
import sys

from sojourn.core.lazy import lazily

_LOADED_LATE = """
import sys
from sojourn.core.lazy import lazily
for name in ("colorsys", "wave"):
    assert name not in sys.modules
with lazily("colorsys", "wave"):
    import colorsys
    import wave
    assert wave.Error  # which loads it at once
assert "colorsys" not in sys.modules
assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
stand_in = colorsys
import colorsys
assert colorsys is not stand_in
assert stand_in.rgb_to_hsv is colorsys.rgb_to_hsv
import wave as again
assert again.Error is wave.Error
"""


def test_a_module_is_loaded_when_something_of_it_is_asked_for() -> None:
    subprocess.run([sys.executable, "-c", _LOADED_LATE], check=True)


def test_what_is_ready_loads_nothing() -> None:
    with lazily("pyclbr", readmodule="ready"):
        import pyclbr
    assert pyclbr.readmodule == "ready"  # type: ignore[comparison-overlap]
    assert "pyclbr" not in sys.modules


def test_a_module_that_is_there_already_stays_what_it_is() -> None:
    with lazily("subprocess"):
        assert sys.modules["subprocess"] is subprocess
    assert sys.modules["subprocess"] is subprocess
