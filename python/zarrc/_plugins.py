"""What is registered in `zarrc.plugins` or by entry points, and the thread that answers the library's
questions to it.

The library asks from any thread, and waits. One thread of Python takes the questions, so that a wave
of chunks costs one turn of the GIL. A call is not interrupted: a cancelled request ends when the call
that runs has ended. The child of a fork has a thread of its own. When the interpreter ends, questions
without an answer fail, and so do later ones.
"""
from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _core, _dtypes, _log, _plugin_classes
from ._causes import line, remember
from ._service import Service, Single
from .errors import UnsupportedError, make_error

GROUP = "zarrc.plugins"
_NO_BOUND = 2**64 - 1

Row = tuple[int, int, str, int, int, bool, int, int, int, "str | None", int]


def _kind(cls: type) -> int:
    """Which side of a codec has arrays."""
    return (_core.ZARR_CODEC_ARRAY_ARRAY if issubclass(cls, _plugin_classes.ArrayCodec)
            else _core.ZARR_CODEC_ARRAY_BYTES if issubclass(cls, _plugin_classes.Serializer) else _core.ZARR_CODEC_BYTES_BYTES)


def _check_class(cls: Any) -> tuple[int, str]:
    """(registry, name) of a class; what is wrong with it is raised."""
    from . import _implementations  # few programs have one

    if issubclass(cls, _implementations.Implementation):
        _implementations.check(cls)
        return _core.ZARR_REGISTRY_CODEC_IMPL, cls.name
    for registry, base, word in ((_core.ZARR_REGISTRY_CODEC, _plugin_classes.Codec, "name"), (_core.ZARR_REGISTRY_DTYPE, _plugin_classes.DataType, "name"),
                                 (_core.ZARR_REGISTRY_STORE, _plugin_classes.Store, "scheme")):
        if not issubclass(cls, base):
            continue
        name = getattr(cls, word, None)
        if not isinstance(name, str) or not name:
            raise TypeError(f"{cls.__qualname__} has no `{word}`")
        if registry == _core.ZARR_REGISTRY_DTYPE and not hasattr(cls, "dtype"):
            raise TypeError(f"{cls.__qualname__} has no `dtype`")
        if registry == _core.ZARR_REGISTRY_CODEC and not issubclass(cls, (_plugin_classes.ArrayCodec, _plugin_classes.Serializer, _plugin_classes.BytesCodec)):
            raise TypeError(f"{cls.__qualname__} derives from BytesCodec, ArrayCodec or Serializer")
        if registry == _core.ZARR_REGISTRY_CODEC and (not cls.zarr_formats or not set(cls.zarr_formats) <= {2, 3}):
            raise ValueError(f"{cls.__qualname__}.zarr_formats: {cls.zarr_formats!r} are not of 2 and 3")
        return registry, name
    raise TypeError(f"{cls.__qualname__} derives from no class of zarrc.plugins")


def _row(number: int, registry: int, name: str, cls: Any) -> Row:
    """What the extension registers."""
    if registry == _core.ZARR_REGISTRY_DTYPE:
        return registry, number, name, *_dtype_facts(cls), 0
    if registry == _core.ZARR_REGISTRY_STORE:
        return registry, number, name, 0, 0, False, 0, 0, 0, None, 0
    if registry == _core.ZARR_REGISTRY_CODEC_IMPL:
        from . import _implementations

        kind = _implementations.MEMORY[cls.memory]
        return registry, number, name, kind, _implementations.flags(cls), False, 0, 0, 0, _implementations.codec_name(cls), cls.priority
    flags = (0 if 2 in cls.zarr_formats else _core.ZARR_CODEC_SPEC_V3) | (0 if 3 in cls.zarr_formats else _core.ZARR_CODEC_SPEC_V2)
    if getattr(cls, "is_elementwise", False):
        flags |= _core.ZARR_CODEC_SPEC_ELEMENTWISE | _core.ZARR_CODEC_SPEC_KEEPS_SHAPE
    return registry, number, name, _kind(cls), flags, bool(cls.is_lossy), 0, 0, 0, None, 0


def _key(row: Row) -> tuple[Any, ...]:
    """What no two have in common. An implementation has a name beside those of its codec."""
    return row[0], row[2], row[9] if row[0] == _core.ZARR_REGISTRY_CODEC_IMPL else None


