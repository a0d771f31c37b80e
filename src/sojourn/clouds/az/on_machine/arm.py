"""The few calls to Azure that a machine makes itself, by its identity."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az.on_machine import metadata

if TYPE_CHECKING:
    from sojourn.clouds.az.on_machine.settings import Settings

__all__ = ["call"]

_ADDRESS = "https://management.azure.com"
_WITHIN = 30.0


def call(settings: Settings, method: str, path: str, body: Any = None) -> Any:
    """The content of the answer; `path` has the version. Raises OSError."""
    token = metadata.token(f"{_ADDRESS}/", settings.identity)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(_ADDRESS + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=_WITHIN) as answer:
        text: bytes = answer.read()
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise OSError(f"Azure answered strangely: {error}") from error
