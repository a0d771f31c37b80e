"""Open MPI for tests on this computer: the one that is installed, or the one that set-up fetched.

`python -m tests.simcloud.debs .venv/openmpi openmpi` fetches it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FETCHED = Path(__file__).parents[2] / ".venv" / "openmpi"
# Warnings about what small machines lack, which would be in every log; and processes that wait for
# each other without taking the processors away that all of them share.
_SETTINGS = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_mca_base_component_show_load_errors": "0",
    "PMIX_MCA_pcompress_base_silence_warning": "1",
}


def install(usr: Path) -> dict[str, str] | None:
    """Add it to the /usr of machines, which is a layer over this computer's; None: there is none.

    Gives the variables with which a script finds it there.
    """
    if not (FETCHED / "bin" / "mpirun.openmpi").exists():
        return dict(_SETTINGS) if shutil.which("mpirun.openmpi") else None
    shutil.copytree(FETCHED, usr, symlinks=True, dirs_exist_ok=True)
    libraries = [f"/usr/{folder.relative_to(FETCHED)}" for folder in _alternatives()]
    return {**_SETTINGS, "LD_LIBRARY_PATH": ":".join(libraries)}


def _alternatives() -> list[Path]:
    """Folders of libraries that Debian's alternatives would link to."""
    found = [FETCHED.glob(f"lib/*/{name}/lib{name}.so.3") for name in ("blas", "lapack")]
    return sorted(path.parent for paths in found for path in paths)


def environment() -> dict[str, str] | None:
    """The variables with which a script finds `mpirun.openmpi`; None: there is none."""
    if shutil.which("mpirun.openmpi"):
        return dict(_SETTINGS)
    if not (FETCHED / "bin" / "mpirun.openmpi").exists():
        return None
    libraries = [path.parent for path in FETCHED.glob("lib/*/libopen-rte.so.*")]
    libraries += _alternatives()
    return {
        **_SETTINGS,
        "LD_LIBRARY_PATH": ":".join(sorted({str(path) for path in libraries})),
        "OPAL_PREFIX": str(FETCHED),
        "PATH": f"{FETCHED / 'bin'}:{os.environ['PATH']}",
    }
