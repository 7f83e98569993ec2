"""What zarr-python finds by the entry point `zarr.ndbuffer`: the class of the arrays that a read makes.

As `zarrc_hook.pipeline`, this is imported for all users of zarr-python. It needs neither zarrc nor NumPy before
an array is made.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Literal, Self

    import numpy as np
    import numpy.typing as npt

    class Base:
        def __init__(self, array: np.ndarray[Any, Any]) -> None: ...
        @classmethod
        def empty(cls, shape: tuple[int, ...], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C") -> Self: ...
else:
    try:
        from zarr.core.buffer.cpu import NDBuffer as Base
    except Exception:  # another zarr than we know: it fails when it is chosen, and not before
        Base = object


_small: Any = None  # makes small arrays in one call


class _EqualsBase(type(Base)):  # type: ignore[misc]
    """The class of a class that equals zarr-python's own, whose buffers it makes. zarr-python's pipeline asks nested shards for
    buffers of its own class, and refuses them where the setting `ndbuffer` is not equal to it."""

    def __eq__(cls, other: object) -> bool:
        return other is cls or (other is Base and cls.__bases__[0] is Base)

    def __hash__(cls) -> int:
        return hash(Base) if cls.__bases__[0] is Base else type.__hash__(cls)


class ZarrcNDBuffer(Base, metaclass=_EqualsBase):
    """zarr-python's own buffer of elements in host memory. The array of a large result is in memory that zarrc keeps
    when such an array is freed, because new pages cost more than decoding into them.

    `zarrc.enable` chooses it, or ``zarr.config.set({"ndbuffer": "zarrc.ZarrcNDBuffer"})``; the setting
    `output_cache` of `zarrc.config` is its limit.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._data = array

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C") -> Self:
        global _small
        if _small is None:
            from zarrc import _core
            _small = _core.empty
        found = _small(shape, dtype, order)
        if found is None:
            from zarrc import _outputs
            found = _outputs.empty(shape, dtype, order)
        return super().empty(shape, dtype, order) if found is None else cls(found)


# zarr-python finds a buffer by this name, and pickle by `zarrc.__getattr__`.
ZarrcNDBuffer.__module__ = "zarrc"
