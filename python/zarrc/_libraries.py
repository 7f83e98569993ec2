"""The libraries whose arrays the package returns and takes besides NumPy's. What each of them needs is in one table.

A read for another library makes memory and hands it over by DLPack. It is complete then, so no stream has to wait for it. A write, and a
read with ``out=``, asks an array for its memory by DLPack or the CUDA array interface, in order after what its library has queued
(`_indexing.lend`). So the table has neither allocators nor streams.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from . import _core, _devices

Host = np.ndarray[Any, Any]


class Like(tuple[str, "str | None", "type | None"]):
    """Whose arrays a read returns, and where their elements are: (library, device, class). Neither this class nor `Library` is a NamedTuple,
    which would take longer to make at the import.

    The device is None if the setting `device` says it, or else where the library makes arrays by default. The class is one that derives
    from NumPy's array, or None."""

    __slots__ = ()

    def __new__(cls, library: str, device: str | None = None, subclass: type | None = None) -> Like:
        return tuple.__new__(cls, (library, device, subclass))

    @property
    def library(self) -> str:
        return self[0]

    @property
    def device(self) -> str | None:
        return self[1]

    @property
    def subclass(self) -> type | None:
        return self[2]

    def on(self, device: str) -> Like:
        """The same on a device."""
        return Like(self.library, device, self.subclass)

    def __getnewargs__(self) -> tuple[str, str | None, type | None]:
        return self.library, self.device, self.subclass

    def __repr__(self) -> str:
        return f"Like({self.library!r}, {self.device!r}{'' if self.subclass is None else f', {self.subclass.__qualname__}'})"


class Library:
    """What the package needs of a library. `module` is the imported library.

    packages: where the classes of its arrays are
    default_device: () -> device
    take: (module, what speaks DLPack) -> an array with that memory
    from_host: (module, array of NumPy, device) -> an array with a copy, or with the same memory
    to_host: (module, array) -> an array of NumPy
    as_type: (module, array, data type) -> the array with converted elements, on the same device
    fill: (module, array, array of NumPy) -> None, after a copy of the elements into the array. None: arrays are immutable
    resolve: array -> itself, or a copy if its memory has other elements, which its library conjugates or negates when it uses them
    """

    def __init__(self, packages: tuple[str, ...], default_device: Callable[[], str], take: Callable[[Any, Any], Any],
                 from_host: Callable[[Any, Host, str], Any], to_host: Callable[[Any, Any], Host],
                 as_type: Callable[[Any, Any, np.dtype[Any]], Any], fill: Callable[[Any, Any, Host], None] | None,
                 resolve: Callable[[Any], Any] = lambda array: array) -> None:
        self.packages, self.default_device, self.take, self.from_host = packages, default_device, take, from_host
        self.to_host, self.as_type, self.fill, self.resolve = to_host, as_type, fill, resolve


def _torch_device(name: str) -> str:
    return "cuda:0" if name == "cuda" else name


def _on_cupy_device(cupy: Any, host: Host, device: str) -> Any:
    with cupy.cuda.Device(int(device.partition(":")[2] or 0)):
        return cupy.asarray(host)


def _torch_from_host(torch: Any, host: Host, device: str) -> Any:
    return _torch_from_numpy(torch, host if host.flags.writeable else host.copy()).to(device)


def _fill_cupy(cupy: Any, array: Any, host: Host) -> None:
    with array.device:  # not the current one
        array[...] = cupy.asarray(host)


def _as_cupy_type(cupy: Any, array: Any, dtype: np.dtype[Any]) -> Any:
    with array.device:
        return array.astype(dtype)


def _fill_torch(torch: Any, array: Any, host: Host) -> None:
    array.copy_(_torch_from_numpy(torch, host))


def _torch_to_host(torch: Any, array: Any) -> Host:
    host, dtype = array.detach().cpu(), find_dtype(array)
    if dtype is None or dtype.isbuiltin == 1:
        return host.numpy()  # type: ignore[no-any-return]
    bits: Host = host.contiguous().view(getattr(torch, f"int{8 * dtype.itemsize}")).numpy()  # NumPy knows the type by ml_dtypes only
    return bits.view(dtype)


def _torch_from_numpy(torch: Any, host: Host) -> Any:
    if host.dtype.isbuiltin == 1:
        return torch.from_numpy(host)
    return torch.from_numpy(host.view(f"i{host.itemsize}")).view(getattr(torch, host.dtype.name))


def _jax_device(jax: Any, device: str) -> Any:
    kind, _, number = device.partition(":")
    return jax.devices("cpu" if kind == "cpu" else "gpu")[int(number or 0)]


