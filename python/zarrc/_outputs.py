"""New arrays that zarr-python reads into, in memory that is kept between reads (`python/ext/outputs.c`)."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _core
from ._settings import settings
from .errors import ZarrcError

LEAST_BYTES = 4 << 20  # of an array whose memory is kept

_context: _core.Context | None = None  # any: it only allocates


def empty(shape: Any, dtype: Any, order: str) -> np.ndarray[Any, Any] | None:
    """As numpy.empty(). None: NumPy's own memory is as good, or its function must do more for this data type."""
    global _context
    kind = np.dtype(dtype)
    shape = tuple(map(int, shape))  # zarr-python counts what a mask takes as a number of NumPy, which would overflow
    n_bytes = math.prod(shape) * kind.itemsize
    if n_bytes < LEAST_BYTES or kind.hasobject or kind.kind in "mMT":
        return None
    try:
        if _context is None:
            _context = settings.context()
    except ZarrcError:  # the first read tells
        return None
    return _context._empty(shape, kind, order == "F", n_bytes)
