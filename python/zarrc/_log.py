"""Lines of the library's log: warnings become warnings of Python, the rest goes to the logger
"zarrc"."""
from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Any

from . import _core
from .errors import ZarrcWarning

logger = logging.getLogger("zarrc")
logger.addHandler(logging.NullHandler())

_PACKAGE = (os.path.dirname(__file__),)  # a warning names the line of the user's program
_TRACE = 5  # below logging.DEBUG
_LEVELS = {_core.ZARR_LOG_ERROR: logging.ERROR, _core.ZARR_LOG_INFO: logging.INFO, _core.ZARR_LOG_DEBUG: logging.DEBUG,
           _core.ZARR_LOG_TRACE: _TRACE}


def on_log(level: int, text: str) -> None:
    """Receives one line; the extension calls it."""
    if level == _core.ZARR_LOG_WARN:
        if sys.version_info >= (3, 12):
            warnings.warn(text, ZarrcWarning, skip_file_prefixes=_PACKAGE)
        else:
            warnings.warn(text, ZarrcWarning, stacklevel=2)
    else:
        logger.log(_LEVELS.get(level, logging.DEBUG), "%s", text)


def library_level() -> int:
    """The level that the library needs for what the logger takes."""
    level = logger.getEffectiveLevel()
    if level <= _TRACE:
        return _core.ZARR_LOG_TRACE
    if level <= logging.DEBUG:
        return _core.ZARR_LOG_DEBUG
    return _core.ZARR_LOG_INFO if level <= logging.INFO else _core.ZARR_LOG_WARN


def marks() -> list[tuple[Any, Any, Any]]:
    """Where `library_level` looks, and what is there: see `Settings.marks`."""
    found: list[tuple[Any, Any, Any]] = []
    one: logging.Logger | None = logger
    while one is not None:
        found += [(one, "level", one.level), (one, "parent", one.parent)]
        one = None if one.level else one.parent
    return found
