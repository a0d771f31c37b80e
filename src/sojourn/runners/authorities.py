"""Whom a runner of a forge with a private CA trusts, beside the usual authorities."""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

from sojourn.core.errors import InvalidInput
from sojourn.forges import network
from sojourn.taskfiles.reading import read_text

__all__ = ["read_authorities", "trust"]

_PEM = "-----BEGIN "
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def read_authorities(ca_file: str) -> str:
    """The certificates of a file, or of a text in PEM; empty: none.

    Nothing else that is beside them, such as a key: they go to a machine, where jobs read them.
    """
    if not ca_file:
        return ""
    given = _PEM in ca_file
    text = "\n".join(_CERTIFICATE.findall(ca_file if given else read_text(Path(ca_file))))
    try:
        ssl.create_default_context().load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        where = "the text" if given else ca_file
        raise InvalidInput("ca_file", f"{where} has no valid PEM certificate") from error
    return f"{text}\n"


def trust(ca_file: str) -> None:
    """Have this program trust them, too."""
    if certificates := read_authorities(ca_file):
        network.trust(os.environ, certificates)
