"""How many threads zarrc should use, where neither the user nor ZARRC_MAX_THREADS says it."""
from __future__ import annotations

import os
import sys
from typing import Any

from . import _core


Mark = tuple[Any, Any, Any]
"""(object, attribute, value), (dict, key, value or None) or (callable, None, what it returns)."""


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def zarr_setting() -> int | None:
    """zarr-python's `threading.max_workers`, if zarr-python is in use."""
    zarr = sys.modules.get("zarr")
    try:
        return _positive(zarr.config.config["threading"]["max_workers"]) if zarr else None  # its `get` takes longer
    except Exception:
        pass
    try:
        return _positive(zarr.config.get("threading.max_workers")) if zarr else None
    except Exception:  # half imported, or another package of that name
        return None


def dask_share() -> int | None:
    """The threads of the dask worker that this process is: its cluster has divided the cores."""
    distributed = sys.modules.get("distributed")
    try:
        return _positive(distributed.get_worker().state.nthreads) if distributed else None
    except Exception:  # this process is no worker
        return None


def marks() -> tuple[Mark, ...] | None:
    """Where `zarr_setting` and `dask_share` look, and what is there. None: this may be a worker of dask, which only a call tells."""
    if sys.modules.get("distributed") is not None:
        return None
    config = sys.modules["zarr"].config
    limits = config.config["threading"]
    return ((sys.modules, "distributed", None), (config, "config", config.config), (config.config, "threading", limits),
            (limits, "max_workers", limits["max_workers"]))


def torch_share(cores: int) -> int | None:
    """The share of one worker of a DataLoader."""
    data = sys.modules.get("torch.utils.data")
    try:
        info = data.get_worker_info() if data else None
        return max(1, cores // info.num_workers) if info else None
    except Exception:
        return None


def count(wanted: int | None = None) -> int:
    """Threads for a context; 0: as ZARRC_MAX_THREADS says. At most the cores that this process may use
    and its control group pays for, and what the program around it leaves to one process."""
    if wanted:
        return wanted
    if os.environ.get("ZARRC_MAX_THREADS"):
        return 0
    cores = _core.core_count()
    return min(cores, zarr_setting() or cores, dask_share() or cores, torch_share(cores) or cores)
