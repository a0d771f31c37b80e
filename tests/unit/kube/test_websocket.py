"""Commands and ports over websockets, with an API server that says what a test wants."""

from __future__ import annotations

import http
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from sojourn.core.errors import AuthError, NotFound, Transient
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import Cluster, Login, User
from sojourn.kube.websocket import duplex, execute, forward
from tests.support.waiting import until

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
SUCCESS = b'\3{"metadata":{},"status":"Success"}'
USER = User(token="secret")
Handler = Callable[[ServerConnection], None]


def _status(code: int, **more: Any) -> bytes:
    causes = [{"reason": "ExitCode", "message": str(code)}]
    details = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    return b"\3" + json.dumps(details | more).encode()


@contextmanager
def _server(
    handler: Handler,
    *,
    subprotocols: tuple[str, ...] = (V5, V4),
    refuse: Callable[[Request], tuple[int, str] | None] = lambda _: None,
) -> Iterator[int]:
    def process(_: ServerConnection, request: Request) -> Response | None:
        refused = refuse(request)
        if not refused:
            return None
        body = json.dumps({"kind": "Status", "message": refused[1]}).encode()
        headers = Headers({"Content-Length": str(len(body)), "Content-Type": "application/json"})
        return Response(refused[0], http.HTTPStatus(refused[0]).phrase, headers, body)

    def handled(connection: ServerConnection) -> None:
        try:
            handler(connection)
        except ConnectionClosed:
            return

    server: Server = serve(
        handled,
        "127.0.0.1",
        0,
        subprotocols=subprotocols,  # type: ignore[arg-type]
        process_request=process,
        compression=None,
    )
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


def _api(port: int, user: User = USER, proxy: str = "") -> Api:
    cluster = Cluster(f"http://127.0.0.1:{port}", proxy=proxy)
    return Api(lambda: Login(cluster, user, "space", "test", "a test"), patience=1.0)


def _echo(connection: ServerConnection) -> None:
    """As `cat` does, with a word to say at the end."""
    connection.send(b"\1")
    total = 0
    for message in connection:
        assert isinstance(message, bytes)
        if message == b"\xff\0":
            break
        total += len(message) - 1
        connection.send(b"\1" + message[1:])
    connection.send(b"\2%d bytes" % total)
    connection.send(_status(7))


def test_a_command_reads_writes_and_ends() -> None:
    with _server(_echo) as port:
        process = execute(_api(port), "pod", "main", ["cat"])
        process.write(b"one")
        process.close_input()
        assert process.closes_input
        assert list(process.output()) == [(1, b"one"), (2, b"3 bytes")]
        assert process.wait() == process.wait() == 7
        with pytest.raises(BrokenPipeError):
            process.write(b"more")
        process.close()
        process.close()


def test_the_request_says_what_to_run_and_who_asks() -> None:
    seen: list[Request] = []

    def refuse(request: Request) -> None:
        seen.append(request)

    with _server(lambda connection: connection.send(SUCCESS), refuse=refuse) as port:
        process = execute(_api(port), "pod", "main", ["sh", "-c", "a b&c"], tty=True)
        assert process.wait() == 0
        process.close()
    url = urlsplit(seen[0].path)
    assert url.path == "/api/v1/namespaces/space/pods/pod/exec"
    assert parse_qsl(url.query) == [
        ("container", "main"),
        *(("command", word) for word in ("sh", "-c", "a b&c")),
        *(("stdin", "true"), ("stdout", "true"), ("stderr", "false"), ("tty", "true")),
    ]
    assert seen[0].headers["Authorization"] == "Bearer secret"


