"""The messages of the protocol, as classes.

They are built from the compiled form of wire.proto instead of being generated, because generated
code works with few versions of protobuf only. wire.pyi tells their types.
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool

    MessageMeta: Any
else:
    try:
        # All that is needed. The modules for it load protobuf's other implementation as well, and
        # readers and writers of text, which takes longer than the rest of protobuf.
        from google._upb._message import DescriptorPool, MessageMeta
    except ImportError:
        from google.protobuf.descriptor_pool import DescriptorPool

        MessageMeta = None

_PACKAGE = "sojourn.terraform.plugin"


def _only_file(files: bytes) -> bytes:
    """The one member of a compiled set of files: it follows a byte of its own and its length."""
    start = next(at for at, byte in enumerate(files) if at and byte < 128)  # the length's last byte
    return files[start + 1 :]


_pool = DescriptorPool()
_pool.AddSerializedFile(_only_file(pathlib.Path(__file__).with_suffix(".binpb").read_bytes()))


def __getattr__(name: str) -> Any:
    try:
        found = _pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    except KeyError:
        raise AttributeError(name) from None
    made = globals()[name] = _class_of(found)
    return made


def _class_of(message: Any) -> Any:
    if MessageMeta is None:
        from google.protobuf.message_factory import GetMessageClass  # takes long to load

        return GetMessageClass(message)
    from google.protobuf.message import Message

    return MessageMeta(message.name, (Message,), {"DESCRIPTOR": message, "__module__": __name__})
