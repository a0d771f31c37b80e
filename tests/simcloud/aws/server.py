"""How moto wants requests to be read."""

from __future__ import annotations

from moto.moto_server.werkzeug_app import MotoRequestHandler

from tests.simcloud.common.server import Handler


class MotoHandler(Handler, MotoRequestHandler):
    """Keeps names of headers as they were sent, which are those of S3's metadata."""
