"""peers - zarrc, the floor and all others: which can do a case, and the command that does."""
import json
import os
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".cache/peers"
BUILD = pathlib.Path(os.environ.get("BENCH_BUILD", ROOT / "build/release"))
OURS = ("floor", "zarrc", "zarrc-4k")  # built by CMake
NAMES = (*OURS, "zarrc-newer", "zarrs-mimalloc", "zarrs-system", "zarrs-tools", "tensorstore", "zarr-zarrs", "zarr-python", "zarr-fused", "netcdf", "gdal")
QUICK = ("floor", "zarrc", "zarrs-mimalloc", "tensorstore", "zarr-fused")
OF_PYTHON = ("tensorstore", "zarr-zarrs", "zarr-python", "zarr-fused", "netcdf", "gdal")
FLOOR_MODES = ("read", "write", "units", "round", "open", "list", "nodes")
CONNECTIONS = 128  # of the floor to a store that is slow
ENCODERS = {"zstd", "gzip", "zlib"}  # codecs that zarrc-newer has of a newer version
PAGES = ("read/", "read-aligned/", "chunks", "round/")  # cases where 4 KiB pages are tried, too


def installed_peers():
    """name -> what bench/peers/install found."""
    table = pathlib.Path(os.environ.get("BENCH_PEERS", CACHE / "peers.json"))
    return json.loads(table.read_text()) if table.exists() else {}


def cannot(name, case, it):
    """Why a peer does not take part in a case; "": it does."""
    only_v2 = name in ("netcdf", "gdal")
    if only_v2 != (it.format == 2) and (only_v2 or name == "floor"):
        return "reads version 2 alone" if only_v2 else "no bare loop"
    if name == "netcdf" and it.codecs:
        return "Debian's package lacks the filter"
    if name == "floor":
        has_codec = it.floor and not (case.writes and it.floor == "blosc")
        if case.mode not in FLOOR_MODES or case.mode in ("read", "write", "units", "round") and not has_codec:
            return "no bare loop"
    if name == "zarrc-4k" and (not case.name.startswith(PAGES) or it.data != "cube" or it.format == 2):
        return "the same as zarrc"
    if name == "zarrc-newer" and not (case.writes and ENCODERS & {codec.get("name") or codec.get("id") for codec in it.codecs}):
        return "the same as zarrc"
    if name.startswith("zarrs-") and case.mode == "points":
        return "no call for it"
    if name == "zarrs-tools" and (case.mode not in ("read", "units", "round") or case.keys.get("out") or case.keys.get("delay") or it.format == 2):
        return "no program for it"
    if name == "tensorstore" and any("numcodecs" in codec.get("name", "") for codec in it.codecs):
        return "lacks the codec"
    if name == "tensorstore" and it.dtype == "string":
        return "lacks the data type"
    if name in ("tensorstore", "zarr-zarrs") and case.keys.get("delay"):
        return "takes no store of the program's"
    if name in OF_PYTHON and case.keys.get("out") == "aligned":
        return "makes its outputs itself"
    return ""


def words(case, it, target):
    """The keys of a command; what an engine does not need it leaves alone."""
    keys = dict(case.keys, shape=it.shape, unit=it.chunks, inner=it.inner or (), item=it.item, codec=it.floor, level=it.level)
    if keys.get("region") == "inner":
        keys["region"] = it.inner
    if case.is_fresh:
        keys["touch"] = 2 * it.nbytes
    if case.writes:
        keys["to"] = str(target)
    text = {key: ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value) for key, value in keys.items()}
    return {key: value for key, value in text.items() if value}


def command(name, case, it, places, cores, found):
    """The argv of one sample. `places`: the set, and a folder for what is written."""
    place, target, warmup = places
    keys = words(case, it, target)
    if it.format == 2:
        place = place / "a"
    if name == "zarrs-tools":
        return tools_command(case, place, target, found[name]["program"])
    if name == "floor":
        if case.mode in ("read", "write"):
            keys["callers"] = str(CONNECTIONS if case.keys.get("delay") else cores)
    if it.format != 2:
        keys["warmup"] = str(warmup)
    if name == "zarrc-4k":
        keys["huge"] = "0"
    program = [str(BUILD / "bench" / ("floor" if name == "floor" else "zarrc_worker"))] if name in OURS else [found[name]["program"]]
    if name in OF_PYTHON:
        program += [str(HERE / "python_worker.py"), name]
    return [*program, case.mode, str(place), *(f"{key}={value}" for key, value in keys.items())]


def tools_command(case, place, target, folder):
    callers = ["--concurrent-chunks", str(case.keys.get("callers", 1))]
    if case.mode == "round":
        return [f"{folder}/zarrs_reencode", str(place), str(target), *callers]
    how = ["--read-all"] if case.mode == "read" else ["--inner-chunks", *callers] if "region" in case.keys else callers
    return [f"{folder}/zarrs_benchmark_read_sync", str(place), *how]


def answer(name, text):
    """The line of a worker; of zarrs_tools the time alone."""
    if name != "zarrs-tools":
        return json.loads(text)
    found = re.search(r"(?:total: |in )([\d.]+)ms", text)
    return {"seconds": [float(found[1]) / 1000], "sum": None, "cpu": None, "faults": None, "peak_kb": None}
