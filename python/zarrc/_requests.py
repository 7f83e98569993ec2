"""Requests of the library on event loops: one descriptor for each event loop tells when requests are done."""
from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from . import _core

_T = TypeVar("_T")
_n_at_once = 0


async def rest() -> None:
    """After work that was done at once: now and then other tasks run."""
    global _n_at_once
    _n_at_once += 1  # of all event loops: it need not be exact
    if _n_at_once % _core.ZX_AT_ONCE == 0:
        await asyncio.sleep(0)


class Queue:
    """The ends of requests of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.native = _core.new_queue()
        self._futures: dict[_core.Request, asyncio.Future[None]] = {}
        loop.add_reader(self.native.fileno(), self._take)

    def _take(self) -> None:
        for request in self.native.take():
            future = self._futures.pop(request, None)
            if future is not None and not future.done():
                future.set_result(None)

    async def run(self, request: _core.Request) -> int:
        """Waits for a request. A task that is cancelled cancels it, and ends at once: the request
        keeps its memory until it has stopped. A small read is often done before it comes here; a task that only does
        such reads must not keep others, and its own cancellation, waiting."""
        if request.is_done():
            await rest()
            return request.wait()
        return await self._end(request)

    async def wait_for_end(self, request: _core.Request) -> None:
        """The same for a read that was submitted without a queue. If it is done, other tasks run first."""
        if request.is_done():
            await asyncio.sleep(0)
            request.wait()
            return
        request.follow(self.native)
        await self._end(request)

    async def _end(self, request: _core.Request) -> int:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures[request] = future
        try:
            await future
        except BaseException:  # cancelled, or the coroutine is closed
            request.cancel()
            raise
        return request.wait()

    def close(self) -> bool:
        """For a loop that is closed: lets go of the requests that have ended; whether all have."""
        for request in self.native.take():
            self._futures.pop(request, None)
        return not self._futures


_queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Queue] = weakref.WeakKeyDictionary()


def find_queue() -> Queue:
    loop = asyncio.get_running_loop()
    found = _queues.get(loop)
    if found is None:
        _close_queues()
        found = _queues[loop] = Queue(loop)
    return found


def _close_queues() -> None:
    """Loops that were closed while requests ran: no task takes the ends of these, which keep memory and a pipe."""
    for loop, queue in list(_queues.items()):
        if loop.is_closed() and queue.close():
            _queues.pop(loop, None)


_threads: concurrent.futures.ThreadPoolExecutor | None = None


async def apart(work: Callable[..., _T], *given: Any) -> _T:
    """Decodes or encodes on a thread of the package's own. It may wait for memory that the read of another store has, and that
    store may need all threads of the event loop's executor."""
    global _threads
    if _threads is None:
        _threads = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="zarrc")
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads, functools.partial(context.run, work, *given))


def _in_child() -> None:
    """After a fork: the threads are the parent's."""
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_in_child)
