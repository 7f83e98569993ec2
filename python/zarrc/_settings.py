"""The settings of the process, and the contexts of the library for them. `_config` is what users see of it.

Settings come from `zarrc.config.set`, else from the environment (``ZARRC_MAX_THREADS`` and so on), else from the
user's file zarrc.toml, else from the machine. The library's own variables, which docs/python.md lists, are read by the library.
"""
from __future__ import annotations

import json
import operator
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from . import _core, _devices, _libraries, _log, _plugins, _threads
from .errors import UnsupportedError, ZarrcError, make_error


def _numbers(prefix: str, words: str) -> dict[str, int]:
    """The values of a setting, and the number of C that each one is."""
    return {word: getattr(_core, f"{prefix}_{word.upper()}") for word in words.split()}


DURABILITY = _numbers("ZARR_DURABILITY", "none commit ordered each")
LOCKS = _numbers("ZARR_LOCKS", "os none")
SYMLINKS = _numbers("ZARR_SYMLINKS", "within deny follow")
TRUST = _numbers("ZARR_TRUST", "verified full none")
_LOG_LEVELS = _numbers("ZARR_LOG", "error warn info debug trace")



class Control(NamedTuple):
    """How calls read and write. Each control is a setting, a member of `ArrayConfig`, and an argument of calls. The call comes first, then the
    array, then the setting, then the environment."""

    check: Callable[[str, Any], Any]  # (name, value) -> the value in its final form
    parse: Callable[[str], Any]  # of a text of the environment
    is_of_context: bool  # the library reads it from the environment; else the handle of an array keeps the setting


def parse_size(value: int | str) -> int:
    """Bytes of a number, or of a text such as "4G"."""
    if isinstance(value, int):
        return value
    match = _SIZE.match(value.strip())
    if not match:
        raise ValueError(f"{value!r} is not a number of bytes, such as 512M or 4G")
    return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


def _check_bytes(name: str, value: Any) -> int:
    try:
        found = parse_size(value if isinstance(value, str) else operator.index(value))
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{name}: {problem}") from None
    if not 0 <= found < 1 << 64:
        raise ValueError(f"{name}: {value!r} is not a number of bytes")
    return found


def _check_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name}: {value!r} is not a text")
    return value


def _check_trust(name: str, value: Any) -> str:
    choice(name, TRUST, value)
    return str(value)


_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:i?B)?\Z", re.I)
CONTROLS = {
    "wave_bytes": Control(_check_bytes, parse_size, True),  # decoded bytes that a call handles in one step
    "memory_bytes": Control(_check_bytes, parse_size, True),  # bytes of buffers: of the context together; of an array, of each call
    "pipeline": Control(_check_text, str, True),  # such as "serial"
    "codec_preference": Control(_check_text, str, True),  # such as "zstd=cpu.libzstd"
    "trust": Control(_check_trust, str, True),  # "verified", "full" or "none": decoders that do not check their input
    "coalesce_gap": Control(_check_bytes, parse_size, False),  # chunks of a shard are fetched together across gaps of so many bytes
    "coalesce_bytes": Control(_check_bytes, parse_size, False),  # and at most so many bytes of them
}
DEFAULTS: dict[str, Any] = {
    "max_threads": None,  # how many threads work at once
    **dict.fromkeys(CONTROLS),
    "output_cache": 256 << 20,  # bytes of freed arrays' memory that are kept for the next reads; of the process, at once
    "durability": None,  # "none", "commit", "ordered" or "each"
    "locks": None,  # "os" or "none"
    "lock_wait": None,  # seconds that a write waits for the lock of its key; None: without limit
    "symlinks": None,  # "within", "deny" or "follow"
    "plugins": (),  # files of plug-ins
    "entry_points": True,  # whether plug-ins of installed packages are used
    "plugin_options": None,  # a dict of dicts
    "device": None,  # such as "cuda:0": whose plug-in is loaded
    "like": None,  # whose arrays reads return: "numpy", "cupy", "torch", "jax", an array or a class of them
    "device_allocators": None,  # a dict of functions by kind of memory: where reads with device= put elements
    "allocators": None,
    "untrusted": False,  # narrow limits for data of unknown origin
    "limits": None,  # a dict of limits by their names in zarr_limits
    "log_level": None,  # None: what the logger "zarrc" takes
    "remote": "native",  # who opens URLs of http and https: "native" (the library), "fsspec" or "obstore"
    "consolidate": True,  # consolidated metadata follows changes of nodes: True, False, or "end" of the `with` block
    "default_zarr_format": 3,
    "array.order": "C",
    "array.write_empty_chunks": False,
    "array.read_missing_chunks": True,
}
_OF_CONTEXT = ("max_threads", "plugins", "plugin_options", "allocators", "untrusted", "limits", "log_level",
               *(name for name, control in CONTROLS.items() if control.is_of_context))


