from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sojourn.core.context import Context
from sojourn.forges.http import Http


@contextmanager
def _host(elsewhere: str = "") -> Iterator[str]:
    """Tells which headers came, or sends whoever asks to another host."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if elsewhere else 200)
            if elsewhere:
                self.send_header("Location", elsewhere)
            self.end_headers()
            self.wfile.write(json.dumps(dict(self.headers)).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_token_does_not_follow_to_another_host() -> None:
    headers = {"Authorization": "Bearer secret", "PRIVATE-TOKEN": "secret", "Accept": "text/json"}
    with _host() as other, _host(f"{other}/there") as first:
        assert "secret" in str(Http(other, headers).call(Context(), "GET", "/").json)
        came = Http(first, headers).call(Context(), "GET", "/").json
    assert "secret" not in str(came)
    assert came["Accept"] == "text/json"
