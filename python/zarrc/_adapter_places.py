"""Where the keys of a store of another package are, as `zarr_store_place` of the library has it: the scheme, the endpoint, the
bucket and the prefix. Two stores of one place have the same keys, so where that is not certain there is no place."""
from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

PlaceTexts = tuple[str, str, str, str]

_CLOUDS = {"s3": ("s3", "amazonaws.com"), "s3a": ("s3", "amazonaws.com"), "gs": ("gs", "googleapis.com"), "gcs": ("gs", "googleapis.com")}
_PORTS = {"http": 80, "https": 443}


def _host(url: str) -> str:
    """The host of an endpoint, with a port that is not the usual one."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    port = parts.port if parts.port != _PORTS.get(parts.scheme) else None
    return (parts.hostname or "") + (f":{port}" if port else "")


def local_place(path: Any) -> PlaceTexts:
    return "file", "", "", os.path.realpath(path)


def memory_place(values: Any) -> PlaceTexts:
    """That of an object of this process, which the store keeps alive."""
    return "python", str(id(values)), "", ""


def _http_place(url: str) -> PlaceTexts:
    parts = urlsplit(url)
    return parts.scheme, _host(url), "", unquote(parts.path)


def _cloud_place(scheme: str, endpoint: str | None, bucket: str, prefix: str) -> PlaceTexts:
    scheme, own = _CLOUDS[scheme]
    if not endpoint and scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    host = _host(endpoint or "").removeprefix(f"{bucket}.")
    return scheme, "" if host == own or host.endswith(f".{own}") else host, bucket, prefix


def fsspec_place(fs: Any, root: str) -> PlaceTexts | None:
    """The place of a folder of a file system of fsspec."""
    if (inner := getattr(fs, "sync_fs", None)) is not None:
        return fsspec_place(inner, root)
    scheme = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    if scheme == "dir":
        return fsspec_place(fs.fs, f"{fs.path}/{root}" if root else fs.path)
    if scheme in ("file", "local"):
        return local_place(root or "/")
    if scheme in _PORTS:
        return _http_place(root) if "://" in root else None
    if scheme in _CLOUDS:
        endpoint = getattr(fs, "endpoint_url", None) or (getattr(fs, "client_kwargs", None) or {}).get("endpoint_url")
        bucket, _, prefix = root.strip("/").partition("/")
        return _cloud_place(scheme, endpoint or getattr(fs, "_endpoint", None), bucket, prefix)
    return ("fsspec-memory", "", "", root) if scheme == "memory" else None


def obstore_place(source: Any) -> PlaceTexts | None:
    """The place of a store of obstore."""
    kind, config = type(source).__name__, getattr(source, "config", {})
    prefix = str(getattr(source, "prefix", None) or "")
    if kind == "LocalStore":
        return local_place(prefix or "/")
    if kind == "HTTPStore":
        return _http_place(str(source.url))
    if kind == "MemoryStore":
        return memory_place(source)
    if kind == "AzureStore" and "account_name" in config:
        return "az", config["account_name"], config.get("container_name", ""), prefix
    if kind in ("S3Store", "GCSStore") and "bucket" in config:
        return _cloud_place("s3" if kind == "S3Store" else "gs", config.get("endpoint"), config["bucket"], prefix)
    return None