LIBRARIES = {
    "cupy": Library(
        ("cupy",), lambda: "cuda:0", lambda cupy, t: cupy.from_dlpack(t), _on_cupy_device, lambda cupy, a: cupy.asnumpy(a),
        _as_cupy_type, _fill_cupy),
    "torch": Library(
        ("torch",), lambda: _torch_device(str(load("torch").get_default_device())), lambda torch, t: torch.from_dlpack(t), _torch_from_host,
        _torch_to_host, lambda torch, a, dtype: a.to(getattr(torch, dtype.name)), _fill_torch, lambda a: a.resolve_conj().resolve_neg()),
    "jax": Library(
        ("jax", "jaxlib"), lambda: "cpu" if load("jax").default_backend() == "cpu" else "cuda:0", lambda jax, t: jax.dlpack.from_dlpack(t),
        lambda jax, host, device: jax.device_put(host, _jax_device(jax, device)), lambda jax, a: np.asarray(a),
        lambda jax, a, dtype: a.astype(dtype), None),
}
NUMPY = Like("numpy", "cpu")
NAMES = ("numpy", *LIBRARIES)
_OF_PACKAGE = {package: name for name, library in LIBRARIES.items() for package in library.packages} | {"numpy": "numpy"}


_NUMBERS = "biufc"  # kinds of data types
_OF_ARRAYS = "__dlpack__", "__cuda_array_interface__", "shape"  # what only classes of arrays have


def is_number(dtype: np.dtype[Any]) -> bool:
    """Whether other libraries may have this data type: bool, numbers, and those of ml_dtypes."""
    return dtype.kind in _NUMBERS or dtype.kind == "V" and dtype.type is not np.void


def is_host(device: str) -> bool:
    return _devices.check_device(device) in ("cpu", "host", "cpu:0", "host:0")


def find_name(array: Any) -> str | None:
    """The library of an array, or of a class of arrays; None: none of those that are known."""
    kind = array if isinstance(array, type) else type(array)
    return next((found for one in kind.__mro__ if (found := _OF_PACKAGE.get(one.__module__.partition(".")[0]))), None)


def find_device(array: Any) -> str:
    """The device of an array of another library, as `zarrc.open(device=)` names it; "cpu": host memory."""
    if not hasattr(array, "__dlpack_device__"):
        return "cuda:0" if hasattr(array, "__cuda_array_interface__") else "cpu"
    kind, number = _devices.parse_dl_device(array.__dlpack_device__())
    return f"{_devices.KINDS[kind]}:{number}" if kind in _devices.KINDS else "cpu" if kind == _core.ZARR_DEVICE_CPU else f"kind {kind}:{number}"


def check_like(like: Any) -> Like | None:
    """What `like=` names, without the device if nothing says it."""
    if like is None or isinstance(like, Like):
        return like
    if isinstance(like, str):
        if like not in NAMES:
            raise ValueError(f"like: {like!r} is not one of {', '.join(NAMES)}")
        return NUMPY if like == "numpy" else Like(like)
    if isinstance(like, ModuleType) and (name := _OF_PACKAGE.get(like.__name__.partition(".")[0])):
        return check_like(name)
    name, kind = find_name(like), like if isinstance(like, type) else type(like)
    if name is None or not (issubclass(kind, np.ndarray) if name == "numpy" else any(hasattr(kind, one) for one in _OF_ARRAYS)):
        raise TypeError(f"like: {like!r} is neither an array nor a class nor a module of {', '.join(NAMES)}, nor one of these names")
    if name == "numpy":
        return NUMPY if kind is np.ndarray else Like("numpy", "cpu", kind)
    return Like(name, None if isinstance(like, type) else find_device(like))


def aim(like: Like, default: str | None) -> Like:
    """The same on a default device, if nothing names another one and the library has memory there. No library is imported for it."""
    if like.device is not None or default is None or like.library == "cupy" and not _devices.is_of_cuda(default):
        return like
    return like.on("cpu" if is_host(default) else default)


def resolve_like(like: Like, device: str | None, default: str | None = None) -> Like:
    """The same with a device: the one that a call names, else that of the example, else the default, else that of the library. Raises
    ImportError if the library is missing."""
    if like.library == "numpy":
        return like
    load(like.library)
    found = device or aim(like, default).device or LIBRARIES[like.library].default_device()
    if like.library == "cupy" and not _devices.is_of_cuda(found):
        raise ValueError(f"device: {found!r} is not one of CUDA, which arrays of CuPy need")
    return like.on("cpu" if is_host(found) else found)


def choose(like: Any, meta_array: Any, device: str | None, default: str | None) -> tuple[Like | None, str | None]:
    """(what `like=` or zarr 2's `meta_array=` of a call means, the device whose plug-in is needed)."""
    if like is not None and meta_array is not None:
        raise TypeError("like= and meta_array= mean the same: give one")
    wanted = check_like(meta_array if like is None else like)
    if wanted is None:
        return None, device
    wanted = resolve_like(wanted, device, default)
    return wanted, device or (None if wanted.device == "cpu" else wanted.device)


