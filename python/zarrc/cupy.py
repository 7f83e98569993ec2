"""Arrays whose elements are CuPy's, between files and memory of a GPU.

    import zarrc.cupy

    z = zarrc.cupy.open_array("x.zarr")
    z[:100]  # an array of CuPy, decoded on the GPU where a codec can be
    z[:100] = cupy.ones((100, 10))

It is ``zarrc.open_array(..., like="cupy")`` with local files by GPUDirect Storage where cuFile reaches them. Elsewhere they are read and
written through pinned host memory; a warning then says why. docs/python/from-kvikio.md has more.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _api
from ._array import Array
from ._places import find_local_path

if TYPE_CHECKING:
    from typing import Unpack

    from . import _arguments
    from ._types import LikeLike, StoreLike

__all__ = ["Array", "open_array"]


def open_array(store: StoreLike = None, *, device: str = "cuda:0", gds: bool = True, like: LikeLike = "cupy", **kwargs: Unpack[_arguments.CupyOpenArray]) -> Array:
    """Opens an array, or creates one, as `zarrc.open_array` does with the same arguments, whose reads return arrays of CuPy.

    ``gds=False`` opens a path as an ordinary local store. Codecs and the default compressor of new arrays are those of
    ``device``; ``trust="full"`` lets decoders work on the GPU that do not check their input.
    """
    path = find_local_path(os.fspath(store)) if gds and isinstance(store, (str, os.PathLike)) else None
    if path is not None and not path.startswith(("memory:", "gds:")):
        store = f"gds://{os.path.abspath(path)}"
    return _api.open_array(store, device=device, like=like, **kwargs)