def test_large_bodies_are_cut_and_both_ways_are_used_at_once() -> None:
    sizes = []

    def watched(connection: ServerConnection) -> None:
        for message in connection:
            sizes.append(len(message))
            if message == b"\xff\0":
                break
            connection.send(b"\1" + bytes(message[1:]))  # type: ignore[arg-type]
        connection.send(SUCCESS)

    body = bytes(range(256)) * 40_000
    with _server(watched) as port:
        process = execute(_api(port), "pod", "main", ["cat"])

        def write() -> None:
            process.write(body)
            process.close_input()

        writer = threading.Thread(target=write)
        writer.start()
        assert b"".join(data for _, data in process.output()) == body
        writer.join()
        assert process.wait() == 0
        process.close()
    assert max(sizes) <= (64 << 10) + 1


def test_an_older_server_cannot_close_the_input() -> None:
    with _server(lambda connection: connection.send(SUCCESS), subprotocols=(V4,)) as port:
        process = execute(_api(port), "pod", "main", ["true"])
        assert not process.closes_input
        process.close_input()
        assert process.wait() == 0
        process.close()


def test_a_terminal_has_a_size_and_keys() -> None:
    seen: list[bytes] = []

    def handler(connection: ServerConnection) -> None:
        seen.extend(bytes(connection.recv()) for _ in range(2))  # type: ignore[arg-type]
        connection.send(_status(130))

    with _server(handler) as port:
        process = execute(_api(port), "pod", "main", ["sh"], tty=True)
        process.resize(33, 77)
        process.signal(15)
        process.signal(2)
        assert process.wait() == 130
        process.close()
    assert json.loads(seen[0][1:]) == {"Width": 77, "Height": 33}
    assert (seen[0][:1], seen[1]) == (b"\4", b"\0\3")


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ('exec: "nope": executable file not found in $PATH', 127),
        ('exec: "/etc/passwd": permission denied', 126),
    ],
)
def test_a_program_that_cannot_run_ends_as_in_a_shell(told: str, code: int) -> None:
    status = b"\3" + json.dumps({"status": "Failure", "message": told}).encode()
    with _server(lambda connection: connection.send(status)) as port:
        process = execute(_api(port), "pod", "main", ["nope"])
        assert list(process.output()) == [(2, told.encode() + b"\n")]
        assert process.wait() == code
        process.close()


@pytest.mark.parametrize("status", [b"\3", b"\3[]", b"\3nonsense", b'\3{"status":"Failure"}'])
def test_other_failures_may_be_worth_another_try(status: bytes) -> None:
    with _server(lambda connection: connection.send(status)) as port:
        process = execute(_api(port), "pod", "main", ["true"])
        with pytest.raises(Transient):
            process.wait()
        process.close()


def test_a_connection_that_is_cut_is_transient() -> None:
    def cut(connection: ServerConnection) -> None:
        connection.send(b"\1half")
        connection.socket.shutdown(socket.SHUT_RDWR)

    with _server(cut) as port:
        process = execute(_api(port), "pod", "main", ["true"])
        output = process.output()
        assert next(output) == (1, b"half")
        with pytest.raises(Transient):
            next(output)
        process.close()


@pytest.mark.parametrize(
    ("code", "told", "expected", "said"),
    [
        (401, "Unauthorized", AuthError, "rejected the credentials"),
        (
            403,
            'User "x" cannot create resource "pods/exec" in API group ""',
            AuthError,
            "create pods/exec",
        ),
        (404, 'pods "pod" not found', NotFound, "not found"),
        (500, "error dialing backend", Transient, "dialing backend"),
    ],
)
def test_refusals_are_errors_of_ours(
    code: int, told: str, expected: type[Exception], said: str
) -> None:
    server = _server(_echo, refuse=lambda _: (code, told))
    with server as port, pytest.raises(expected, match=said):
        execute(_api(port), "pod", "main", ["true"])


def test_a_token_that_is_refused_is_read_again(tmp_path: Any) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    user = User(token_file=str(token))

    def refuse(request: Request) -> tuple[int, str] | None:
        if request.headers["Authorization"] == "Bearer new":
            return None
        token.write_text("new")
        return 401, "expired"

    with _server(lambda connection: connection.send(SUCCESS), refuse=refuse) as port:
        process = execute(_api(port, user), "pod", "main", ["true"])
        assert process.wait() == 0
        process.close()