def choice(name: str, words: Mapping[str, int], value: str | None) -> int:
    if value is None:
        return 0
    if value not in words:
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(words)}")
    return words[value]


def _limits_text(limits: Mapping[str, int | str]) -> str:
    """What zarr_limits_parse() reads."""
    return ",".join(f"{name}={value}" for name, value in limits.items())


def _parse_limits(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if part)


def list_near(name: str, names: Iterable[str]) -> str:
    """For the message about an unknown name: similar ones, or all."""
    import difflib  # only errors need it
    near = difflib.get_close_matches(name, names := tuple(names))
    return f"similar names are {', '.join(near)}" if near else f"there are {', '.join(names)}"


def call_options(controls: Mapping[str, Any]) -> dict[str, Any]:
    """The controls of a call, as the library takes them. None: those of the array."""
    found = {}
    for name, value in controls.items():
        if name not in CONTROLS:
            raise TypeError(f"unexpected argument {name}; {list_near(name, CONTROLS)}")
        if value is not None:
            value = CONTROLS[name].check(name, value)
            found[name] = TRUST[value] if name == "trust" else value
    return found


def check_setting(name: str, value: Any) -> Any:
    """A setting in its final form."""
    if name not in DEFAULTS:
        raise KeyError(f"{name} is no setting of zarrc; {list_near(name, DEFAULTS)}")
    if value is None:
        return DEFAULTS[name]
    if name in CONTROLS:
        return CONTROLS[name].check(name, value)
    words = {"durability": DURABILITY, "locks": LOCKS, "symlinks": SYMLINKS, "log_level": _LOG_LEVELS}.get(name)
    if words is not None:
        choice(name, words, value)
    elif name == "max_threads":
        if not isinstance(value, int) or not 1 <= value <= 65535:
            raise ValueError(f"max_threads: {value!r} is not a number from 1 to 65535")
    elif name == "output_cache":
        value = _check_bytes(name, value)
    elif name == "limits":
        value = dict(value)
        _core.check_limits(_limits_text(value))
    elif name == "plugins":
        value = tuple(os.fspath(file) for file in ([value] if isinstance(value, (str, os.PathLike)) else value))
    elif name == "device":
        _devices.check_device(value)
    elif name == "like":
        like = _libraries.check_like(value)
        value = value if isinstance(value, str) else like
    elif name == "device_allocators":
        value = _devices.checked_allocators(value)
    elif name == "consolidate" and value not in (True, False, "end"):
        raise ValueError(f'consolidate: {value!r} is not True, False or "end"')
    elif name == "remote" and value not in ("native", "fsspec", "obstore"):
        raise ValueError(f"remote: {value!r} is not native, fsspec or obstore")
    elif name == "default_zarr_format" and value not in (2, 3):
        raise ValueError(f"default_zarr_format: {value!r} is not 2 or 3")
    elif name == "array.order" and value not in ("C", "F"):
        raise ValueError(f"array.order: {value!r} is not C or F")
    return value


def _truth(text: str) -> bool:
    """A setting that is on or off."""
    if text.lower() not in ("0", "1", "false", "true", "no", "yes", "off", "on"):
        raise ValueError(f"{text!r} is not 0 or 1")
    return text.lower() in ("1", "true", "yes", "on")


def _truth_or_end(text: str) -> bool | str:
    return text if text == "end" else _truth(text)


_OF_ENVIRONMENT: dict[str, Callable[[str], Any]] = {
    **{name: control.parse for name, control in CONTROLS.items() if not control.is_of_context}, "output_cache": parse_size, "durability": str, "locks": str, "symlinks": str, "untrusted": _truth, "entry_points": _truth, "device": str, "like": str,
    "remote": str, "consolidate": _truth_or_end, "default_zarr_format": int, "array.order": str, "array.write_empty_chunks": _truth, "array.read_missing_chunks": _truth}


# What the library reads, when a context is made. It takes it if nothing is set.
_OF_LIBRARY: dict[str, tuple[str, Callable[[str], Any]]] = {
    **{name: (f"ZARRC_{name.upper()}", control.parse) for name, control in CONTROLS.items() if control.is_of_context},
    "max_threads": ("ZARRC_MAX_THREADS", parse_size), "allocators": ("ZARRC_ALLOCATORS", str),
    "log_level": ("ZARRC_LOG_LEVEL", str), "limits": ("ZARRC_LIMITS", _parse_limits), "plugin_options": ("ZARRC_PLUGIN_OPTIONS", json.loads)}


