"""What stands in for the runner programs in the tests: asks the simulated forge for jobs.

It is not any forge's program. Each has a front of its own beside it, with the arguments, files and
signals of the real one, as far as we use them.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

POLL = 0.2  # seconds


class Gone(Exception):
    """The forge does not know this runner."""


class Client:
    def __init__(self, url, key, *, single=False, work="_work"):
        self.url, self.key, self.single, self.work = url, key, single, work
        self.ending = threading.Event()
        self.draining = threading.Event()
        self.job_started = self.job_ended = lambda job: None
        self.before = ""  # what each job begins with

    def call(self, name, **body):
        data = json.dumps({"key": self.key, **body}).encode()
        request = urllib.request.Request(f"{self.url}/_program/{name}", data, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 410:
                raise Gone(error.read().decode()) from error
            raise

    def listen(self, *signals):
        for number in signals:
            signal.signal(number, lambda *_: self.ending.set())

    def run(self, jobs=0, idle=None):
        """Until it is told to end; `jobs`: or so many are done; `idle`: or so long without one."""
        done, since = 0, time.monotonic()
        while not (self.ending.is_set() or self.draining.is_set()):
            try:
                job = self.call("poll")["job"]
            except OSError as error:
                print(f"cannot reach the forge: {error}", flush=True)
                job = None
            if job:
                self.carry_out(job)
                done, since = done + 1, time.monotonic()
                if jobs and done >= jobs:
                    return
            elif idle and time.monotonic() - since > idle:
                return
            else:
                self.ending.wait(POLL)

    def carry_out(self, job):
        os.makedirs(self.work, exist_ok=True)
        self.job_started(job)
        process = subprocess.Popen(
            ["/bin/sh", "-e", "-c", f"{self.before}\n{job['script']}"],
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
        reader.start()
        while process.poll() is None:
            if self.ending.is_set() or self._cancelled(job):
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(POLL)
        reader.join(2)
        self.job_ended(job)
        for _ in range(50):
            try:
                self.call(
                    "done",
                    job=job["id"],
                    code=str(process.returncode),
                    log="".join(lines),
                    aborted=str(int(self.ending.is_set())),
                )
                return
            except Gone:
                return
            except OSError:
                time.sleep(POLL)

    def _cancelled(self, job):
        try:
            return self.call("alive", job=job["id"])["cancel"]
        except Gone:
            return True
        except OSError:
            return False


def forge_call(url, path, body):
    request = urllib.request.Request(
        url + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(error.read().decode())
