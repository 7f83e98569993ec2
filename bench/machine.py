"""machine - the data of the benchmark, warm memory, and what this machine is."""
import mmap
import os
import platform
import resource
import shutil

import numpy as np

HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"


class Cube:
    """uint16 values (g2 + g1*g1/32 + g0*g0*g0) mod 65536, g2 fastest."""

    def __init__(self, size):
        self.size = size
        g1, g2 = np.arange(size, dtype=np.uint32)[:, None], np.arange(size, dtype=np.uint32)
        self.plane = (g2 + g1 * g1 // 32).astype(np.uint16)

    def level(self, g0):
        return np.uint16(g0 * g0 * g0 % 65536)

    def make(self):
        data = np.empty((self.size,) * 3, np.uint16)
        for g0 in range(self.size):
            np.add(self.plane, self.level(g0), out=data[g0])
        return data

    def check(self, data, origin=(0, 0, 0)):
        """Every element, a plane at a time: costs less than a checksum and misses nothing."""
        data = np.asarray(data)
        n0, n1, n2 = data.shape
        plane = self.plane[origin[1]:origin[1] + n1, origin[2]:origin[2] + n2]
        for i in range(n0):
            if not np.array_equal(data[i], plane + self.level(origin[0] + i)):
                raise SystemExit(f"bench: wrong data in plane {origin[0] + i} of the box at {origin}")


def warm(nbytes):
    """Makes the host of a virtual machine give its memory before the clock runs: free guest
    memory goes back after a second or two, and touching it again costs seconds a GiB."""
    block = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.madvise(mmap.MADV_HUGEPAGE)
    view = np.frombuffer(block, np.uint8)
    view[::4096] = 1
    del view
    block.close()


def counters():
    """(CPU seconds, minor faults, stolen ticks, all ticks)"""
    use = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(x) for x in f.readline().split()[1:9]]
    return use.ru_utime + use.ru_stime, use.ru_minflt, ticks[7], sum(ticks)


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def facts():
    with open(HUGE, encoding="ascii") as f:
        modes = f.read()
    return {"cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release().split("-")[0],
            "huge_pages": modes[modes.index("[") + 1:modes.index("]")]}


def file_system(path):
    path, best = os.path.realpath(path), ("", "?")
    with open("/proc/mounts", encoding="utf-8") as f:
        for line in f:
            where, kind = line.split()[1:3]
            if (path + "/").startswith(where.rstrip("/") + "/") and len(where) > len(best[0]):
                best = where, kind
    return best[1]


def need_space(path, nbytes):
    free = shutil.disk_usage(path).free
    if free < nbytes:
        raise SystemExit(f"bench: needs {nbytes >> 20} MiB in {path}, {free >> 20} MiB are free")
