"""A registry of container images, as far as pulling goes: the files of a folder, by HTTP.

python3 registry.py PORT FOLDER, on a machine: it needs the standard library alone. What there is
below v2/secret, only those may see who are logged in, and nobody can log in.
"""

from __future__ import annotations

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Registry(BaseHTTPRequestHandler):
    folder = Path()

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        kind, code, body = "application/json", 200, b"{}"
        parts = self.path.strip("/").split("/")
        file = self.folder.joinpath(*parts)
        if "secret" in parts:
            code, body = 401, _error("UNAUTHORIZED", "authentication required")
        elif ".." in parts or (parts != ["v2"] and not file.is_file()):
            code, body = 404, _error("MANIFEST_UNKNOWN", "manifest unknown")
        elif parts != ["v2"]:
            body = file.read_bytes()
            manifest = parts[-2] == "manifests"
            kind = json.loads(body)["mediaType"] if manifest else "application/octet-stream"
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if code == 200:
            digest = hashlib.sha256(body).hexdigest()
            self.send_header("Docker-Content-Digest", f"sha256:{digest}")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:
        pass


def _error(code: str, message: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": message}]}).encode()


if __name__ == "__main__":
    Registry.folder = Path(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Registry).serve_forever()
