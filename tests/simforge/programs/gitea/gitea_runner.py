#!/usr/bin/env python3
"""Stands in for gitea-runner in tests: its arguments, files, signals, metrics and protocol.

The protocol is Gitea's own, as JSON (Connect): so this carries out jobs of a real Gitea, too. It
knows steps with `run:` on this machine, and nothing else of workflows.
"""

import argparse
import base64
import datetime
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

POLL = float(os.environ.get("SOJOURN_TEST_POLL", "0.2"))  # seconds
SERVICE = "/api/actions/runner.v1.RunnerService/"
ending = threading.Event()


class Gone(Exception):
    """Gitea does not know this runner."""


class Runner:
    def __init__(self, config):
        with open(config["runner"]["file"]) as file:
            self.own = json.load(file)
        if os.stat(config["runner"]["file"]).st_mode & 0o077:
            sys.exit("the registration must be nobody else's")
        self.work = config["host"]["workdir_parent"]
        self.running = 0
        self.version = 0

    def call(self, name, **body):
        headers = {
            "Content-Type": "application/json",
            "x-runner-uuid": self.own["uuid"],
            "x-runner-token": self.own["token"],
        }
        url = self.own["address"] + SERVICE + name
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            if "unauthenticated" in said or "unregistered" in said or "removed" in said:
                raise Gone(said) from error
            raise

    def declare(self):
        names = []
        for label in self.own["labels"]:
            match = re.fullmatch(r"([^:]+)(:host|:docker://.+)", label)
            if not match:
                sys.exit(f"invalid label {label}")
            names.append(match[1])
        self.call("Declare", version="v0-stand-in", labels=names)

    def poll(self, once):
        while not ending.is_set():
            try:
                answer = self.call("FetchTask", tasksVersion=str(self.version))
            except OSError as error:
                print(f"failed to fetch task: {error}", file=sys.stderr, flush=True)
                ending.wait(POLL)
                continue
            task, self.version = answer.get("task"), int(answer.get("tasksVersion", 0))
            if not task:
                ending.wait(POLL)
                continue
            self.version = 0
            self.running = 1
            try:
                Job(self, task).carry_out()
            finally:
                self.running = 0
            if once:
                return


class Job:
    def __init__(self, runner, task):
        self.runner, self.id = runner, task["id"]
        self.context = task.get("context", {})
        self.steps = steps(base64.b64decode(task["workflowPayload"]).decode())
        self.states = []
        self.rows = 0
        self.started = now()

    def carry_out(self):
        result = "RESULT_SUCCESS"
        for number, script in enumerate(self.steps):
            began, first = now(), self.rows
            result = self.step(script)
            self.states.append(
                {
                    "id": str(number),
                    "result": result,
                    "startedAt": began,
                    "stoppedAt": now(),
                    "logIndex": str(first),
                    "logLength": str(self.rows - first),
                }
            )
            if result != "RESULT_SUCCESS":
                break
        self.tell("UpdateLog", taskId=self.id, index=str(self.rows), rows=[], noMore=True)
        state = {"id": self.id, "result": result, "startedAt": self.started, "stoppedAt": now()}
        self.tell("UpdateTask", state={**state, "steps": self.states})

    def step(self, script):
        folder = os.path.join(self.runner.work, str(self.id))
        os.makedirs(folder, exist_ok=True)
        run = {"GITHUB_RUN_ID": str(self.context.get("run_id", "")), "GITEA_ACTIONS": "true"}
        process = subprocess.Popen(
            ["/bin/sh", "-e", "-c", script],
            cwd=folder,
            env={**os.environ, **run},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
        reader.start()
        cancelled = False
        while process.poll() is None:
            cancelled = cancelled or ending.is_set() or self.cancelled()
            if cancelled:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(POLL)
        reader.join(2)
        self.log(lines)
        if cancelled:
            return "RESULT_CANCELLED"
        return "RESULT_FAILURE" if process.returncode else "RESULT_SUCCESS"

    def log(self, lines):
        rows = [{"time": now(), "content": line.rstrip("\n")} for line in lines]
        self.tell("UpdateLog", taskId=self.id, index=str(self.rows), rows=rows)
        self.rows += len(rows)

    def cancelled(self):
        try:
            answer = self.runner.call("UpdateTask", state={"id": self.id, "steps": self.states})
        except Gone:
            return True
        except OSError:
            return False
        return "result" in answer.get("state", {})

    def tell(self, name, **body):
        for _ in range(50):
            try:
                self.runner.call(name, **body)
                return
            except Gone:
                return
            except OSError:
                time.sleep(POLL)


def steps(workflow):
    """The scripts of the only job that Gitea sends."""
    try:
        found = json.loads(workflow)
    except ValueError:
        import yaml  # of whoever has a real Gitea

        found = yaml.safe_load(workflow)
    (job,) = found["jobs"].values()
    return [step["run"] for step in job["steps"]]


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def serve_metrics(runner, address):
    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page = (
                "# TYPE gitea_runner_info gauge\n"
                f'gitea_runner_info{{name="{runner.own["name"]}",version="v0"}} 1\n'
                "# TYPE gitea_runner_job_running gauge\n"
                f"gitea_runner_job_running {runner.running}\n"
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    host, _, port = address.rpartition(":")
    server = http.server.ThreadingHTTPServer((host, int(port)), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("daemon").add_argument("--once", action="store_true")
    given = parser.parse_args()
    with open(given.config) as file:
        config = json.load(file)  # which is YAML as well
    if config["runner"]["capacity"] != 1 or not config["metrics"]["enabled"]:
        sys.exit("not what the driver writes")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    runner = Runner(config)
    try:
        runner.declare()
        serve_metrics(runner, config["metrics"]["addr"])
        runner.poll(given.once or runner.own["ephemeral"])
    except Gone as error:
        sys.exit(f"runner is no longer registered with the server: {error}")


if __name__ == "__main__":
    main()
