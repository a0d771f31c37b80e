#!/usr/bin/env python3
"""Stands in for forgejo-runner in tests: its arguments, configuration, signals and exit codes.

Its protocol is that of Gitea's program.
"""

import argparse
import json
import signal
import sys

import gitea_runner


class Runner(gitea_runner.Runner):
    def __init__(self, config):
        (connection,) = config["server"]["connections"].values()
        if set(connection) != {"url", "uuid", "token"}:
            sys.exit("not what the driver writes")
        self.own = {**connection, "labels": config["runner"]["labels"]}
        self.own["address"] = connection["url"].rstrip("/")
        self.work = config["host"]["workdir_parent"]
        self.running = 0

    def one_job(self):
        """Whether there was one."""
        try:
            task = self.call("FetchTask", tasksVersion="0").get("task")
        except OSError as error:
            print(f"failed to fetch task: {error}", file=sys.stderr, flush=True)
            return False
        if task:
            gitea_runner.Job(self, task).carry_out()
        return bool(task)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_subparsers(dest="command", required=True).add_parser("one-job")
    given = parser.parse_args()
    with open(given.config) as file:
        config = json.load(file)  # which is YAML as well
    if config["runner"]["capacity"] != 1:
        sys.exit("not what the driver writes")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: gitea_runner.ending.set())
    runner = Runner(config)
    try:
        runner.declare()
        had = runner.one_job()
    except (gitea_runner.Gone, OSError) as error:
        sys.exit(f"fail to invoke Declare: {error}")
    if not had:
        print("Error: no task received", file=sys.stderr)
        sys.exit(2)


main()
