"""elsewhere - with $ZARRC_TEST_STORE=zip, http or s3, tests read arrays from such a store, which has all values of the store that the
test made: a zip archive in memory, or a server on loopback. To s3 the library itself writes them."""
import contextlib
import io
import itertools
import os
import pathlib
import shutil
import tempfile
import urllib.parse
import weakref
import zipfile
import zlib
from ctypes import byref, c_void_p

from http_answers import answer_range, start_server
from s3_server import BUCKET, make_variables, start_service
from zarrc_abi import call, lib

KIND = os.environ.get("ZARRC_TEST_STORE", "")
VALUES, NUMBERS, SERVERS = {}, itertools.count(), []


def answer(request):
    number, _, key = urllib.parse.unquote(request.path).lstrip("/").partition("/")
    value = VALUES[int(number)].get(key)
    return (404, {}, b"none") if value is None else answer_range(request, value, ETag=f'"{zlib.crc32(value)}"')


def open_served(store, values):
    if not SERVERS:
        stack = contextlib.ExitStack()  # until the process ends
        SERVERS.extend([stack.enter_context(start_server(answer)), stack])
    number = next(NUMBERS)
    VALUES[number] = values
    served = store.context.store(f"{SERVERS[0].url}/{number}")
    weakref.finalize(served, VALUES.pop, number)
    return served


def open_bucket(store, values):
    if not SERVERS:
        stack = contextlib.ExitStack()
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()), BUCKET)
        folder.mkdir()
        SERVERS.extend([stack.enter_context(start_service(folder)), stack])
        os.environ.update(make_variables(SERVERS[0].url))
    number = f"{next(NUMBERS)}.zarr"
    bucket = store.context.store(f"s3://{BUCKET}/{number}")
    for key, value in values.items():
        bucket.put(key, value)
    weakref.finalize(bucket, shutil.rmtree, SERVERS[0].service.folder / number, ignore_errors=True)
    return bucket


def open_archive(store, values):
    data, out = io.BytesIO(), c_void_p()
    with zipfile.ZipFile(data, "w") as archive:
        for key, value in values.items():
            archive.writestr(key, value)
        archive.writestr("beside", b"")  # so that a single folder is not taken for the root
    below = store.context.store("memory:")
    below.put("x.zip", data.getvalue())
    call("zarr_store_open_zip", byref(out), below.pointer, b"x.zip", None)
    return type(store)(out.value, store.context)


def open_elsewhere(array):
    """The array to read from: the same one, if it has options or if its store has functions of the test."""
    if not KIND or array.has_options or hasattr(array.store, "implementation"):
        return array
    store = {"zip": open_archive, "http": open_served, "s3": open_bucket}[KIND](array.store, array.store.dump())
    return store.open(lib.zarr_array_path(array.pointer).decode())
