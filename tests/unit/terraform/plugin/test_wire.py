from __future__ import annotations

import os
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


_WITHOUT_UPB = """
import sys
sys.modules["google._upb._message"] = None
from sojourn.terraform.plugin import wire
request = wire.PlanRequest(type_name="x")
request.prior_state.msgpack = b"value"
assert wire.PlanRequest.FromString(request.SerializeToString()) == request
assert type(request.prior_state) is wire.Value
"""


def test_protobuf_without_its_fast_implementation_will_do() -> None:
    variables = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    subprocess.run([sys.executable, "-c", _WITHOUT_UPB], env=variables, check=True)


def test_a_message_within_another_has_the_class_of_its_name() -> None:
    assert type(wire.PlanRequest().prior_state) is wire.Value
