"""Answers for the names of services and of pods behind them, as the DNS of a cluster does.

Each question goes to the API at once, so answers are never old. For names outside the cluster,
there is nobody to ask: they are refused.
"""

from __future__ import annotations

import http.client
import socket
import socketserver
import struct
import sys
from collections.abc import Sequence
from typing import Any

from tests.kube import layout
from tests.kube.api import Api, ApiError

__all__ = ["DOMAIN", "answers", "main"]

DOMAIN = "cluster.local"
_PORT = 53
_HEADER = struct.Struct("!6H")
_TTL = 2
_A, _INTERNET = 1, 1
_FINE, _FAILED, _UNKNOWN, _REFUSED = 0, 2, 3, 5
_ANSWER, _AUTHORITATIVE, _RECURSION_DESIRED = 0x8000, 0x0400, 0x0100


def main() -> None:
    with _Server((layout.GATEWAY, _PORT), _Handler) as server:
        server.serve_forever()


def answers(timeout: float = 1.0) -> bool:
    """Whether it knows the service that each cluster has."""
    name = b"".join(
        bytes([len(x)]) + x.encode() for x in f"kubernetes.default.svc.{DOMAIN}".split(".")
    )
    question = _HEADER.pack(1, 0, 1, 0, 0, 0) + name + struct.pack("!BHH", 0, _A, _INTERNET)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.settimeout(timeout)
        asked.connect((layout.GATEWAY, _PORT))
        asked.send(question)
        return asked.recv(512).endswith(socket.inet_aton(layout.API_SERVICE))


class _Server(socketserver.ThreadingUDPServer):
    daemon_threads = True
    max_packet_size = 4096


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        data, reply = self.request
        if len(data) > _HEADER.size:
            reply.sendto(_answer(data), self.client_address)


def _answer(data: bytes) -> bytes:
    """The reply to a question; addresses are all that it tells."""
    number, flags, *_ = _HEADER.unpack_from(data)
    labels, end = _name(data, _HEADER.size)
    kind = int.from_bytes(data[end : end + 2], "big")
    code, addresses = _look_up(labels)
    found = addresses if kind == _A else []
    flags = _ANSWER | _AUTHORITATIVE | (flags & _RECURSION_DESIRED) | code
    records = b"".join(
        struct.pack("!HHHIH", 0xC000 | _HEADER.size, _A, _INTERNET, _TTL, 4)
        + socket.inet_aton(address)
        for address in found
    )
    question = data[_HEADER.size : end + 4]
    return _HEADER.pack(number, flags, 1, len(found), 0, 0) + question + records


def _name(data: bytes, start: int) -> tuple[list[str], int]:
    """Its labels, and where what follows begins. Questions point to no other place."""
    labels = []
    while length := data[start]:
        labels.append(data[start + 1 : start + 1 + length].decode("ascii", "replace").lower())
        start += 1 + length
    return labels, start + 1


def _look_up(labels: Sequence[str]) -> tuple[int, list[str]]:
    domain = DOMAIN.split(".")
    if list(labels[-len(domain) :]) != domain:
        return _REFUSED, []
    inner = labels[: -len(domain)]
    if len(inner) not in (3, 4) or inner[-1] != "svc":
        return _UNKNOWN, []
    *host, service, namespace, _ = inner
    try:
        return _FINE, _addresses(Api(layout.KUBECONFIG), namespace, service, *host)
    except ApiError as error:
        return (_UNKNOWN if error.status == 404 else _FAILED), []
    except LookupError:
        return _UNKNOWN, []
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        return _FAILED, []


def _addresses(api: Api, namespace: str, service: str, host: str = "") -> list[str]:
    """Of a service, or of one pod of a service without an address."""
    spec = api.get(f"/api/v1/namespaces/{namespace}/services/{service}")["spec"]
    own = spec.get("clusterIP", "None")
    if own != "None":
        if host:
            raise LookupError(host)
        return [own]
    slices = api.get(
        f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
        labelSelector=f"kubernetes.io/service-name={service}",
    )["items"]
    ready = [each for item in slices for each in item["endpoints"] or [] if _is_ready(each)]
    found = [each for each in ready if not host or each.get("hostname") == host]
    if host and not found:
        raise LookupError(host)
    return sorted(address for each in found for address in each["addresses"])


def _is_ready(endpoint: dict[str, Any]) -> bool:
    """As the service wants it: some publish pods that are not."""
    return bool(endpoint.get("conditions", {}).get("ready", True))


if __name__ == "__main__":
    main()
