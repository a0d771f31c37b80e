"""`sojourn doctor`."""

from __future__ import annotations

import click

from sojourn.cli.session import json_option, opened


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check what is installed, which cloud credentials exist, and what works.

    Exits with 1 if something required does not work.

    \b
    sojourn doctor
    """
    from sojourn.cli.checkup import checkup
    from sojourn.cli.rows import table

    with opened(as_json=as_json) as session:
        findings = list(checkup())
        for finding in findings:
            session.renderer.result({"type": "finding", **finding.to_dict()}, "")
        rows = [(f.verdict, f.subject, f.detail) for f in findings]
        if not as_json:
            session.renderer.result({}, table(rows))
    ctx.exit(1 if any(f.verdict == "problem" for f in findings) else 0)
