"""Machines that really run: what is in them, what they reach, and how they end."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.simcloud.machines import cgroups, checks, kernel, python, traces
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.plan import DENIED
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.serving import Request, Response, forward
from tests.simcloud.machines.serving import http as answering
from tests.simcloud.machines.spec import End, Endpoint, MachineError, MachineSpec
from tests.support.tls import server_context
from tests.support.waiting import patience, until

_SERVICE = "10.200.0.1"


def _script(*lines: str) -> bytes:
    return "\n".join(["#!/bin/bash", *lines, ""]).encode()


def _prints(machine: RunningMachine, text: str) -> None:
    until(lambda: text in machine.console(), 10)


def _settled(machine: RunningMachine) -> str:
    """The state of the machine when it has booted and user-data has ended."""
    until(lambda: machine.run("test", "-S", "/run/systemd/private", check=False).returncode == 0)
    return machine.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip()


class _Files(http.server.BaseHTTPRequestHandler):
    """Answers each GET with a body that is as long as the path says."""

    def do_GET(self) -> None:
        body = b"x" * int(self.path.strip("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@contextlib.contextmanager
def _server(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a web server on the loopback of the computer."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Files) as server:
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_it_is_said_why_machines_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "sudo" in (checks.unavailable.__wrapped__() or "")
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    if sys.platform.startswith("linux") and os.geteuid() == 0:
        assert "apt install curl dbus" in (checks.unavailable.__wrapped__() or "")


# What is in a machine


def test_user_data_runs_once_as_cloud_init_does(host: Host) -> None:
    script = _script("id -un; pwd; hostname; env", "sleep 1000 &", "touch /root/ran-$$")
    machine = host.boot(MachineSpec("i-1", script, hostname="plain"))
    assert _settled(machine) == "running"
    printed = machine.console().splitlines()
    start = printed.index("root")
    assert printed[start : start + 3] == ["root", "/", "plain"]
    assert not any(line.startswith("HOME=") for line in printed)
    assert len(machine.run("ls", "/root").stdout.split()) == 1
    # What it leaves in the background goes on.
    assert ("sleep", "1000") in [process.argv for process in machine.processes()]


def test_user_data_may_be_compressed_and_has_to_be_a_script(host: Host) -> None:
    small = host.boot(MachineSpec("i-1", gzip.compress(_script("echo it is $((40 + 2))"))))
    other = host.boot(MachineSpec("i-2", b"#cloud-config\nruncmd: [reboot]\n"))
    none = host.boot(MachineSpec("i-3"))
    _prints(small, "it is 42")
    assert [_settled(machine) for machine in (small, other, none)] == ["running"] * 3
    assert "not run" in other.console()


def test_user_data_that_fails_leaves_a_degraded_machine(host: Host) -> None:
    machine = host.boot(MachineSpec("i-1", _script("echo so far; exit 3")))
    _prints(machine, "so far")
    assert _settled(machine) == "degraded"


def test_a_machine_has_python_curl_and_a_root_of_its_own(host: Host) -> None:
    machine = host.boot(MachineSpec("i-1"))
    version = machine.run("python3", "-c", "import ssl, sys; print(sys.version_info >= (3, 10))")
    assert version.stdout == "True\n"
    assert machine.run("curl", "--version").stdout
    for folder in ("/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var/tmp", "/usr/local/bin"):
        assert machine.run("ls", "-A", folder).stdout == "", folder
    machine.run("sh", "-c", "echo nobody writes > /tmp/f; su -s /bin/sh nobody -c 'touch /tmp/g'")


def test_the_interpreter_of_the_tests_does_where_the_system_has_none(host: Host) -> None:
    mine = python.of_tests()
    assert mine is not None
    with Host(interpreter=mine) as other:
        machine = other.boot(MachineSpec("i-1"))
        code = "import ssl, sys, json; json.dump([sys.prefix, sys.path], sys.stdout)"
        found = machine.run("python3", "-c", code).stdout
        assert f'"{python.HOME}"' in found
        assert machine.run("ls", "-A", f"{python.HOME}/lib/{_library()}/site-packages").stdout == ""


def _library() -> str:
    return Path(os.__file__).parent.name


def test_nothing_of_the_computer_is_in_sight(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_HOST", "do-not-tell")
    (tmp_path / "file").write_text("do-not-tell")
    machine = host.boot(MachineSpec("i-1"))
    assert _settled(machine) == "running"
    inside = set(machine.run("ls", "/").stdout.split())
    assert inside <= {
        "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "media", "mnt",
        "opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var",
    }  # fmt: skip
    for path in (Path(__file__), tmp_path, Path.home() / ".bashrc", Path("/var/log/dpkg.log")):
        assert machine.run("test", "-e", str(path), check=False).returncode == 1, path
    assert str(tmp_path.parent) not in machine.run("cat", "/proc/self/mountinfo").stdout
    assert "do-not-tell" not in machine.run("sh", "-c", "cat /proc/[0-9]*/environ").stdout
    assert all("SECRET_OF_HOST" not in each.environ for each in machine.processes())
    people = [line.split(":") for line in machine.run("cat", "/etc/passwd").stdout.splitlines()]
    assert all(int(person[2]) < 1000 or int(person[2]) == 65534 for person in people)
    passwords = [line.split(":")[1] for line in machine.run("cat", "/etc/shadow").stdout.split()]
    assert set(passwords) == {"*"}


def test_a_machine_cannot_change_the_kernel_of_the_computer(host: Host) -> None:
    """Looks at what would be allowed. It must not try: if it could, the computer had the damage."""
    machine = host.boot(MachineSpec("i-1", _script("grep Cap /proc/self/status; echo done")))
    _prints(machine, "done\n")
    entered = machine.run("cat", "/proc/self/status").stdout
    for status in (machine.console(), entered):
        held = [line.split()[1] for line in status.splitlines() if line.startswith("Cap")]
        assert len(held) == 5
        assert not any(int(each, 16) & 1 << number for each in held for number in DENIED.values())
    for path in ("/proc/sys/vm/swappiness", "/sys/power", "/dev/kmsg"):
        assert machine.run("test", "-w", path, check=False).returncode == 1, path


def test_all_that_is_written_is_found(host: Host) -> None:
    places = ("/root/a", "/tmp/b", "/run/c", "/dev/shm/d", "/usr/local/e", "/etc/f")
    lines = [f"echo found-me > {place}" for place in places]
    machine = host.boot(MachineSpec("i-1", _script(*lines, "echo written")))
    _prints(machine, "written\n")
    machine.kill()
    with_mark = [path for path in machine.files() if path.read_bytes() == b"found-me\n"]
    assert sorted(path.name for path in with_mark) == ["a", "b", "c", "d", "e", "f"]


# systemd in a machine


def test_services_start_restart_and_get_notice(host: Host) -> None:
    unit = """\
