"""Which adapter answers for a store of another package. No package is imported unless an object of it was
given, or a URL needs it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _core, _plugin_classes, _plugin_store
from ._adapters import Adapter, Calls, MappingAdapter, is_a
from ._settings import settings
from .errors import UnsupportedError, ZarrcError, make_error


# Storage options that obstore has, and no file system of fsspec. s3fs hands those on, and tells only at the first request
_OF_OBSTORE = {"access_key_id", "client_options", "region", "retry_config", "secret_access_key", "session_token", "skip_signature",
               "virtual_hosted_style_request"}


def shown_url(url: str) -> str:
    """A URL as messages show it: without user info and without the values of query parameters."""
    try:
        return str(_core.locate(settings.context(), url)[2])
    except ZarrcError:
        return f"{url.partition('://')[0]}://***"


def find_adapter(source: Any, calls: Calls = Calls()) -> Adapter | None:
    """The adapter of an object; None: it is no store. `calls` is for a store of zarr-python. Only exact
    classes are known: a subclass or a mock may do something else."""
    kind = type(source)
    if isinstance(source, Adapter):
        return source
    if isinstance(source, _plugin_classes.Store):
        return _plugin_store.adapter(source)
    if is_a(source, "zarr.abc.store", "Store"):
        from ._zarr_adapters import DrivenAdapter, FsspecStoreAdapter, IcechunkAdapter, MemoryAdapter, ZarrAdapter
        name = kind.__name__ if kind.__module__.startswith("zarr.storage.") else ""
        if name == "MemoryStore" and getattr(kind.get, "__qualname__", "") == "MemoryStore.get":  # nothing has replaced it
            return MemoryAdapter(source)
        if kind.__name__ == "IcechunkStore" and kind.__module__.partition(".")[0] == "icechunk":
            return IcechunkAdapter(source, calls)
        if name == "FsspecStore":
            return FsspecStoreAdapter(source, calls)
        return DrivenAdapter(source) if name == "ZipStore" else ZarrAdapter(source, calls)
    if is_a(source, "fsspec.mapping", "FSMap"):
        from ._file_adapters import FsspecAdapter
        return FsspecAdapter(source, source.fs, source.root)
    if is_a(source, "fsspec.spec", "AbstractFileSystem"):
        from ._file_adapters import FsspecAdapter
        return FsspecAdapter(source, source, "")
    if kind.__module__.startswith("obstore"):
        from ._file_adapters import ObstoreAdapter
        return ObstoreAdapter(source)
    return MappingAdapter(source) if isinstance(source, Mapping) else None


def _reason(problem: Exception) -> str:
    """The first line of a message, unless it quotes a URL, which may have a password."""
    text = str(problem).partition("\n")[0]
    return type(problem).__name__ if "://" in text else text


def open_url_adapter(url: str, options: dict[str, Any], remote: str = "native") -> Adapter:
    """The adapter of a URL, by fsspec or obstore; `remote` is the one of them that comes first."""
    from ._file_adapters import FsspecAdapter, ObstoreAdapter
    problems = []
    try:
        if remote == "obstore":
            raise ValueError('the setting "remote" is "obstore"')
        if remote == "native" and (given := _OF_OBSTORE & {name.removeprefix("aws_") for name in options}):
            raise ValueError(f"the options {', '.join(sorted(given))} are obstore's")
        from fsspec.core import url_to_fs
        fs, root = url_to_fs(url, **options)
        return FsspecAdapter(fs, fs, root)
    except (ImportError, ValueError) as problem:
        problems.append(f"fsspec: {_reason(problem)}")
    try:
        from obstore import parse_scheme
        from obstore.store import from_url
        parse_scheme(url)
    except Exception as problem:  # it is missing, or has no such scheme
        problems.append(f"obstore: {_reason(problem)}")
    else:
        if url.lower().startswith("http:"):  # which obstore refuses unless it is told
            options = {"client_options": {"allow_http": True}, **options}
        return ObstoreAdapter(from_url(url, **options))
    raise make_error(UnsupportedError, f"{shown_url(url)!r}: no store is registered for this scheme, and no package here opens it. Install "
                 f"fsspec with the package of the scheme (s3fs, gcsfs, adlfs, aiohttp), or obstore ({'; '.join(problems)})")
