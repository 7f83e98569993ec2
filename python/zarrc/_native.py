"""Binds the extension to the package, and follows the life of the process: forks, and the end of
the interpreter."""
from __future__ import annotations

import atexit
import importlib
import os
import sys
import threading
from typing import Any

import numpy as np

from . import _core, _dtypes, _log, errors
from ._service import close_services
from ._settings import count_worker_threads


def _numpy_api() -> Any:
    """The functions that NumPy's headers call; None: they are somewhere else."""
    for core in ("numpy._core", "numpy.core"):
        try:
            return importlib.import_module(core + "._multiarray_umath")._ARRAY_API
        except (ImportError, AttributeError):
            pass
    return None


_core.bind(errors.from_library, _log.on_log, np.empty, np.ndarray, np.dtype, _numpy_api(), _dtypes.describe)
_core.set_main_thread(threading.main_thread().ident or 0)
_core.ask_threads(count_worker_threads)  # at the first read or write: a spawned worker knows only then what it is


class _Obstore:
    """Whether obstore works in this process: a fork leaves the threads of its runtime behind, and its calls then never return."""

    is_lost = False  # in this process
    has_threads = False  # at the fork that is about to come

    def before_fork(self) -> None:
        self.has_threads = "obstore" in sys.modules and any(name.startswith("tokio") for name in _thread_names())

    def in_child(self) -> None:
        self.is_lost = self.is_lost or self.has_threads

    def check(self) -> None:
        if self.is_lost:
            raise RuntimeError("a fork has ended obstore's threads, so that this call would never return: start the worker "
                               "with multiprocessing.get_context('spawn') or DataLoader(multiprocessing_context='spawn')")


def _thread_names() -> list[str]:
    found = []
    for task in os.listdir("/proc/self/task") if os.path.exists("/proc/self/task") else ():
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                found.append(file.read())
        except OSError:  # it has ended
            pass
    return found


obstore = _Obstore()


def _in_child() -> None:
    """The requests in flight are the parent's."""
    obstore.in_child()
    _core.set_main_thread(threading.get_ident())
    _core.flights().clear()
    _core.ask_threads(count_worker_threads)


def _at_exit() -> None:
    """No request writes to memory of Python after the interpreter has gone. What the program registers
    after this module is imported runs before, and may still read and write."""
    flights = list(_core.flights())
    for request in flights:
        request.cancel()
    close_services()
    for request in flights:
        try:
            request.wait()
        except Exception:  # cancelled, or failed: there is no caller any more
            pass
    _core.flights().clear()


os.register_at_fork(before=obstore.before_fork, after_in_child=_in_child)
atexit.register(_at_exit)
