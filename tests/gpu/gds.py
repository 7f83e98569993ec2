#!/usr/bin/env python3
"""gds - arrays in a store "gds:": whether their chunks go straight between the disk and the device, and that they are right.

    gds.py FOLDER [--plugin FILE] [--kind device]
    gds.py FOLDER --compat FILE         cuFile's own calls in its compatibility mode, which the plug-in never uses; FILE is the library

FOLDER is on the file system in question. The last line is JSON.
"""
import argparse
import ctypes
import json
import os
import shutil
import sys
import tempfile
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int32, c_longlong, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import numpy as np
from library import KINDS, Failure, Library, SizedStruct, Stats

N, EDGE = 1536, 512
LITTLE = '{"name":"bytes","configuration":{"endian":"little"}}'
LZ4 = '{"name":"numcodecs.lz4","configuration":{"acceleration":1}}'
BLOSC = '{"name":"blosc","configuration":{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":2,"blocksize":0}}'
ARRAYS = {"raw": ([LITTLE], None), "lz4": ([LITTLE, LZ4], None), "blosc-lz4": ([LITTLE, BLOSC], None),
          "crc32c": ([LITTLE, LZ4, '{"name":"crc32c"}'], None), "sharded": ([LITTLE, BLOSC], (N, N))}


class Caps(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("device_types", POINTER(c_int32)), ("n_device_types", c_uint32),
                ("parallel", c_uint32), ("kind", c_char_p)]


def reaches(library, url, kind):
    """Whether a store's bytes go straight to memory of a kind."""
    store, caps = library.store(url), Caps()
    library.lib.zarr_store_capabilities.restype = None
    library.lib.zarr_store_capabilities(store, byref(caps))
    found = KINDS[kind] in caps.device_types[:caps.n_device_types]
    library.lib.zarr_store_free(store)
    return found


def elements(seed):
    random = np.random.default_rng(seed)
    values = (np.cumsum(random.integers(-1, 2, N * N)) + 1000).astype(np.uint16).reshape(N, N)
    values[::5] = random.integers(0, 65536, values[::5].shape)
    return values


def both_ways(library, folder, name, kind, said):
    """Written by the CPU and read into the device by the store, then the other way round; what differs."""
    codecs, shards = ARRAYS[name]
    values, wrong, stats = elements(1), [], Stats()
    device, host = library.memory(kind, values.nbytes), library.memory("host", values.nbytes)
    host.put(values)
    array = library.create(folder / name, (N, N), "uint16", (EDGE, EDGE), f"[{','.join(codecs)}]", shards)
    array.write(host, values.shape)
    through = library.open(f"gds:{folder / name}")
    try:
        through.read(device, values.shape, stats=stats)
        if device.get().tobytes() != values.tobytes():
            wrong.append(f"{name}: read")
        said["bytes_up"][name] = stats.bytes_up
        values = elements(2)
        device.put(values)
        through.write(device, values.shape)
        array.read(host, values.shape)
        if host.get().tobytes() != values.tobytes():
            wrong.append(f"{name}: written")
        through.read(device, (EDGE, 700), selection=f"300:{300 + EDGE}, 101:801")
        if device.get(EDGE * 700 * 2).tobytes() != values[300:300 + EDGE, 101:801].tobytes():
            wrong.append(f"{name}: part")
    finally:
        through.close()
        array.close()
        device.free()
    return wrong


def run(options):
    told = []
    log = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_char_p)(lambda user, level, text: told.append(text.decode(errors="replace")))
    library = Library(plugin=options.plugin, log=ctypes.cast(log, c_void_p), log_level=3)
    said = {"native": False, "arrays": 0, "bytes_up": {}, "wrong": []}
    folder = Path(tempfile.mkdtemp(prefix="gds-", dir=options.folder))
    try:
        said["native"] = reaches(library, f"gds:{folder}", options.kind)
        said["told"] = told[:3]
        for name in ARRAYS:
            try:
                said["wrong"] += both_ways(library, folder, name, options.kind, said)
            except Failure as why:
                said["wrong"].append(f"{name}: {why}")
            said["arrays"] += 1
    finally:
        library.close()
        shutil.rmtree(folder)
    return said


# ---- cuFile alone --------------------


class Result(ctypes.Structure):
    _fields_ = [("code", c_int), ("cuda", c_int)]


class File(ctypes.Structure):
    _fields_ = [("type", c_int), ("fd", c_void_p), ("operations", c_void_p)]  # `fd` is an int in a union


def compat(options):
    """Writes memory of the device to a file and reads it back."""
    cuda, cufile = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(options.compat)
    n, context = 1 << 20, c_void_p()
    a, b = c_uint64(), c_uint64()

    def driver(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        if code:
            raise OSError(f"{name}: {code}")

    def call(name, *arguments):
        function = getattr(cufile, name)
        function.restype = Result
        result = function(*arguments)
        if result.code:
            raise OSError(f"{name}: {result.code}, {result.cuda}")

    def move(name, handle, memory):
        function = getattr(cufile, name)
        function.restype = ctypes.c_ssize_t
        done = function(handle, memory, c_size_t(n), c_longlong(0), c_longlong(0))
        if done != n:
            raise OSError(f"{name}: {done}")

    driver("cuInit", 0)
    driver("cuDevicePrimaryCtxRetain", byref(context), 0)
    driver("cuCtxSetCurrent", context)
    driver("cuMemAlloc_v2", byref(a), c_size_t(n))
    driver("cuMemAlloc_v2", byref(b), c_size_t(n))
    values, back = np.random.default_rng(3).bytes(n), ctypes.create_string_buffer(n)
    driver("cuMemcpyHtoD_v2", a, values, c_size_t(n))
    driver("cuMemsetD8_v2", b, 7, c_size_t(n))
    call("cuFileSetParameterBool", 1, c_bool(True))
    call("cuFileDriverOpen")
    fd = os.open(options.folder / "compat", os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_DIRECT, 0o600)
    handle = c_void_p()
    call("cuFileHandleRegister", byref(handle), byref(File(type=1, fd=fd)))
    call("cuFileBufRegister", c_void_p(b.value), c_size_t(n), 0)
    move("cuFileWrite", handle, c_void_p(a.value))
    move("cuFileRead", handle, c_void_p(b.value))
    driver("cuMemcpyDtoH_v2", back, b, c_size_t(n))
    call("cuFileBufDeregister", c_void_p(b.value))
    cufile.cuFileHandleDeregister(handle)
    os.close(fd)
    call("cuFileDriverClose_v2")
    return {"equal": back.raw == values}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plugin")
    parser.add_argument("--kind", default="device")
    parser.add_argument("--compat", metavar="FILE")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    said = compat(options) if options.compat else run(options)
    print(json.dumps(said))
    return bool(said.get("wrong")) or said.get("equal") is False


sys.exit(main())
