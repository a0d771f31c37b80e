"""`sojourn mpi`."""

from __future__ import annotations

import click

from sojourn.cli.commands.mpirun import run


@click.group()
def mpi() -> None:
    """Run MPI programs on several machines.

    \b
    sojourn mpi run hpl --machines 3 --slots 2 --file HPL.dat=@HPL.dat -- xhpl
    """


mpi.add_command(run)