def test_a_server_that_is_not_there_is_transient() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(Transient, match="Could not reach"):
            execute(_api(held.getsockname()[1]), "pod", "main", ["true"])


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 101 Hm\r\n\r\n"])
def test_a_server_that_is_none_is_transient(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def once() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=once)
        thread.start()
        with pytest.raises(Transient):
            execute(_api(server.getsockname()[1]), "pod", "main", ["true"])
        thread.join()


def _wait(connection: ServerConnection) -> None:
    connection.recv()


def test_closing_ends_a_reader_and_leaves_no_threads() -> None:
    before = set(threading.enumerate())
    with _server(_wait) as port:
        process = execute(_api(port), "pod", "main", ["sleep"])
        reader = threading.Thread(target=lambda: list(process.output()))
        reader.start()
        process.close()
        reader.join(10)
        assert not reader.is_alive()
    until(lambda: set(threading.enumerate()) <= before)  # those of the server end with it


def test_a_stream_gives_what_is_printed_and_tells_of_complaints() -> None:
    def handler(connection: ServerConnection) -> None:
        connection.send(b"\1one")
        connection.send(b"\2" + b"x" * 10_000)
        connection.send(b"\2python3: not found")
        connection.send(_status(127))

    with _server(handler) as port:
        stream = duplex(_api(port), "pod", "main", ["python3"])
        assert stream.read() == b"one"
        with pytest.raises(Transient, match=r"exit code 127: x+python3: not found") as caught:
            stream.read()
        assert len(str(caught.value)) < 5000
        stream.close()


def test_a_port_of_a_pod() -> None:
    def handler(connection: ServerConnection) -> None:
        assert connection.subprotocol == V4
        for message in (b"\0\x90", b"\0\x1f", b"\1\x90\x1f", b"\0hello"):
            connection.send(message)
        said = connection.recv(decode=False)
        connection.send(b"\0you said " + said[1:])

    with _server(handler) as port:
        connection = forward(_api(port), "pod", 8080)
        assert connection.read() == b"hello"
        connection.write(b"hi")
        assert connection.read() == b"you said hi"
        assert connection.read() == b""
        connection.close()


def test_a_port_where_nobody_listens() -> None:
    def handler(connection: ServerConnection) -> None:
        for message in (b"\0\x90\x1f", b"\1\x90\x1f", b"\1connection refused"):
            connection.send(message)

    with _server(handler) as port:
        connection = forward(_api(port), "pod", 8080)
        with pytest.raises(Transient, match="port 8080: connection refused"):
            connection.read()
        connection.close()


def test_by_way_of_a_proxy() -> None:
    said: list[bytes] = []
    with _server(_echo) as port, socket.create_server(("127.0.0.1", 0)) as proxy:

        def relay() -> None:
            near, _ = proxy.accept()
            with near, socket.create_connection(("127.0.0.1", port)) as far:
                while b"\r\n\r\n" not in b"".join(said):
                    said.append(near.recv(1))
                near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=_pump, args=(far, near))
                back.start()
                _pump(near, far)
                back.join()

        thread = threading.Thread(target=relay)
        thread.start()
        address = f"http://me:pass%21@127.0.0.1:{proxy.getsockname()[1]}"
        process = execute(_api(port, proxy=address), "pod", "main", ["cat"])
        process.write(b"one")
        process.close_input()
        assert next(process.output()) == (1, b"one")
        process.close()
        thread.join()
    lines = b"".join(said).decode().splitlines()
    assert lines[0] == f"CONNECT 127.0.0.1:{port} HTTP/1.1"
    assert "Proxy-Authorization: Basic bWU6cGFzcyE=" in lines


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
