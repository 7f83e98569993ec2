"""`zarrc calibrate`: what it measures decides where codecs work, with a modelled device that computes nothing."""
import json
import os
import pathlib

import numpy as np
import pytest
import zarr

from conftest import run

PLUGIN = pathlib.Path(os.environ.get("ZARRC_BUILD", "build/dev")).resolve() / "bench/zarrc_model.so"
SLOW = {"model": {"codec": 0.02}}  # GB/s


def device(cache, *arguments, rates=None, more=(), **options):
    env = {"ZARRC_PLUGINS": str(PLUGIN), "XDG_CACHE_HOME": str(cache), **dict(more)}
    if rates:
        env["ZARRC_PLUGIN_OPTIONS"] = json.dumps(rates)
    return run(*arguments, env=env, **options)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    from zarr.codecs.numcodecs import LZ4

    path = tmp_path_factory.mktemp("calibrate") / "a.zarr"
    array = zarr.create_array(str(path), shape=(1 << 18,), chunks=(1 << 16,), dtype="i4", compressors=[LZ4()])
    array[:] = np.arange(1 << 18, dtype="i4")
    return path


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A cache where the device was the slower one."""
    cache = tmp_path_factory.mktemp("cache")
    text = device(cache, "calibrate", "--size=4M", rates=SLOW).text
    assert "ext:0" in text and "model.codec" in text and "encode" in text and "decode" in text
    return cache


def way(cache, place, *more, **options):
    return device(cache, "explain", "--memory=ext:0", *more, str(place), **options).text


def with_file(tmp_path, text):
    (tmp_path / "zarrc").mkdir()
    (tmp_path / "zarrc/costs.json").write_bytes(text.encode())
    return tmp_path


def test_figures_are_kept(slow, tmp_path):
    kept = json.loads((slow / "zarrc/costs.json").read_text())
    assert kept["version"] == 1 and kept["cores"] >= 1
    assert {(m["codec"], m["implementation"], m["device_type"]) for m in kept["measured"]} == {("lz4", "model.codec", 12)}
    assert sorted((m["encode"], m["chunk_bytes"]) for m in kept["measured"]) == [
        (encode, size) for encode in (False, True) for size in (1 << 16, 1 << 19, 1 << 22)]
    assert all(m["device_ns"] > m["host_ns"] > 0 for m in kept["measured"])
    assert list((slow / "zarrc").iterdir()) == [slow / "zarrc/costs.json"]


def test_only_the_named_one_is_kept(tmp_path):
    """Larger chunks are declined, so that the CPU does them: those rows would be those of the CPU twice."""
    said = device(tmp_path, "calibrate", "--size=4M", rates={"model": {"most": 1 << 16}})
    kept = json.loads((tmp_path / "zarrc/costs.json").read_text())["measured"]
    assert sorted((m["implementation"], m["encode"], m["chunk_bytes"]) for m in kept) == [
        ("model.codec", encode, 1 << 16) for encode in (False, True)]
    assert "524288 bytes  model.codec" not in said.text and "warning" not in said.err
    lines = [line for line in said.err.splitlines() if "left out" in line]
    assert all("model.codec" in line and "cpu." in line for line in lines)
    assert sorted(line.split(": ")[1].split(" out of ")[1] for line in lines) == sorted(
        f"{what} of lz4 with chunks of {size} bytes" for what in ("decode", "encode") for size in (524288, 4194304))
    assert "left out" not in device(tmp_path, "calibrate", "-n", "--size=4M").err
    document = device(tmp_path, "calibrate", "-n", "--json", "--size=4M", rates={"model": {"most": 1}}).json
    assert document["measured"] == []


@pytest.mark.parametrize("name", ["blosc", "packbits", "crc32"])
def test_any_codec_of_the_registry(tmp_path, name):
    """Its name in v3 and its place in the chain are those of the registry; packbits makes bytes itself."""
    document = device(tmp_path, "calibrate", "-n", "--json", "--size=4M", rates={"model": {"name": name, "ratio": 1}})
    measured = {(m["codec"], m["encode"], m["chunk_bytes"]) for m in document.json["measured"]}
    assert {(name, False, size) for size in (1 << 16, 1 << 19, 1 << 22)} <= measured, document.err


@pytest.mark.long
def test_zstd_of_blosc_is_measured(tmp_path):
    """Such chunks are those of cuda.blosc_zstd, which is used only where it was the faster one."""
    build = PLUGIN.parent.parent
    if not (build / "lib/zarrc/v1/cuda.so").exists() or not (build / "tests/fakecuda").exists():
        pytest.skip("this build has no plug-in for CUDA, or no driver for its tests")
    document = device(tmp_path, "calibrate", "-n", "--json", "--size=4M", more={
        "ZARRC_PLUGINS": str(build / "lib/zarrc/v1/cuda.so"), "LD_LIBRARY_PATH": str(build / "tests/fakecuda")})
    measured = {m["implementation"]: m["codec"] for m in document.json["measured"] if m["chunk_bytes"] == 1 << 16}
    assert measured["cuda.blosc_zstd"] == measured["cuda.blosc_device"] == "blosc" and measured["cuda.zstd"] == "zstd"


def test_what_is_not_trusted_is_measured(place, tmp_path):
    """The command wrote what it reads, so a decoder that does not check its input does these chunks itself."""
    rates = {"model": {"unsafe": 1, "codec": 0.1}}
    assert "lz4@cpu." in way(tmp_path, place, rates=rates)
    said = device(tmp_path, "calibrate", "--size=4M", rates=rates)
    kept = json.loads((tmp_path / "zarrc/costs.json").read_text())["measured"]
    assert [m["chunk_bytes"] for m in kept if not m["encode"]] == [1 << 16, 1 << 19, 1 << 22]
    assert all(m["implementation"] == "model.codec" and m["device_ns"] > 8e6 for m in kept)
    assert "left out" not in said.err and "warning" not in said.err


def test_dry_run_keeps_nothing(tmp_path):
    document = device(tmp_path, "calibrate", "-n", "--json", "--size=4M").json
    assert document["version"] == 1 and document["measured"]
    assert list(tmp_path.iterdir()) == []


def test_the_faster_one_does_it(slow, place, tmp_path):
    before = (place / "zarr.json").read_bytes()
    assert "lz4@model.codec" in way(tmp_path, place) and "measured" not in way(tmp_path, place)
    for what in ([], ["--write"]):
        text = way(slow, place, *what)
        assert "lz4@cpu." in text and "copy" in text
        (line,) = [line for line in text.splitlines() if line.startswith("measured:")]
        assert "model.codec" in line and "us a MiB" in line and "chunks of 524288 bytes" in line
    assert "measured" not in run("explain", str(place), env={"XDG_CACHE_HOME": str(slow)}).text  # host memory
    document = device(slow, "explain", "--json", "--memory=ext:0", str(place)).json
    assert [s["measured"] for s in document["steps"] if "measured" in s]
    # a fast device: the same figures with the two swapped
    kept = json.loads((slow / "zarrc/costs.json").read_text())
    for m in kept["measured"]:
        m["device_ns"], m["host_ns"] = m["host_ns"], m["device_ns"]
    text = way(with_file(tmp_path, json.dumps(kept)), place)
    assert "lz4@model.codec" in text and "measured:" in text
    assert (place / "zarr.json").read_bytes() == before


def test_a_preference_is_stronger(slow, place):
    text = way(slow, place, more={"ZARRC_CODEC_PREFERENCE": "lz4=model.codec"})
    assert "lz4@model.codec" in text and "measured" not in text


@pytest.mark.parametrize("change", [
    {"version": 2}, {"library": "0.0.0"}, {"cpu": "another"}, {"cores": 100000}, {"measured": 7}, {"measured": []}, {"version": None}])
def test_figures_of_others_are_ignored(slow, place, tmp_path, change):
    kept = {**json.loads((slow / "zarrc/costs.json").read_text()), **change}
    text = way(with_file(tmp_path, json.dumps(kept)), place)
    assert "lz4@model.codec" in text and "measured" not in text


@pytest.mark.parametrize("change", [
    {"device": "another"}, {"total_bytes": 5}, {"device_id": 1 << 40}, {"device_type": 2}, {"device_type": 99}, {"codec": ""},
    {"codec": "x" * 1000}, {"codec": None}, {"implementation": ["lz4"]}, {"encode": 1}, {"chunk_bytes": 0}, {"chunk_bytes": -1},
    {"device_ns": 0}, {"host_ns": 1 << 63}, {"host_ns": 1.5}])
def test_entries_of_others_are_ignored(slow, place, tmp_path, change):
    kept = json.loads((slow / "zarrc/costs.json").read_text())
    kept["measured"] = [{**m, **change} for m in kept["measured"]]
    text = way(with_file(tmp_path, json.dumps(kept)), place)
    assert "lz4@model.codec" in text and "measured" not in text


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100000, '{"version": 1}', "\x00", '{"a": "' + "x" * (1 << 20) + '"}'])
def test_a_damaged_file_is_ignored(place, tmp_path, text):
    assert "lz4@model.codec" in way(with_file(tmp_path, text), place)
    said = device(tmp_path, "explain", "-vv", "--memory=ext:0", str(place))
    assert "costs.json" in said.err and "calibrate" in said.err


def test_a_folder_in_place_of_the_file(place, tmp_path):
    (tmp_path / "zarrc/costs.json").mkdir(parents=True)
    assert "lz4@model.codec" in way(tmp_path, place)
    assert device(tmp_path, "calibrate", "--size=4M", code=None).code != 0


def test_a_fifo_in_place_of_the_file(place, tmp_path):
    (tmp_path / "zarrc").mkdir()
    os.mkfifo(tmp_path / "zarrc/costs.json")
    assert "lz4@model.codec" in way(tmp_path, place)


def test_refused(tmp_path):
    assert "there is no device" in run("calibrate", env={"XDG_CACHE_HOME": str(tmp_path)}).err
    assert list(tmp_path.iterdir()) == []
    assert "4 MiB" in device(tmp_path, "calibrate", "--size=1M", code=2).err
    (tmp_path / "file").write_text("")
    assert device(tmp_path / "file", "calibrate", "--size=4M", code=None).code != 0
    assert device(".", "calibrate", "--size=4M", more={"HOME": ""}, code=None).code != 0
