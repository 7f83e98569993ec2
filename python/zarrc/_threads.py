"""How many threads zarrc should use, where neither the user nor ZARRC_THREADS says it."""
from __future__ import annotations

import math
import os
import sys
from pathlib import Path


def cgroup_cpus(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> float | None:
    """The quota of this process's control groups in cores; None: there is none."""
    quotas = []
    try:
        for line in Path(own).read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if number == "0":
                quotas += [_quota_v2(folder) for folder in _upwards(Path(root), path)]
            elif "cpu" in controllers.split(","):
                quotas += [_quota_v1(folder) for folder in _upwards(Path(root, "cpu"), path)]
    except (OSError, ValueError):
        return None
    return min((quota for quota in quotas if quota is not None), default=None)


def _upwards(root: Path, path: str) -> list[Path]:
    """The folder of a group and those above it, up to the root that this process sees."""
    folder = root / path.lstrip("/")
    return [root] if not folder.is_dir() else [root, *(p for p in (folder, *folder.parents) if root in p.parents)]


def _quota_v2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except OSError:
        return None
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except OSError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _zarr_setting() -> int | None:
    """zarr-python's `threading.max_workers`, if zarr-python is in use."""
    zarr = sys.modules.get("zarr")
    try:
        value = zarr.config.get("threading.max_workers") if zarr else None
    except Exception:  # half imported, or another package of that name
        return None
    return value if isinstance(value, int) and value > 0 else None


def count(wanted: int | None = None) -> int:
    """Threads for a context; 0: as ZARRC_THREADS says. At most the cores that this process may use
    and its control group pays for."""
    if wanted:
        return wanted
    if os.environ.get("ZARRC_THREADS"):
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_cpus()
    if quota is not None:
        cores = max(1, min(cores, math.ceil(quota)))
    return min(cores, _zarr_setting() or cores)
