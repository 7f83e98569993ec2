"""Stores of Python below the library.

The library's threads put operations into a box and wake one thread of Python, the *service*, which
takes all that wait at once. It answers quick stores (dicts, MemoryStore) itself, calls stores that
block on threads of a pool, and hands the others to an event loop: zarr-python's own for stores of
zarr-python, because the sessions of fsspec and others belong to the loop that made them; fsspec's
for its file systems; else one of this module. A coroutine answers many operations, one after the
other, so that there is none for each of them.

`_store` opens such stores. Do not open one, or wait for it, on the event loop that the store itself needs.
"""
from __future__ import annotations

import asyncio
import functools
import itertools
import queue
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

from . import _core
from ._adapters import Adapter
from ._causes import line, remember
from ._service import ENDING, Service, Single

Steps = Generator[Any, Any, None]
Part = Sequence[int]
_THREADS = 16  # of the pool for stores that block


def _failure(key: str, problem: BaseException) -> tuple[int, str, int]:
    """(status, text, errno) of an exception of a store, which becomes the cause of ours."""
    if isinstance(problem, asyncio.CancelledError):
        return _core.ZARR_ERR_CANCELLED, f"{key}: cancelled", 0
    text = line(key, problem)
    remember(text, problem)
    if isinstance(problem, FileNotFoundError):
        return _core.ZARR_ERR_NOT_FOUND, text, 0
    if isinstance(problem, MemoryError):
        return _core.ZARR_ERR_NO_MEMORY, text, 0
    if isinstance(problem, NotImplementedError):
        return _core.ZARR_ERR_UNSUPPORTED, text, 0
    number = getattr(problem, "errno", None)
    status = _core.ZARR_ERR_DENIED if isinstance(problem, PermissionError) else _core.ZARR_ERR_IO
    return status, text, number if isinstance(number, int) and 0 < number < 4096 else 0


# ---- the answers ----


def _end_missing(batch: _core.Batch, i: int, key: str) -> None:
    batch.end(i, _core.ZARR_ERR_NOT_FOUND, f"{key}: there is no such key")


def _is_same_place(adapter: Adapter, other: Adapter | None) -> bool:
    place = adapter.place()
    return place is not None and other is not None and place == other.place()


def _op(adapter: Adapter, batch: _core.Batch, i: int) -> Steps:
    """One operation. It yields what the store returns, and goes on with the result."""
    op = batch.op(i)
    if op is None:
        return
    verb, key, offset, length = op
    try:
        if verb in (_core.ZARR_STORE_GET, _core.ZX_RANGE):
            value = (yield adapter.get(key, offset, length)) if length != 0 else b""
            if value is None:
                _end_missing(batch, i, key)
            elif length == 0 or not batch.give(i, value):
                size = yield adapter.size(key)
                _end_missing(batch, i, key) if size is None else batch.give(i, value, size)
        elif verb == _core.ZARR_STORE_PUT:
            yield adapter.put(key, batch.data(i))
            batch.end(i)
        elif verb == _core.ZARR_STORE_COPY:
            number, source = batch.source(i)
            if number != batch.store and not _is_same_place(adapter, service().adapters.get(number)):
                raise NotImplementedError("the value is at another place")
            yield adapter.copy(source, key)
            batch.end(i)
        elif verb == _core.ZARR_STORE_ERASE:
            found = yield adapter.erase(key)
            batch.end(i) if found else _end_missing(batch, i, key)
        elif verb == _core.ZARR_STORE_STAT:
            size = yield adapter.size(key)
            _end_missing(batch, i, key) if size is None else batch.end(i, 0, None, 0, size)
        else:
            batch.end(i, _core.ZARR_ERR_UNSUPPORTED, f"{key}: a Python store has no operation {verb}")
    except BaseException as problem:
        batch.end(i, *_failure(key, problem))


def _call(adapter: Adapter, batch: _core.Batch) -> Steps:
    """A listing, or another call whose caller waits."""
    prefix = batch.prefix
    try:
        if batch.what == _core.ZX_LIST_NEXT or batch.what == _core.ZX_LIST and adapter.has_pages and not batch.how:
            pages = adapter.pages(prefix) if batch.what == _core.ZX_LIST else adapter.listings.pop(batch.listing)
            page = yield anext(pages, None)
            if page is not None:
                adapter.listings[batch.listing] = pages
            if not batch.rows(page or [], page is not None):
                adapter.listings.pop(batch.listing, None)
        elif batch.what == _core.ZX_LIST:
            batch.rows((yield adapter.rows(prefix, bool(batch.how))))
        else:
            yield adapter.erase_prefix(prefix) if batch.what == _core.ZX_ERASE_PREFIX else adapter.flush()
            batch.end(0)
    except BaseException as problem:
        batch.end(0, *_failure(prefix or "/", problem))


