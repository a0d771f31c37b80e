"""What supervisors and agents get of the environment of whoever started them: no secrets."""

from __future__ import annotations

import os

__all__ = ["needed"]

_NAMES = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"),
        # To start the same Python with the same libraries:
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONPLATLIBDIR"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE"),
        *("PYTHONCOERCECLOCALE", "PYTHONSAFEPATH", "PYTHONUTF8", "__PYVENV_LAUNCHER__"),
    }
)
_PREFIXES = ("LC_", "XDG_")


def needed() -> dict[str, str]:
    """Those of this process's variables that a supervisor or an agent has a use for."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _NAMES or name.startswith(_PREFIXES)
    }
