"""The exceptions behind failures: what Python code raised below a call of the library."""
from __future__ import annotations

import os
from collections import deque

_causes: deque[tuple[str, BaseException]] = deque(maxlen=16)
os.register_at_fork(after_in_child=_causes.clear)


def line(name: str, problem: BaseException) -> str:
    """One line about an exception, which the library can take: a text may be none of Unicode, and
    making it may fail."""
    try:
        told = str(problem)
    except BaseException:
        told = "(its text cannot be made)"
    text = f"{name}: {type(problem).__name__}: {told}".replace("\n", " ").replace("\0", "")
    return text.encode(errors="backslashreplace").decode()[:300]


def remember(text: str, problem: BaseException) -> None:
    """The exception becomes the cause of one of ours whose message has the text."""
    _causes.append((text, problem))


def take_cause(message: str) -> BaseException | None:
    """The exception that a message of the library is about; it is given once."""
    for entry in reversed(tuple(_causes)):
        if entry[0] in message:
            try:
                _causes.remove(entry)
            except ValueError:  # another thread was quicker
                pass
            return entry[1]
    return None
