"""The metadata server of an instance, as its machine sees it at metadata.google.internal.

What the instance is does not belong here, see `instances`; nor whom its tokens let in, see `gate`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote

from tests.simcloud.common.life import Phase
from tests.simcloud.gcp.instances import Instance
from tests.simcloud.gcp.project import NUMBER, PROJECT, Project
from tests.simcloud.machines.serving import Request, Response

_ROOT = "/computeMetadata/v1"
_KNOWN = {"alt", "audience", "last_etag", "recursive", "scopes", "timeout_sec", "wait_for_change"}
_SECRET = ("token", "identity")  # not in recursive answers
_VERBATIM = ("attributes", "service-accounts")  # whose keys are names

Tree = dict[str, Any]


class Metadata:
    """Answers of one instance."""

    def __init__(self, instance: Instance, project: Project) -> None:
        self._instance = instance
        self._project = project
        self._token: tuple[str, float] | None = None  # and when to get another

    def answer(self, request: Request) -> Response:
        path, _, query = request.path.partition("?")
        asked = {key: values[-1] for key, values in parse_qs(query, True).items()}
        if "x-forwarded-for" in request.headers:
            return _told(403, "Your client does not have permission to get this URL.")
        if path == "/":
            return _told(200, "computeMetadata/\n")
        if request.headers.get("metadata-flavor") != "Google":
            return _told(403, "Missing Metadata-Flavor:Google header.")
        if request.method not in ("GET", "HEAD"):
            return _told(405, "Method not allowed")
        if not path.startswith(_ROOT) or asked.keys() - _KNOWN:
            return _told(404, f"{path} was not found")
        return self._find(unquote(path.removeprefix(_ROOT)), asked)

    def _find(self, path: str, asked: Mapping[str, str]) -> Response:
        with self._project.changed:
            response = self._looked_up(path, asked)
            if asked.get("wait_for_change") != "true":
                return response
            known = asked.get("last_etag") or response.headers["ETag"]
            give_up = time.monotonic() + float(asked.get("timeout_sec", "inf"))
            while response.headers["ETag"] == known and time.monotonic() < give_up:
                if self._over:
                    return _told(503, "The instance is being stopped")
                self._project.changed.wait(0.2)
                response = self._looked_up(path, asked)
            return response

    @property
    def _over(self) -> bool:
        life = self._instance.life
        return life is None or life.phase in (Phase.STOPPED, Phase.GONE)

    def _looked_up(self, path: str, asked: Mapping[str, str]) -> Response:
        node: Any = self._tree()
        parts = [part for part in path.split("/") if part]
        for part in parts:
            if isinstance(node, list):
                node = dict(enumerate(node)).get(int(part)) if part.isdigit() else None
            else:
                node = node.get(part) if isinstance(node, dict) else None
            if node is None:
                return _told(404, f"{path} was not found")
        if callable(node):
            return node()  # type: ignore[no-any-return]
        if isinstance(node, (dict, list)) and parts and not path.endswith("/"):
            if _is_text(node):
                return _told(200, "\n".join(node))
            if asked.get("recursive") != "true":
                return _told(301, "", {"Location": f"{_ROOT}{path}/"})
        return _rendered(node, asked, parts)

    def _tree(self) -> Tree:
        record = self._instance.record
        zone = f"projects/{NUMBER}/zones/{self._instance.zone}"
        kind = record["machineType"].rpartition("/")[2]
        scheduling = self._instance.scheduling
        return {
            "instance": {
                "attributes": {
                    item["key"]: item["value"] for item in record["metadata"].get("items", [])
                },
                "cpu-platform": record["cpuPlatform"],
                "hostname": f"{record['name']}.{self._instance.zone}.c.{PROJECT}.internal",
                "id": record["id"],
                "machine-type": f"projects/{NUMBER}/machineTypes/{kind}",
                "maintenance-event": self._instance.maintenance,
                "name": record["name"],
                "network-interfaces": [_interface(each) for each in record["networkInterfaces"]],
                "preempted": _flag(self._instance.preempted),
                "scheduling": {
                    "automatic-restart": _flag(scheduling["automaticRestart"]),
                    "on-host-maintenance": scheduling["onHostMaintenance"],
                    "preemptible": _flag(scheduling["preemptible"]),
                },
                "service-accounts": self._accounts(),
                "tags": list(record["tags"]["items"]),
                "zone": zone,
            },
            "project": {
                "attributes": {},
                "numeric-project-id": NUMBER,
                "project-id": PROJECT,
            },
            "universe": {"universe-domain": "googleapis.com"},
        }

    def _accounts(self) -> Tree:
        if not self._instance.email:
            return {}
        scopes = self._instance.record["serviceAccounts"][0]["scopes"]
        account = {
            "aliases": ["default"],
            "email": self._instance.email,
            "scopes": list(scopes),
            "token": self._get_token,
        }
        return {"default": account, self._instance.email: account}

    def _get_token(self) -> Response:
        """A token, the same one until half of its time is over."""
        account = self._project.accounts.all.get(self._instance.email)
        if account is None:
            return _told(404, "The service account was not found.")
        now = self._project.clock.now()
        if self._token is None or self._token[1] <= now:
            scopes = tuple(self._instance.record["serviceAccounts"][0]["scopes"])
            text, lasts = self._project.accounts.make_token(account, scopes)
            self._token = text, now + lasts / 2
        left = self._token[1] + self._project.timing.token / 2 - now
        said = {
            "access_token": self._token[0],
            "expires_in": max(int(left), 0),
            "token_type": "Bearer",
        }
        return _told(200, json.dumps(said), {"Content-Type": "application/json"})


def _interface(given: Mapping[str, Any]) -> Tree:
    outside = [each["natIP"] for each in given.get("accessConfigs", [])]
    return {
        "access-configs": [{"external-ip": each, "type": "ONE_TO_ONE_NAT"} for each in outside],
        "ip": given["networkIP"],
        "network": f"projects/{NUMBER}/networks/{given['network'].rpartition('/')[2]}",
    }


def _rendered(node: Any, asked: Mapping[str, str], parts: list[str]) -> Response:
    recursive = asked.get("recursive") == "true"
    alt = asked.get("alt", "json" if recursive else "text")
    if not isinstance(node, (dict, list)):
        text = str(node) if alt == "text" else json.dumps(_leaf(node, parts[-1]))
    elif recursive and alt == "json":
        text = json.dumps(_camel(node, parts[-1] if parts else ""))
    elif recursive:
        text = "".join(f"{line}\n" for line in _flat(node, ""))
    elif isinstance(node, list):
        text = "\n".join(node) if _is_text(node) else "".join(f"{i}/\n" for i in range(len(node)))
    else:
        text = "".join(
            f"{key}/\n" if isinstance(value, dict) else f"{key}\n" for key, value in node.items()
        )
    kind = "application/json" if alt == "json" else "application/text"
    return _told(200, text, {"Content-Type": kind})


def _leaf(value: Any, key: str) -> Any:
    return int(value) if key in ("id", "numeric-project-id") else value


def _camel(node: Any, under: str) -> Any:
    """Keys are in another case in JSON, and numbers are numbers."""
    if isinstance(node, list):
        return [_camel(each, under) for each in node]
    if not isinstance(node, dict):
        return _leaf(node, under)
    return {
        key if under in _VERBATIM else _joined(key): _camel(value, key)
        for key, value in node.items()
        if not (key in _SECRET and isinstance(value, Callable))  # type: ignore[arg-type]
    }


def _joined(key: str) -> str:
    first, *rest = key.split("-")
    return first + "".join(part.capitalize() for part in rest)


def _flat(node: Any, prefix: str) -> list[str]:
    if isinstance(node, dict):
        pairs = list(node.items())
    elif isinstance(node, list):
        pairs = [(str(index), each) for index, each in enumerate(node)]
    else:
        return [f"{prefix} {node}"]
    lines = []
    for key, value in pairs:
        if not callable(value):
            lines += _flat(value, f"{prefix}/{key}" if prefix else key)
    return lines


def _is_text(node: Any) -> bool:
    return isinstance(node, list) and all(isinstance(each, str) for each in node)


def _flag(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _told(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    body = text.encode()
    etag = hashlib.sha256(body).hexdigest()[:16]
    standard = {
        "Content-Type": "application/text",
        "ETag": etag,
        "Metadata-Flavor": "Google",
        "Server": "Metadata Server for VM",
    }
    return Response(status, body, {**standard, **(headers or {})})
