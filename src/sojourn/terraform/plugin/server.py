"""The process of a plugin: the handshake with Terraform, its connection, and its end."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from sojourn.core.flag import Flag
from sojourn.core.lazy import lazily
from sojourn.terraform.plugin import sockets, wire
from sojourn.terraform.plugin.certificate import Certificate, certificate
from sojourn.terraform.plugin.service import Service

with lazily("asyncio", "grpc.aio"):  # half of its start-up time, and none of it is used here
    import grpc

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.terraform.plugin.log import Log
    from sojourn.terraform.plugin.resource import Provider

__all__ = ["serve"]

_COOKIE = (
    "TF_PLUGIN_MAGIC_COOKIE",
    "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
)
_VERSION = "6"
# Terraform calls in parallel as often as `-parallelism` says, and a call to stop must get through.
_THREADS = 1000
_MESSAGE_BYTES = 256 * 2**20
_PARENT_EVERY = 0.25  # seconds between looks whether Terraform is still there
_END_WITHIN = 15 * 60.0  # seconds for verbs under way to clean up after Terraform is gone
_ANSWER_WITHIN = 5.0  # seconds for answers to reach Terraform before the connection ends


def serve(provider: Provider, log: Log, *, settled: Callable[[], None] = lambda: None) -> int:
    """Serve one run of Terraform; returns the exit code.

    `settled` is called at the end if Terraform has got every answer.
    """
    problem = _problem()
    if problem:
        # Terraform shows the first line of what is printed.
        print(problem, flush=True)  # noqa: T201
        return 1
    with sockets.folder() as folder:
        if _serve(provider, log, folder):
            settled()
    return 0


def _problem() -> str:
    name, value = _COOKIE
    if os.environ.get(name) != value:
        return "This is a Terraform plugin, started by Terraform. Run `sojourn terraform --help`."
    offered = os.environ.get("PLUGIN_PROTOCOL_VERSIONS", _VERSION).split(",")
    if _VERSION not in offered:
        return "This plugin requires Terraform 1.0 or later"
    return ""


def _serve(provider: Provider, log: Log, folder: str) -> bool:
    """Returns whether Terraform has got every answer."""
    # Asked for before the handshake, which fails if Terraform is gone by then.
    parent = os.getppid()
    service = Service(provider, log)
    end = _End()
    _heed_signals(service, end)
    # Terraform says nothing of its own if it is told to do without (TF_DISABLE_PLUGIN_TLS).
    made = certificate() if os.environ.get("PLUGIN_CLIENT_CERT") else None
    address = os.path.join(folder, "plugin")
    server = _server(service, end, made, address)
    server.start()
    # The handshake: versions, where we listen, and whom to trust.
    trusted = made.handshake if made else ""
    print(f"1|{_VERSION}|unix|{address}|grpc|{trusted}", flush=True)  # noqa: T201
    _close_output()
    _wait(service, end, parent, log)
    server.stop(_ANSWER_WITHIN).wait()
    return end.in_order


class _End:
    """Whether it is time to go, and whether Terraform has asked for it with nothing under way."""

    def __init__(self) -> None:
        self.come = Flag()
        self.in_order = False


def _close_output() -> None:
    """Nothing more is to be printed, and Terraform takes offence if it is still reading then."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def _server(
    service: Service, end: _End, certificate: Certificate | None, address: str
) -> grpc.Server:
    def shut_down(_: wire.Empty) -> wire.Empty:
        end.in_order = service.in_order()
        end.come.set()
        return wire.Empty()

    server = grpc.server(
        ThreadPoolExecutor(_THREADS),
        options=[
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
        ],
    )
    server.add_generic_rpc_handlers(
        (
            _handler("tfplugin6.Provider", service.methods()),
            _handler("plugin.GRPCController", {"Shutdown": (shut_down, wire.Empty)}),
        )
    )
    # Terraform's own certificate is of a kind that gRPC here cannot check; the socket is in a
    # folder that only this user can enter.
    if certificate:
        credentials = grpc.ssl_server_credentials([(certificate.key, certificate.chain)])
        server.add_secure_port(f"unix:{address}", credentials)
    else:
        server.add_insecure_port(f"unix:{address}")
    return server


def _handler(
    service: str, methods: dict[str, tuple[Callable[[Any], Any], Any]]
) -> grpc.GenericRpcHandler:
    def answering(method: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda request, _: method(request)

    return grpc.method_handlers_generic_handler(
        service,
        {
            name: grpc.unary_unary_rpc_method_handler(
                answering(method),
                request_deserializer=request.FromString,
                response_serializer=lambda response: response.SerializeToString(),
            )
            for name, (method, request) in methods.items()
        },
    )


def _heed_signals(service: Service, end: _End) -> None:
    def told(*_: object) -> None:
        service.stop()
        end.come.set()

    # Ctrl-C reaches us as well, but it is Terraform that decides what it means. Not ignored by
    # the system's own means, which the programs that we start would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, told)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup terraform apply` wants it
        signal.signal(signal.SIGHUP, told)


def _wait(service: Service, end: _End, parent: int, log: Log) -> None:
    """Until Terraform is done with us, or gone: then what is under way is broken off cleanly."""
    while not end.come.wait(_PARENT_EVERY):
        if os.getppid() != parent:
            log.write("warn", "Stopping: Terraform has exited")
            break
    service.stop()
    service.wait(_END_WITHIN)
