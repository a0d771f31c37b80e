"""Open MPI for tests on this computer: the one that is installed, or the one that set-up fetched.

`python -m tests.simcloud.debs .venv/openmpi openmpi` fetches it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FETCHED = Path(__file__).parents[2] / ".venv" / "openmpi"
# Warnings about what small machines lack, which would be in every log
_QUIET = {
    "OMPI_MCA_mca_base_component_show_load_errors": "0",
    "PMIX_MCA_pcompress_base_silence_warning": "1",
}


def environment() -> dict[str, str] | None:
    """The variables with which a script finds `mpirun.openmpi`; None: there is none."""
    if shutil.which("mpirun.openmpi"):
        return dict(_QUIET)
    if not (FETCHED / "bin" / "mpirun.openmpi").exists():
        return None
    libraries = [path.parent for path in FETCHED.glob("lib/*/libopen-rte.so.*")]
    libraries += [
        path.parent
        for name in ("blas", "lapack")
        for path in FETCHED.glob(f"lib/*/{name}/lib{name}.so.3")
    ]
    return {
        **_QUIET,
        "LD_LIBRARY_PATH": ":".join(sorted({str(path) for path in libraries})),
        "OPAL_PREFIX": str(FETCHED),
        "PATH": f"{FETCHED / 'bin'}:{os.environ['PATH']}",
    }
