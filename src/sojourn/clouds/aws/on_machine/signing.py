"""Requests that AWS accepts: signature version 4, for the few calls that a machine makes itself."""

from __future__ import annotations

import hashlib
import hmac
import urllib.parse
import urllib.request
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["signed"]


def signed(
    method: str,
    url: str,
    service: str,
    region: str,
    keys: Mapping[str, Any],
    body: bytes = b"",
    content_type: str = "",
) -> urllib.request.Request:
    """A signed request. `keys` is what the metadata service gives."""
    moment = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    parts = urllib.parse.urlsplit(url)
    digest = hashlib.sha256(body).hexdigest()
    headers = {
        "host": parts.netloc,
        "x-amz-content-sha256": digest,
        "x-amz-date": moment,
        "x-amz-security-token": str(keys["Token"]),
    }
    if content_type:
        headers["content-type"] = content_type
    names = sorted(headers)
    canonical = "\n".join(
        [
            *(method, parts.path or "/", parts.query),
            *(f"{name}:{headers[name]}" for name in names),
            *("", ";".join(names), digest),
        ]
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashed])
    key = f"AWS4{keys['SecretAccessKey']}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    del headers["host"]  # urllib writes it itself
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys['AccessKeyId']}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={key.hex()}"
    )
    return urllib.request.Request(url, data=body or None, headers=headers, method=method)
