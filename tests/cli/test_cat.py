"""cat and export: every format for every data type, regions, streams larger than memory."""
import base64
import io
import json
import struct
import subprocess

import numpy as np
import pytest
import zarr

from conftest import PROGRAM, peak

TYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16",
         "S5", "U4", "M8[ms]", "m8[25us]", "V3"]


def sample(dtype, shape, rng):
    dtype = np.dtype(dtype)
    n = int(np.prod(shape))
    if dtype.kind == "S":
        values = [bytes(rng.integers(0, 256, rng.integers(0, 6), dtype="u1")) for _ in range(n)]
        return np.array(values, dtype).reshape(shape)
    if dtype.kind == "U":
        letters = list("abcxyzäß€漢😀\"\\")
        values = ["".join(rng.choice(letters, rng.integers(0, 5))) for _ in range(n)]
        return np.array(values, dtype).reshape(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    data = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).reshape(shape).copy()
    if dtype.kind in "Mm":
        data.ravel()[::5] = np.array("NaT", dtype)
    if dtype.kind in "fc":  # plain numbers and special values
        data = rng.normal(size=shape).astype(dtype)
        special = [np.nan, np.inf, -np.inf, -0.0, 1e30, 0.1]
        with np.errstate(over="ignore"):
            data.ravel()[:len(special)] = np.array(special).astype(dtype)
    return data


@pytest.fixture(scope="module", params=[(v, t) for v in (2, 3) for t in TYPES],
                ids=lambda p: f"v{p[0]}-{p[1]}")
def array(request, tmp_path_factory):
    version, dtype = request.param
    rng = np.random.default_rng(7)
    data = sample(dtype, (5, 4, 3), rng)
    path = tmp_path_factory.mktemp("cat") / "x.zarr"
    made = zarr.create_array(path, shape=data.shape, chunks=(2, 3, 2), dtype=data.dtype,
                             zarr_format=version)
    made[...] = data
    return path, data


REGIONS = [("", np.s_[...]), ("[1:4,::2]", np.s_[1:4, ::2]), ("[-1]", np.s_[-1]),
           ("[...,1]", np.s_[..., 1]), ("[::-1,0,0]", np.s_[::-1, 0, 0]),
           ("[4,3,2]", np.s_[4, 3, 2]), ("[2:2]", np.s_[2:2])]


def little(data):
    return np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<")).tobytes()


@pytest.mark.parametrize("text, region", REGIONS, ids=[r[0] or "all" for r in REGIONS])
def test_raw(zarrc, array, text, region):
    path, data = array
    expected = np.asarray(data[region], data.dtype)
    assert zarrc("cat", "--format=raw", f"{path}{text}").out == little(expected)


@pytest.mark.parametrize("text, region", REGIONS, ids=[r[0] or "all" for r in REGIONS])
def test_npy(zarrc, array, text, region):
    path, data = array
    out = zarrc("cat", "--format=npy", f"{path}{text}").out
    assert out[:8] == b"\x93NUMPY\x01\x00" and (struct.unpack("<H", out[8:10])[0] + 10) % 64 == 0
    loaded = np.load(io.BytesIO(out), allow_pickle=False)
    expected = np.asarray(data[region], data.dtype)
    assert loaded.shape == expected.shape
    assert loaded.dtype == expected.dtype.newbyteorder("<")
    assert loaded.tobytes() == little(expected)


def number(x):
    if np.isnan(x):
        return "NaN"
    if np.isinf(x):
        return "Infinity" if x > 0 else "-Infinity"
    return float(x)


