"""The plug-ins for devices that the package has itself, and the application's allocators of their memory. Contexts load
no plug-in until a device is wanted: by ``open(..., device="cuda:0")`` or the setting `device`.
"""
from __future__ import annotations

import contextlib
import contextvars
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import _core

KINDS = {getattr(_core, f"ZARR_DEVICE_{name.upper()}"): name for name in ("cuda", "cuda_host", "opencl", "ext", "cuda_managed")}
_PLUGINS = {"cuda": "cuda", "cuda_host": "cuda", "cuda_managed": "cuda"}  # by the kind of memory
ALLOCATED = ("cuda", "cuda_managed")  # kinds of memory that an application may allocate
_wanted: contextvars.ContextVar[str | None] = contextvars.ContextVar("zarrc_device", default=None)


def check_device(device: Any) -> str:
    if not isinstance(device, str):
        raise TypeError(f"device: {device!r} is not a text such as 'cuda:0'")
    return device


def parse_dl_device(dl_device: Any) -> tuple[int, int]:
    """A device as DLPack names it; the kind may be an enum that equals no number."""
    kind, number = dl_device
    return int(getattr(kind, "value", kind)), int(number)


def plugin_name(device: str | None) -> str | None:
    """The package's plug-in for a device; None: it has none."""
    return _PLUGINS.get((device or "").partition(":")[0])


def is_of_cuda(device: str | None) -> bool:
    """Whether it is one of those for which the package has a plug-in."""
    return plugin_name(device) is not None


def wanted_device() -> str | None:
    """The device of the opening that runs in this thread or task."""
    return _wanted.get()


def mark_wanted() -> tuple[Any, Any, Any]:
    """Where `wanted_device` looks, and what is there: see `Settings.marks`."""
    return _wanted.get, None, _wanted.get()


def checked_allocators(value: Any) -> dict[str, Callable[[int], Any]]:
    """The setting `device_allocators`."""
    found = dict(value)
    for kind, allocate in found.items():
        if kind not in ALLOCATED:
            raise ValueError(f"device_allocators: {kind!r} is not one of {', '.join(ALLOCATED)}")
        if not callable(allocate):
            raise TypeError(f"device_allocators: {allocate!r} is not a function of a number of bytes")
    return found


def allocated_block(made: Any, nbytes: int) -> tuple[int, Any]:
    """(address, what keeps the memory) of what an application's allocator gave: an object with `ptr`, as RMM and CuPy have it, or
    a tensor. What the library of a tensor has queued on its own stream is then before what is on the default stream."""
    if getattr(made, "nbytes", nbytes) < nbytes:
        raise ValueError(f"the allocator gave {made.nbytes} bytes, and {nbytes} are needed")
    if hasattr(made, "ptr"):
        return int(made.ptr), made
    if not hasattr(made, "__cuda_array_interface__"):
        raise TypeError(f"the allocator gave a {type(made).__name__}, which has neither `ptr` nor __cuda_array_interface__")
    if hasattr(made, "__dlpack__"):
        made.__dlpack__(stream=1)
    return int(made.__cuda_array_interface__["data"][0]), made


@contextlib.contextmanager
def opening_for(device: str | None) -> Iterator[None]:
    """What is opened in the ``with`` statement can use the device. None changes nothing."""
    if device is None:
        yield
        return
    token = _wanted.set(check_device(device))
    try:
        yield
    finally:
        _wanted.reset(token)


def plugin(device: str | None, others: Iterable[str]) -> str | None:
    """The package's file for a device, unless one of the same name is loaded anyway."""
    name = plugin_name(device)
    if name is None:
        return None
    for other in (*others, *os.environ.get("ZARRC_PLUGINS", "").split(":")):
        if other and (os.path.basename(other) == f"{name}.so" or os.path.exists(os.path.join(other, f"{name}.so"))):
            return None
    file = os.path.join(os.path.dirname(__file__), "lib", f"{name}.so")
    return file if os.path.exists(file) else None


def with_nvcomp(options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The setting `plugin_options` with the place of libnvcomp, if a package of NVIDIA has it and nothing names one."""
    if "ZARRC_NVCOMP" in os.environ or options is None and "ZARRC_PLUGIN_OPTIONS" in os.environ:
        return options
    of_cuda = (options or {}).get("cuda", {})
    folder = None if "nvcomp" in of_cuda else _nvcomp()
    return options if folder is None else {**(options or {}), "cuda": {**of_cuda, "nvcomp": folder}}


def _nvcomp() -> str | None:
    """The folder of nvidia-libnvcomp-cu12 or -cu13 with the library. Nothing is imported for it."""
    import importlib.util

    try:
        found = importlib.util.find_spec("nvidia")
    except ValueError:  # a module that something else has put there
        found = None
    for root in (found.submodule_search_locations or ()) if found else ():
        folder = os.path.join(root, "libnvcomp", "lib64")
        if os.path.isdir(folder) and any(name.startswith("libnvcomp.so") for name in os.listdir(folder)):
            return folder
    return None
