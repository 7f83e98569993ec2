"""machine - what this machine is, and the versions of the library and of the codecs that it takes from the system."""
import os
import pathlib
import platform
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
CODECS = ("libzstd1", "libdeflate0", "libblosc1", "liblz4-1", "zlib1g")  # Debian's packages


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def huge_pages():
    try:
        with open(HUGE, encoding="ascii") as f:
            modes = f.read()
    except OSError:  # a chroot without /sys, or a kernel without huge pages
        return "?"
    return modes[modes.index("[") + 1:modes.index("]")]


def facts():
    return {"cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release().split("-")[0],
            "huge_pages": huge_pages()}


def command_output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return done.stdout.strip() if done.returncode == 0 else ""


def commit():
    """The last commit that changed the library, with a + if its files differ from it."""
    library = ("src", "include")
    return command_output("git", "log", "-1", "--format=%h", "--abbrev=12", "--", *library) + ("+" if command_output("git", "status", "--porcelain", "-uno", *library) else "")


def ours(build):
    """The entries of zarrc and the floor, as bench/peers/install makes those of the others."""
    version = re.search(r'VERSION_STRING "([^"]+)"', (ROOT / "include/zarrc/version.h").read_text())
    codecs = command_output("dpkg-query", "-W", "-f", "${Package} ${Version}, ", *CODECS).rstrip(", ") or "the system's codecs"
    cache = pathlib.Path(build) / "CMakeCache.txt"
    kind = re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w+)", cache.read_text(), re.M) if cache.exists() else None
    flags = kind[1] if kind else "?"
    return {"zarrc": {"version": f"zarrc {version[1]}; {codecs}", "flags": flags},
            "zarrc-4k": {"version": "as zarrc", "flags": "ZARR_IO_NO_HUGE_PAGES"},
            "floor": {"version": codecs, "flags": f"{flags}, -O3"}}


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