[Service]
ExecStart=/bin/bash -c 'trap "echo noticed; exit" TERM; echo serving; while :; do sleep 0.1; done'
ExecStop=/bin/echo stopping $MAINPID
Restart=always
RestartSec=0
TimeoutStopSec=60
[Install]
WantedBy=multi-user.target
"""
    script = _script(
        f"cat > /etc/systemd/system/agent.service <<'END'\n{unit}END",
        "systemctl daemon-reload",
        "systemctl enable --now agent.service",
    )
    machine = host.boot(MachineSpec("i-1", script))
    _prints(machine, "serving")
    machine.run("systemctl", "kill", "--signal=KILL", "agent.service")
    until(lambda: machine.console().count("serving") == 2, 10)
    machine.power_button()
    assert machine.wait(patience(10))
    assert machine.end is End.POWERED_OFF
    assert "stopping" in machine.console()
    assert "noticed" in machine.console()


def test_transient_services_run(host: Host) -> None:
    machine = host.boot(MachineSpec("i-1", _script("systemd-run --unit=job sleep 1000")))
    until(lambda: ("/usr/bin/sleep", "1000") in [each.argv for each in machine.processes()], 10)
    assert machine.run("systemctl", "is-active", "job").stdout == "active\n"
    told = machine.run("systemd-run", "--wait", "--pipe", "--quiet", "echo", "from a unit")
    assert told.stdout == "from a unit\n"


def test_a_shutdown_can_be_timed_and_cancelled(host: Host) -> None:
    machine = host.boot(MachineSpec("i-1", _script("shutdown -P +60; echo armed")))
    _prints(machine, "armed")
    assert "MODE=poweroff" in machine.run("cat", "/run/systemd/shutdown/scheduled").stdout
    machine.run("shutdown", "-c")
    assert machine.run("ls", "/run/systemd/shutdown").stdout == ""
    assert machine.alive


# What a machine reaches


def test_metadata_is_answered_to_each_machine_with_its_own(host: Host) -> None:
    def metadata(id: str) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            if request.method == "PUT":
                told = f"{request.headers['x-seconds']} {request.body.decode()}"
                return Response(201, told.encode(), {"X-Told": "yes"})
            return Response(200, id.encode()) if request.path == "/id" else Response(404)

        return answer

    machines = [
        host.boot(
            MachineSpec(
                name, endpoints=(Endpoint("169.254.169.254", 80, answering(metadata(name))),)
            )
        )
        for name in ("i-1", "i-2")
    ]
    url = "http://169.254.169.254"
    for machine in machines:
        assert machine.run("curl", "-sS", f"{url}/id", f"{url}/id").stdout == machine.id * 2
        missing = machine.run("curl", "-fsS", f"{url}/nothing", check=False)
        assert "404" in missing.stderr
        put = machine.run("curl", "-isSX", "PUT", "-H", "X-Seconds: 60", "-d", "body", url)
        assert "X-Told: yes" in put.stdout
        assert put.stdout.endswith("60 body")


def test_names_lead_to_ports_of_the_computer(host: Host) -> None:
    with _server() as port:
        machine = host.boot(
            MachineSpec(
                "i-1",
                endpoints=(Endpoint(_SERVICE, 80, forward("127.0.0.1", port)),),
                hosts={"bucket.example.com": _SERVICE},
            )
        )
        url = "http://bucket.example.com"
        code = f"import urllib.request as u; print(len(u.urlopen('{url}/5000000').read()))"
        assert machine.run("python3", "-c", code).stdout == "5000000\n"
        machine.run("curl", "-fsSo", "/root/wheel", f"{url}/3000000")
        assert machine.run("stat", "-c", "%s", "/root/wheel").stdout == "3000000\n"


def test_extra_authorities_are_trusted(host: Host, tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("makes a certificate with openssl: apt install openssl")
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes",
         "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-subj", "/CN=example.com", "-addext", "subjectAltName=DNS:example.com",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    with _server(server_context(certificate, key)) as port:
        endpoints = (Endpoint(_SERVICE, 443, forward("127.0.0.1", port)),)
        hosts = {"example.com": _SERVICE}
        wary = host.boot(MachineSpec("i-1", endpoints=endpoints, hosts=hosts))
        trusting = host.boot(
            MachineSpec("i-2", b"", endpoints, hosts, certificates=certificate.read_bytes())
        )
        code = "import urllib.request as u; print(len(u.urlopen('https://example.com/7').read()))"
        assert trusting.run("python3", "-c", code).stdout == "7\n"
        assert trusting.run("curl", "-sS", "https://example.com/7").stdout == "x" * 7
        assert wary.run("python3", "-c", code, check=False).returncode != 0
        assert wary.run("curl", "-sS", "https://example.com/7", check=False).returncode != 0


def test_nothing_else_is_reached(host: Host) -> None:
    neighbour = host.boot(MachineSpec("i-1"))
    machine = host.boot(MachineSpec("i-2"))
    with _server() as port:
        for url in (f"127.0.0.1:{port}", f"{neighbour.address}:22", "1.1.1.1", "example.com"):
            began = time.monotonic()
            done = machine.run("curl", "-sS", "--max-time", "60", f"http://{url}/1", check=False)
            assert done.returncode in (6, 7), done.stderr
            assert time.monotonic() - began < patience(3)


def test_a_port_where_nobody_listens_on_the_computer_is_closed(host: Host) -> None:
    with _server() as port:
        pass
    endpoint = Endpoint(_SERVICE, 80, forward("127.0.0.1", port))
    machine = host.boot(MachineSpec("i-1", endpoints=(endpoint,)))
    assert machine.run("curl", "-sS", f"http://{_SERVICE}/", check=False).returncode in (52, 56)


# How a machine ends


def test_a_kill_leaves_nothing_and_is_told_once(host: Host) -> None:
    told: list[RunningMachine] = []
    spec = MachineSpec("i-1", _script("trap '' TERM; echo up; sleep 1000"), on_end=told.append)
    machine = host.boot(spec)
    _prints(machine, "up\n")
    began = time.monotonic()
    machine.kill()
    assert time.monotonic() - began < patience(1)
    assert not machine.alive
    assert machine.end is End.KILLED
    assert machine.processes() == []
    until(lambda: told)
    machine.kill()
    machine.power_button()
    host.close()
    assert told == [machine]
    with pytest.raises(MachineError, match="has ended"):
        machine.run("true")


@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("shutdown -h now", End.POWERED_OFF),
        ("systemctl poweroff", End.POWERED_OFF),
        ("systemctl reboot", End.RESTARTED),
        ("kill -SEGV 1", End.CRASHED),
    ],
)
def test_a_machine_can_end_itself(host: Host, command: str, end: End) -> None:
    told = threading.Event()
    machine = host.boot(MachineSpec("i-1", _script(command), on_end=lambda _: told.set()))
    assert machine.wait(patience(10))
    assert told.wait(patience(10))
    assert machine.end is end


def test_a_machine_can_be_started_again_on_its_disk(host: Host) -> None:
    script = _script("touch /etc/kept /run/lost /dev/shm/lost", "echo once", "systemctl reboot")
    machine = host.boot(MachineSpec("i-1", script))
    assert machine.wait(patience(10))
    again = host.restart(machine)
    until(lambda: again.run("systemctl", "is-active", "multi-user.target", check=False).stdout)
    assert again.run("ls", "/etc/kept").stdout == "/etc/kept\n"
    for path in ("/run/lost", "/dev/shm/lost"):
        assert again.run("ls", path, check=False).returncode != 0
    assert again.console().count("once") == 1
    assert (again.address, again.alive, machine.alive) == (machine.address, True, False)


def test_the_power_button_works_from_the_first_moment(host: Host) -> None:
    machine = host.boot(MachineSpec("i-1"))
    machine.power_button()
    assert machine.wait(patience(10))
    assert machine.end is End.POWERED_OFF


def test_the_end_of_a_machine_may_boot_the_next(host: Host) -> None:
    booted = threading.Event()

    def replace(_: RunningMachine) -> None:
        host.boot(MachineSpec("i-2", _script("echo replaced")))
        booted.set()

    host.boot(MachineSpec("i-1", on_end=replace)).kill()
    assert booted.wait(patience(10))
    first, second = host.machines
    _prints(second, "replaced")
    assert first.address != second.address


def test_a_machine_goes_while_it_is_served(host: Host) -> None:
    release = threading.Event()

    def slow(_: Request) -> Response:
        assert release.wait(patience(10))
        return Response()

    endpoint = Endpoint(_SERVICE, 80, answering(slow))
    machine = host.boot(MachineSpec("i-1", _script(f"curl {_SERVICE}"), (endpoint,)))
    until(lambda: any("curl" in each.argv for each in machine.processes()), 10)
    machine.kill()
    release.set()


def test_a_machine_that_cannot_be_made_says_why(host: Host) -> None:
    endpoint = Endpoint("not an address", 80, forward("127.0.0.1", 1))
    with pytest.raises(MachineError, match="not an address"):
        host.boot(MachineSpec("i-1", endpoints=(endpoint,)))
    assert host.machines == []


def test_a_closed_host_boots_nothing(host: Host) -> None:
    host.boot(MachineSpec("i-1"))
    host.close()
    with pytest.raises(MachineError, match="closed"):
        host.boot(MachineSpec("i-2"))


def test_a_host_that_is_closed_while_it_boots_leaves_nothing(host: Host) -> None:
    with ThreadPoolExecutor(3) as pool:
        boots = [pool.submit(host.boot, MachineSpec(f"i-{number}")) for number in range(3)]
        until(lambda: any("process" in line for line in traces.found()))
        host.close()
        assert not any("process" in line for line in traces.found())
        for boot in boots:
            assert boot.exception() or not boot.result().alive


def test_ten_machines_at_once(host: Host) -> None:
    facts = ("/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/etc/hostname")
    script = _script(f"echo facts $(cat {' '.join(facts)}) end")
    specs = [MachineSpec(f"i-{number}", script) for number in range(10)]
    with ThreadPoolExecutor(10) as pool:
        machines = list(pool.map(host.boot, specs))
    for machine in machines:
        _prints(machine, " end\n")
    told = [machine.console().partition("facts ")[2].split()[:3] for machine in machines]
    assert [len(set(each)) for each in zip(*told, strict=True)] == [10, 10, 10]
    assert len({machine.address for machine in machines}) == 10


# What is left when the process of the host is killed

_HOST_TO_KILL = """\
import sys, time
from pathlib import Path
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.spec import MachineSpec
host = Host(Path(sys.argv[1]))
for number in range(2):
    machine = host.boot(MachineSpec(f"i-{number}", b"#!/bin/sh\\nsleep 1000"))
    print(machine.pid1, machine._launched.launcher.pid, flush=True)