def _ranges(adapter: Adapter, batch: _core.Batch, part: Part) -> Steps:
    """Ranges of one value, for a store that takes several at once."""
    ops = [(i, op) for i in part if (op := batch.op(i)) is not None]
    if not ops:
        return
    key = ops[0][1][1]
    try:
        values = yield adapter.get_ranges(key, [(op[2] or 0, op[3] or 0) for _, op in ops])
    except BaseException as problem:
        failure = _failure(key, problem)
        for i, _ in ops:
            batch.end(i, *failure)
        return
    for (i, _), value in zip(ops, values):
        if value is not None and batch.give(i, value):
            continue
        yield from _op(adapter, batch, i)  # it is missing, or ends before the range does


def _parts(adapter: Adapter, batch: _core.Batch) -> list[Part]:
    """The indexes of a batch; those that are answered together are together."""
    if batch.what != _core.ZX_OPS or not adapter.has_ranges:
        return [(i,) for i in range(len(batch))]
    parts: list[Part] = []
    ranges: dict[str, list[int]] = {}
    for i in range(len(batch)):
        op = batch.op(i)
        if op is not None and op[0] == _core.ZX_RANGE:
            ranges.setdefault(op[1], []).append(i)
        else:
            parts.append((i,))
    return [*parts, *ranges.values()]


def _steps(adapter: Adapter, batch: _core.Batch, part: Part) -> Steps:
    if batch.what != _core.ZX_OPS:
        return _call(adapter, batch)
    if adapter.has_ranges and (op := batch.op(part[0])) is not None and op[0] == _core.ZX_RANGE:
        return _ranges(adapter, batch, part)
    return _op(adapter, batch, part[0])


def _answer(adapter: Adapter, batch: _core.Batch, i: int) -> None:
    """Operation i of a batch, for a store whose methods return results."""
    steps = _steps(adapter, batch, (i,))
    result = None
    try:
        while True:
            result = steps.send(result)
    except StopIteration:
        pass


async def _await(adapter: Adapter, batch: _core.Batch, part: Part) -> None:
    """The same for a store whose methods are coroutines, and for operations that go together."""
    steps = _steps(adapter, batch, part)
    result = None
    try:
        while True:
            waiting = steps.send(result)
            try:
                result = await waiting
            except asyncio.CancelledError as problem:
                _end(steps, problem)
                raise
            except BaseException as problem:
                _end(steps, problem)
                return
    except StopIteration:
        pass


def _end(steps: Steps, problem: BaseException) -> None:
    """Lets the steps answer with a failure, after which there are none."""
    try:
        steps.throw(problem)
    except StopIteration:
        pass


# ---- the service ----


