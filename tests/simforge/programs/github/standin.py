"""The actions runner's front: config.sh and run.sh, their variables, files and hooks."""

import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import urllib.parse

from client import Client, Gone, forge_call

HERE = os.path.dirname(os.path.abspath(__file__))


def configure(arguments):
    parser = argparse.ArgumentParser()
    for name in ("unattended", "replace"):
        parser.add_argument(f"--{name}", action="store_true", required=True)
    for name in ("url", "name", "labels"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args(arguments)
    if os.path.exists(f"{HERE}/.runner"):
        sys.exit("Cannot configure the runner because it is already configured.")
    token = os.environ["ACTIONS_RUNNER_INPUT_TOKEN"]
    parts = urllib.parse.urlsplit(given.url)
    forge = f"{parts.scheme}://{parts.netloc}"
    body = {"token": token, "name": given.name, "labels": given.labels, "replace": "1"}
    made = forge_call(forge, "/api/v3/_register", body)
    write(".runner", {"agentName": given.name, "serverUrl": forge})
    write(".credentials", {"scheme": "OAuth"})
    write(".credentials_rsaparams", {"key": made["key"]})


def run():
    single = "ACTIONS_RUNNER_INPUT_JITCONFIG" in os.environ
    if single:
        made = json.loads(base64.b64decode(os.environ.pop("ACTIONS_RUNNER_INPUT_JITCONFIG")))
        client = Client(made["url"], made["key"], single=True, work=f"{HERE}/_work")
    else:
        key = read(".credentials_rsaparams")["key"]
        client = Client(read(".runner")["serverUrl"], key, work=f"{HERE}/_work")
    client.job_started = lambda job: hook("ACTIONS_RUNNER_HOOK_JOB_STARTED", job)
    client.job_ended = lambda job: hook("ACTIONS_RUNNER_HOOK_JOB_COMPLETED", job)
    client.listen(signal.SIGTERM, signal.SIGINT)
    print("Listening for Jobs", flush=True)
    try:
        client.run(jobs=1 if single else 0)
    except Gone:
        print("Runner connect error: the registration has been deleted", flush=True)


def hook(variable, job):
    environment = {**os.environ, "GITHUB_RUN_ID": job["run"], "GITHUB_RUN_ATTEMPT": job["attempt"]}
    subprocess.run(["bash", "-e", os.environ[variable]], env=environment, check=True)


def write(name, data):
    with open(os.open(f"{HERE}/{name}", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        json.dump(data, file)


def read(name):
    with open(f"{HERE}/{name}") as file:
        return json.load(file)


if sys.argv[1] == "configure":
    configure(sys.argv[2:])
else:
    run()