print(host.name, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Path]:
    """A folder on an overlay, which cannot carry the upper layer of another one."""
    reason = Host.unavailable()
    if reason:
        pytest.skip(reason)
    lower, upper, work, merged = (tmp_path / name for name in ("l", "u", "w", "m"))
    for folder in (lower, upper, work, merged):
        folder.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    kernel.mount("overlay", str(merged), "overlay", 0, options)
    yield merged
    assert os.listdir(merged) == []
    kernel.unmount(str(merged))


def test_machines_run_where_folders_are_on_an_overlay(overlay: Path) -> None:
    with Host(overlay) as host:
        machine = host.boot(MachineSpec("i-1", _script("echo fine > /root/file; echo fine")))
        _prints(machine, "fine\n")
        assert any(path.name == "file" for path in machine.files())


@pytest.mark.parametrize("launchers_too", [False, True])
def test_machines_do_not_outlive_their_host(host: Host, overlay: Path, launchers_too: bool) -> None:
    with _started(_HOST_TO_KILL, str(overlay)) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(3)]
        pids = [int(pid) for pair in lines[:2] for pid in pair]
        name = lines[2][0]
        assert (overlay / name).is_mount()
        process.kill()
    if launchers_too:
        for pid in pids[1::2]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
    until(lambda: not any(_runs(pid) for pid in pids), 10)
    with Host(overlay):
        assert not (overlay / name).exists()
        assert name not in Path("/proc/self/mountinfo").read_text()
        assert cgroups.find(name) == []


@contextlib.contextmanager
def _started(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command: Sequence[str] = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
