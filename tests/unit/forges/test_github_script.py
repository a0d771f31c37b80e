"""What an image lacks of what GitHub's program needs is found, or made up for, before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.core.runner import Runner
from tests.unit.forges.machine import Machine

_RUNNER = Runner("github", "https://github.com/a/b", "it", "tpi-it")
_ICU = "libicuuc.so.74 (libc6,x86-64) => /lib/libicuuc.so.74"
_OPENSSL = "libSystem.Security.Cryptography.Native.OpenSsl.so"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An actions runner that tells how it was called, and with what variables."""
    folder = tmp_path / "program"
    (folder / "bin").mkdir(parents=True)
    _has(folder / "config.sh", 'echo "config.sh $*" >> called; touch .runner .credentials')
    _has(folder / "bin/Runner.Listener", 'echo "Listener $*" >> called; touch .runner .credentials')
    _has(folder / "run.sh", "env > variables")
    return folder


def _has(file: Path, text: str, shell: str = "/bin/sh") -> None:
    file.write_text(f"#!{shell}\n{text}\n")
    file.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setenv("RUNNER_HOME", str(program))
    monkeypatch.delenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", raising=False)
    with Machine(tmp_path, registration_token="secret") as made:
        made.has("ldd", "echo 'libfound.so => /lib/libfound.so (0x7f)'")
        yield made


def _run(machine: Machine) -> tuple[int, str]:
    done = machine.start(_RUNNER)
    output, _ = done.communicate(timeout=60)
    return done.returncode, output


def test_an_image_that_has_all(machine: Machine, program: Path) -> None:
    machine.has("ldconfig", f"echo '{_ICU}'")
    assert _run(machine)[0] == 0
    assert (program / "called").read_text().startswith("config.sh --unattended ")
    assert "INVARIANT" not in (program / "variables").read_text()


def test_an_image_without_icu(machine: Machine, program: Path) -> None:
    """The program's own script would refuse to register it."""
    machine.has("ldconfig", "echo 'libc.so.6 => /lib/libc.so.6'")
    code, output = _run(machine)
    assert code == 0
    assert "the image lacks ICU (libicu)" in output
    assert (program / "called").read_text().startswith("Listener configure --unattended ")
    assert "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1\n" in (program / "variables").read_text()


def test_an_image_without_a_library(machine: Machine, program: Path) -> None:
    (program / "bin/libcoreclr.so").touch()
    (program / "bin" / _OPENSSL).touch()
    machine.has("ldd", "printf '\\tlibz.so.1 => not found\\n\\tlibc.so.6 => /lib/libc.so.6\\n'")
    code, output = _run(machine)
    assert code == 1
    assert "GitHub's runner needs libraries that the image lacks: libz.so.1" in output
    assert not (program / "called").exists()


def test_an_image_without_the_shell_of_the_program(machine: Machine, program: Path) -> None:
    _has(program / "run.sh", "", "/no/such/bash")
    code, output = _run(machine)
    assert code == 1
    assert "GitHub's runner needs /no/such/bash, which the image lacks" in output
    assert not (program / "called").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to hide the certificates")
def test_an_image_without_certificates_has_those_of_the_agent(
    machine: Machine, program: Path, tmp_path: Path
) -> None:
    machine.has("ldconfig", f"echo '{_ICU}'")
    (machine.state / "authorities").write_text("of the agent\n")
    (tmp_path / "empty").mkdir()
    # The same machine, in a namespace of its own where the usual files are not.
    hidden = " && ".join(
        f"{{ [ ! -d {each} ] || mount --bind '{tmp_path}/empty' {each}; }}"
        for each in ("/etc/ssl", "/etc/pki")
    )
    machine.before = ["unshare", "--mount", "sh", "-c", f'{hidden} && exec "$@"', "sh"]
    code, output = _run(machine)
    assert code == 0, output
    assert (machine.state / "want-authorities").exists()
    variables = dict(
        line.partition("=")[::2] for line in (program / "variables").read_text().splitlines()
    )
    assert Path(variables["SSL_CERT_FILE"]).read_text() == "of the agent\n"
    assert variables["GIT_SSL_CAINFO"] == variables["SSL_CERT_FILE"]
