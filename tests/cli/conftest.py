"""Runs the program zarrc as a user would: `zarrc("info", path)` checks the exit code."""
import json
import os
import pathlib
import pty
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
PROGRAM = os.environ.get("ZARRC", str(ROOT / "build/dev/bin/zarrc"))


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr.decode("utf-8", "surrogateescape")

    @property
    def text(self):
        return self.out.decode("utf-8")

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        """The error that --json wrote to stderr."""
        return json.loads(self.err.splitlines()[-1])["error"]


def run(*arguments, code=0, input=b"", env=None, cwd=None):
    """Runs zarrc and checks the exit code; with code=None, any exit code is accepted."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ZARRC_")}
    environment.update(env or {})
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=input, cwd=cwd, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    result = Result(done)
    if code is not None:
        assert result.code == code, (arguments, result.code, result.err, result.out[:2000])
    return result


PEAK = """import resource, subprocess, sys
code = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "wb")).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)"""


def peak(*arguments, out="/dev/null"):
    """Returns the peak memory of zarrc in KiB. A small process starts zarrc, because the peak of a
    process includes the size that its parent has at the fork."""
    done = subprocess.run([sys.executable, "-S", "-c", PEAK, out, PROGRAM, *map(str, arguments)],
                          stdout=subprocess.PIPE, check=True, timeout=300)
    return int(done.stdout)


def pseudo_terminal():
    """Both ends of a new pseudo-terminal. Skips the test if the machine has none, such as a container
    without /dev/pts."""
    try:
        return pty.openpty()
    except OSError as problem:
        pytest.skip(f"this machine has no pseudo-terminal: {problem}")


@pytest.fixture
def full():
    """A device on which every write fails with "no space left"."""
    if not pathlib.Path("/dev/full").is_char_device():
        pytest.skip("this machine has no /dev/full")
    return "/dev/full"


@pytest.fixture(scope="session")
def zarrc():
    return run


@pytest.fixture(scope="session")
def commands():
    """Names of all commands, from the help."""
    lines = run("help").text.split("commands:\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines]


@pytest.fixture
def rng(request):
    import zlib

    import numpy as np
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
