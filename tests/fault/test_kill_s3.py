"""Commands that write to a bucket, killed at each of their requests: before the service carries it out, or after it has. Afterwards
the rules of kill_check.py hold, as for files: readers find the old or the new state, `clean` finds what is left, and a repetition
completes it. .ci/run tries a sample by a fixed seed, make test-long all points, which is this, too, in about an hour:

    PYTHONPATH=build/dev/python HYPOTHESIS_PROFILE=long pytest tests/fault/test_kill_s3.py
"""
import json
import os
import random
import re
import subprocess
import threading
from contextlib import ExitStack
from dataclasses import replace

import kill_check as check
import kill_ops as ops
import kill_points
import kill_store
import pytest
from s3_large import start_large_service
from s3_server import BUCKET, make_variables

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
POINTS = 2  # of a sample, for each command
AMAZON = "http://s3.us-east-1.amazonaws.com"  # the server is a proxy for it
# A new shape appears before its rows, and a repetition appends once more.
COMMANDS = [replace(o, mixes=(o.command[1],), repeat="") if o.command[0] == "append" else o for o in ops.COMMANDS]
# Only on AWS are chunks of fill values erased.
RUNS = [(o, is_amazon) for o in COMMANDS for is_amazon in (False, True)
        if is_amazon == o.name.startswith("shrink") or is_amazon and LONG]


class Kill:
    """Kills the run of a program at its request number `point`, and answers none of its requests from then on."""

    def __init__(self, service, point, is_done):
        self.service, self.point, self.is_done = service, point, is_done
        self.number = str(next(NUMBERS))
        self.count, self.started, self.process, self.request = 0, threading.Event(), None, ""

    def __call__(self, request):
        request.path = request.path.removeprefix(AMAZON)
        if request.headers.get("x-run") != self.number:
            return self.service.LOST if "x-run" in request.headers else None  # of a program that is dead
        self.count += 1
        if not self.request and self.count == self.point:
            self.request = f"{request.method} {request.path}"
            if self.is_done:
                self.service.fault = None
                self.service(request)
                self.service.fault = self
            assert self.started.wait(60)
            self.process.kill()
            self.process.wait()
        return self.service.LOST if self.request else None

    def run(self, folder, command, environment):
        line = make_line(command, f'--store-option=headers={{"x-run": "{self.number}"}}')
        self.service.fault = self
        self.process = subprocess.Popen(line, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.started.set()
        text = self.process.communicate(timeout=60)[1]
        return self.process.returncode, text


NUMBERS = iter(range(1, 1 << 30))


def make_line(command, *options):
    """The command in which each store is one of the bucket."""
    words = (re.sub(r"^\w+\.zarr", rf"s3://{BUCKET}/\g<0>", word) for word in command)
    return [kill_points.PROGRAM, *words, "--store-option=style=path", *options]


class World(kill_points.World):
    """Its folder is the bucket, so the checks read it as they read files."""

    def __init__(self, command, server, is_amazon=False):
        super().__init__(command)
        self.service, self.environment = server.service, kill_points.ENVIRONMENT | make_variables(server.url)
        if is_amazon:
            self.environment |= {"AWS_ENDPOINT_URL": AMAZON, "http_proxy": server.url}

    def renew(self):
        self.service.metadata.clear()
        self.service.uploads.clear()
        self.service.folder = super().renew()
        return self.service.folder

    def run(self, command, point=0, is_done=False):
        kill = Kill(self.service, point, is_done)
        return kill, *kill.run(self.folder, command, self.environment)

    def zarrc(self, *command):
        """A program that goes on."""
        line = make_line(command, "--store-option=conditional=etag")
        return subprocess.run(line, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def find_state(self, *commands):
        folder, codes, calls = self.renew(), [], 0
        for command in commands:
            kill, code, text = self.run(command)
            codes.append(code)
            calls = kill.count
            assert code == 0, text
        return check.State(kill_store.read_nodes(folder), kill_store.read_consolidated(folder)[0], kill_store.files(folder), codes, calls)


def try_point(world, operation, before, after, point, is_done):
    """(the request, what is wrong or None)"""
    folder = world.renew()
    kill, _, _ = world.run(operation.command, point, is_done)
    if not kill.request:
        return None, None
    problem = check.after_kill(folder, operation, before, after, point, world.zarrc)
    if problem:
        return kill.request, problem
    if operation.repeat == "":
        done = world.zarrc(*operation.command)
        problem = f"the repeated command: exit code {done.returncode}: {done.stderr[-300:]}" if done.returncode else None
    return kill.request, problem or check.after_repeat(folder, operation, before, after, lambda: world.zarrc(*(operation.repeat or operation.command)),
                                                       world.zarrc, point % 2)


@pytest.fixture
def server(tmp_path):
    (tmp_path / BUCKET).mkdir()
    with start_large_service(tmp_path / BUCKET) as found:
        yield found


@pytest.mark.parametrize(("operation", "is_amazon"), RUNS, ids=[f"{o.name}{' on AWS' * is_amazon}" for o, is_amazon in RUNS])
@pytest.mark.timeout(1800)
def test_kill(operation, is_amazon, server):
    with ExitStack() as stack:
        world = World(operation.command, server, is_amazon)
        stack.callback(world.close)
        before, after = world.after(), world.find_state(operation.command)
        points = [(point, is_done) for point in range(1, after.calls + 1) for is_done in (False, True)]
        if not LONG:
            points = random.Random(f"{kill_points.SEED} {operation.name}").sample(points, min(POINTS, len(points)))
        wrong = []
        for point, is_done in points:
            request, problem = try_point(world, operation, before, after, point, is_done)
            if problem:
                wrong.append(f"point {point} ({'after' if is_done else 'before'} {request}): {problem}")
        assert not wrong, "\n".join(wrong[:20])


@pytest.mark.timeout(1800)
def test_kill_an_upload(server, tmp_path):
    """A chunk that goes up in parts is there as it was or as it will be."""
    folder, service, n = tmp_path / BUCKET, server.service, 65 << 20
    file = folder / "x.zarr/a/c/0"
    old, new = (bytes([number]) * n for number in (1, 2))
    (tmp_path / "new.raw").write_bytes(new)
    write = ["import", "-q", "--dtype=uint8", str(tmp_path / "new.raw"), "x.zarr/a[:]"]
    with ExitStack() as stack:
        world = World([], server)
        stack.callback(world.close)
        world.folder = folder
        assert world.zarrc("create", "x.zarr/a", f"--shape={n}", "--dtype=uint8", f"--chunks={n}", "--codec=none").returncode == 0
        service.names.clear()
        total = world.run(write)[0].count
        last = service.names.index("CompleteUpload") + 1
        assert service.count("UploadPart") == 9 and file.read_bytes() == new
        points = [(point, is_done) for point in range(1, total + 1) for is_done in (False, True)]
        for point, is_done in points if LONG else random.Random(kill_points.SEED).sample(points, 4):
            file.write_bytes(old)
            request = world.run(write, point, is_done)[0].request
            at = f"point {point} ({'after' if is_done else 'before'} {request})"
            assert file.read_bytes() == (new if (point, is_done) >= (last, True) else old), at
            assert world.zarrc("clean", "--age=0", "x.zarr").returncode == 0
            assert service.open_uploads() == [] and kill_store.files(folder) == ["x.zarr/a/c/0", "x.zarr/a/zarr.json", "x.zarr/zarr.json"], at
            assert world.zarrc(*write).returncode == 0 and file.read_bytes() == new, at
