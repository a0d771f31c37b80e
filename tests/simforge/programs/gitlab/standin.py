"""GitLab Runner's front: `run` and `run-single`, its configuration, metrics and signals."""

import argparse
import http.server
import os
import signal
import stat
import sys
import threading
import urllib.parse

import tomllib
from client import Client, Gone

GLOBAL = {"concurrent", "listen_address", "runners"}
RUNNER = {"name", "url", "token", "executor", "shell", "builds_dir", "cache_dir", "docker"}
HOOKS = {"pre_get_sources_script"}


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--working-directory")
    run.add_argument("--user")
    single = commands.add_parser("run-single")
    single.add_argument("--runner", required=True)
    single.add_argument("--max-builds", type=int, default=0)
    single.add_argument("--wait-timeout", type=int, default=0)
    for each in (run, single):
        each.add_argument("--config", required=True)
    given = parser.parse_args()
    everything, config = read(given.config)
    client = client_of(config)
    jobs = []
    client.job_started = lambda job: jobs.append(job)
    client.job_ended = lambda job: jobs.remove(job)
    client.listen(signal.SIGTERM, signal.SIGINT)
    signal.signal(signal.SIGQUIT, lambda *_: client.draining.set())
    if given.command == "run":
        serve(everything["listen_address"], jobs)
        go_on(client)
    else:
        if given.runner != config["name"]:
            sys.exit(f"FATAL: could not find a runner with the name '{given.runner}'")
        go_on(client, jobs=given.max_builds, idle=given.wait_timeout)


def read(file):
    if stat.S_IMODE(os.stat(file).st_mode) != 0o600:
        sys.exit("the configuration can be read by others")
    with open(file, "rb") as opened:
        found = tomllib.load(opened)
    (runner,) = found["runners"]
    unknown = set(found) - GLOBAL | set(runner) - RUNNER - HOOKS
    if unknown or found["concurrent"] != 1:
        sys.exit(f"unknown settings: {unknown}")
    if not runner["token"].startswith("glrt-"):
        sys.exit("FATAL: not an authentication token")
    return found, runner


def client_of(config):
    """The forge of the tests speaks with programs at the root of its host."""
    parts = urllib.parse.urlsplit(config["url"])
    work = config.get("builds_dir", "builds")
    client = Client(f"{parts.scheme}://{parts.netloc}", config["token"], work=work)
    client.before = config.get("pre_get_sources_script", "")
    return client


def go_on(client, **limits):
    """It does not end by itself if its runner was removed."""
    while not (client.ending.is_set() or client.draining.is_set()):
        try:
            client.run(**limits)
            return
        except Gone:
            print("ERROR: Checking for jobs... forbidden", flush=True)
            client.ending.wait(1)


def serve(address, jobs):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            lines = ["# TYPE gitlab_runner_jobs gauge", "gitlab_runner_jobs_total 5"]
            labels = 'executor_stage="shell_run",runner="abc",stage="step_script",state="running"'
            lines += [f"gitlab_runner_jobs{{{labels}}} {len(jobs)}"] if jobs else []
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write("\n".join([*lines, ""]).encode())

        def log_message(self, *arguments):
            pass

    host, _, port = address.rpartition(":")
    server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


main()