def load(name: str) -> Any:
    """The module of a library, which is imported if it is not yet."""
    import importlib
    try:
        return sys.modules.get(name) or importlib.import_module(name)
    except ImportError as problem:
        raise ImportError(f"like={name!r} needs the package {name}: {problem}", name=name) from problem


# ---- arrays ----


def take(like: Like, tensor: Any, dtype: np.dtype[Any]) -> Any:
    """An array with the memory of an object that speaks DLPack."""
    module = load(like.library)
    try:
        return LIBRARIES[like.library].take(module, tensor)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        if dtype.isbuiltin == 1:
            raise
        raise TypeError(f'{like.library} does not take elements of type {dtype} from memory of {like.device}: {problem}. '
                        'Read them with like="numpy", and convert them') from problem


def from_host(like: Like, host: Host) -> Any:
    """An array of the library, of one of NumPy."""
    if like.library == "numpy":
        return host if like.subclass is None or not isinstance(host, np.ndarray) else host.view(like.subclass)
    return LIBRARIES[like.library].from_host(load(like.library), host, like.device or "cpu")


def count(options: dict[str, Any], name: str, host: Host | Any) -> None:
    """Adds a copy by a library to the counters of a call."""
    stats = options.get("stats")
    if stats is not None:
        for key, n in ((f"copies_{name}", 1), (f"bytes_{name}", int(host.nbytes))):
            stats[key] = stats.get(key, 0) + n


def to_host(array: Any) -> Host:
    """An array of NumPy with the elements of one of a library. An object of an unknown library must become one by itself."""
    name = find_name(array)
    return np.asarray(array) if name in (None, "numpy") else LIBRARIES[name].to_host(load(name), resolve(array))


def resolve(array: Any) -> Any:
    """The array, or a copy of it, whose memory has its elements."""
    name = find_name(array)
    return LIBRARIES[name].resolve(array) if name in LIBRARIES else array


def find_dtype(array: Any) -> np.dtype[Any] | None:
    """NumPy's data type of the elements of an array; None: it is not known."""
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        told = getattr(array, "__cuda_array_interface__", None)
        return None if told is None else np.dtype(told["typestr"])
    try:
        return parse_dtype(dtype)
    except TypeError:
        return None


def parse_dtype(dtype: Any) -> np.dtype[Any] | None:
    """NumPy's data type for one of another library, or for a name of ml_dtypes. Raises TypeError for others; None stays None."""
    name = str(dtype).removeprefix("torch.")
    try:
        return None if dtype is None else np.dtype(name if name != str(dtype) else dtype)
    except TypeError as problem:
        try:
            import ml_dtypes
            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        except (ImportError, AttributeError, TypeError):
            raise problem from None
        return found


def find_other_dtype(array: Any, wanted: np.dtype[Any]) -> np.dtype[Any] | None:
    """The data type of an array if elements must be converted for another one, whose byte order does not matter; None: they need not be."""
    given = find_dtype(array)
    return None if given is None or given == wanted.newbyteorder("=") else given


def as_type(array: Any, dtype: np.dtype[Any]) -> Any:
    """The array with its elements converted by its library, as NumPy's assignment converts them; None: the library lacks the data type."""
    name, given = find_name(array), find_dtype(array)
    if given is not None:
        np.empty(0, given).astype(dtype)  # raises what NumPy would
    if name not in LIBRARIES or not is_number(dtype):
        return None
    try:
        return LIBRARIES[name].as_type(load(name), array, dtype)
    except (AttributeError, TypeError):
        return None


def fill(array: Any, host: Host) -> None:
    """Copies elements into an array of a library."""
    name = find_name(array)
    into = LIBRARIES[name].fill if name in LIBRARIES else None
    if name is None or into is None:
        raise TypeError(f"out: memory of {type(array).__name__} cannot be filled from host memory")
    into(load(name), array, host)


def check_usable(array: Any, *, is_out: bool) -> None:
    """Raises TypeError for arrays whose memory must not be used as it is."""
    name = find_name(array)
    library = LIBRARIES[name] if is_out and name in LIBRARIES else None
    if library is not None and library.fill is None:
        raise TypeError(f'out: arrays of {name} are immutable: read with like="{name}" instead')
    if library is not None and library.resolve(array) is not array:
        raise TypeError("out: the tensor is a conjugate or negative view, whose memory has other elements: give the memory itself")
    if getattr(array, "requires_grad", False):
        raise TypeError(f"{'out' if is_out else 'value'}: the tensor requires grad: give its detach()")
