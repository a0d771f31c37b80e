from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sojourn.terraform.plugin.server import _COOKIE


def _start(
    folder: Path, *, prefix: Sequence[str] = (), **environment: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "sojourn.terraform"],
        env={**os.environ, "TMPDIR": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "This is a Terraform plugin, started by Terraform"),
        (
            {_COOKIE[0]: _COOKIE[1], "PLUGIN_PROTOCOL_VERSIONS": "4,5"},
            "This plugin requires Terraform 1.0 or later",
        ),
    ],
    ids=["by hand", "too old"],
)
def test_it_says_why_it_does_not_serve(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    out, _ = _start(tmp_path, **environment).communicate(timeout=60)
    assert said in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("trusting", [False, True], ids=["with a certificate", "without"])
def test_it_shakes_hands_and_leaves_nothing_when_told_to_end(
    tmp_path: Path, trusting: bool
) -> None:
    theirs = {} if trusting else {"PLUGIN_CLIENT_CERT": "-----BEGIN CERTIFICATE-----"}
    process = _start(tmp_path, **{_COOKIE[0]: _COOKIE[1]}, **theirs)
    assert process.stdout
    core, protocol, network, address, kind, certificate = process.stdout.readline().split("|")
    assert (core, protocol, network, kind) == ("1", "6", "unix", "grpc")
    assert bool(certificate.strip()) != trusting
    assert "=" not in certificate
    folder = Path(address).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("prefix", "ends"), [((), True), (("nohup",), False)], ids=["", "nohup"])
def test_a_terminal_that_is_closed_ends_it_unless_that_is_ignored(
    tmp_path: Path, prefix: tuple[str, ...], ends: bool
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup make test` ignores it
    process = _start(tmp_path, prefix=prefix, **{_COOKIE[0]: _COOKIE[1]})
    signal.signal(signal.SIGHUP, before)
    assert process.stdout
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    try:
        process.wait(30 if ends else 1)
        ended = True
    except subprocess.TimeoutExpired:
        ended = False
    process.terminate()
    process.communicate(timeout=60)
    assert ended == ends
    assert process.returncode == 0
