from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sojourn.agent.gauge import Gauge, free_port

PAGE = """\
# HELP jobs_running Number of jobs.
# TYPE jobs_running gauge
jobs_running_since 99
program_info{name="one"} 1
"""


class Program:
    """Has metrics."""

    def __init__(self) -> None:
        self.page = PAGE
        program = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path == "/metrics" else 404)
                self.end_headers()
                self.wfile.write(program.page.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def described(tmp_path: Path) -> Path:
    file = tmp_path / "gauge"
    file.write_text('jobs_running name="one"\n')
    return file


def test_it_keeps_the_file_that_tells_of_a_job(
    program: Program, described: Path, tmp_path: Path
) -> None:
    job = tmp_path / "now"
    gauge = Gauge(program.port, described, job)
    for number, there in (("0", False), ("1", True), ("1", True), ("0", False)):
        program.page = f"{PAGE}jobs_running {number}\n"
        assert gauge.look()
        assert job.exists() is there


def test_jobs_of_all_kinds_count(program: Program, described: Path, tmp_path: Path) -> None:
    program.page = f'{PAGE}jobs_running{{kind="a"}} 0\njobs_running{{kind="b"}} 2\n'
    assert Gauge(program.port, described, tmp_path / "now").look()
    assert (tmp_path / "now").exists()


@pytest.mark.parametrize(
    "page",
    [
        PAGE,
        "jobs_running 1\n",  # of another program
        f"{PAGE}jobs_running NaN\n",
        f"{PAGE}jobs_running many\n",
    ],
)
def test_what_cannot_be_told_changes_nothing(
    program: Program, described: Path, tmp_path: Path, page: str
) -> None:
    program.page = page
    assert not Gauge(program.port, described, tmp_path / "now").look()
    assert not (tmp_path / "now").exists()


def test_a_program_that_is_not_there_yet_tells_nothing(described: Path, tmp_path: Path) -> None:
    (tmp_path / "now").touch()
    assert not Gauge(free_port(), described, tmp_path / "now").look()
    assert (tmp_path / "now").exists()


def test_no_link_is_followed(program: Program, described: Path, tmp_path: Path) -> None:
    (tmp_path / "now").symlink_to(tmp_path / "elsewhere")
    program.page = f"{PAGE}jobs_running 1\n"
    assert Gauge(program.port, described, tmp_path / "now").look()
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_in_the_way_is_no_obstacle(
    program: Program, described: Path, tmp_path: Path
) -> None:
    (tmp_path / "now").mkdir()
    gauge = Gauge(program.port, described, tmp_path / "now")
    for number in (1, 0):
        program.page = f"{PAGE}jobs_running {number}\n"
        assert gauge.look()
        assert gauge.busy is bool(number)
