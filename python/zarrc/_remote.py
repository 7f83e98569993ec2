"""Who opens a URL of http or https: the library, fsspec or obstore."""
from __future__ import annotations

import json
from typing import Any

from . import _core, _log
from ._settings import settings
from ._store import Store, open_adapter, open_url
from .errors import UnsupportedError, make_error

# The options of the library's store, which docs/stores.md describes
OPTIONS = frozenset({"bearer_token", "ca_file", "ca_folder", "concurrency", "connect_ms", "denied_is_missing", "headers", "netrc",
                     "netrc_file", "no_proxy", "password", "proxy", "stall_s", "tls_unverified", "tries", "untrusted", "user"})


def is_remote(url: str) -> bool:
    return url.partition("://")[0].lower() in ("http", "https")


def _why_not_native(mode: str, options: dict[str, Any]) -> str | None:
    """Why the library does not open a URL; None: it does."""
    if mode != "r":
        return f"the library does not write over HTTP (mode {mode!r})"
    if unknown := sorted(options.keys() - OPTIONS):
        return f"the library has no equivalent of the storage options {', '.join(unknown)}"
    try:
        open_url("http://localhost/", {})  # sends nothing
    except UnsupportedError as problem:
        return problem.reason
    return None


def _open_native(text: str, wanted: dict[str, Any], options: dict[str, Any]) -> tuple[Store, str]:
    if settings["untrusted"]:
        options = {"untrusted": True, **options}
    if options:
        wanted = {**wanted, "config": json.dumps(options)}
    escaped = f"{text[:-1]}%5D" if text.endswith("]") else text  # it is no selection
    url, path, *_ = _core.locate(settings.context(), escaped)
    return open_url(url, wanted), path


def open_remote(text: str, mode: str, wanted: dict[str, Any], options: dict[str, Any]) -> tuple[Store, str]:
    """The store of a URL, and the path of the node in it."""
    remote = settings["remote"]
    why = _why_not_native(mode, options) if remote == "native" else ""
    if why is None:
        return _open_native(text, wanted, options)
    from ._find_adapter import open_url_adapter, shown_url  # it imports asyncio
    if settings["untrusted"]:
        raise make_error(UnsupportedError, f"{shown_url(text)!r}: {why or f'the setting remote is {remote!r}'}. The setting untrusted excludes "
                         "other packages, which do not check redirects; set untrusted=0 for servers that you trust")
    try:
        store = open_adapter(open_url_adapter(text, options, remote))
    except UnsupportedError:
        if remote != "native" or options.keys() - OPTIONS:
            raise
        return _open_native(text, wanted, options)  # which tells what it lacks, or refuses to write
    if remote == "native":
        _log.logger.info("%s is not opened by the library: %s", store, why)
    return store, ""


def default_mode(store: Any) -> str:
    """The mode of calls that get none: the library only reads URLs of http and https."""
    return "r" if isinstance(store, str) and is_remote(store) and settings["remote"] == "native" else "a"