def _of_library(name: str) -> Any:
    """What the environment says now; None: nothing, or nothing of the setting's form. What the library refuses then, it tells when
    a context is made."""
    variable, form = _OF_LIBRARY.get(name, ("", str))
    text = os.environ.get(variable)
    try:
        return form(text) if text else None
    except (ValueError, RecursionError):
        return None


def read_environment() -> dict[str, Any]:
    """Settings that the library does not read from the environment itself."""
    found: dict[str, Any] = {}
    for name, form in _OF_ENVIRONMENT.items():
        variable = "ZARRC_" + name.replace(".", "_").upper()
        if text := os.environ.get(variable):
            try:
                found[name] = check_setting(name, form(text))
            except ValueError as problem:
                raise ValueError(f"environment variable {variable}: {problem}") from None
    if text := os.environ.get("ZARRC_LOCK_WAIT"):
        try:
            found["lock_wait"] = float(text)
        except ValueError:
            raise ValueError(f"environment variable ZARRC_LOCK_WAIT: {text!r} is not a number of seconds") from None
    return found


def _find_file() -> str | None:
    """The path of the user's file of settings. The working directory, which others may have filled, does not matter."""
    named = os.environ.get("ZARRC_CONFIG")
    if named is not None:
        if named and not os.path.isabs(named):
            raise ValueError(f"environment variable ZARRC_CONFIG: {named!r} is no absolute path")
        return named or None
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = os.path.join(folder, "zarrc.toml")
    return path if os.path.isabs(path) and os.path.exists(path) else None


def _check_owner(path: str, file: int) -> None:
    """Raises if others may change the file, or replace it in its directory."""
    for what, told in ((path, os.fstat(file)), (os.path.dirname(path), os.stat(os.path.dirname(path)))):
        is_sticky = stat.S_ISDIR(told.st_mode) and told.st_mode & stat.S_ISVTX
        if told.st_uid not in (0, os.geteuid()) or told.st_mode & 0o022 and not is_sticky:
            raise ValueError(f"{path}: other users may write {what}. Use chmod go-w, or set ZARRC_CONFIG to an empty text to read no file")


def read_file() -> dict[str, Any]:
    """The settings of the user's file zarrc.toml."""
    path = _find_file()
    if path is None:
        return {}
    import tomllib
    with open(path, "rb") as file:
        _check_owner(path, file.fileno())
        try:
            told = tomllib.load(file)
            told |= {f"array.{name}": value for name, value in told.pop("array", {}).items()}
            return {name: check_setting(name, value) for name, value in told.items()}
        except (ValueError, TypeError, AttributeError, KeyError) as problem:
            raise ValueError(f"{path}: {problem.args[0] if isinstance(problem, KeyError) else problem}") from None


def read_initial() -> dict[str, Any]:
    """The settings of a new process: those of the environment, else of the file. Where the library reads the environment, a value of
    the file must not hide what that says."""
    file = {name: value for name, value in read_file().items() if name not in _OF_LIBRARY or not os.environ.get(_OF_LIBRARY[name][0])}
    return {**DEFAULTS, **file, **read_environment()}


