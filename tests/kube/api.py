"""A small client of the API, of the standard library alone: these tests are about the cluster."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

__all__ = ["Api", "ApiError"]

_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The API refused."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        try:
            message = json.loads(body)["message"]
        except (ValueError, KeyError, TypeError):
            message = body.decode(errors="replace")
        super().__init__(f"{status}: {message}")


class Api:
    """What a kubeconfig leads to; its user must have a certificate or a token."""

    def __init__(self, kubeconfig: Path, timeout: float = 30) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        context = _named(config, "context", config["current-context"])
        cluster = _named(config, "cluster", context["cluster"])
        user = _named(config, "user", context["user"])
        self._timeout = timeout
        self.server = urlsplit(cluster["server"])
        authority = _content(cluster, "certificate-authority", kubeconfig.parent)
        self.tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
        certificate = _content(user, "client-certificate", kubeconfig.parent)
        key = _content(user, "client-key", kubeconfig.parent)
        if certificate and key:
            with tempfile.NamedTemporaryFile() as file:
                file.write(certificate + b"\n" + key)
                file.flush()
                self.tls.load_cert_chain(file.name)
        self.headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}

    def get(self, path: str, **query: str) -> Any:
        return self._call("GET", path, query)

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("POST", path, {}, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("PATCH", path, {}, body, _PATCH)

    def delete(self, path: str, **query: str) -> None:
        """Deleting what is gone is no error."""
        try:
            self._call("DELETE", path, query)
        except ApiError as error:
            if error.status != 404:
                raise

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def text(self, path: str, **query: str) -> str:
        """An answer that is no object, such as a log."""
        return self._read("GET", path, query, None, "").decode()

    def watch(self, path: str, seconds: int, **query: str) -> Iterator[dict[str, Any]]:
        """What changes, from now on or from a version, until this time is over."""
        query = {**query, "watch": "true", "timeoutSeconds": str(seconds)}
        connection, response = self._send("GET", path, query, None, "", seconds + self._timeout)
        try:
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> Any:
        return json.loads(self._read(method, path, query, body, kind))

    def _read(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        kind: str,
    ) -> bytes:
        connection, response = self._send(method, path, query, body, kind, self._timeout)
        try:
            return response.read()
        finally:
            connection.close()

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        kind: str,
        timeout: float,
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        host, port = self.server.hostname, self.server.port or 443
        assert host is not None
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self.tls)
        try:
            target = f"{self.server.path.rstrip('/')}{path}"
            if query:
                target += "?" + urlencode(query)
            data = json.dumps(body).encode() if body is not None else None
            headers = {**self.headers, **({"Content-Type": kind} if data else {})}
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise ApiError(response.status, response.read())
        except BaseException:
            connection.close()
            raise
        return connection, response


def _named(config: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each[kind] for each in config[f"{kind}s"] if each["name"] == name)
    return found


def _content(holder: Mapping[str, Any], key: str, folder: Path) -> bytes | None:
    if f"{key}-data" in holder:
        return base64.b64decode(holder[f"{key}-data"])
    return (folder / holder[key]).read_bytes() if key in holder else None
