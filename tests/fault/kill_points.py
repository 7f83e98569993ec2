#!/usr/bin/env python3
"""kill_points - stops programs before system calls on a store (stop_at.c), and kills them there or runs another one first.

    kill_points.py                     every kill point and every pair
    kill_points.py --sample            those of .ci/run
    kill_points.py --page FILE         writes the result as a page, too
    kill_points.py NAME [POINT]        one operation, or one pair ("write + rm"), as kill_points.py --list names them

Needs the build folder ($ZARRC_BUILD; default build/dev) with the program, stop_at and the Python package.
"""
import argparse
import atexit
import functools
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ZARRC_BUILD", ROOT / "build/dev"))
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "tests/support")]

import kill_check as check  # noqa: E402
import kill_ops as ops  # noqa: E402
import kill_store as store  # noqa: E402

PROGRAM = os.environ.get("ZARRC", str(BUILD / "bin/zarrc"))
STOP_AT = BUILD / "tests/stop_at"
MARK = ".zarr"
SKIPPED = 77
SEED = 20261128
STATES = {}  # of World.after()
POINTS = {"command": 10, "call": 1, "pair": 1}  # of a sample, for each operation or pair
BEGIN = {"zarrc": "import zarrc as m\n", "zarr": "import zarr as m, zarrc\nzarrc.enable()\n"}
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ZARRC_") and k != "PYTHONDONTWRITEBYTECODE"} | {
    "PYTHONPATH": str(BUILD / "python")}  # bytecode beside the package makes each start a third shorter