def _dtype_facts(cls: Any) -> tuple[int, int, bool, int, int, int, str | None]:
    """(kind, flags, is_lossy, bytes of an element or 0, bytes of its unit, significant bits, v2 name) of a data type."""
    dtype, bits, v2 = _dtypes.plugin_dtype(cls), cls.item_bits or 0, cls.v2_name
    if not isinstance(cls.configuration, dict):
        raise TypeError(f"{cls.__qualname__}.configuration: {cls.configuration!r} is not a dict")
    json.dumps(cls.configuration)
    if _dtypes.is_variable(cls):
        if v2 is not None or bits:
            raise TypeError(f"{cls.__qualname__}: {'item_bits' if bits else 'v2_name'} is of elements that have a fixed size")
        return _core.ZARR_KIND_VBYTES if cls.dtype is bytes else _core.ZARR_KIND_STRING, 0, False, 0, 0, 0, None
    if dtype.hasobject or dtype.kind == "T" or not 0 < dtype.itemsize <= _core.ZX_FILL_BYTES:
        raise make_error(UnsupportedError, f"{cls.__qualname__}.dtype: {cls.dtype!r} is neither a data type of a fixed size of at most "
                         f"{_core.ZX_FILL_BYTES} bytes, nor str or bytes for elements of any length")
    if not 0 <= bits <= 8 * dtype.itemsize:
        raise ValueError(f"{cls.__qualname__}.item_bits: {bits} is not from 1 to {8 * dtype.itemsize}")
    kind = _core.ZARR_KIND_INT if bits % 8 and dtype.kind == "i" else _core.ZARR_KIND_OTHER
    return kind, 0, False, dtype.itemsize, _order_bytes(dtype), bits, v2


def _order_bytes(dtype: np.dtype[Any]) -> int:
    """Bytes of the unit that has a byte order."""
    if dtype.names or dtype.kind in "VSU" or dtype.byteorder == "|":
        return 1
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


