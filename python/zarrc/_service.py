"""What the services of stores (`_foreign`) and of plug-ins (`_plugins`) have in common: a thread of
Python that takes what the library's threads put into a box, its life, and the one service of a process.

The thread starts when the service is made. The child of a fork has a thread of its own. When the
interpreter ends, what has no answer fails, and so does what comes later.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

_S = TypeVar("_S", bound="Service")
ENDING = "the interpreter is ending"


class Box(Protocol):
    """What the extension has of a service."""

    def wait(self) -> list[Any]: ...
    def close(self) -> list[Any]: ...
    def reset(self) -> None: ...


class Service:
    """One thread that takes letters and answers them, or hands them on."""

    thread_name: str

    def __init__(self, box: Box) -> None:
        self._box = box
        self.is_closed = False
        self._now: Any = None  # the letter that is at work
        self._taken: list[Any] = []  # letters that come after it
        self._start()

    def take(self, letter: Any) -> None:
        """Answers a letter, or hands it on."""
        raise NotImplementedError

    def fail(self, letter: Any, text: str) -> None:
        """Ends a letter without an answer. Answers that have been given stay."""
        raise NotImplementedError

    def _start(self) -> None:
        threading.Thread(target=self._run, name=self.thread_name, daemon=True).start()

    def _run(self) -> None:
        while not self.is_closed:
            letter = None
            try:
                self._taken = self._box.wait()
                while self._taken and not self.is_closed:
                    self._now = letter = self._taken[0]
                    del self._taken[0]
                    self.take(letter)
                    self._now = letter = None
            except BaseException:  # the thread goes on, whatever comes
                self._fail_taken("the call ended without an answer")
        self._fail_taken(ENDING)

    def _fail_taken(self, text: str) -> None:
        for letter in (self._now, *self._taken):
            if letter is not None:
                self.fail(letter, text)
        self._now = None

    def in_child(self) -> None:
        """After a fork: the letters are the parent's, and its thread is gone."""
        self._box.reset()
        self._now, self._taken = None, []
        self._start()

    def close(self) -> None:
        """At the end of the interpreter."""
        self.is_closed = True
        for letter in self._box.close():
            self.fail(letter, ENDING)
        self._fail_taken(ENDING)


_services: list[Service] = []  # those of this process


def close_services() -> None:
    """At the end of the interpreter."""
    for service in _services:
        service.close()


class Single(Generic[_S]):
    """The service of this process, made when it is first asked for. It follows the process from then on."""

    def __init__(self, make: Callable[[], _S]) -> None:
        self._make = make
        self._made: _S | None = None
        self.lock = threading.Lock()
        os.register_at_fork(after_in_child=self._in_child)

    def __call__(self) -> _S:
        with self.lock:
            if self._made is None:
                self._made = self._make()
                _services.append(self._made)
            return self._made

    def _in_child(self) -> None:
        """Another thread of the parent may have held the lock."""
        self.lock = threading.Lock()
        if self._made is not None:
            self._made.in_child()
