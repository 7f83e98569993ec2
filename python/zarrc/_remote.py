"""Who opens a URL of http, https or s3: the library, fsspec or obstore."""
from __future__ import annotations

import json
from typing import Any

from . import _core, _log
from ._settings import settings
from ._store import Store, open_adapter, open_url
from .errors import UnsupportedError, make_error

# The options of the library's stores, which docs/stores.md describes
TRANSPORT = frozenset({"bearer_token", "ca_file", "ca_folder", "concurrency", "connect_ms", "headers", "netrc", "netrc_file", "no_proxy",
                       "password", "proxy", "stall_s", "tls_unverified", "tries", "untrusted", "user"})
HTTP = TRANSPORT | {"denied_is_missing"}
S3 = TRANSPORT | {"access_key_id", "allow_http", "anonymous", "checksums", "conditional", "denied_is_missing", "endpoint", "profile", "region", "requester_pays",
                  "secret_access_key", "session_token", "style"}
# Those that fsspec or obstore have, too
SHARED = {"http": frozenset({"headers", "proxy"}),
          "s3": frozenset({"access_key_id", "allow_http", "endpoint", "profile", "region", "requester_pays", "secret_access_key", "session_token"})}
# Names of s3fs and obstore for options of S3
ALIASES = {"key": "access_key_id", "secret": "secret_access_key", "token": "session_token", "anon": "anonymous", "endpoint_url": "endpoint",
           "default_region": "region", "request_payer": "requester_pays", "skip_signature": "anonymous"}
IN_CLIENT_KWARGS = {"region_name": "region", "endpoint_url": "endpoint"}  # s3fs passes these to botocore


def _kind(url: str) -> str:
    scheme = url.partition("://")[0].lower()
    return "http" if scheme == "https" else scheme


def is_remote(url: str) -> bool:
    return _kind(url) in ("http", "s3")


def _translate(kind: str, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The library's options for those of other packages, and the names that have no equivalent."""
    known: dict[str, Any] = {}
    unknown = []
    for name, value in options.items():
        own = name.removeprefix("aws_") if kind == "s3" else name
        own = ALIASES.get(own, own) if kind == "s3" else own
        if kind == "s3" and name == "client_kwargs" and isinstance(value, dict) and value.keys() <= IN_CLIENT_KWARGS.keys():
            known |= {IN_CLIENT_KWARGS[key]: text for key, text in value.items()}
        elif kind == "s3" and own == "virtual_hosted_style_request":
            known["style"] = "virtual" if str(value).lower() == "true" else "path"
        elif own in (S3 if kind == "s3" else HTTP):
            known[own] = value
        else:
            unknown.append(name)
    return {name: value for name, value in known.items() if value is not None}, sorted(unknown)


def _why_not_native(kind: str, mode: str, unknown: list[str]) -> str | None:
    """Why the library does not open a URL; None: it does."""
    if mode != "r" and kind == "http":
        return f"the library does not write over {kind.upper()} (mode {mode!r})"
    if unknown:
        return f"the library has no equivalent of the storage options {', '.join(unknown)}"
    try:  # sends nothing
        open_url("http://localhost/", {}) if kind == "http" else open_url("s3://any", {"config": '{"anonymous": true}'})
    except UnsupportedError as problem:
        return problem.reason
    return None


def open_located(text: str, wanted: dict[str, Any]) -> tuple[Store, str]:
    """The store of a URL that the library opens, and the path of the node in it."""
    url, path, _ = _core.locate(settings.context(), f"{text[:-1]}%5D" if text.endswith("]") else text)  # it is no selection
    return open_url(url, wanted), path


def _open_native(text: str, wanted: dict[str, Any], options: dict[str, Any]) -> tuple[Store, str]:
    if settings["untrusted"]:
        options = {"untrusted": True, **options}
    if options:
        wanted = {**wanted, "config": json.dumps(options)}
    return open_located(text, wanted)


def open_remote(text: str, mode: str, wanted: dict[str, Any], options: dict[str, Any]) -> tuple[Store, str]:
    """The store of a URL, and the path of the node in it."""
    remote, kind = settings["remote"], _kind(text)
    known, unknown = _translate(kind, options)
    why = _why_not_native(kind, mode, unknown) if remote == "native" else ""
    if why is None:
        return _open_native(text, wanted, known)
    from ._find_adapter import open_url_adapter, shown_url  # it imports asyncio
    if settings["untrusted"]:
        raise make_error(UnsupportedError, f"{shown_url(text)!r}: {why or f'the setting remote is {remote!r}'}. The setting untrusted excludes "
                         "other packages, which do not check redirects; set untrusted=0 for servers that you trust")
    if why and (own := sorted(options.keys() & (S3 if kind == "s3" else HTTP) - SHARED[kind])):
        raise make_error(UnsupportedError, f"{shown_url(text)!r}: {why}, and other packages lack the storage options {', '.join(own)}")
    try:
        store = open_adapter(open_url_adapter(text, options, remote))
    except UnsupportedError:
        if remote != "native" or unknown:
            raise
        return _open_native(text, wanted, known)  # which tells what it lacks, or refuses to write
    if remote == "native":
        _log.logger.info("%s is not opened by the library: %s", store, why)
    return store, ""


def default_mode(store: Any) -> str:
    """The mode of calls that get none: the library only reads URLs of http and https."""
    return "r" if isinstance(store, str) and _kind(store) == "http" and settings["remote"] == "native" else "a"
