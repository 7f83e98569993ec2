"""What an implementation of a codec derives from, and how the chunks of a call go through it. `zarrc.plugins` shows the classes."""
from __future__ import annotations

import contextlib
import gc
import operator
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from . import _core
from ._causes import take_cause
from ._plugin_classes import ChunkSpec
from .errors import CorruptError, DeviceError, LimitError, of_code

MEMORY = {"host": _core.ZARR_DEVICE_CPU, "cuda": _core.ZARR_DEVICE_CUDA, "cuda_host": _core.ZARR_DEVICE_CUDA_HOST,
          "cuda_managed": _core.ZARR_DEVICE_CUDA_MANAGED, "opencl": _core.ZARR_DEVICE_OPENCL, "ext": _core.ZARR_DEVICE_EXT}
_OF_CUDA = ("cuda", "cuda_managed")
Results = Sequence["int | Exception | None"]


class Batch:
    """What the chunks of one call of an `Implementation` have in common.

    Attributes
    ----------
    decoded, encoded : ChunkSpec
        A chunk before and after the codec.
    next_name : str or None
        The implementation that `next` calls, such as "cpu.libzstd". None: there is none.
    """

    def __init__(self, call: _core.PluginCall, take: Callable[[Any], None], decoded: ChunkSpec, encoded: ChunkSpec, next_name: str | None) -> None:
        self.decoded, self.encoded, self.next_name = decoded, encoded, next_name
        self._call, self._take = call, take

    def next(self, inputs: Sequence[_core.ChunkMemory], outputs: Sequence[_core.ChunkMemory]) -> list[int | Exception]:
        """Lets the next implementation of the codec encode or decode chunks of this call, in the same memory.

        Parameters
        ----------
        inputs, outputs : sequence of ChunkMemory
            Chunks of this call, all or some.

        Returns
        -------
        list of int or Exception
            For each chunk how many bytes its output has, or why it failed. An implementation can return them as they are.

        Raises
        ------
        UnsupportedError
            There is no next implementation for this memory.
        """
        if self.next_name is None:
            raise of_code(_core.ZARR_ERR_UNSUPPORTED, "there is no next implementation of the codec for this memory")
        return [one if isinstance(one, int) else _failure(*one) for one in self._call.next(list(inputs), list(outputs), self._take)]


def _failure(code: int, text: str) -> Exception:
    """What the next implementation says about a chunk."""
    problem = of_code(code, text)
    problem.__cause__ = take_cause(text)
    return problem


class Implementation:
    """Encodes and decodes chunks of a codec that is registered already, in memory of one kind, such as that of a GPU.

    The library chooses it as it chooses its own implementations: by kind of memory, preference and priority. It gets all chunks of a wave
    in one call, without a copy. `codec`, `name`, `memory` and, with `decode_batch`, `is_safe` are required.

    An object is made for each configuration of the codec. `__init__` gets the members of the configuration. If it raises UnsupportedError, the
    next implementation is used for such arrays.

    Attributes
    ----------
    codec : str
        The codec, by its name in metadata.
    name : str
        The name of the implementation, for `codec_preference` and `Array.explain`: such as "acme.cuda".
    memory : str
        The kind of memory of inputs and outputs: "host", "cuda", "cuda_managed", "cuda_host", "opencl" or "ext".
    is_safe : bool
        Whether `decode_batch` checks its input: no encoded bytes make it write outside of its outputs. If not, it decodes only data that is
        trusted (the control `trust`).
    priority : int
        The highest wins. The library's own have 0 on the CPU, and from 10 on for devices.
    zarr_formats : tuple of int
        The formats of the codec that it implements. It is needed only where formats 2 and 3 have different codecs of the name.
    """

    codec: ClassVar[str]
    name: ClassVar[str]
    memory: ClassVar[str]
    is_safe: ClassVar[bool]
    priority: ClassVar[int] = 100
    zarr_formats: ClassVar[tuple[int, ...]] = ()

    def __init__(self, **configuration: object) -> None:
        """Takes the configuration of the codec in its canonical form."""
        self.configuration: dict[str, Any] = configuration

    def supports(self, decoded: ChunkSpec, encoded: ChunkSpec) -> bool:
        """Whether it takes chunks of such a shape and type. It is asked when an array is opened, or first read or written."""
        return True

    def decode_batch(self, inputs: Sequence[_core.ChunkMemory], outputs: Sequence[_core.ChunkMemory], batch: Batch) -> Results | None:
        """Decodes chunks.

        Parameters
        ----------
        inputs : sequence of ChunkMemory
            The encoded bytes of each chunk, read-only.
        outputs : sequence of ChunkMemory
            Where the decoded bytes of each chunk go. The lengths are those of the metadata.
        batch : Batch
            What the chunks have in common.

        Returns
        -------
        list or None
            For each chunk how many bytes its output has, or an exception. None, for a chunk or for all: outputs are full. A number above the
            length of the output says that more room is needed.

        Raises
        ------
        UnsupportedError, MemoryError
            The next implementation does all chunks. As a result in the list: that chunk.
        CorruptError
            The encoded bytes are damaged.
        """
        raise NotImplementedError(f"{self.name} does not decode")

    def encode_batch(self, inputs: Sequence[_core.ChunkMemory], outputs: Sequence[_core.ChunkMemory], batch: Batch) -> Results | None:
        """Encodes chunks, as `decode_batch` decodes them. An output is as long as an encoded chunk can be."""
        raise NotImplementedError(f"{self.name} does not encode")


