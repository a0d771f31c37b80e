"""An input of the High Performance Linpack, with process grids to fill in."""

from __future__ import annotations

HPL = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
20480        Ns
1            # of NBs
192          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
{count}            # of process grids (P x Q)
{ps}          Ps
{qs}          Qs
16.0         threshold
"""