def reason_to_skip():
    """Why this machine cannot stop programs; None: it can."""
    if not STOP_AT.exists():
        return f"there is no {STOP_AT}: it needs Linux"
    done = subprocess.run([STOP_AT, "0", "/", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stderr.strip() or f"stop_at: exit code {done.returncode}" if done.returncode else None


def command_line(operation, command=None):
    command = command or operation.command
    if isinstance(command, str):
        return [sys.executable, "-c", BEGIN[operation.uses] + command]
    return [PROGRAM, *command]


def run_line(folder, line):
    return subprocess.run(line, cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def run_here(folder, program):
    """Runs a program of the package in this process, which needs no start."""
    os.chdir(folder)
    try:
        exec(program, {})
    except Exception as error:
        return subprocess.CompletedProcess(program, 1, "", f"{type(error).__name__}: {error}")
    finally:
        os.chdir(ROOT)
    return subprocess.CompletedProcess(program, 0, "", "")


def zarrc(folder, *arguments):
    return run_line(folder, [PROGRAM, *arguments])


class StoppedProgram:
    """A program that stop_at runs; it stands before its call number `point`, or has ended before that."""

    def __init__(self, folder, line, point):
        self.process = subprocess.Popen([STOP_AT, str(point), MARK, *line], cwd=folder, env=ENVIRONMENT, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stdout.readline().strip()
        self.call = None if first.isdigit() or not first else first
        self.calls = int(first) if first.isdigit() else 0

    def end(self, answer=""):
        """Kills the program ("") or lets it go on ("c"). Returns (exit code, what it wrote to stderr)."""
        text = self.process.communicate(answer, timeout=60)[1]
        return self.process.returncode, text


class World:
    """A folder for the stores of one trial after the other, and a template of those that the commands name."""

    def __init__(self, commands):
        self.base = Path(tempfile.mkdtemp(prefix="zarrc-kill-"))
        self.folder = self.base / "w"
        made, names = make_stores(), set(re.findall(r"\w+\.zarr", str(commands)))
        self.names = tuple(sorted(names))
        shutil.copytree(made, self.base / "template",
                        ignore=lambda at, found: set(found) - names - {f"{n}.raw" for n in ops.INPUTS} if at == str(made) else ())

    def renew(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.base / "template", self.folder)
        return self.folder

    def after(self, *lines):
        """The stores after these programs, and the calls of the last one. Pairs share the states of one program."""
        if len(lines) > 1:
            return self.find_state(*lines)
        key = self.names, *map(tuple, lines)
        STATES[key] = STATES.get(key) or self.find_state(*lines)
        return STATES[key]

    def find_state(self, *lines):
        folder, codes, calls = self.renew(), [], 0
        for line in lines:
            program = StoppedProgram(folder, line, 0)
            codes.append(program.end()[0])
            calls = program.calls
        return check.State(store.read_nodes(folder), store.read_consolidated(folder)[0], store.files(folder), codes, calls)

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)


@functools.cache
def make_stores():
    """A folder with the stores before each operation, which this process keeps."""
    kept = tempfile.TemporaryDirectory(prefix="zarrc-kill-")
    atexit.register(kept.cleanup)
    folder = Path(kept.name)
    for name, data in ops.INPUTS.items():
        (folder / f"{name}.raw").write_bytes(data)
    for arguments in ops.TEMPLATE:
        done = zarrc(folder, *arguments)
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr}")
    for name in ("c/0.__lock", "c/9.__lock"):  # of killed writers
        (folder / "c.zarr/a" / name).touch()
    return folder


def order_points(name, total, is_sample):
    """Every point; for a sample in random order, because a program with threads may end before a point that another run reached."""
    return random.Random(f"{SEED} {name}").sample(range(1, total + 1), total) if is_sample else range(1, total + 1)


def kill_trials(world, operation, is_sample, only=None):
    """Kills an operation before each of its calls. Yields (point, call, problem or None)."""
    line = command_line(operation)
    before, after = world.after(), world.after(line)
    if after.codes != [0]:
        done = run_line(world.renew(), line)
        yield 0, "", f"without a kill it fails: {done.stderr[-300:]}"
        return
    for point in [only] if only else order_points(operation.name, after.calls, is_sample):
        folder = world.renew()
        program = StoppedProgram(folder, line, point)
        program.end()
        if not program.call:
            continue
        problem = check.after_kill(folder, operation, before, after, point, lambda *words: zarrc(folder, *words))
        if not problem:
            repeat = operation.repeat or operation.command
            is_here = isinstance(repeat, str) and operation.uses == "zarrc"
            problem = check.after_repeat(
                folder, operation, before, after,
                lambda: run_here(folder, BEGIN["zarrc"] + repeat) if is_here else run_line(folder, command_line(operation, repeat)),
                lambda *words: zarrc(folder, *words), point % 2)
        yield point, program.call, problem


def pair_trials(world, pair, is_sample, only=None):
    """Stops the first operation of a pair before each of its calls, runs the second, and continues the first."""
    first, second = [PROGRAM, *ops.LEFT[pair[0]]], [PROGRAM, *ops.RIGHT[pair[1]]]
    base, serial = world.after(), {order: world.after(*lines) for order, lines in
                                   {"a": [first], "b": [second], "ab": [first, second], "ba": [second, first]}.items()}
    for point in [only] if only else order_points(" + ".join(pair), serial["a"].calls, is_sample):
        folder = world.renew()
        program = StoppedProgram(folder, first, point)
        if not program.call:
            program.end()
            continue
        other = subprocess.Popen(second, cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        problem = None
        try:
            other.wait(0.2)
            problem = check.while_stopped(folder, [base, *serial.values()])
        except subprocess.TimeoutExpired:
            pass  # it waits for a lock of the first
        code, text = program.end("c")
        other_text = other.communicate(timeout=60)[1]
        problem = problem or check.after_pair(folder, base, serial, (first, second), (code, other.returncode), (text, other_text), lambda *words: zarrc(folder, *words))
        yield point, program.call, problem and f"{problem} [exit codes {code}, {other.returncode}] {text[-200:]} {other_text[-200:]}"


# ---- all of them ----

def tasks():
    """{name: (kind, what kill_trials or pair_trials takes)}"""
    return {**{o.name: ("command", o) for o in ops.COMMANDS}, **{o.name: ("call", o) for o in ops.CALLS},
            **{" + ".join(pair): ("pair", pair) for pair in ops.PAIRS}}


def run(name, is_sample=False, only=None):
    """(name, trials, violations as texts)"""
    kind, what = tasks()[name]
    world, trials, bad = World([ops.LEFT[what[0]], ops.RIGHT[what[1]]] if kind == "pair" else what.command), 0, []
    most = POINTS[kind] if is_sample else None
    try:
        for point, call, problem in islice((pair_trials if kind == "pair" else kill_trials)(world, what, is_sample, only), most):
            trials += 1
            if problem:
                bad.append(f"{name}, point {point} ({call.replace(str(world.folder) + '/', '')}): {problem}")
    except Exception as problem:
        bad.append(f"{name}: {type(problem).__name__}: {problem}")
    finally:
        if only and bad:
            print(f"the stores are in {world.folder}")
        else:
            world.close()
    return name, trials, bad


def run_task(task):
    return run(*task)


def page(results):
    from kill_page import text
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return text(results, tasks(), commit, date.today().isoformat())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=["command", "call", "pair"])
    parser.add_argument("name", nargs="?")
    parser.add_argument("point", nargs="?", type=int)
    options = parser.parse_args()
    if reason := reason_to_skip():
        print(f"skipped: {reason}")
        return SKIPPED
    names = [name for name, (kind, _) in tasks().items() if options.name in (None, name) and options.only in (None, kind)]
    if options.list:
        print("\n".join(names))
        return 0
    started, results = time.monotonic(), []
    os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="zarrc-kill-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for result in pool.imap_unordered(run_task, [(name, options.sample, options.point) for name in names]):
            results.append(result)
            print(f"{result[0]}: {result[1]} trials, {len(result[2])} violations", *result[2][:3], sep="\n    ", flush=True)
    if not options.point:  # else the stores are kept
        shutil.rmtree(os.environ["TMPDIR"])
    total = Counter(trials=sum(r[1] for r in results), violations=sum(len(r[2]) for r in results))
    print(f"{total['trials']} trials, {total['violations']} violations, {time.monotonic() - started:.0f} s")
    if options.page:
        options.page.write_text(page(results))
    return 1 if total["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
