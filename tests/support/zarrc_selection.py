"""zarrc_selection - selections of the C API."""
from ctypes import POINTER, byref, c_int64, c_uint8, c_void_p

import numpy as np

from zarrc_abi import SHAPE_S, SLICE_DEFAULT, DimSelection, Handle, call, lib, shape_argument


def dim_selections(items):
    """Makes (array of zarr_dim_selection, objects that it borrows) from slices, integers, lists, masks."""
    dims, keep = (DimSelection * max(1, len(items)))(), []
    for dim, item in zip(dims, items):
        if isinstance(item, slice):
            if item == slice(None):
                continue
            dim.kind = 1
            dim.start = SLICE_DEFAULT if item.start is None else item.start
            dim.stop = SLICE_DEFAULT if item.stop is None else item.stop
            dim.step = SLICE_DEFAULT if item.step is None else item.step
        elif isinstance(item, (int, np.integer)):
            dim.kind, dim.start = 2, int(item)
        else:
            item = np.asarray(item)
            item = np.ascontiguousarray(item, np.uint8 if item.dtype == bool else np.int64)
            keep.append(item)
            dim.n_list = item.size
            if item.dtype == np.uint8:
                dim.kind, dim.mask = 4, item.ctypes.data_as(POINTER(c_uint8))
            else:
                dim.kind, dim.list = 3, item.ctypes.data_as(POINTER(c_int64))
    return dims, keep


class Selection(Handle):
    free = "zarr_selection_free"

    @property
    def shape(self):
        n = lib.zarr_selection_ndim(self.pointer)
        return tuple(lib.zarr_selection_shape(self.pointer)[:n])

    @property
    def n_items(self):
        return lib.zarr_selection_n_items(self.pointer)

    @classmethod
    def _make(cls, name, *arguments):
        out = c_void_p()
        call(name, byref(out), *arguments)
        return cls(out.value)

    @classmethod
    def dims(cls, shape, *items):
        dims, keep = dim_selections(items)
        made = cls._make("zarr_selection_dims", len(shape), shape_argument(shape), len(items), dims)
        del keep
        return made

    @classmethod
    def all(cls, shape):
        return cls.dims(shape)

    @classmethod
    def box(cls, shape, start, count):
        return cls._make("zarr_selection_box", len(shape), shape_argument(shape), shape_argument(start),
                         shape_argument(count))

    @classmethod
    def points(cls, shape, coordinates, result_shape=None):
        """coordinates: (points, dimensions)."""
        coords = np.ascontiguousarray(coordinates, np.int64)
        return cls._make("zarr_selection_points", len(shape), shape_argument(shape), len(coords),
                         coords.ctypes.data_as(SHAPE_S),
                         0 if result_shape is None else len(result_shape),
                         None if result_shape is None else shape_argument(result_shape))

    @classmethod
    def mask(cls, shape, mask):
        mask = np.ascontiguousarray(mask, np.uint8)
        return cls._make("zarr_selection_mask", len(shape), shape_argument(shape),
                         mask.ctypes.data_as(POINTER(c_uint8)))

    @classmethod
    def select_blocks(cls, array, *items):
        """Blocks of the array's own grid."""
        dims, keep = dim_selections(items)
        out = c_void_p()
        call("zarr_array_select_blocks", byref(out), array.pointer, len(items), dims)
        del keep
        return cls(out.value)

    @classmethod
    def parse(cls, shape, text):
        return cls._make("zarr_selection_parse", len(shape), shape_argument(shape), text.encode())

    def compose(self, inner):
        return self._make("zarr_selection_compose", self.pointer, inner.pointer)
