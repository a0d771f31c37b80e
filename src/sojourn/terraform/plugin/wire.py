"""The messages of the protocol, as classes.

They are built from the compiled form of wire.proto instead of being generated, because generated
code works with few versions of protobuf only. wire.pyi tells their types.
"""

from __future__ import annotations

import pathlib
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_files = descriptor_pb2.FileDescriptorSet.FromString(
    pathlib.Path(__file__).with_suffix(".binpb").read_bytes()
)
_pool = descriptor_pool.DescriptorPool()
for _file in _files.file:
    _pool.Add(_file)


def __getattr__(name: str) -> Any:
    try:
        found = _pool.FindMessageTypeByName(f"{_files.file[0].package}.{name}")
    except KeyError:
        raise AttributeError(name) from None
    made = globals()[name] = message_factory.GetMessageClass(found)
    return made
