"""Counts the functions and files of the library that a second call enters, for count-frames.

tests/frames/second_call.c makes each call twice. Callgrind notes the functions of the second
one. tests/frames/second_call.tsv has the limits.
"""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import which

from csource import ROOT

LIMITS = ROOT / "tests" / "frames" / "second_call.tsv"
HEAD = "case\tfunctions\tfiles\n"
MORE = 1.02
# case: the functions and files that no change may exceed, whatever tests/frames/second_call.tsv allows
GOALS = {"raw read": (228, 51), "zstd read": (268, 56), "shard read": (361, 66), "raw write": (273, 61),
         "partial shard write": (432, 78)}


def lack():
    """Why nothing can be counted here, or None."""
    return None if which("valgrind") else "valgrind is missing: scripts/setup valgrind"


def parse(text):
    """{function: file} of libzarrc in an output of callgrind, where f'2 is a recursion of f."""
    names, at, found = {}, {}, {}
    for line in text.splitlines():
        if match := re.match(r"c?(ob|fl|fi|fe|fn)=\((\d+)\)(?: (.*))?", line):
            kind = {"fi": "fl", "fe": "fl"}.get(match[1], match[1])
            if match[3]:
                names[kind, match[2]] = match[3]
            if not line.startswith("c"):
                at[match[1]] = names[kind, match[2]]
                if match[1] == "fn" and "libzarrc" in at["ob"]:
                    found[at["fn"].partition("'")[0]] = os.path.relpath(at["fl"], ROOT)
    return found


def run(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"count-frames: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def enter(program, case):
    """{function: file} that the second call of a case enters."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        run("valgrind", "--tool=callgrind", "--toggle-collect=counted_call",
            f"--callgrind-out-file={out}", program, Path(folder) / "data", case)
        return parse(out.read_text())


def measure(program):
    """{case: {function: file}}"""
    cases = run(program, "list").splitlines()
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(cases, pool.map(lambda case: enter(program, case), cases)))


def count(entered):
    """{case: (functions, files)}"""
    return {case: (len(files), len(set(files.values()))) for case, files in entered.items()}


def read_limits(text):
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {case: (int(functions), int(files)) for case, functions, files in rows}


def write_limits(counts):
    LIMITS.write_text(HEAD + "".join(f"{case}\t{f}\t{n}\n" for case, (f, n) in counts.items()))


def compare(counts, limits):
    """What is wrong: more than 2 % more than a limit, more than a goal, or a case without a limit."""
    problems = [f"{case}: has no limit" for case in counts if case not in limits]
    problems += [f"{case}: has a limit, but nothing counts it" for case in limits if case not in counts]
    for case in counts.keys() & limits.keys():
        goals = GOALS.get(case, (float("inf"), float("inf")))
        for what, now, most, goal in zip(("functions", "files"), counts[case], limits[case], goals):
            if now > most * MORE:
                problems.append(f"{case}: the second call enters {now} {what}, the limit is {most}")
            elif now > goal:
                problems.append(f"{case}: the second call enters {now} {what}, the goal is {goal}")
    return problems
