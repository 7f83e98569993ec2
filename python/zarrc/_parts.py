"""Several selections of one array in one request."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import _core, _dtypes, _indexing, _libraries
from .errors import CancelledError, ZarrcError


def _split_out(out: Any, n: int) -> list[Any]:
    """The memory for each of `n` selections: a list of it, or the rows of one array or tensor."""
    found = [out[i, ...] for i in range(len(out))] if isinstance(out, np.ndarray) else list(out)
    if len(found) != n:
        raise ValueError(f"out has memory for {len(found)} selections, not for {n}")
    return found


class _Part(NamedTuple):
    """What a request reads for one selection."""

    array: Any  # the handle that can use the memory
    place: tuple[str, int | None] | None  # device and stream; None: host memory, which any request can fill
    selection: _core.Selection
    memory: Any
    order: int
    finish: Callable[[], None] | None  # copies from the memory to that of the caller


def _prepare(array: _core.Array, selection: _core.Selection, out: Any, name: str, options: dict[str, Any]) -> _Part:
    shape = selection.shape
    if not _indexing.is_tensor(out):
        memory = _indexing._output_memory(out)
        if not _dtypes.is_swapped_struct(array.dtype, memory.dtype):
            return _Part(array, None, selection, memory, _indexing._check_out(memory, shape, array.dtype, name), None)
        found = _indexing.fresh(array, shape, array.dtype)
        _indexing.check_shape(memory, shape, name)
        return _Part(array, None, selection, found, _indexing._check_out(found, shape, array.dtype), partial(_indexing.put_structs, memory, found))
    _libraries.check_usable(out, is_out=True)
    _indexing.check_tensor(out, shape, array.dtype, name)
    device = _libraries.find_device(out)
    there = _indexing.find_handle(array, device)
    if there is None:
        host = _indexing.memory_before(array, shape, out)
        return _Part(array, None, selection, host, _dtypes.NATIVE, partial(_indexing.copy_up, host, out, options))
    memory, told = _indexing.lend(out, there, is_out=True)
    is_host = device == "cpu" or device.startswith("cuda_host")
    return _Part(there, None if is_host else (device, told.get("stream")), selection, memory, _dtypes.NATIVE, None)


def _join(parts: Sequence[_Part]) -> list[list[_Part]]:
    """The parts of each request: those on one device, which a stream orders. Those in host memory go with the first others."""
    found: dict[Any, list[_Part]] = {}
    first = next((part.place for part in parts if part.place), None)
    for part in parts:
        found.setdefault(part.place or first, []).append(part)
    return list(found.values())


def _request(array: _core.Array, parts: list[_Part], options: dict[str, Any]) -> None:
    there = next((part.array for part in parts if part.place), None) or next((part.array for part in parts if part.array is not array), array)
    stream = next((part.place[1] for part in parts if part.place), None)
    if stream is not None:
        options = {**options, "stream": stream}
    there._read_many(tuple(part.selection for part in parts), tuple(part.memory for part in parts), tuple(part.order for part in parts), options)


class _Sum:
    """The progress of requests that follow each other, as of one whose total grows."""

    def __init__(self, report: Callable[[int, int], Any]) -> None:
        self._report = report
        self._before = self._now = (0, 0)

    def begin(self) -> None:
        self._before = self._now

    def __call__(self, done: int, total: int) -> None:
        self._now = self._before[0] + done, self._before[1] + total
        self._report(*self._now)


def _run(requests: Iterable[Callable[[dict[str, Any]], Any]], options: dict[str, Any]) -> ZarrcError | None:
    """Carries out requests as one: one that fails stops no other. Returns the first failure."""
    failure = None
    if (report := options.get("progress")) is not None:
        options = {**options, "progress": (progress := _Sum(report))}
    for one in requests:
        if report is not None:
            progress.begin()
        try:
            one(options)
        except CancelledError:
            raise
        except ZarrcError as problem:
            failure = failure or problem
    return failure


def read(array: _core.Array, selections: Sequence[_core.Selection], out: Any, options: dict[str, Any]) -> list[Any]:
    """What `Array.read_many` gives."""
    given = None if out is None else _split_out(out, len(selections))
    if array._how != _dtypes.PLAIN:  # text and bytes of any length have no memory that the library fills
        return _read_each(array, selections, given, options)
    if given is None:
        given = [_indexing.fresh(array, selection.shape, array.dtype) for selection in selections]
        order = _indexing._check_out(given[0], selections[0].shape, array.dtype) if given else _dtypes.NATIVE
        array._read_many(tuple(selections), tuple(given), (order,) * len(given), options)
        return [one[()] if isinstance(one, np.ndarray) and one.ndim == 0 else one for one in given]
    parts = [_prepare(array, selection, _indexing.unwrap(one), f"out[{i}]", options) for i, (selection, one) in enumerate(zip(selections, given))]
    failure = _run([partial(_request, array, one) for one in _join(parts)], options)
    for part in parts:
        if part.finish is not None:
            part.finish()
    if failure is not None:
        raise failure
    return given


def _read_each(array: _core.Array, selections: Sequence[_core.Selection], given: list[Any] | None, options: dict[str, Any]) -> list[Any]:
    found: list[Any] = [None] * len(selections) if given is None else given
    for selection, one in zip(selections, given or ()):
        _indexing.check_objects(one, selection.shape)

    def read_one(i: int, options: dict[str, Any]) -> None:
        found[i] = _indexing.read(array, selections[i], out=found[i], options=options)

    failure = _run([partial(read_one, i) for i in range(len(selections))], options)
    if failure is not None:
        raise failure
    return found
