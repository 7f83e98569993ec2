"""Lines of the library's log: warnings become warnings of Python, the rest goes to the logger
"zarrc"."""
from __future__ import annotations

import logging
import os
import sys
import warnings

from .errors import ZarrcWarning

logger = logging.getLogger("zarrc")
logger.addHandler(logging.NullHandler())

WARN = 2
_PACKAGE = (os.path.dirname(__file__),)  # a warning names the line of the user's program
_LEVELS = {1: logging.ERROR, 3: logging.INFO, 4: logging.DEBUG, 5: 5}


def on_log(level: int, text: str) -> None:
    """Receives one line; the extension calls it."""
    if level == WARN:
        if sys.version_info >= (3, 12):
            warnings.warn(text, ZarrcWarning, skip_file_prefixes=_PACKAGE)
        else:
            warnings.warn(text, ZarrcWarning, stacklevel=2)
    else:
        logger.log(_LEVELS.get(level, logging.DEBUG), "%s", text)


def library_level() -> int:
    """The level that the library needs for what the logger takes."""
    level = logger.getEffectiveLevel()
    if level <= 5:
        return 5
    if level <= logging.DEBUG:
        return 4
    return 3 if level <= logging.INFO else WARN
