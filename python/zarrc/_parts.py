"""Several selections of one array in one request."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import _core, _dtypes, _indexing, _libraries


def _split_out(out: Any, n: int) -> list[Any]:
    """The memory for each of `n` selections: a list of it, or the rows of one array or tensor."""
    found = [out[i, ...] for i in range(len(out))] if isinstance(out, np.ndarray) else list(out)
    if len(found) != n:
        raise ValueError(f"out has memory for {len(found)} selections, not for {n}")
    return found


def _find_handle(array: _core.Array, out: list[Any]) -> Any:
    """The handle that fills all of the memory; None: there is none."""
    for one in out:
        if _indexing.is_tensor(one) and (there := _indexing.find_out(array, one)) is not array:
            return there
    return array


_Call = tuple[list[_core.Selection], list[Any]]  # what one request of the library reads, and its memory


def _calls(array: _core.Array, selections: Sequence[_core.Selection], out: list[Any]) -> dict[tuple[int, str, int | None], _Call]:
    """{(byte order, device, stream): parts}: a stream orders one device. A part in host memory goes with the first others of its byte
    order."""
    found: dict[tuple[int, str, int | None], _Call] = {}
    on_host = []
    for selection, one in zip(selections, out):
        if _indexing.is_tensor(one):
            memory, options = _indexing.lend(one, array, is_out=True)
            key = _dtypes.NATIVE, _libraries.find_device(one) if "stream" in options else "", options.get("stream")
        else:
            memory = _indexing._output_memory(one)
            key = _indexing._check_out(memory, selection.shape, array.dtype), "", None
        if key[1]:
            _add(found.setdefault(key, ([], [])), selection, memory)
        else:
            on_host.append((key, selection, memory))
    for key, selection, memory in on_host:
        call = next((call for (order, *_), call in found.items() if order == key[0]), None)
        _add(found.setdefault(key, ([], [])) if call is None else call, selection, memory)
    return found


def _add(call: _Call, selection: _core.Selection, memory: Any) -> None:
    call[0].append(selection)
    call[1].append(memory)


def read(array: _core.Array, keys: Iterable[Any], out: Any, options: dict[str, Any]) -> list[Any]:
    """What `Array.read_many` gives."""
    selections = [_indexing.any_key(array, key) for key in keys]
    given = None if out is None else _split_out(out, len(selections))
    if array._how != _dtypes.PLAIN:  # text and bytes of any length have no memory that the library fills
        return [_indexing.read(array, selection, out=None if given is None else given[i], options=options)
                for i, selection in enumerate(selections)]
    if given is None:
        given = [_indexing.fresh(array, selection.shape, array.dtype) for selection in selections]
        order = _indexing._check_out(given[0], selections[0].shape, array.dtype) if given else _dtypes.NATIVE
        array._read_many(tuple(selections), tuple(given), order, options)
        return [one[()] if isinstance(one, np.ndarray) and one.ndim == 0 else one for one in given]
    if any(isinstance(one, np.ndarray) and _dtypes.is_swapped_struct(array.dtype, one.dtype) for one in given):
        return [_indexing.read(array, selection, out=one, options=options) for selection, one in zip(selections, given)]
    there = _find_handle(array, given)
    if there is None:
        return [_indexing.read(array, selection, out=one, options=options) for selection, one in zip(selections, given)]
    for (order, _, stream), (parts, memory) in _calls(there, selections, given).items():
        there._read_many(tuple(parts), tuple(memory), order, options if stream is None else {**options, "stream": stream})
    return given
