"""zarrc_dict - a store of the application: a dict of keys and values."""
import ctypes
import itertools
import threading

from zarrc_abi import CPU, NUMBER, U64_MAX

RANGES, SUFFIX, LIST, WRITE, ATOMIC_PUT, LOCK, VERSIONS = (1 << i for i in range(7))
PUT_NEW, PUT_IF_VERSION, ERASE_IF_VERSION = 512, 2048, 4096
CONDITIONAL = VERSIONS | PUT_NEW | PUT_IF_VERSION | ERASE_IF_VERSION
STORE_GET, STORE_PUT, STORE_ERASE, STORE_STAT = 1, 2, 3, 5
OP_IF_VERSION, OP_LOCKED, OP_WANT_VERSION = 1, 2, 4
CONDITION = {STORE_GET: VERSIONS, STORE_PUT: PUT_IF_VERSION, STORE_ERASE: ERASE_IF_VERSION}


class DictStore:
    """A store of keys and values in a dict. `caps` tells what the library may use of it. `calls` logs
    (verb, key, offset, length)."""

    def __init__(self, values=None, caps=RANGES | SUFFIX | LIST | WRITE | ATOMIC_PUT):
        self.values = {} if values is None else values
        self.caps, self.calls, self.mutex = caps, [], threading.Lock()
        self.locks, self.held, self.closed = {}, {}, 0
        self.numbers = itertools.count(1)
        self.versions = dict.fromkeys(self.values, 0)

    def version(self, key):
        """The bytes of the version of the value: a text, as an ETag is."""
        text = f"v{self.versions.get(key, 0)}".encode() if key in self.values else b""
        return bytes([len(text)]) + text.ljust(63, b"\0")

    def run(self, op):
        key = op.key.decode()
        with self.mutex:
            self.calls.append((op.verb, key, op.offset, op.length))
            value = self.values.get(key)
            if value is None and op.verb != STORE_PUT:
                return NUMBER["NOT_FOUND"], "no such key"
            if op.flags & OP_IF_VERSION:
                assert self.caps & CONDITION[op.verb], "a condition that was not offered"
                if bytes(op.version.bytes) != self.version(key):
                    return NUMBER["CONFLICT"], "another version"
            if op.verb in (STORE_GET, STORE_STAT):
                if self.caps & VERSIONS:
                    op.version.bytes[:] = self.version(key)
                op.object_bytes = len(value)
                if op.verb == STORE_STAT:
                    return 0, ""
                if op.offset == U64_MAX:
                    assert self.caps & SUFFIX, "a suffix that was not offered"
                    part = value[max(0, len(value) - op.length):]
                else:
                    whole = op.offset == 0 and op.length == U64_MAX
                    assert whole or self.caps & RANGES, "a range that was not offered"
                    part = value[op.offset:] if op.length == U64_MAX else \
                        value[op.offset:op.offset + op.length]
                part = part[:op.mem.bytes]
                assert op.mem.device_type == CPU
                ctypes.memmove((op.mem.handle or 0) + op.mem.offset, part, len(part))
                op.done_bytes = len(part)
                return 0, ""
            if op.verb == STORE_PUT:
                self.values[key] = ctypes.string_at(op.mem.handle + op.mem.offset, op.mem.bytes) \
                    if op.mem.bytes else b""
                self.versions[key] = next(self.numbers)
                if op.flags & OP_WANT_VERSION:
                    op.version.bytes[:] = self.version(key)
                return 0, ""
            if op.verb != STORE_ERASE:
                return NUMBER["UNSUPPORTED"], f"verb {op.verb}"
            del self.values[key]
            return 0, ""

    def list(self, prefix, how):
        start = prefix + "/" if prefix else ""
        rows = set()
        with self.mutex:
            for key, value in self.values.items():
                if not key.startswith(start) or how == 2:
                    continue
                head, slash, _ = key[len(start):].partition("/")
                rows.add((start + head, 0, 1) if slash and how == 1 else (key, len(value), 0))
        return sorted(rows)
