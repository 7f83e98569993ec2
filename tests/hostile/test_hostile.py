"""Runs probe.c on every store of every_store.py. The status must be right, the message must name the place,
no value may be invented, and time and memory are limited. The build with sanitizers runs the same
cases without these two limits."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from every_store import CASES

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/status"),
                                reason="no /proc/self/status tells probe.c how much memory it used")
BUILD = pathlib.Path(os.environ["ZARRC_BUILD"])
SANITIZED = BUILD.name in ("asan", "tsan")
SECONDS = 60 if SANITIZED else 2
REQUIRED = ("open", "read", "first", "last", "chunks", "verify", "fault", "texts", "group", "list",
            "walk", "child", "check", "write")
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1",
                   UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1")


def write_store(root, made):
    root.mkdir()
    for key, value in made.files.items():
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
    if made.prepare:
        made.prepare(str(root))


def probe(root, made):
    """Gives {step: (status, text)}, the CPU seconds of the slowest step, and the memory peak in KiB."""
    command = [BUILD / "tests" / "hostile_probe", root] + (["untrusted"] if made.untrusted else [])
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=60)
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"exit {done.returncode}\n{output}\n" \
                                 f"{done.stderr.decode(errors='replace')[-6000:]}"
    steps, slowest, peak = {}, 0.0, None
    for line in output.splitlines():
        word, *rest = line.split("\t")
        if word == "peak":
            peak = int(rest[0])
        else:
            steps[word] = (rest[0], rest[2])
            slowest = max(slowest, float(rest[1]) / 1000)
    assert peak, output
    return steps, slowest, peak


def judge(step, got, wanted):
    """Gives the error in one step, or None."""
    status, text = got
    if status not in ("ok", "corrupt", "unsupported", "limit", "io", "not found",
                      "invalid"):
        return f"{step}: {status}: {text}"
    if wanted is None:
        return None
    if status != wanted[0] or wanted[1] not in text:
        return f"{step}: {status}: {text[:300]!r}, wanted {wanted}"
    if status != "ok" and not re.search(r"/a\b|\ba/|^/d|zarr\.json|\.z(array|attrs|group|metadata)", text):
        return f"{step}: {text!r} does not name the node"
    return None


def compare(made, steps):
    """Gives the errors in all steps."""
    opened = steps["open"][0] == "ok"
    wrong = []
    for step in REQUIRED:
        if step not in steps:
            continue
        default = None if step == "check" else ("ok", "")
        wanted = made.steps.get(step, default)
        if not opened and step == "child" and step not in made.steps:
            wanted = made.steps.get("open", default)
        wrong.append(judge(step, steps[step], wanted))
    for step, value in made.values.items():
        if steps.get(step) != ("ok", value):
            wrong.append(f"{step}: {steps.get(step)}, wanted the value {value}")
    strict = steps.get("strict", ("ok", ""))[1]
    if made.strict not in strict or bool(made.strict) != bool(strict):
        wrong.append(f"verify --strict: {strict!r}, wanted {made.strict!r}")
    return [line for line in wrong if line]


def compare_cost(made, slowest, peak):
    if slowest > SECONDS:
        yield f"{slowest:.2f} s for one step"
    if not SANITIZED and peak > made.mib << 10:
        yield f"peak of {peak >> 10} MiB"


@pytest.mark.parametrize("name", CASES)
def test_store(name, tmp_path):
    made = CASES[name]()
    root = tmp_path / "store"
    write_store(root, made)
    before = {key: value for key, value in made.files.items() if (root / key).is_file()}
    steps, slowest, peak = probe(root, made)
    wrong = [*compare(made, steps), *compare_cost(made, slowest, peak)]
    if steps.get("write", ("ok",))[0] != "ok":
        for key, value in before.items():
            if not made.prepare and (root / key).read_bytes() != value:
                wrong.append(f"a write that failed changed {key}")
    assert not wrong, "\n".join(wrong)
    shutil.rmtree(root, ignore_errors=True)


def test_there_are_enough():
    assert len(CASES) >= 300