def codec_name(cls: type[Implementation]) -> str:
    """The codec as the library names it."""
    return cls.codec.removeprefix("numcodecs.")


def check(cls: Any) -> None:
    """Raises what is wrong with a class of implementations."""
    for word in ("codec", "name", "memory"):
        if not isinstance(getattr(cls, word, None), str) or not getattr(cls, word):
            raise TypeError(f"{cls.__qualname__} has no `{word}`")
    if cls.memory not in MEMORY:
        raise ValueError(f"{cls.__qualname__}.memory: {cls.memory!r} is not one of {', '.join(MEMORY)}")
    if not _can_decode(cls) and not _can_encode(cls):
        raise TypeError(f"{cls.__qualname__} has neither `decode_batch` nor `encode_batch`")
    if _can_decode(cls) and not isinstance(getattr(cls, "is_safe", None), bool):
        raise TypeError(f"{cls.__qualname__} has no `is_safe`: whether decode_batch checks its input")
    if not isinstance(cls.priority, int) or not -(1 << 31) <= cls.priority < 1 << 31:
        raise TypeError(f"{cls.__qualname__}.priority: {cls.priority!r} is not a number of 32 bits")
    if not set(cls.zarr_formats) <= {2, 3}:
        raise ValueError(f"{cls.__qualname__}.zarr_formats: {cls.zarr_formats!r} are not of 2 and 3")


def _can_decode(cls: type[Implementation]) -> bool:
    return cls.decode_batch is not Implementation.decode_batch


def _can_encode(cls: type[Implementation]) -> bool:
    return cls.encode_batch is not Implementation.encode_batch


def flags(cls: type[Implementation]) -> int:
    """What the library calls its capabilities."""
    of_formats = {2: _core.ZARR_CODEC_FOR_V2, 3: _core.ZARR_CODEC_FOR_V3}
    return ((_core.ZARR_CODEC_CAN_DECODE if _can_decode(cls) else 0) | (_core.ZARR_CODEC_CAN_ENCODE if _can_encode(cls) else 0)
            | (_core.ZARR_CODEC_SAFE if getattr(cls, "is_safe", False) else 0) | sum(of_formats[one] for one in set(cls.zarr_formats)))


def run(implementation: Implementation, call: _core.PluginCall, batch: Batch, is_encode: bool) -> list[int | Exception]:
    """The results for all chunks of a call. When it returns, nothing of the implementation uses their memory."""
    method, gives = (implementation.encode_batch, batch.encoded) if is_encode else (implementation.decode_batch, batch.decoded)
    inputs, outputs = call.memory()
    lengths = [one.nbytes for one in outputs]
    found: list[int | Exception] = []
    failure: BaseException | None = None
    try:
        try:
            found = _check_results(method(inputs, outputs, batch), lengths, gives.is_exact)
        finally:
            if implementation.memory in _OF_CUDA:
                _synchronize()
    except BaseException as problem:
        failure = problem
    del inputs, outputs
    _forget(found if failure is None else [failure])
    if call.count_kept():
        gc.collect()
    if n := call.count_kept():
        raise RuntimeError(f"{n} arrays or objects of the chunks' memory are alive after the call, which ends their memory")
    if failure is not None:
        raise failure
    return found


def _check_results(results: Any, lengths: list[int], is_exact: bool) -> list[int | Exception]:
    """A number or an exception for each chunk. What is neither fails all."""
    results = [None] * len(lengths) if results is None else list(results)
    if len(results) != len(lengths):
        raise ValueError(f"it gave {len(results)} results for {len(lengths)} chunks")
    return [_check_result(one, length, is_exact) for one, length in zip(results, lengths)]


def _check_result(one: Any, length: int, is_exact: bool) -> int | Exception:
    if one is None:
        if not is_exact:
            raise TypeError("it gave None, and the length of the output is not known: give how many bytes it has")
        return length
    if isinstance(one, Exception):
        return one
    if not hasattr(one, "__index__") or isinstance(one, bool) or one < 0:
        raise TypeError(f"it gave {one!r}, which is neither a number of bytes nor an exception")
    return operator.index(one)


def _synchronize() -> None:
    """What CuPy and torch have queued on their current streams is done, also after a failure. They do not wait for what they queue."""
    of_cupy: Any = getattr(sys.modules.get("cupy"), "cuda", None)
    if hasattr(of_cupy, "get_current_stream"):  # else another thread is about to import it
        of_cupy.get_current_stream().synchronize()
    of_torch: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if hasattr(of_torch, "current_stream") and of_torch.is_initialized():
        of_torch.current_stream().synchronize()


def _forget(results: Iterable[object]) -> None:
    """Exceptions hold no variables of calls that have ended: those that they ended, and those of an implementation that wraps it."""
    seen: set[int] = set()
    waiting = [one for one in results if isinstance(one, BaseException)]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)
        frame = one.__traceback__.tb_frame if one.__traceback__ else None
        while frame is not None:
            with contextlib.suppress(RuntimeError):  # it runs
                frame.clear()
            frame = frame.f_back
        waiting += [more for more in (one.__cause__, one.__context__) if more is not None]


def status(problem: BaseException) -> int:
    """The library's number for a failure. An exception that says nothing about the chunk is a bug of the implementation."""
    if isinstance(problem, MemoryError):
        return _core.ZARR_ERR_NO_MEMORY
    if isinstance(problem, NotImplementedError):
        return _core.ZARR_ERR_UNSUPPORTED
    return problem.code if isinstance(problem, (CorruptError, DeviceError, LimitError)) else _core.ZARR_ERR_INTERNAL