class _Threads:
    """Threads for stores that block. They do not delay the end of the interpreter, as those of
    concurrent.futures do."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = self._n = 0

    def submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._idle > 0 or self._n >= _THREADS:
                self._idle -= self._idle > 0
                self._work.put(work)
                return
            self._n += 1
        self._work.put(work)
        threading.Thread(target=self._run, name="zarrc-store", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._work.get()()
            with self._lock:
                self._idle += 1


class _Stores(Service):
    """The thread that takes operations, and the threads and loops that it hands them to."""

    thread_name = "zarrc-stores"

    def __init__(self) -> None:
        self.native = _core.new_service()
        self.adapters: dict[int, Adapter] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._pool: _Threads | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}  # by call
        self._flights: dict[int, tuple[_core.Batch, asyncio.AbstractEventLoop | None]] = {}  # by id
        super().__init__(self.native)

    def add(self, adapter: Adapter) -> int:
        with self._lock:
            number = next(self._numbers)
            self.adapters[number] = adapter
            return number

    def take(self, batch: _core.Batch) -> None:
        try:
            self._take(batch)
        except BaseException as problem:  # such as a loop that has ended
            batch.fail(*_three(_failure("store", problem)))

    def fail(self, batch: _core.Batch, text: str) -> None:
        batch.fail(text)

    def _take(self, batch: _core.Batch) -> None:
        if batch.what == _core.ZX_CANCEL:
            self._cancel(batch.call)
            return
        if batch.what == _core.ZX_CLOSE:
            self.adapters.pop(batch.store, None)
            return
        adapter = self.adapters.get(batch.store)
        if adapter is None:
            batch.fail("the store has gone")
        elif batch.what == _core.ZX_LIST_END:
            adapter.listings.pop(batch.listing, None)
        elif adapter.lane == "inline":
            self._inline(adapter, batch)
        elif adapter.lane == "pool":
            self._block(adapter, batch)
        else:
            self._await(adapter, batch)

    def _inline(self, adapter: Adapter, batch: _core.Batch) -> None:
        i, n = 0, len(batch)
        while not self.is_closed and (i := batch.fill(adapter.whole, i)) < n:
            _answer(adapter, batch, i)
            i += 1

    # -- threads --

    def _block(self, adapter: Adapter, batch: _core.Batch) -> None:
        indexes = iter(range(len(batch)))
        n = min(len(batch), adapter.parallel, _THREADS)
        left = n
        turn = threading.Lock()

        def work() -> None:
            nonlocal left
            try:
                while not self.is_closed:
                    with turn:
                        i = next(indexes, -1)
                    if i < 0:
                        break
                    _answer(adapter, batch, i)
            except BaseException as problem:
                batch.fail(*_three(_failure("store", problem)))
            finally:
                with turn:
                    left -= 1
                if left == 0:
                    self._flights.pop(id(batch), None)

        if self._pool is None:
            self._pool = _Threads()
        self._flights[id(batch)] = batch, None
        for _ in range(n):
            self._pool.submit(work)

    # -- event loops --

    def own_loop(self) -> asyncio.AbstractEventLoop:
        """A loop for stores that have none of their own."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="zarrc-loop", daemon=True).start()
            return self._loop

    def _await(self, adapter: Adapter, batch: _core.Batch) -> None:
        loop = adapter.loop() or self.own_loop()
        if not loop.is_running() and loop is not self._loop:
            raise RuntimeError("the event loop of the store has ended")
        self._flights[id(batch)] = batch, loop
        try:
            loop.call_soon_threadsafe(self._begin, adapter, batch, loop)
        except RuntimeError:  # it has ended meanwhile
            self._flights.pop(id(batch), None)
            raise

    def _begin(self, adapter: Adapter, batch: _core.Batch, loop: asyncio.AbstractEventLoop) -> None:
        """On the loop: as many tasks as operations should be in flight."""
        try:
            parts = _parts(adapter, batch)
        except BaseException as problem:
            self._flights.pop(id(batch), None)
            batch.fail(*_three(_failure("store", problem)))
            return
        waiting = iter(parts)

        async def work() -> None:
            for part in waiting:
                await _await(adapter, batch, part)

        tasks = {loop.create_task(work()) for _ in range(min(len(parts), adapter.parallel))}
        self._tasks[batch.call] = tasks
        for task in tuple(tasks):
            task.add_done_callback(functools.partial(self._finish, batch, tasks))

    def _finish(self, batch: _core.Batch, tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled():
            task.exception()  # operations have their answer already
        if tasks:
            return
        if self._tasks.get(batch.call) is tasks:
            del self._tasks[batch.call]
        self._flights.pop(id(batch), None)
        batch.fail("cancelled", _core.ZARR_ERR_CANCELLED)  # what no task came to

    def _cancel(self, call: int) -> None:
        for batch, loop in list(self._flights.values()):
            if loop is not None and batch.call == call:
                try:
                    loop.call_soon_threadsafe(self._cancel_tasks, call)
                except RuntimeError:  # the loop has ended
                    batch.fail("the event loop of the store has ended")

    def _cancel_tasks(self, call: int) -> None:
        for task in tuple(self._tasks.get(call, ())):
            task.cancel()

    # -- the process --

    def in_child(self) -> None:
        self._lock = threading.Lock()
        self._pool = self._loop = None
        self._tasks, self._flights = {}, {}
        super().in_child()

    def close(self) -> None:
        super().close()
        for batch, _ in list(self._flights.values()):
            batch.fail(ENDING)


def _three(failure: tuple[int, str, int]) -> tuple[str, int, int]:
    return failure[1], failure[0], failure[2]


service = Single(_Stores)


def store_caps(adapter: Adapter) -> int:
    """What a store can do, as the library has it."""
    return (_core.ZARR_STORE_CAP_RANGES | _core.ZARR_STORE_CAP_SUFFIX
            | (_core.ZARR_STORE_CAP_LIST if adapter.can_list else 0)
            | (_core.ZARR_STORE_CAP_COPY if adapter.can_copy else 0)
            | (_core.ZARR_STORE_CAP_WRITE if adapter.can_write else 0)
            | (_core.ZARR_STORE_CAP_ATOMIC_PUT if adapter.is_atomic else 0))