class Settings:
    """The values of now. Each change makes a new dict of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.values: dict[str, Any] = read_initial()
        self._contexts: dict[tuple[Any, ...], _core.Context | ZarrcError] = {}  # an error: a plug-in of the package that cannot be loaded
        self._latest: tuple[tuple[Any, ...], _core.Context] | None = None  # what `context` looked at, and what it returned
        _core.keep_outputs(self.values["output_cache"])

    def __getitem__(self, name: str) -> Any:
        """What is set, else what the environment says; None: neither, so the default counts."""
        value = self.values[name]
        return _of_library(name) if value is None else value

    def change(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Changes some values, or all; returns those before. Others may have been set meanwhile by another thread."""
        with self._lock:
            before = self.values
            self.values = {**before, **values}
            _core.keep_outputs(self.values["output_cache"])
        return before

    def context(self) -> _core.Context:
        """The context for the settings of now. Equal settings share one."""
        values = self.values
        now = (_threads.count(values["max_threads"]), os.environ.get("ZARRC_LOG_LEVEL"), *self.snapshot())
        latest = self._latest
        if latest is None or latest[0] != now:
            latest = self._latest = now, self._find_context(values, now[0])
        return latest[1]

    def _find_context(self, values: dict[str, Any], max_threads: int) -> _core.Context:
        wanted: dict[str, Any] = {name: values[name] for name in _OF_CONTEXT}
        wanted["max_threads"] = max_threads
        wanted["untrusted"] = int(bool(values["untrusted"]))
        wanted["limits"] = None if values["limits"] is None else _limits_text(values["limits"])
        wanted["trust"] = choice("trust", TRUST, values["trust"])
        level = values["log_level"]
        wanted["log_level"] = _LOG_LEVELS[level] if level else 0 if "ZARRC_LOG_LEVEL" in os.environ else (
            _log.library_level())
        files, wanted["python"] = _plugins.registry.list_registrations(values["entry_points"])
        wanted["plugins"] = (*values["plugins"], *(file for file in files if file not in values["plugins"]))
        options = values["plugin_options"]
        device = _devices.wanted_device() or values["device"]
        wanted["plugin_options"] = None if options is None else json.dumps(options)
        return self._keep_context(wanted, device)

    def _keep_context(self, wanted: dict[str, Any], device: str | None) -> _core.Context:
        """The context with these settings, and the package's plug-in for a device. If it cannot be loaded, that is remembered."""
        file = _devices.plugin(device, wanted["plugins"])
        if file is not None:
            text = wanted["plugin_options"]
            options = _devices.with_nvcomp(None if text is None else json.loads(text))
            wanted = {**wanted, "plugins": (*wanted["plugins"], file), "plugin_options": None if options is None else json.dumps(options)}
        key = tuple(wanted.items())
        with self._lock:
            if key not in self._contexts:
                try:
                    self._contexts[key] = _core.new_context(wanted)
                except ZarrcError as problem:
                    if file is None:
                        raise
                    self._contexts[key] = make_error(UnsupportedError, f"{device}: the plug-in {file} cannot be loaded: {problem.reason}")
            found = self._contexts[key]
        if isinstance(found, ZarrcError):
            raise make_error(UnsupportedError, found.reason)
        return found

    def context_for(self, device: str, like: _core.Context) -> _core.Context:
        """A context as another one is, with the plug-in for a device."""
        wanted = next((dict(key) for key, context in list(self._contexts.items()) if context is like), None)
        if wanted is None:
            return like
        return self._keep_context(wanted, device)

    def context_with(self, like: _core.Context, row: _plugins.Row) -> _core.Context:
        """A context as another one is, with one more class of Python."""
        wanted = next(dict(key) for key, context in list(self._contexts.items()) if context is like)
        return self._keep_context({**wanted, "python": (*wanted["python"], row)}, None)

    def like(self) -> _libraries.Like | None:
        """The setting `like`, with the device that is wanted now. The first read resolves it, so other programs need not have the library."""
        like = _libraries.check_like(self.values["like"])
        return None if like is None else _libraries.aim(like, _devices.wanted_device() or self.values["device"])

    def snapshot(self) -> tuple[Any, ...]:
        """What a context depends on besides the machine and the environment. It costs little."""
        return self.values, _threads.zarr_setting(), _threads.dask_share(), _log.library_level(), _devices.wanted_device(), *_plugins.registry.snapshot()

    def marks(self) -> tuple[_threads.Mark, ...]:
        """What `snapshot` looks at, each with what is there. While all are so, a snapshot is the same. Empty: only a call tells."""
        of_threads = _threads.marks()
        if of_threads is None:
            return ()
        return ((self, "values", self.values), *of_threads, *_log.marks(), _devices.mark_wanted(), *_plugins.registry.marks())

    def store_options(self) -> dict[str, Any]:
        values = self.values
        wait = values["lock_wait"]
        return {"durability": choice("durability", DURABILITY, values["durability"]),
                "locks": choice("locks", LOCKS, values["locks"]), "symlinks": choice("symlinks", SYMLINKS, values["symlinks"]),
                "lock_wait_ms": 0 if wait is None else max(1, round(1000 * wait))}

    def in_child(self) -> None:
        """After a fork: the lock that another thread of the parent held is free."""
        self._lock = threading.Lock()


settings = Settings()
os.register_at_fork(after_in_child=settings.in_child)


def count_worker_threads() -> int:
    """The threads of this process if it is a worker of a DataLoader; 0: it is none, or the user has
    chosen a number. Arrays that were opened before the worker began have the threads of its parent."""
    if settings["max_threads"] or os.environ.get("ZARRC_MAX_THREADS"):
        return 0
    return _threads.torch_share(_core.core_count()) or 0
