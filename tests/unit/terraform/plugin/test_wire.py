from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.terraform.plugin import wire

_FOLDER = Path(wire.__file__).parent


def test_the_compiled_form_is_that_of_the_source(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc"),
            *("-I", str(_FOLDER), "wire.proto"),
            f"--descriptor_set_out={tmp_path / 'wire.binpb'}",
        ],
        check=True,
    )
    assert (tmp_path / "wire.binpb").read_bytes() == (_FOLDER / "wire.binpb").read_bytes(), (
        "run: make proto"
    )


def test_there_is_no_message_of_another_name() -> None:
    with pytest.raises(AttributeError):
        _ = wire.Nonsense  # type: ignore[attr-defined]
