"""--memory and `zarrc list devices`, with the OpenCL plug-in of the tests as a device."""
import os
import pathlib

import numpy as np
import pytest
import zarr

from conftest import run

PLUGIN = pathlib.Path(os.environ.get("ZARRC_BUILD", "build/dev")) / "lib/libport_opencl_plugin.so"


def device(*arguments, **more):
    return run(*arguments, env={"ZARRC_PLUGIN_PATH": str(PLUGIN)}, **more)


@pytest.fixture(scope="module")
def opencl():
    if not PLUGIN.exists():
        pytest.skip("the OpenCL plug-in was not built: OpenCL's headers are missing")
    if device("list", "devices", code=None).code:
        pytest.skip("no OpenCL device: PoCL does not work here")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "a.zarr"
    values = (np.arange(100 * 50) * 7 % 301).astype("i2").reshape(100, 50)
    array = zarr.create_array(str(path), shape=values.shape, chunks=(30, 20), dtype="i2")
    array[:] = values
    return str(path), values


def test_host_is_a_device():
    (host,) = run("list", "devices", "--json").json["devices"]
    assert host["name"] == "host:0" and host["total_bytes"] >= host["free_bytes"] > 0
    assert "host:0" in run("list", "devices").text
    assert "devices" in run("list", "--json").json


def test_device_is_listed(opencl):
    host, opencl = device("list", "devices", "--json").json["devices"]
    assert (opencl["name"], opencl["of"], opencl["origin"]) == ("opencl:0", "opencl", "opencl")
    assert opencl["total_bytes"] > 0 and opencl["detail"]


@pytest.mark.parametrize("region", ["", "[7:90,3:49:5]"])
@pytest.mark.parametrize("memory", ["opencl:0", "opencl", "4:0", "host"])
def test_elements_by_way_of_a_device(opencl, place, memory, region):
    path, values = place
    want = values[7:90, 3:49:5] if region else values
    assert device("cat", "--format=raw", f"--memory={memory}", path + region).out == want.tobytes()


def test_boxes_of_a_small_budget(opencl, place, tmp_path):
    path, values = place
    device("export", "--memory=opencl:0", "--mem=1M", path, tmp_path / "a.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), values)


def test_explain_says_the_way(opencl, place):
    text = device("explain", "--memory=opencl:0", place[0]).text
    assert "tensor in opencl memory" in text and "host->opencl" in text
    assert "tensor in opencl memory" not in device("explain", place[0]).text


@pytest.mark.parametrize("command", ["cat", "explain"])
def test_wrong_memory(place, command):
    assert '"foo:1" is not a kind of memory' in run(command, "--memory=foo:1", place[0], code=2).err
    assert "zarrc list devices" in run(command, "--memory=", place[0], code=2).err
    assert run(command, "--memory=cuda:0", place[0], code=6).err.count("\n") >= 2


@pytest.mark.parametrize("word", ["verified", "full", "none"])
def test_trust(place, word):
    path, values = place
    assert run("explain", f"--trust={word}", "--json", path).json["trust"] == word
    assert run("explain", "--json", path, env={"ZARRC_TRUST": word}).json["trust"] == word
    assert run("cat", f"--trust={word}", "--format=raw", path).out == values.tobytes()
    assert "--trust" in run("cat", "--trust=some", path, code=2).err
