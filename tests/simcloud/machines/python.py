"""Which `python3` a machine has: the system's, else that of the tests, at a neutral path."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HOME = "/opt/python"
_OLDEST = (3, 10)


@dataclass(frozen=True)
class Interpreter:
    """`executable` is a path in the machine; `home` a folder of the host to be shown at HOME, and
    `library` the shared library in it that the executable cannot do without, if there is one."""

    executable: str
    home: str = ""
    library: str = ""


def find() -> Interpreter | None:
    """The interpreter for machines, if there is one that can go there."""
    return of_system() or of_tests()


def of_system() -> Interpreter | None:
    target = os.path.realpath("/usr/bin/python3")
    version = re.fullmatch(r"/usr/bin/python(\d+)\.(\d+)", target)
    if version and (int(version[1]), int(version[2])) >= _OLDEST:
        return Interpreter("/usr/bin/python3")
    return None


def of_tests() -> Interpreter | None:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not Path(sys.base_prefix, "bin", name).exists():
        return None
    shared = sysconfig.get_config_var("Py_ENABLE_SHARED")
    library = str(sysconfig.get_config_var("INSTSONAME")) if shared else ""
    return Interpreter(f"{HOME}/bin/{name}", sys.base_prefix, library)


def libraries() -> str:
    """The folder below /usr where the loader looks for libraries, also without an index."""
    return f"lib/{sysconfig.get_config_var('MULTIARCH') or ''}".rstrip("/")


def settings() -> list[str]:
    """Names in /etc that belong to the system's interpreters."""
    return [path.name for path in Path("/etc").glob("python3.*")]
