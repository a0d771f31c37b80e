"""The front of Bitbucket's runner: its properties and signals, and the environment of steps."""

import os
import signal
import sys
import uuid

from client import Client, Gone

PREFIX = "bitbucket.pipelines.runner."
NEEDED = {
    "account.uuid",
    "uuid",
    "oauth.client.id",
    "oauth.client.secret",
    "directory.working",
    "environment",
    "runtime",
}


def main(properties):
    given = {name.removeprefix(PREFIX): value for name, value in properties.items() if value}
    if missing := NEEDED - set(given):
        sys.exit(f"missing properties: {missing}")
    if given["runtime"] != "linux-shell" or given["environment"] != "PRODUCTION":
        sys.exit("unknown runtime or environment")
    with open("forge") as file:
        url = file.read()
    client = Client(url, given["oauth.client.secret"], work=given["directory.working"])
    client.job_started = prepare
    client.listen(signal.SIGTERM, signal.SIGINT)
    print('Updating runner status to "ONLINE"', flush=True)
    while not client.ending.is_set():
        try:
            client.run()
        except Gone:
            print("unauthorized", flush=True)
            client.ending.wait(1)


def prepare(job):
    found = uuid.uuid5(uuid.NAMESPACE_URL, f"pipeline {job['run']}")
    os.environ["BITBUCKET_PIPELINE_UUID"] = f"{{{found}}}"
    os.environ["BITBUCKET_BUILD_NUMBER"] = job["run"]