class Registry:
    """Classes and libraries, in the order of their registration."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a plug-in may register others while it is imported
        self._numbers = itertools.count(1)
        self.classes: dict[int, Any] = {}  # by number
        self._known: dict[tuple[Any, ...], Row] = {}  # by `_key`: what the extension has, which forgets nothing
        self._rows: tuple[Row, ...] = ()
        self._files: tuple[str, ...] = ()
        self._found: tuple[tuple[str, ...], tuple[Row, ...]] | None = None  # of entry points
        self._thread = threading.local()  # whether a thread loads them

    def add(self, plugin: Any) -> None:
        """A class or a path. A class takes the place of one with the same names, such as that of a
        module which is loaded again."""
        with self._lock:
            if isinstance(plugin, str):
                self._files = self._files if plugin in self._files else (*self._files, plugin)
                return
            row = self._number_class(plugin)
            if row in self._rows:
                self._enter(row, plugin)
            else:
                self._try({"python": (row,)}, row, plugin)
                self._rows = (*self._rows, row)

    def enter_private(self, cls: Any) -> Row:
        """The row of a class, for contexts that have this row and no others."""
        with self._lock:
            row = self._number_class(cls)
            self._enter(row, cls)
        return row

    def _try(self, options: dict[str, Any], row: Row, cls: Any) -> None:
        """Registers in a context of its own, which refuses a name that the library has."""
        before = self.classes.get(row[1])
        self._enter(row, cls)
        try:
            _core.new_context(options)
        except BaseException as problem:
            if before is not None:
                self._enter(row, before)
            else:  # a corrected class can be registered under the names
                del self.classes[row[1]], self._known[_key(row)]
                if row[0] == _core.ZARR_REGISTRY_DTYPE:
                    _dtypes.plugin_types.pop(row[2], None)
            if "ZARR_CODEC_FOR_V2" in str(problem):
                raise TypeError(f"{cls.__qualname__} has no `zarr_formats`: format 2 has another codec {cls.codec!r} than format 3") from problem
            raise

    def _enter(self, row: Row, cls: Any) -> None:
        """From now on the class answers for its row."""
        self._known[_key(row)] = row
        self.classes[row[1]] = cls
        service()
        if row[0] == _core.ZARR_REGISTRY_DTYPE:
            _dtypes.plugin_types[row[2]] = cls

    def _number_class(self, cls: Any) -> Row:
        """The row of a class, which is checked against one of the same name."""
        registry, name = _check_class(cls)
        row = _row(0, registry, name, cls)
        known = self._known.get(_key(row))
        row = (registry, next(self._numbers) if known is None else known[1], *row[2:])
        if known is None:
            return row
        there = self.classes.get(known[1], cls)
        if _full_name(there) != _full_name(cls):
            raise ValueError(f"{name} is registered already, by {_full_name(there)}")
        if row != known:
            raise ValueError(f"{name} is registered already, with another base class, format, flag, priority or size of elements; "
                             "a new interpreter can register it so")
        return row

    def list_registrations(self, entry_points: bool) -> tuple[tuple[str, ...], tuple[Row, ...]]:
        """(libraries, rows of classes) for a new context."""
        files, rows = self._discover() if entry_points else ((), ())
        return ((*files, *(file for file in self._files if file not in files)),
                (*rows, *(row for row in self._rows if row not in rows)))

    def snapshot(self) -> tuple[Any, ...]:
        """Other objects than before if anything was registered meanwhile."""
        return self._files, self._rows, self._found

    def marks(self) -> list[tuple[Any, Any, Any]]:
        """Where `snapshot` looks, and what is there: see `Settings.marks`."""
        return [(self, "_files", self._files), (self, "_rows", self._rows), (self, "_found", self._found)]

    def _discover(self) -> tuple[tuple[str, ...], tuple[Row, ...]]:
        """What entry points name. One that does not load is a warning, and the others are used."""
        if self._found is not None:
            return self._found
        if getattr(self._thread, "is_loading", False):
            return (), ()  # a plug-in that opens something at its import finds no others
        self._thread.is_loading = True
        try:
            loaded = _load_entry_points()  # without the lock: a thread that imports a plug-in may wait for it
        finally:
            self._thread.is_loading = False
        with self._lock:
            if self._found is not None:  # another thread was quicker
                return self._found
            files: tuple[str, ...] = ()
            rows: tuple[Row, ...] = ()
            problems = []
            for point, things in loaded:
                try:
                    if isinstance(things, Exception):
                        raise things
                    for one in things:
                        files, rows = self._with(files, rows, one)
                except Exception as problem:
                    problems.append(f"plug-in {point.name} of the package {_package(point)} is left out: "
                                    f"{type(problem).__name__}: {problem}")
            self._found = files, rows
        for text in problems:
            _log.on_log(_core.ZARR_LOG_WARN, text)
        return files, rows

    def _with(self, files: tuple[str, ...], rows: tuple[Row, ...], one: Any) -> tuple[tuple[str, ...], tuple[Row, ...]]:
        """Files and rows with one more, which the library accepts."""
        if isinstance(one, str):
            if one not in files:
                _core.new_context({"plugins": (*files, one), "python": rows})
                files = (*files, one)
            return files, rows
        row = self._number_class(one)
        if row in rows:
            self._enter(row, one)
            return files, rows
        self._try({"plugins": files, "python": (*rows, row)}, row, one)
        return files, (*rows, row)

    def in_child(self) -> None:
        """After a fork: the lock that another thread of the parent held is free."""
        self._lock = threading.RLock()


def things(plugin: Any) -> Iterable[Any]:
    """The classes and paths that a plug-in consists of."""
    if isinstance(plugin, (str, os.PathLike)):
        yield os.fspath(plugin)
    elif isinstance(plugin, type):
        yield plugin
    elif isinstance(plugin, Iterable):
        for one in plugin:
            yield from things(one)
    elif callable(plugin):
        yield from things(plugin())
    else:
        raise TypeError(f"{plugin!r} is not a class of zarrc.plugins, a path, a list of these, or a function that gives one")


def _load_entry_points() -> list[tuple[Any, Any]]:
    """(entry point, what it names or the exception) for each."""
    found: list[tuple[Any, Any]] = []
    for point in _entry_points():
        try:
            found.append((point, list(things(point.load()))))
        except Exception as problem:
            found.append((point, problem))
    return found


def _entry_points() -> Any:
    """In the order of their packages, which decides who has a name that two want."""
    from importlib.metadata import entry_points
    return sorted(entry_points(group=GROUP), key=_package)


def _package(point: Any) -> str:
    return str(point.dist.name if point.dist is not None else point.value)


def _full_name(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


registry = Registry()
os.register_at_fork(after_in_child=registry.in_child)


# ---- answers ----


def _spec(chunk: tuple[Any, ...] | None) -> _plugin_classes.ChunkSpec:
    assert chunk is not None
    shape, facts, n_bytes, is_exact, fill = chunk
    if facts is None:
        return _plugin_classes.ChunkSpec(None, None, n_bytes, bool(is_exact))
    dtype = _dtypes.from_facts(facts)
    value = np.frombuffer(fill, dtype)[0] if fill is not None else np.zeros((), dtype)[()]
    return _plugin_classes.ChunkSpec(shape, dtype, n_bytes, bool(is_exact), value)


def _array(data: bytes, spec: _plugin_classes.ChunkSpec) -> Any:
    """The bytes of a chunk as a codec takes them."""
    if spec.shape is None:
        return data
    return np.frombuffer(data, spec.dtype).reshape(spec.shape)


def _elements(result: Any, spec: _plugin_classes.ChunkSpec) -> Any:
    """What a codec gave, as bytes; it may be a failure."""
    if isinstance(result, BaseException) or spec.shape is None:
        return result
    array = np.asarray(result)
    if array.shape != spec.shape or array.dtype != spec.dtype:
        return ValueError(f"it gave an array of shape {array.shape} and type {array.dtype}, not {spec.shape}, {spec.dtype}")
    return np.ascontiguousarray(array)


def _status(problem: BaseException, usual: int) -> int:
    if isinstance(problem, MemoryError):
        return _core.ZARR_ERR_NO_MEMORY
    return _core.ZARR_ERR_UNSUPPORTED if isinstance(problem, NotImplementedError) else usual


def _text(name: str, problem: BaseException) -> str:
    """One line, whose exception becomes the cause of ours."""
    text = line(name, problem)
    remember(text, problem)
    return text


def _make_answers(name: str, results: list[Any], status: Callable[[BaseException], int]) -> list[Any]:
    """The answers for the chunks of a batch. The library reports the first failure, and its
    exception is kept."""
    answers: list[Any] = []
    is_first = True
    for one in results:
        if isinstance(one, BaseException):
            answers.append((status(one), (_text if is_first else line)(name, one)))
            is_first = False
        else:
            answers.append(one)
    return answers


class _Answers(Service):
    """The thread that answers questions."""

    thread_name = "zarrc-plugins"

    def __init__(self) -> None:
        self._codecs: dict[tuple[int, str], Any] = {}  # codecs and implementations, by number and configuration
        self._there = threading.RLock()  # held by a call that has memory of the library
        self._answers: dict[int, Callable[..., None]] = {
            _core.ZX_ASK_CANONICAL: self._canonical, _core.ZX_ASK_RESOLVE: self._resolve,
            _core.ZX_ASK_ENCODE: self._encode, _core.ZX_ASK_DECODE: self._decode,
            _core.ZX_ASK_FILL_PARSE: self._fill_parse, _core.ZX_ASK_FILL_PRINT: self._fill_print, _core.ZX_ASK_OPEN: self._open,
            _core.ZX_ASK_BIND: self._bind, _core.ZX_ASK_ENCODE_THERE: self._encode_there, _core.ZX_ASK_DECODE_THERE: self._decode_there}
        super().__init__(_core.new_plugin_service())

    def take(self, question: Any) -> None:
        self._answer(*question)

    def fail(self, question: Any, text: str) -> None:
        if question[1] not in _THERE:
            question[0].fail(_core.ZARR_ERR_IO, text)
            return
        with self._there:  # the library has its memory back when nothing uses it
            question[0].fail(_core.ZARR_ERR_IO, text)

    def in_child(self) -> None:
        self._there = threading.RLock()
        super().in_child()

    def _answer(self, call: Any, what: int, number: int, *rest: Any) -> None:
        try:
            self._answers[what](call, registry.classes[number], number, *rest)
        except BaseException as problem:
            cls = registry.classes.get(number)
            name = getattr(cls, "name", None) or getattr(cls, "scheme", None) or "plug-in"
            if what in (_core.ZX_ASK_BIND, *_THERE):
                from . import _implementations

                call.fail(_implementations.status(problem), _text(f'codec "{getattr(cls, "codec", None)}": "{name}"', problem))
                return
            usual = {_core.ZX_ASK_DECODE: _core.ZARR_ERR_CORRUPT, _core.ZX_ASK_OPEN: _core.ZARR_ERR_IO}.get(what, _core.ZARR_ERR_INVALID)
            call.fail(_status(problem, usual), _text(name, problem))

    def _codec(self, cls: Any, number: int, text: str) -> Any:
        codec = self._codecs.get((number, text))
        if codec is None or type(codec) is not cls:
            if len(self._codecs) > 256:
                self._codecs.clear()
            codec = self._codecs[number, text] = cls(**json.loads(text))
        return codec

    def _canonical(self, call: Any, cls: Any, number: int, text: str, zarr_format: int) -> None:
        given = json.loads(text)
        codec = cls(**given)
        if given and cls.configuration is _plugin_classes.Codec.configuration:
            raise TypeError(f"{cls.__qualname__} takes a configuration and does not define configuration(), "
                            "which gives what metadata should have")
        call.answer(json.dumps(codec.configuration(), separators=(",", ":")).encode())

    def _resolve(self, call: Any, cls: Any, number: int, text: str, chunk: Any) -> None:
        codec: Any = self._codec(cls, number, text)
        spec = _spec(chunk)
        if isinstance(codec, _plugin_classes.ArrayCodec):
            found = codec.resolve(spec)
            assert found.shape is not None and found.dtype is not None
            dtype = np.dtype(found.dtype)
            fill = None if found.fill_value is None else np.asarray(found.fill_value).astype(dtype).tobytes()
            name = None if dtype == spec.dtype else _dtypes.library_name(dtype)
            call.answer_resolve(tuple(map(int, found.shape)), name, 0, True, fill)
        else:
            most = codec.encoded_bytes(spec)
            call.answer_resolve(None, None, _NO_BOUND if most is None else most, False, None)

    def _encode(self, call: Any, cls: Any, number: int, text: str, before: Any, after: Any, chunks: list[bytes]) -> None:
        codec, spec, gives = self._codec(cls, number, text), _spec(before), _spec(after)
        results = codec.encode_batch([_array(chunk, spec) for chunk in chunks], spec)
        call.chunks(_make_answers(cls.name, [_elements(one, gives) for one in results], lambda one: _status(one, _core.ZARR_ERR_INVALID)))

    def _decode(self, call: Any, cls: Any, number: int, text: str, before: Any, after: Any, chunks: list[bytes]) -> None:
        codec, spec, takes = self._codec(cls, number, text), _spec(before), _spec(after)
        results = codec.decode_batch([_array(chunk, takes) for chunk in chunks], spec)
        call.chunks(_make_answers(cls.name, [_check_size(_elements(one, spec), spec) for one in results], lambda one: _status(one, _core.ZARR_ERR_CORRUPT)))

    def _bind(self, call: Any, cls: Any, number: int, text: str, before: Any, after: Any) -> None:
        if not self._codec(cls, number, text).supports(_spec(before), _spec(after)):
            raise make_error(UnsupportedError, "it does not support such chunks")
        call.answer(b"")

    def _run_there(self, is_encode: bool, call: Any, cls: Any, number: int, text: str, before: Any, after: Any, next_name: str | None) -> None:
        from . import _implementations

        with self._there:
            if self.is_closed:  # `fail` has answered
                return
            implementation = self._codec(cls, number, text)
            batch = _implementations.Batch(call, self.take, _spec(before), _spec(after), next_name)
            results = _implementations.run(implementation, call, batch, is_encode)
            call.chunks(_make_answers(f'codec "{cls.codec}": "{cls.name}"', results, _implementations.status))

    def _encode_there(self, *question: Any) -> None:
        self._run_there(True, *question)

    def _decode_there(self, *question: Any) -> None:
        self._run_there(False, *question)

    def _fill_parse(self, call: Any, cls: Any, number: int, text: str, zarr_format: int) -> None:
        call.answer(_dtypes.plugin_element_bytes(cls, cls().fill_from_json(json.loads(text), zarr_format)))

    def _fill_print(self, call: Any, cls: Any, number: int, element: bytes, zarr_format: int) -> None:
        told = cls().fill_to_json(_dtypes.plugin_element(cls, element), zarr_format)
        call.answer(json.dumps(told, allow_nan=False).encode())

    def _open(self, call: Any, cls: Any, number: int, url: str, options: str | None, flags: int) -> None:
        from . import _foreign, _plugin_store

        adapter = _plugin_store.adapter(cls.from_url(url, **json.loads(options or "{}")))
        stores = _foreign.service()
        call.answer_open(stores.native, stores.add(adapter), _foreign.store_caps(adapter), adapter.parallel)


def _check_size(result: Any, spec: _plugin_classes.ChunkSpec) -> Any:
    """Decoded bytes have the length that the metadata tells."""
    if spec.shape is None and spec.is_exact and not isinstance(result, BaseException):
        n = memoryview(result).nbytes
        if n != spec.n_bytes:
            return ValueError(f"decoding gave {n} bytes, and the chunk has {spec.n_bytes}")
    return result


_THERE = (_core.ZX_ASK_ENCODE_THERE, _core.ZX_ASK_DECODE_THERE)
service = Single(_Answers)