def element(value, dtype):
    """The parsed JSON that --format=elements must write."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        return int(value)
    if dtype.kind == "f":
        return number(value)
    if dtype.kind == "c":
        return [number(value.real), number(value.imag)]
    if dtype.kind in "SV":
        return base64.b64encode(bytes(value).ljust(dtype.itemsize, b"\0")).decode()
    if dtype.kind == "U":
        return str(value)
    return "NaT" if np.isnat(value) else int(value.astype("i8"))


def same(found, expected, dtype):
    """Compares parsed JSON with a value. A float must be equal after conversion to its data type."""
    if dtype.kind == "f" and isinstance(expected, float):
        return dtype.type(found) == dtype.type(expected)
    if dtype.kind == "c":
        half = np.dtype(f"f{dtype.itemsize // 2}")
        return all(same(a, b, half) if isinstance(b, float) else a == b
                   for a, b in zip(found, expected, strict=True))
    return type(found) is type(expected) and found == expected


def test_elements(zarrc, array):
    path, data = array
    lines = zarrc("cat", "--format=elements", path).text.splitlines()
    assert len(lines) == data.size
    for line, value in zip(lines, data.ravel(), strict=True):
        assert same(json.loads(line), element(value, data.dtype), data.dtype), (line, value)


def flat(nested):
    return [x for item in nested for x in flat(item)] if isinstance(nested, list) else [nested]


def test_json(zarrc, array):
    path, data = array
    nested = json.loads(zarrc("cat", "--format=json", f"{path}[1:3]").out)
    assert np.array(nested, dtype=object).shape[:3] == (2, 4, 3)
    for found, value in zip([x for a in nested for b in a for x in b], data[1:3].ravel(),
                            strict=True):
        assert same(found, element(value, data.dtype), data.dtype)
    wrapped = zarrc("cat", "--json", f"{path}[1:3]").json
    assert wrapped["data"] == nested and wrapped["shape"] == [2, 4, 3]


def test_text_and_csv_have_every_element(zarrc, array):
    path, data = array
    text = zarrc("cat", f"{path}[0]").text
    rows = zarrc("cat", "--format=csv", f"{path}[0]").text.splitlines()
    assert len(rows) == 4
    if data.dtype.kind in "iub":
        wanted = [[str(element(v, data.dtype)).lower() for v in row] for row in data[0]]
        assert [line.split() for line in text.splitlines()] == wanted
        assert [row.split(",") for row in rows] == wanted
        assert len(set(map(len, text.splitlines()))) == 1  # aligned


def test_floats_read_back(zarrc, tmp_path, rng):
    for dtype in ("f2", "f4", "f8"):
        data = np.frombuffer(rng.bytes(4000 * np.dtype(dtype).itemsize), dtype)
        data = data[np.isfinite(data)].copy()
        path = tmp_path / dtype
        zarr.save_array(path, data)
        rows = zarrc("cat", "--format=csv", path).text.split()
        assert (np.array([float(r) for r in rows]).astype(dtype) == data).all()


def test_nan_payloads(zarrc, tmp_path):
    bits = np.array([0x7fc00000, 0xffc00000, 0x7fc00001, 0x7f800001], "u4")
    zarr.save_array(tmp_path / "a", bits.view("f4"))
    lines = [json.loads(x) for x in zarrc("cat", "-F", "elements", tmp_path / "a").text.split()]
    assert lines == ["NaN", "0xffc00000", "0x7fc00001", "0x7f800001"]


def test_csv_quotes(zarrc, tmp_path):
    import csv
    data = np.array([['a,b', 'c"d'], ['', 'x\ny']])
    zarr.save_array(tmp_path / "a", data)
    text = zarrc("cat", "--format=csv", tmp_path / "a").text
    assert list(csv.reader(io.StringIO(text))) == data.tolist()


def test_csv_has_two_dimensions(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a", np.zeros((2, 2, 2)))
    assert "csv has rows and columns" in zarrc("cat", "-Fcsv", tmp_path / "a", code=2).err


def test_scalar_and_empty(zarrc, tmp_path):
    zarr.create_array(tmp_path / "s", shape=(), dtype="f8", fill_value=1.5)
    zarr.create_array(tmp_path / "e", shape=(2, 0, 3), dtype="f8")
    assert zarrc("cat", tmp_path / "s").text == "1.5\n"
    assert zarrc("cat", "-Fjson", tmp_path / "s").json == 1.5
    assert zarrc("cat", "-Fjson", tmp_path / "e").json == [[], []]
    assert zarrc("cat", "-Fraw", tmp_path / "e").out == b""
    assert np.load(io.BytesIO(zarrc("cat", "-Fnpy", tmp_path / "e").out)).shape == (2, 0, 3)


def test_regions_outside(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a", np.arange(5))
    assert "out of bounds" in zarrc("cat", f"{tmp_path}/a[5]", code=2).err
    zarrc("cat", f"{tmp_path}/a[0,0]", code=2)
    zarrc("cat", f"{tmp_path}/a[x]", code=2)
    assert zarrc("cat", f"{tmp_path}/a[3:99]").text == "3\n4\n"


@pytest.mark.parametrize("form", ["raw", "npy"])
def test_bigger_than_memory(tmp_path, rng, form):
    """128 MiB of incompressible data through --mem=16M: the peak stays far below the array."""
    data = rng.integers(0, 2**32, (2048, 16384), dtype="u4")
    zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(64, 1024), dtype="u4",
                      compressors=None)[...] = data
    out = tmp_path / "out"
    used = peak("cat", f"--format={form}", "--mem=16M", "-j2", tmp_path / "a", out=out)
    assert used < 48 * 1024  # KiB, including the program
    found = np.load(out) if form == "npy" else np.fromfile(out, "<u4").reshape(data.shape)
    assert (found == data).all()


def test_array_that_shrinks_meanwhile(zarrc, tmp_path):
    data = np.arange(1, 2**20 + 1, dtype="i4")
    made = zarr.create_array(tmp_path / "x.zarr", shape=data.shape, chunks=(2**14,), dtype="i4")
    made[...] = data
    done = subprocess.Popen([PROGRAM, "cat", "--format=raw", "--mem=1M", tmp_path / "x.zarr"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    head = done.stdout.read(4096)  # the pipe is full, and most of the array not read yet
    zarrc("resize", tmp_path / "x.zarr", "1000000")
    out, err = done.communicate(timeout=60)
    out = np.frombuffer(head + out, "i4")
    assert done.returncode == 7 and b"no longer exist" in err
    assert np.array_equal(out[:1000000], data[:len(out)][:1000000])


def test_rows_longer_than_the_buffer(zarrc, tmp_path, rng):
    """A box may end inside a row: the separators must be the same."""
    data = rng.integers(0, 1000, (3, 300000), dtype="i4")
    zarr.create_array(tmp_path / "a", data=data, chunks=(1, 30000))
    text = zarrc("cat", "--format=csv", "--mem=1M", tmp_path / "a").text
    rows = text.splitlines()
    assert len(rows) == 3
    assert (np.array([r.split(",") for r in rows]).astype("i4") == data).all()
    nested = json.loads(zarrc("cat", "--format=json", "--mem=1M", tmp_path / "a").out)
    assert (np.array(nested) == data).all()


def test_corrupt_chunk(zarrc, tmp_path):
    a = zarr.create_array(tmp_path / "a", shape=(4,), chunks=(2,), dtype="i4")
    a[...] = 7
    chunk = tmp_path / "a/c/1"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    result = zarrc("cat", tmp_path / "a", code=4)
    assert "cannot read" in result.err and "c/1" in result.err and "[corrupt]" in result.err
    assert "zarrc verify" in result.err


def test_export(zarrc, tmp_path):
    data = np.arange(12).reshape(3, 4)
    zarr.save_array(tmp_path / "a", data)
    done = zarrc("export", "--json", tmp_path / "a", tmp_path / "a.npy").json
    assert done["format"] == "npy"
    assert (np.load(tmp_path / "a.npy") == data).all()
    assert "already exists" in zarrc("export", tmp_path / "a", tmp_path / "a.npy", code=5).err
    zarrc("export", "--force", f"{tmp_path}/a[1]", tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == data[1]).all()
    zarrc("export", tmp_path / "a", tmp_path / "a.csv")
    assert (np.loadtxt(tmp_path / "a.csv", delimiter=",") == data).all()
    assert "--format is missing" in zarrc("export", tmp_path / "a", tmp_path / "a.xyz", code=2).err
    assert zarrc("export", "-Fraw", tmp_path / "a", "-").out == data.astype("<i8").tobytes()


def test_failed_export_leaves_nothing(zarrc, tmp_path):
    a = zarr.create_array(tmp_path / "a", shape=(4,), chunks=(2,), dtype="i4")
    a[...] = 7
    (tmp_path / "a/c/1").write_bytes(b"x")
    zarrc("export", tmp_path / "a", tmp_path / "out.npy", code=4)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_control_characters_in_text_of_fixed_length(zarrc, tmp_path):
    data = np.array([["a\x1b[31mb", "\x7f\u009b1m"], ["c\x00d", "\u00e9\n\t"]])
    array = zarr.create_array(tmp_path / "a", shape=data.shape, dtype=data.dtype)
    array[:] = data
    assert zarrc("cat", tmp_path / "a").text.splitlines() == [r"a\x1b[31mb \x7f\x9b1m", "    c\\x00d \u00e9\\x0a\\x09"]
    csv = zarrc("cat", "-Fcsv", tmp_path / "a").text
    assert csv == 'a\\x1b[31mb,\\x7f\\x9b1m\nc\\x00d,"\u00e9\n\t"\n'
    for form in "json", "elements":
        out = zarrc("cat", "-F", form, tmp_path / "a").text
        assert not [c for c in out if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    assert json.loads(zarrc("cat", "-Fjson", tmp_path / "a").text) == data.tolist()


def test_export_keeps_link_and_mode(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a", np.arange(3))
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "real.npy").chmod(0o600)
    (tmp_path / "link.npy").symlink_to("real.npy")
    zarrc("export", tmp_path / "a", tmp_path / "link.npy", code=5)
    zarrc("export", "--force", tmp_path / "a", tmp_path / "link.npy")
    assert (tmp_path / "link.npy").is_symlink() and np.load(tmp_path / "real.npy").tolist() == [0, 1, 2]
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o600
    (tmp_path / "dangling.npy").symlink_to("none.npy")
    zarrc("export", tmp_path / "a", tmp_path / "dangling.npy", code=5)
    assert (tmp_path / "dangling.npy").is_symlink() and not [p for p in tmp_path.iterdir() if "partial" in p.name]


def test_export_with_closed_standard_streams(tmp_path):
    """The file must not get the number of a closed stream: then it would have the warning in it."""
    from conftest import run
    run("create", tmp_path / "a", "--shape=4", "-t", "bfloat16")
    run("export", tmp_path / "a", tmp_path / "good.npy")
    for closed in ">&-", "2>&-", "<&- >&- 2>&-":
        done = subprocess.run(["/bin/sh", "-c", f'exec "$0" export --force "$1" "$2" {closed}', PROGRAM, tmp_path / "a",
                               tmp_path / "b.npy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, (closed, done)
        assert (tmp_path / "b.npy").read_bytes() == (tmp_path / "good.npy").read_bytes(), closed


# ---- zarrc summary ----

@pytest.fixture
def climate(tmp_path):
    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    data = np.random.default_rng(0).normal(280, 10, (4, 6, 8)).astype("f4")
    data[1, 2, 3], data[1, 2, 4] = np.nan, -999
    temp = group.create_array("temp", shape=data.shape, chunks=(2, 3, 4), dtype="f4", dimension_names=["time", "lat", "lon"])
    temp[...] = data
    temp.attrs["_FillValue"] = -999.0
    latitude = group.create_array("lat", shape=(6,), dtype="f8", dimension_names=["lat"])
    latitude[...] = np.linspace(-75, 75, 6)
    return tmp_path / "s.zarr", np.where(data == -999, np.nan, data).astype("f8"), np.cos(np.radians(latitude[...]))


def test_summary(zarrc, climate):
    path, data, _ = climate
    [place] = zarrc("summary", path / "temp", "--json").json["places"]
    assert (place["count"], place["missing"], place["nan"]) == (190, 1, 1)
    assert np.allclose([place["mean"], place["std"], place["sum"]], [np.nanmean(data), np.nanstd(data), np.nansum(data)], rtol=1e-14)
    assert (np.float32(place["min"]), np.float32(place["max"])) == (np.nanmin(data), np.nanmax(data))
    lines = dict(line.split() for line in zarrc("summary", path / "temp").text.splitlines())
    assert lines["count"] == "190" and float(lines["mean"]) == place["mean"]
    assert zarrc("summary", path / "temp", "--missing=none", "--json").json["places"][0]["min"] == -999
    assert zarrc("summary", path / "temp", "--json", "-j", "1").text == zarrc("summary", path / "temp", "--json", "-j", "4").text


@pytest.mark.parametrize("region, key", [("", (slice(None),)), ("[3]", (3,)), ("[2:,1:4]", (slice(2, None), slice(1, 4))), ("[..., 1:4, ::2]", (..., slice(1, 4), slice(None, None, 2)))])
def test_summary_weights(zarrc, climate, region, key):
    path, data, weights = climate
    full = np.broadcast_to(weights[:, None], data.shape)[key]
    part = data[key]
    good = ~np.isnan(part)
    [place] = zarrc("summary", f"{path}/temp{region}", "--weights=lat", "--json").json["places"]
    assert np.isclose(place["mean"], np.average(part[good], weights=full[good]), rtol=1e-14)
    assert np.isclose(place["weight"], full[good].sum(), rtol=1e-14)
    rows = zarrc("summary", f"{path}/temp{region}", "--over=lat,lon", "--weights=lat", "--format=csv").text.splitlines()
    names = rows[0].split(",")
    assert names[-1] == "weight" and (names[0] == "time") == (part.ndim == 3)
    for row, one, weight, fine in zip(rows[1:], part.reshape(-1, *part.shape[-2:]), full.reshape(-1, *part.shape[-2:]), good.reshape(-1, *part.shape[-2:]), strict=True):
        assert np.isclose(float(dict(zip(names, row.split(",")))["mean"]), np.average(one[fine], weights=weight[fine]), rtol=1e-14)


def test_summary_histogram(zarrc, climate):
    path, data, _ = climate
    good = data[~np.isnan(data)]
    found = zarrc("summary", path / "temp", "--bins=5", "--quantiles=0.1,0.5", "--json").json
    counts, edges = np.histogram(good, 5)
    assert found["bins"] == counts.tolist() and found["edges"] == edges.tolist() and not found["sketch"]
    assert found["quantiles"] == np.quantile(good, [0.1, 0.5]).tolist()
    zarrc("create", path / "ids", "--shape=3", "-t", "uint32", "--fill=4000000001")
    assert "q0.5     4000000001\n" in zarrc("summary", path / "ids", "--quantiles=0.5").text
    bars = zarrc("summary", path / "temp", "--edges=270,280,290").text.splitlines()[-3:]
    assert [int(bar.split()[2]) for bar in bars[:2]] == np.histogram(good, [270, 280, 290])[0].tolist()
    assert max(bar.count("#") for bar in bars) == 50 and bars[2].startswith("outside of the edges: ")


def test_summary_of_a_month_and_region_as_csv(zarrc, tmp_path):
    """The mean of each day of July over a region across the seam, weighted by area, as xarray computes it."""
    import xarray
    time, lat, lon = np.arange("2003-06-01", "2003-09-01", dtype="M8[D]"), np.linspace(87.5, -87.5, 36), np.arange(0, 360, 5.0)
    data = np.random.default_rng(0).normal(280, 10, (len(time), 36, 72))
    data[30:40, 5, 3] = np.nan
    source = xarray.Dataset({"tas": (("time", "lat", "lon"), data)}, {
        "time": time.astype("M8[ns]"), "lat": ("lat", lat, {"units": "degrees_north"}), "lon": ("lon", lon, {"units": "degrees_east"})})
    source.to_zarr(tmp_path / "c.zarr", zarr_format=2, encoding={"tas": {
        "dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768, "chunks": (10, 20, 30)}})
    part = xarray.open_zarr(tmp_path / "c.zarr").tas.sel(time="2003-07", lat=slice(70, 35)).isel(lon=[70, 71, *range(9)])
    want = part.weighted(np.cos(np.radians(part.lat))).mean(("lat", "lon"))
    rows = zarrc("summary", f"{tmp_path}/c.zarr/tas[time@2003-07, lat@35:70, lon@-10:40]", "--decode", "--over=lat,lon",
                 "--weights=lat", "--format=csv").text.splitlines()
    found = [dict(zip(rows[0].split(","), row.split(","))) for row in rows[1:]]
    assert [row["time"] for row in found] == [f"2003-07-{day:02}T00:00:00" for day in range(1, 32)]
    assert np.allclose([float(row["mean"]) for row in found], want.values, rtol=1e-13)
    assert sum(int(row["missing"]) for row in found) == 10
    one = zarrc("summary", f"{tmp_path}/c.zarr/tas[time@2003-07-02]", "--over=lat", "--json", env={"ZARRC_DECODE": "1"}).json
    assert one["places"][3]["coordinates"] == {"lon": 15} and one["places"][3]["missing"] == 1
    ends = zarrc("summary", tmp_path / "c.zarr/time", "--decode").text
    assert "max      2003-08-31T00:00:00\nmean     2003-07-16T12:00:00\n" in ends and "sum" not in ends


@pytest.mark.parametrize("dtype, attributes", [
    ("i2", {"scale_factor": -0.5, "add_offset": 3, "missing_value": [-9, 7]}), ("i1", {"_Unsigned": "true", "_FillValue": -1}),
    ("u2", {"valid_range": [5, 60]}), ("f4", {"missing_value": 5.0, "scale_factor": 0.1}), ("i8", {"valid_max": 90})])
def test_summary_decoded(zarrc, tmp_path, dtype, attributes):
    """Statistics are those of the elements that cat --decode writes."""
    data = np.random.default_rng(1).integers(-100 if dtype[0] != "u" else 0, 100, (37, 19)).astype(dtype)
    array = zarr.create_array(tmp_path / "a", data=data, chunks=(10, 7), zarr_format=2, attributes=attributes)
    good = np.array(zarrc("cat", tmp_path / "a", "--decode", "--format=csv").text.replace("\n", ",").split(",")[:-1], "f8")
    lost, good = np.isnan(good).sum(), good[~np.isnan(good)]
    [found] = zarrc("summary", tmp_path / "a", "--decode", "--json", "--bins=4", "--quantiles=0.3").json["places"]
    assert (found["count"], found["missing"], found["nan"]) == (good.size, lost, 0) and array.shape == data.shape
    assert np.allclose([found[name] for name in ("min", "max", "mean", "std", "sum")],
                       [good.min(), good.max(), good.mean(), good.std(), good.sum()], rtol=1e-6 if dtype == "f4" else 1e-13)


def test_summary_of_integers_and_refusals(zarrc, climate, tmp_path):
    path = climate[0]
    ends = [-2**63, -2**63, 5, 2**63 - 1]
    zarr.create_array(tmp_path / "n", data=np.array(ends))
    assert f"sum      {sum(ends)}\n" in zarrc("summary", tmp_path / "n").text
    empty = zarrc("summary", f"{tmp_path}/n[2:2]", "--json").json["places"][0]
    assert empty == {"index": [], "count": 0, "missing": 0, "nan": 0, "min": None, "max": None, "mean": None, "std": None, "sum": 0}
    for wrong in (["--over=height"], ["--over=3"], ["--weights=lon"], ["--quantiles=2"], ["--edges=1"], ["--edges=1,2", "--bins=3"],
                  ["--bins=3", "--over=time"], ["--missing=x"], ["--json", "--format=csv"], ["--decode", "--missing=3"]):
        refused = zarrc("summary", path / "temp", *wrong, code=None)
        assert refused.code == 2 or refused.code == 3, (wrong, refused.code, refused.err)
    assert 'did you mean "summary"' in zarrc("stats", path, code=2).err
    zarr.open(path / "lat")[0] = np.nan
    assert "not a latitude" in zarrc("summary", path / "temp", "--weights=lat", code=2).err
    (path / "temp/c/0/1/1").write_bytes(b"no")
    assert "c/0/1/1" in zarrc("summary", path / "temp", code=4).err
