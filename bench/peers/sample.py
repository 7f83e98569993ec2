"""sample - one sample: a process that carries out one operation, and what else the machine did meanwhile."""
import json
import os
import pathlib
import shutil
import subprocess
import time

MOST_STEAL, MOST_FOREIGN = .02, .05  # shares of the processors' time: more makes a sample dirty
LEAST_TICKS = 2  # of the kernel's clock: less cannot be told
LIMIT = 150  # seconds
TICK = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    pass


def drop_cache(folder):
    """Takes the files below a folder out of the page cache; they are clean."""
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def fill_cache(folder):
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            path.read_bytes()


def fresh_target(source, target, only_parent=False):
    """An array without chunks, as the source; or no folder, for a program that makes it."""
    shutil.rmtree(target, ignore_errors=True)
    if not only_parent:
        target.mkdir(parents=True)
        shutil.copy2(source / "zarr.json", target)


def ticks():
    """(busy, stolen) of all processors."""
    with open("/proc/stat", encoding="ascii") as file:
        of = [int(n) for n in file.readline().split()[1:9]]
    return of[0] + of[1] + of[2] + of[5] + of[6], of[7]


def is_dirty(busy, stolen, own, wall, n_cores):
    """Whether other processes or other machines used too much of the processors."""
    all_ticks = wall * TICK * n_cores
    foreign = busy - own * TICK
    return stolen > max(LEAST_TICKS, MOST_STEAL * all_ticks) or foreign > max(2 * LEAST_TICKS, MOST_FOREIGN * all_ticks)


def take(command, cores, read_answer):
    """The answer of a worker, with `dirty` and the seconds of the whole process."""
    pinned = ["taskset", "-c", ",".join(map(str, cores)), *command]
    before, began = ticks(), time.perf_counter()
    process = subprocess.Popen(pinned, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failure(f"more than {LIMIT} s") from None
    wall = time.perf_counter() - began
    after = ticks()
    if process.returncode:
        raise Failure(((err.strip() or out.strip()).splitlines() or [f"exit code {process.returncode}"])[-1][-200:])
    try:
        row = read_answer(out)
    except (ValueError, TypeError, json.JSONDecodeError):
        raise Failure(f"no answer: {out[-100:]}") from None
    used = os.times()
    row["children"] = used.children_user + used.children_system
    row["wall"] = wall
    row["ticks"] = (after[0] - before[0], after[1] - before[1])
    return row
