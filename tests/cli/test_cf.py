"""Regions by name and value, compared with xarray's isel and sel; values of the CF conventions, compared with
xarray.decode_cf and cftime."""
import datetime
import io
import json

import cftime
import numpy as np
import pytest
import xarray
import zarr
from hypothesis import given, settings, strategies as st

pytestmark = [pytest.mark.zarr_makes_input,
              pytest.mark.filterwarnings("ignore:Consolidated metadata"),
              pytest.mark.filterwarnings("ignore::xarray.SerializationWarning")]

LATS = np.linspace(-87.5, 87.5, 36)
LONS = np.arange(0, 360, 5.0)


def dataset(lats=LATS, lons=LONS, times=None, calendar="standard"):
    """A field over time, lat and lon, whose elements are all different."""
    if times is None:
        times = xarray.date_range("2003-01-16", periods=24, freq="MS", calendar=calendar, use_cftime=True)
    shape = (len(times), len(lats), len(lons))
    return xarray.Dataset(
        {"tas": (("time", "lat", "lon"), np.arange(np.prod(shape), dtype="f8").reshape(shape))},
        coords={"time": times, "lat": ("lat", lats, {"units": "degrees_north"}),
                "lon": ("lon", lons, {"units": "degrees_east"})})


def store(data, path, zarr_format=3, **encoding):
    data.to_zarr(path, zarr_format=zarr_format, consolidated=False, encoding=encoding, mode="w")
    return path


def read(zarrc, *words):
    return np.load(io.BytesIO(zarrc("cat", "--format=npy", *words).out))


@pytest.fixture(scope="module", params=[2, 3])
def climate(request, tmp_path_factory):
    """A store of each format, and what xarray reads from it."""
    path = store(dataset(), tmp_path_factory.mktemp("cf") / "x.zarr", request.param)
    return path, xarray.open_zarr(path, consolidated=False, decode_times=xarray.coders.CFDatetimeCoder(use_cftime=True))


# ---- by index ----

@pytest.mark.parametrize("region, index", [
    ("time=3", {"time": 3}),
    ("time=3, lat=10:20", {"time": 3, "lat": slice(10, 20)}),
    ("lat=10:20:3,time=-1", {"time": -1, "lat": slice(10, 20, 3)}),
    ("lon=[5,1,9]", {"lon": [5, 1, 9]}),
    ("2, lon=::-1", {"time": 2, "lon": slice(None, None, -1)}),
    ("2,:3,lon=7", {"time": 2, "lat": slice(3), "lon": 7}),
    (" lon = 7 , lat = 3 ", {"lat": 3, "lon": 7}),
])
def test_names_take_indices_as_isel(zarrc, climate, region, index):
    path, data = climate
    assert np.array_equal(read(zarrc, f"{path}/tas[{region}]"), data.tas.isel(index).values)


# ---- by value ----

@pytest.mark.parametrize("region, labels", [
    ("lat@2.5", {"lat": 2.5}),
    ("lat@35:70", {"lat": slice(35, 70)}),
    ("lat@-87.5:-2.5", {"lat": slice(-87.5, -2.5)}),
    ("lat@:0", {"lat": slice(None, 0)}),
    ("lat@0:", {"lat": slice(0, None)}),
    ("lat@[2.5,-7.5]", {"lat": [2.5, -7.5]}),
    ("lon@10:40, lat@35:70", {"lat": slice(35, 70), "lon": slice(10, 40)}),
    ("time@2003-07", {"time": "2003-07"}),
    ("time@2003", {"time": "2003"}),
    ("time@2003-07:2004-02", {"time": slice("2003-07", "2004-02")}),
    ("time@2003-07-01:2003-09-01", {"time": slice("2003-07-01", "2003-09-01")}),
    ("time@2003-07-01T00:00:2004", {"time": slice("2003-07-01", "2004")}),
    ("time@2004:", {"time": slice("2004", None)}),
    ("time@2003-07, lat@35:70, lon@10", {"time": "2003-07", "lat": slice(35, 70), "lon": 10}),
])
def test_values_select_as_sel(zarrc, climate, region, labels):
    path, data = climate
    wanted = data.tas
    for dim, label in labels.items():
        wanted = wanted.sel({dim: label})
    assert np.array_equal(read(zarrc, f"{path}/tas[{region}]"), wanted.values)


def test_a_name_of_a_dimension_mixes_with_values(zarrc, climate):
    path, data = climate
    got = read(zarrc, f"{path}/tas[lon=[3,1], time@2003-07, lat=-1]")
    assert np.array_equal(got, data.tas.isel(lon=[3, 1], lat=-1).sel(time="2003-07").values)


@pytest.mark.parametrize("kind", ["rising", "falling"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_nearest_points_equal_sel(zarrc, tmp_path, rng, kind, dtype):
    values = np.unique(rng.integers(-50, 50, 30) / (1 if dtype == "i4" else 4)).astype(dtype)
    values = values if kind == "rising" else values[::-1]
    data = xarray.Dataset({"a": ("x", np.arange(len(values)))}, coords={"x": values})
    path = store(data, tmp_path / "x.zarr")
    for value in [*rng.choice(values, 5), *(rng.choice(values, 5) + .1), *((values[1:] + values[:-1].astype("f8")) / 2)]:
        value = float(value)
        assert read(zarrc, "--nearest", f"{path}/a[x@{value}]") == data.a.sel(x=value, method="nearest"), (values, value)


# ---- random selections ----

CALENDARS = ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"]
AXES = ["f8", "f4", "i4", "u2", *CALENDARS, "text", "0..360", "-180..180"]


def make_axis(rng, kind, order, repeats):
    """Values of a coordinate."""
    n = int(rng.integers(1, 30))
    if kind in ("0..360", "-180..180"):
        values = np.arange(0, 360, float(rng.choice([2.5, 30, 72]))) - (180 if kind[0] == "-" else 0)
    elif kind == "text":
        values = np.sort(rng.choice(list("abcdefgh"), n)).astype(object)
    elif kind in CALENDARS:
        unit = int(rng.choice([1, 4, 86400]))
        values = np.sort(rng.integers(0, 800 * min(unit, 4), n)) / unit
    else:
        values = np.sort(rng.integers(0 if kind == "u2" else -50, 50, n) / (4 if kind[0] == "f" else 1)).astype(kind)
    values = values if repeats else np.unique(values)
    values = {"rising": values, "falling": values[::-1], "mixed": rng.permutation(values)}[order]
    return cftime.num2date(values, "days since 1999-11-29 18:00:00", kind) if kind in CALENDARS else values.copy()


def draw_label(rng, kind, axis):
    """The text of a value of the axis, or of one beside it."""
    value = rng.choice(axis)
    if kind == "text":
        return str(value)
    if kind in CALENDARS:
        text = f"{value + datetime.timedelta(days=int(rng.choice([0, 0, 3, 40, -700]))):%Y-%m-%dT%H:%M:%S}"
        return text[:rng.choice([4, 7, 10, 13, 16, 19])]
    return str(float(value) + float(rng.choice([0, 0, 0.5, -0.25, 7, 300 if "." in kind else 60])))


def key(kind, label):
    return None if not label else label if kind == "text" or kind in CALENDARS else float(label)


def select_range(data, kind, order, low, high):
    """The range by xarray. Raises KeyError if xarray refuses it."""
    ends = [key(kind, low), key(kind, high)]
    if order == "mixed" and kind != "text":
        raise KeyError("not sorted")  # xarray goes by position then
    if kind in CALENDARS:
        ends_rise = low[:len(high)] <= high  # the beginning of a period is before the end of the other one
    else:
        ends_rise = None in ends or ends[0] <= ends[1]
    if order == "falling" and kind != "text" and ends_rise:
        ends.reverse()
    return data.sel(x=slice(*ends))


def select_longitudes(data, order, low, high):
    """Two ranges of xarray, joined."""
    low, high = float(low), float(high)
    first = float(data.x.min())
    west = first + (low - first) % 360
    east = west + (high - low if low <= high else (high - low) % 360)
    rest = min(east - 360, west - 1e-6)  # each point once
    pieces = [data.sel(x=slice(*ends)) for ends in
              ([(west, east), (first, rest)] if order == "rising" else [(rest, first), (east, west)])]
    return xarray.concat(pieces, "x")


def is_coarse(kind, label, axis):
    """Whether a date is coarser than the values."""
    return kind in CALENDARS and (len(label) < 10 or any(f"{date:%Y-%m-%dT%H:%M:%S}"[len(label):].strip("T:0") for date in axis))


def select(data, kind, order, words):
    """The selection by xarray. None: it refuses it, or it is empty, or one value of several points."""
    try:
        if len(words) == 2 and "." in kind and all(words) and order != "mixed":
            found = select_longitudes(data, order, *words)
        elif len(words) == 2:
            found = select_range(data, kind, order, *words)
        else:
            label = key(kind, words[0])
            if "." in kind:
                label = (label - data.x.values.min()) % 360 + data.x.values.min()
            found = data.sel(x=label)
            if found.ndim > 1 and found.sizes["x"] > 1 and not is_coarse(kind, label, data.x.values):
                return None
    except KeyError:
        return None
    return found if found.size else None


@settings(max_examples=settings().max_examples // 2)
@given(st.sampled_from(AXES), st.sampled_from(["rising", "falling", "mixed"]), st.booleans(), st.sampled_from([2, 3]),
       st.integers(0, 2**32))
def test_random_selections_equal_xarray(zarrc, tmp_path_factory, kind, order, repeats, zarr_format, seed):
    rng = np.random.default_rng(seed)
    axis = make_axis(rng, kind, order, repeats)
    order = "rising" if all(axis[:-1] <= axis[1:]) else "falling" if all(axis[:-1] >= axis[1:]) else "mixed"
    units = {"units": "degrees_east"} if "." in kind else {}
    data = xarray.Dataset({"a": (("y", "x"), np.arange(2 * len(axis)).reshape(2, -1))}, coords={"x": ("x", axis, units)})
    path = store(data, tmp_path_factory.mktemp("random") / "x.zarr", zarr_format)
    for _ in range(6):
        low, high = draw_label(rng, kind, axis), draw_label(rng, kind, axis)
        words = [[low], [low, high], [low, ""], ["", high]][rng.integers(4)]
        wanted = select(data.a, kind, order, words)
        got = zarrc("cat", "--format=npy", f"{path}/a[x@{':'.join(words)}]", code=None)
        assert got.code == (2 if wanted is None else 0), (axis, words, got.err)
        if wanted is None:
            assert f"x has {len(axis)} value" in got.err, (axis, words, got.err)
        else:
            values = np.load(io.BytesIO(got.out))
            assert np.array_equal(values.reshape(2, -1), wanted.values.reshape(2, -1)), (axis, words)
    start, stop, step = (int(i) for i in rng.integers(-40, 40, 3))
    wanted = data.a.isel(x=slice(start, stop, step or None))
    assert np.array_equal(read(zarrc, f"{path}/a[x={start}:{stop}:{step or ''}]"), wanted)


# ---- longitudes ----

@pytest.mark.parametrize("first", [0, -180])
@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_ranges_cross_the_seam_of_longitudes(zarrc, tmp_path, rng, first, falls, dtype):
    lons = (first + np.arange(0, 360, 2.5)).astype(dtype)
    lons = lons[::-1] if falls else lons
    data = xarray.Dataset({"a": ("lon", lons.copy())}, coords={"lon": ("lon", lons, {"units": "degrees_east"})})
    path = store(data, tmp_path / "x.zarr")
    ranges = [(-10, 40), (350, 10), (170, -170), (170, 190), (-180, 180), (0, 360), (355, 365), (-2.5, -2.5)]
    for low, high in ranges + [tuple(rng.integers(-180, 360, 2)) for _ in range(6)]:
        end = high + 360 * np.ceil((low - high) / 360) if high < low else high
        east = (lons.astype("f8") - low) % 360
        wanted = lons[east <= end - low]
        order = np.argsort(east[east <= end - low], kind="stable")
        wanted = wanted[order[::-1] if falls else order]
        got = np.atleast_1d(read(zarrc, f"{path}/a[lon@{low}:{high}]"))
        assert np.array_equal(np.sort(got), np.sort(wanted)), (low, high)
        inside = first <= low <= high <= lons.max()
        assert np.array_equal(got, np.sort(wanted)[::-1] if inside and falls else np.sort(wanted) if inside else wanted)
    assert read(zarrc, f"{path}/a[lon@-10]") % 360 == 350


def test_points_at_0_and_360_are_one(zarrc, tmp_path):
    data = dataset(lons=np.arange(0, 361, 10.0)).isel(time=0, lat=0, drop=True)
    path = store(data, tmp_path / "x.zarr")
    assert read(zarrc, f"{path}/tas[lon@-20:20]").tolist() == [34, 35, 0, 1, 2]
    assert read(zarrc, f"{path}/tas[lon@0:360]").size == 37


def test_a_seam_reaches_every_command(zarrc, tmp_path):
    path = store(dataset(), tmp_path / "x.zarr")
    region = f"{path}/tas[time=0, lat@2.5, lon@-10:10]"
    values = read(zarrc, region)
    assert values.tolist() == [1366, 1367, 1296, 1297, 1298]
    zarrc("export", region, tmp_path / "a.npy")
    assert np.array_equal(np.load(tmp_path / "a.npy"), values)
    assert zarrc("cat", region).text.split() == [str(v) for v in values]
    assert zarrc("diff", region, f"{path}/tas[0,18,[70,71,0,1,2]]").code == 0
    assert zarrc("explain", region).text.startswith("read \"tas\"")
    assert zarrc("plot", "--json", region).json["shape"] == [5]
    assert zarrc("plot", "--json", "--slice=time=0,lon@-10:10", f"{path}/tas").json["shape"] == [36, 5]
    np.save(tmp_path / "new.npy", values + .5)
    zarrc("import", tmp_path / "new.npy", region)
    assert np.array_equal(read(zarrc, region), values + .5)


# ---- dates ----

@pytest.mark.parametrize("calendar", CALENDARS)
def test_dates_of_every_calendar(zarrc, tmp_path, calendar, rng):
    first = cftime.datetime(1999, 12, 1, calendar=calendar)
    times = cftime.num2date(np.sort(rng.choice(3000, 60, replace=False)) / 4, f"days since {first:%Y-%m-%d}", calendar)
    data = xarray.Dataset({"a": ("time", np.arange(60))}, coords={"time": times})
    path = store(data, tmp_path / "x.zarr", time={"units": "hours since 1850-1-1 00:00:00", "dtype": "f8"})
    data = data.sel(time=slice("1999", None))
    for label in ["2000", "2000-02", "2001-01", "2000-12"] + [str(t)[:10] for t in rng.choice(times, 5)]:
        wanted = data.a.sel(time=label).values
        if wanted.size:
            assert np.array_equal(np.atleast_1d(read(zarrc, f"{path}/a[time@{label}]")), wanted), label
        else:
            assert "no point has this value" in zarrc("cat", f"{path}/a[time@{label}]", code=2).err
    assert np.array_equal(read(zarrc, f"{path}/a[time@2000-02:2001-06]"),
                          data.a.sel(time=slice("2000-02", "2001-06")).values)


def test_periods_of_a_falling_coordinate(zarrc, tmp_path):
    times = np.datetime64("2003-01-15", "ns") + np.arange(24) * np.timedelta64(30, "D")
    data = xarray.Dataset({"a": ("time", np.arange(24))}, coords={"time": times}).isel(time=slice(None, None, -1))
    path = store(data, tmp_path / "x.zarr")
    wanted = data.a[(data.time.dt.year == 2003) & (data.time.dt.month >= 7) | (data.time.dt.year == 2004)].values
    assert np.array_equal(read(zarrc, f"{path}/a[time@2003-07:2004]"), wanted)
    assert np.array_equal(read(zarrc, f"{path}/a[time@2004:2003-07]"), wanted)
    assert np.array_equal(read(zarrc, f"{path}/a[time@[2004-01,2003-07]]"), [12, 6])
    assert np.array_equal(read(zarrc, f"{path}/a[time@[2004-01, 2003-07 ]]"), [12, 6])


def test_a_date_as_precise_as_the_values_is_one_point(zarrc, tmp_path):
    times = np.datetime64("2003-07-01", "ns") + np.arange(10) * np.timedelta64(6, "h")
    data = xarray.Dataset({"a": ("time", np.arange(10))}, coords={"time": times})
    path = store(data, tmp_path / "x.zarr")
    for label in ["2003-07-01", "2003-07-02T06", "2003-07-02T06:00:00", "2003-07"]:
        wanted = data.a.sel(time=label).values
        got = read(zarrc, f"{path}/a[time@{label}]")
        assert got.shape == wanted.shape and np.array_equal(got, wanted)
    assert "The nearest is 2003-07-02T06:00:00" in zarrc("cat", f"{path}/a[time@2003-07-02T07:10]", code=2).err
    assert read(zarrc, "--nearest", f"{path}/a[time@2003-07-02T07:10]") == 5


def test_datetime64_is_a_coordinate(zarrc, tmp_path):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=3)
    times = np.datetime64("1969-12-30T12", "ns") + np.arange(8) * np.timedelta64(12, "h")
    group.create_array("time", data=times, dimension_names=["time"])
    group.create_array("a", data=np.arange(8), dimension_names=["time"])
    assert read(zarrc, f"{tmp_path}/x.zarr/a[time@1970-01]").tolist() == [3, 4, 5, 6, 7]
    assert read(zarrc, f"{tmp_path}/x.zarr/a[time@1969-12-31]").tolist() == [1, 2]
    assert read(zarrc, f"{tmp_path}/x.zarr/a[time@1969-12-31T12:1970-01-01T00:00]").tolist() == [2, 3]


# ---- text ----

STATIONS = ["oslo", "bergen", "tromsø", "a:b", "røst", "oslo 2"]


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["T", "U", "S", "characters"])
def test_coordinates_of_text(zarrc, tmp_path, zarr_format, kind):
    """xarray reads the same labels; its slices of unsorted labels go by position, too."""
    labels = np.array(STATIONS, object if kind == "T" else "U")
    if kind in ("S", "characters"):
        labels = np.array([name.encode() for name in STATIONS])
    data = xarray.Dataset({"a": (("x", "station"), np.arange(12).reshape(2, 6))}, coords={"station": STATIONS})
    path = store(data.drop_vars("station") if kind == "characters" else data.assign_coords(station=labels),
                 tmp_path / "x.zarr", zarr_format)
    if kind == "characters":
        write_characters(path, "station", labels, zarr_format, "station")
    for region, label in (("oslo", "oslo"), ("oslo 2", "oslo 2"), ("[røst,oslo]", ["røst", "oslo"]), ("a:b", "a:b"),
                          ("bergen:røst", slice("bergen", "røst")), ("tromsø:", slice("tromsø", None)),
                          (":bergen", slice(None, "bergen")), ("[tromsø]", ["tromsø"])):
        assert np.array_equal(read(zarrc, f"{path}/a[station@{region}]"), data.a.sel(station=label).values), region
    assert read(zarrc, f"{path}/a[x=1,station@tromsø]") == 8
    for region in ("osl", "oslo:kiruna", "[oslo,kiruna]"):
        assert "no point has this value; station has 6 values from oslo to oslo 2" in \
            zarrc("cat", f"{path}/a[station@{region}]", code=2).err
    assert "the range falls" in zarrc("cat", f"{path}/a[station@røst:oslo]", code=2).err
    shown = zarrc("plot", "--json", f"{path}/a").json["axes"][1]
    assert shown == {"label": "station", "first": "oslo", "last": "oslo 2"}


def write_characters(path, name, labels, zarr_format, dim, **attributes):
    width = max(map(len, labels))
    group, dims = zarr.open_group(path, mode="a", zarr_format=zarr_format), [dim, f"string{width}"]
    if zarr_format == 2:
        attributes["_ARRAY_DIMENSIONS"] = dims
    array = group.create_array(name, shape=(len(labels), width), dtype="S1", chunks=(2, 3), attributes=attributes,
                               dimension_names=dims if zarr_format == 3 else None)
    array[...] = np.array([list(label.ljust(width, b"\0")) for label in labels], "u1").view("S1")


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_characters_become_text(zarrc, tmp_path, zarr_format, encoding):
    labels = [name.encode() for name in STATIONS]
    path = tmp_path / "x.zarr"
    write_characters(path, "name", labels, zarr_format, "x", **({"_Encoding": encoding} if encoding else {}))
    wanted = xarray.open_zarr(path, consolidated=False).name
    if encoding:
        assert wanted.values.tolist() == STATIONS
    assert zarrc("cat", "--decode", "--json", f"{path}/name").json["data"] == STATIONS
    assert zarrc("cat", "--decode", "--format=csv", f"{path}/name").out.decode().splitlines() == STATIONS
    assert zarrc("cat", "--decode", "--json", f"{path}/name[x=2:4]").json["data"] == STATIONS[2:4]
    assert zarrc("cat", "--decode", "--json", f"{path}/name[4]").json["data"] == STATIONS[4]
    assert zarrc("cat", "--decode", "--json", f"{path}/name[:2,0]").json["data"] == ["o", "b"]
    assert zarrc("cat", "--decode", "--json", f"{path}/name[:2,:3]").json["data"] == ["osl", "ber"]
    got = read(zarrc, "--decode", f"{path}/name")
    assert got.tolist() == labels and got.dtype == f"S{max(map(len, labels))}"
    if not encoding:
        assert np.array_equal(got, wanted.values)
    assert zarrc("cat", f"{path}/name[:1,:3]").text.split() == ["o", "s", "l"]


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
def test_bytes_become_text(zarrc, tmp_path):
    values = np.array(["á", "b", "ccc"], object)
    data = xarray.Dataset({"a": ("x", values)})
    path = store(data, tmp_path / "x.zarr", 3, a={"dtype": "S1"})
    assert xarray.open_zarr(path, consolidated=False).a.values.tolist() == list(values)
    assert zarrc("cat", "--decode", "--json", f"{path}/a").json["data"] == list(values)
    attributes = zarr.open_array(path / "a").attrs
    attributes["_Encoding"] = "utf-16"
    result = zarrc("cat", "--decode", f"{path}/a[1]")
    assert result.text == "b\n" and 'its encoding is "utf-16"' in result.err


# ---- where coordinates are, and errors ----

def test_coordinates_of_groups_above(zarrc, tmp_path):
    path = store(dataset(), tmp_path / "x.zarr")
    group = zarr.open_group(path)
    group.create_array("deep/er/a", data=np.arange(36), dimension_names=["lat"])
    assert read(zarrc, f"{path}/deep/er/a[lat@0:10]").tolist() == [18, 19]


def test_a_coordinate_along_a_dimension_of_another_name(zarrc, tmp_path):
    data = xarray.Dataset({"a": ("x", np.arange(5))}, coords={"height": ("x", [1., 2, 4, 8, 16])})
    path = store(data, tmp_path / "x.zarr")
    assert read(zarrc, f"{path}/a[height@2:8]").tolist() == [1, 2, 3]


def test_arrays_without_names_of_dimensions_have_no_coordinates(zarrc, tmp_path):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    group.create_array("a", data=np.eye(3))
    group.create_array("lon", data=np.arange(3.0))
    assert "no dimension has this name" in zarrc("cat", f"{tmp_path}/x.zarr/a[lon@1:2]", code=2).err


@pytest.mark.parametrize("region, words", [
    ("lat@3", ["lat@3", "no point has this value", "lat has 36 values from -87.5 to 87.5", "nearest is 2.5"]),
    ("lat@88:90", ["no point lies in the range", "from -87.5 to 87.5"]),
    ("lat@70:35", ["the range falls, but the values rise"]),
    ("lat@35:70:2", ["no step"]),
    ("lat@abc", ["not a number"]),
    ("lat@", ["region lat@ of", "selects nothing"]),
    ("lat=", ["region lat= of", "selects nothing"]),
    ("1,,lat=3", ["region (empty) of", "selects nothing"]),
    ("time@2007", ["from 2003-02-01T00:00:00 to 2005-01-01T00:00:00"]),
    ("time@2003-02-30", ["no date of the calendar"]),
    ("time@2003-13", ["no date of the calendar"]),
    ("time@12", ["no date of the calendar"]),
    ("lat=2.5", ["invalid region", "2.5"]),
    ("lat=3,lat=4", ["region lat=4 of", "another item selects along this dimension"]),
    ("lat=3,2,3", ["region 3 of", "another item selects along this dimension"]),
    ("height=3", ["no dimension has this name; the dimensions are time, lat, lon"]),
    ("height@3", ["no such coordinate", "the dimensions are time, lat, lon"]),
    ("...,lat=3", ["Items without names come first"]),
    ("1,2,3,4,lat=3", ["has no dimension"]),
])
def test_errors_show_names_and_ranges(zarrc, climate, region, words):
    path, _ = climate
    err = zarrc("cat", f"{path}/tas[{region}]", code=None)
    assert err.code in (2, 3)
    for word in words:
        assert word in err.err


def test_coordinates_of_two_dimensions_are_refused(zarrc, tmp_path):
    lat = np.linspace(-80, 80, 12).reshape(3, 4)
    data = xarray.Dataset({"a": (("y", "x"), np.zeros((3, 4)))}, coords={"lat": (("y", "x"), lat)})
    path = store(data, tmp_path / "x.zarr")
    err = zarrc("cat", f"{path}/a[lat@0:10]", code=2).err
    assert "does not have one dimension; the dimensions are y, x" in err and "from -80 to 80" in err


def test_values_that_are_not_sorted(zarrc, tmp_path):
    data = xarray.Dataset({"a": ("x", np.arange(5))}, coords={"x": [3., 1, 2, 5, 2]})
    path = store(data, tmp_path / "x.zarr")
    assert "not sorted" in zarrc("cat", f"{path}/a[x@1:3]", code=2).err
    assert "several points" in zarrc("cat", f"{path}/a[x@2]", code=2).err
    assert read(zarrc, f"{path}/a[x@5]") == 3


def test_packed_coordinates_are_decoded(zarrc, tmp_path):
    path = store(dataset(), tmp_path / "x.zarr", lat={"dtype": "i2", "scale_factor": 0.5, "add_offset": 10.0,
                                                      "_FillValue": -999})
    assert read(zarrc, f"{path}/tas[time=0,lon=0,lat@2.5]") == 18 * 72


# ---- decoded values ----

RAW = {dtype: np.array([0, 1, 2, 100, -1 if np.dtype(dtype).kind != "u" else 255, 7, 127, 3]).astype(dtype)
       for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")}
ATTRIBUTES = {
    "plain": {},
    "scale": {"scale_factor": 0.1},
    "offset": {"add_offset": -5.5},
    "both": {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": 7},
    "fill": {"_FillValue": 7},
    "missing": {"missing_value": 100},
    "two": {"_FillValue": 7, "missing_value": 100, "scale_factor": 2.0},
    "many": {"missing_value": [0, 1, 2, 100, 3]},
}
VARIABLES = {f"{dtype}_{name}": (RAW[dtype], attributes) for dtype in RAW for name, attributes in ATTRIBUTES.items()} | {
    "unsigned": (RAW["i1"], {"_Unsigned": "true"}),
    "unsigned_fill": (RAW["i1"], {"_Unsigned": "true", "_FillValue": -1, "scale_factor": 0.5}),
    "unsigned_2": (RAW["i2"], {"_Unsigned": "true", "_FillValue": -1}),
    "signed": (RAW["u1"], {"_Unsigned": "false"}),
    "bool": (np.array([0, 1, 1], "i1"), {"dtype": "bool"}),
    "nan": (np.array([1, np.nan, 3], "f4"), {"_FillValue": np.nan}),
    "large": (np.array([1, 1e20, 3], "f4"), {"missing_value": float(np.float32(1e20))}),
    "half": (np.array([1, 7, 3], "f2"), {"_FillValue": 7}),
    "text": (np.array(["a", "bc"], "U2"), {}),
    "days": (np.array([0, 59, 60, 700000]), {"units": "days since 1850-01-01"}),
    "hours": (np.array([0, 1.5, 7]), {"units": "hours since 2000-01-01 06:00", "_FillValue": 7.0}),
    "old": (np.array([1, 2], "i4"), {"units": "seconds since 1970-01-01", "calendar": "proleptic_gregorian"}),
    "fill_time": (np.array([1, 7], "i4"), {"units": "days since 1970-01-01T00:00:00Z", "_FillValue": 7}),
}


def write_variables(path, zarr_format, variables):
    from xarray.backends.zarr import FillValueCoder
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    for name, (values, attributes) in variables.items():
        attributes, fill = dict(attributes), attributes.get("_FillValue")
        if zarr_format == 2:
            attributes["_ARRAY_DIMENSIONS"] = [f"d_{name}"]
            attributes.pop("_FillValue", None)
        elif fill is not None:
            attributes["_FillValue"] = FillValueCoder.encode(np.array(fill, values.dtype)[()], values.dtype)
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, attributes=attributes,
                                   fill_value=fill if zarr_format == 2 else 0 if values.dtype.kind != "U" else "",
                                   dimension_names=[f"d_{name}"] if zarr_format == 3 else None)
        array[...] = values
    return path


@pytest.fixture(scope="module", params=[2, 3])
def variables(request, tmp_path_factory):
    path = write_variables(tmp_path_factory.mktemp("cf") / "x.zarr", request.param, VARIABLES)
    return path, xarray.open_zarr(path, consolidated=False)


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")
@pytest.mark.parametrize("name", VARIABLES)
def test_decoded_values_equal_xarray(zarrc, variables, name):
    path, data = variables
    wanted, got = data[name].values, read(zarrc, "--decode", f"{path}/{name}")
    if wanted.dtype.kind == "M":
        assert got.dtype == "<M8[us]"
    elif wanted.dtype.kind in "fiub":
        assert got.dtype == wanted.dtype
    assert np.array_equal(got.astype(wanted.dtype), wanted, equal_nan=wanted.dtype.kind in "fM")
    lines = zarrc("cat", "--decode", "--format=elements", f"{path}/{name}", env=None).out.splitlines()
    assert len(lines) == wanted.size


@pytest.mark.parametrize("calendar", ["standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day",
                                      "all_leap", "366_day", "360_day"])
@pytest.mark.parametrize("units", ["days since 1582-10-01", "hours since 1-1-1 0:0:0", "seconds since 1999-12-30 12:30:15.5",
                                   "minutes since 0001-03-01 00:00:00 +05:30", "milliseconds since 1970-1-1 UTC"])
def test_times_equal_cftime(zarrc, tmp_path, rng, calendar, units):
    unit = {"d": 1, "h": 24, "s": 86400, "m": 1440}[units[0]] if not units.startswith("milli") else 86400000
    values = np.concatenate([np.arange(40) - 20, rng.integers(-500, 250000, 100), rng.integers(0, 10**6, 50) / 8]) * unit
    values = values[values >= 0]
    path = write_variables(tmp_path / "x.zarr", 3, {"t": (values, {"units": units, "calendar": calendar})})
    wanted = cftime.num2date(values, units, calendar)
    got = zarrc("cat", "--decode", f"{path}/t").text.splitlines()
    for text, date in zip(got, wanted, strict=True):
        whole = f"{date.year:04}-{date.month:02}-{date.day:02}T{date.hour:02}:{date.minute:02}:{date.second:02}"
        assert text == whole + (f".{date.microsecond:06}" if date.microsecond else "")
    code = zarrc("export", "--decode", f"{path}/t", tmp_path / "t.npy", code=None).code
    assert code == (0 if calendar in ("standard", "gregorian", "proleptic_gregorian") else 6)


@settings(max_examples=settings().max_examples // 4)
@given(st.sampled_from(CALENDARS), st.sampled_from(["days", "hours", "minutes", "seconds", "milliseconds"]),
       st.sampled_from(["f4", "f8"]), st.integers(0, 2**32))
def test_fractions_equal_xarray(zarrc, tmp_path_factory, calendar, unit, dtype, seed):
    """cftime takes a float that is next to a whole second as that second. pandas, which xarray uses for
    some calendars, rounds nanoseconds."""
    rng = np.random.default_rng(seed)
    day = {"days": 1, "hours": 24, "minutes": 1440, "seconds": 86400, "milliseconds": 86400000}[unit]
    values = np.concatenate([rng.uniform(-20000, 60000, 40), rng.integers(-10**5, 10**6, 40) / 10, rng.integers(0, 10**9, 40) / 86400])
    values, units = (values * day).astype(dtype), f"{unit} since 1900-01-01"
    path = write_variables(tmp_path_factory.mktemp("times") / "x.zarr", 3, {"t": (values, {"units": units, "calendar": calendar})})
    got = [cftime.datetime.strptime(text if "." in text else text + ".0", "%Y-%m-%dT%H:%M:%S.%f", calendar=calendar)
           for text in zarrc("cat", "--decode", f"{path}/t").text.split()]
    for use_cftime in (True, None):
        coder = xarray.coders.CFDatetimeCoder(use_cftime=use_cftime)
        wanted = xarray.open_zarr(path, consolidated=False, decode_times=coder).t.values
        if wanted.dtype.kind == "M":
            wanted = [cftime.datetime(*d.timetuple()[:6], d.microsecond, calendar=calendar) for d in wanted.astype("M8[us]").tolist()]
            assert max(abs(a - b) for a, b in zip(got, wanted, strict=True)) <= datetime.timedelta(microseconds=2)
        else:
            assert got == list(wanted)


def test_large_integers_are_exact_times(zarrc, tmp_path):
    units = {"units": "microseconds since 0001-01-01", "calendar": "noleap"}
    path = write_variables(tmp_path / "x.zarr", 3, {"t": (np.array([63200000000123457, 63200000000123459, -5]), units)})
    assert zarrc("cat", "--decode", f"{path}/t").text.split() == [
        "2005-01-22T11:33:20.123457", "2005-01-22T11:33:20.123459", "0000-12-31T23:59:59.999995"]


def test_columns_of_a_summary_are_below_their_names(zarrc, tmp_path):
    path = store(dataset(), tmp_path / "x.zarr")
    head, *lines = zarrc("summary", "--over=lat,lon", f"{path}/tas[time=:3]").text.splitlines()
    assert [line.index("2592") for line in lines] == [head.index("count")] * 3


def test_valid_ranges_are_missing(zarrc, tmp_path):
    values = np.array([-9, 0, 5, 11], "i2")
    variables = {"a": (values, {"valid_range": [0, 10]}), "b": (values, {"valid_min": 0}), "c": (values, {"valid_max": 10.0})}
    path = write_variables(tmp_path / "x.zarr", 3, variables)
    nan = np.nan
    for name, wanted in (("a", [nan, 0, 5, nan]), ("b", [nan, 0, 5, 11]), ("c", [-9, 0, 5, nan])):
        assert np.array_equal(read(zarrc, "--decode", f"{path}/{name}"), wanted, equal_nan=True)
    values = np.array([0, 100, -2, -1], "i1")
    path = write_variables(tmp_path / "u.zarr", 3, {"a": (values, {"_Unsigned": "true", "valid_range": [0, -2]})})
    assert np.array_equal(read(zarrc, "--decode", f"{path}/a"), [0, 100, 254, nan], equal_nan=True)
    values = np.array([0, 0.1, 0.2], "f4")
    path = write_variables(tmp_path / "f.zarr", 3, {"a": (values, {"valid_max": 0.1})})
    assert np.array_equal(read(zarrc, "--decode", f"{path}/a"), np.array([0, 0.1, nan], "f4"), equal_nan=True)


def test_stored_dates_keep_their_unit(zarrc, tmp_path):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    for unit, text in (("D", "2000-01-02T00:00:00"), ("m", "2000-01-02T03:04:00"), ("ns", "2000-01-02T03:04:05.123457")):
        values = np.array(["2000-01-02T03:04:05.123456789", "NaT"], f"M8[{unit}]")
        group.create_array(unit, data=values)
        got = read(zarrc, "--decode", f"{tmp_path}/x.zarr/{unit}")
        assert got.dtype == values.dtype and np.array_equal(got.view("i8"), values.view("i8"))
        assert zarrc("cat", "--decode", f"{tmp_path}/x.zarr/{unit}").text.split() == [text, "NaT"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_stored_dates_have_a_mean(zarrc, tmp_path, zarr_format):
    times = np.array(["2000-01-01T00:00:00.25", "NaT", "2000-01-05T12:00:00.75"], "M8[ns]")
    zarr.create_array(tmp_path / "x.zarr", data=times, zarr_format=zarr_format)
    shown = zarrc("summary", "--decode", "--json", tmp_path / "x.zarr").json["places"][0]
    assert [shown[name] for name in ("count", "min", "max", "mean", "std")] == [
        2, "2000-01-01T00:00:00.250000", "2000-01-05T12:00:00.750000", "2000-01-03T06:00:00.500000", None]


def test_a_setting_decodes_too(zarrc, tmp_path):
    path = write_variables(tmp_path / "x.zarr", 3, {"a": (np.array([5], "i2"), {"scale_factor": 0.5})})
    assert zarrc("cat", f"{path}/a").text == "5\n"
    assert zarrc("cat", f"{path}/a", env={"ZARRC_DECODE": "1"}).text == "2.5\n"
    zarrc("export", "--decode", f"{path}/a", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "2.5\n"
    data = zarrc("cat", "--decode", "--json", f"{path}/a").json
    assert (data["data_type"], data["data"]) == ("float64", [2.5])


def test_decoding_needs_no_more_memory_for_large_arrays(zarrc, tmp_path, rng):
    values = rng.integers(0, 100, 500_000).astype("i2")
    path = write_variables(tmp_path / "x.zarr", 3, {"a": (values, {"scale_factor": 0.5, "_FillValue": 3})})
    got = np.load(io.BytesIO(zarrc("cat", "--mem=64K", "--decode", "--format=npy", f"{path}/a", code=None).out or
                             zarrc("cat", "--mem=2M", "--decode", "--format=npy", f"{path}/a").out))
    assert np.array_equal(got, np.where(values == 3, np.nan, values / 2), equal_nan=True)


def test_units_that_are_not_known_stay_numbers(zarrc, tmp_path):
    path = write_variables(tmp_path / "x.zarr", 3, {"a": (np.array([5]), {"units": "fortnights since 1970-01-01"}),
                                                   "b": (np.array([5]), {"units": "days since 1970-01-01", "calendar": "mayan"})})
    for name in "ab":
        result = zarrc("cat", "--decode", f"{path}/{name}")
        assert result.text == "5\n" and "the times stay numbers" in result.err


# ---- plots ----

@pytest.mark.parametrize("zarr_format", [2, 3])
def test_plots_apply_scale_and_missing_values(zarrc, tmp_path, zarr_format):
    data = dataset().isel(time=slice(3)) + 250
    data.tas[1, 3:5, 7] = np.nan
    data.tas.attrs["units"] = "K"
    path = store(data, tmp_path / "x.zarr", zarr_format, tas={"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1})
    shown = zarrc("plot", "--json", f"{path}/tas[time@2003-03]").json
    wanted = xarray.open_zarr(path, consolidated=False).tas[1].values
    assert (shown["min"], shown["max"]) == (np.nanmin(wanted), np.nanmax(wanted))
    assert (shown["missing"], shown["units"], shown["region"]) == (2, "K", "[time@2003-03]")
    assert shown["axes"] == [{"label": "lat (degrees_north)", "first": "-87.5", "last": "87.5"},
                             {"label": "lon (degrees_east)", "first": "0", "last": "355"}]
    line = zarrc("plot", "--json", f"{path}/tas[lat=3,lon=7]").json
    assert line["axes"] == [{"label": "time", "first": "2003-02-01T00:00:00", "last": "2003-04-01T00:00:00"}]
    seam = zarrc("plot", "--json", f"{path}/tas[time=0,lon@-20:20]").json
    assert seam["axes"][1] == {"label": "lon (degrees_east)", "first": "-20", "last": "20"}


def test_plots_draw_north_up(zarrc, tmp_path):
    def draw(data, *options):
        path = store(data, tmp_path / "x.zarr")
        return zarrc("plot", "--bare", "--size=72x36", "-o", "-", "--title=t", *options, f"{path}/tas[time=0]").out
    rising, falling = dataset(), dataset().isel(lat=slice(None, None, -1))
    assert draw(rising) == draw(falling) == draw(rising, "--origin=lower")
    assert draw(rising) != draw(rising, "--origin=upper")


def test_ticks_show_coordinates(zarrc, tmp_path):
    """The axes of equal data differ if their coordinates do."""
    pictures = set()
    for lats, times in ((LATS, None), (LATS / 2, None), (np.sort(np.abs(LATS) ** 2), None), (LATS, np.arange(24.))):
        path = store(dataset(lats=lats, times=times), tmp_path / "x.zarr")
        pictures.add(zarrc("plot", "-o", "-", "--title=t", "--origin=upper", f"{path}/tas[lon=0]").out)
    assert len(pictures) == 4


# ---- the header of a group ----

HEADER = """
  dimensions   lat = 36, lon = 72, time = 24
  coordinate   lat(lat=36)  float64
                 units: "degrees_north"
{nan}  coordinate   lon(lon=72)  float64
                 units: "degrees_east"
{nan}  coordinate   time(time=24)  int64
                 units: "days since 2003-02-01 00:00:00.000000"
                 calendar: "noleap"
  array        mask(lat=36, lon=72)  int8
                 flag_values: [0, 1]
                 flag_meanings: "sea land"
  array        tas(time=24, lat=36, lon=72)  float32
                 units: "K"
                 _FillValue: 1e+20
"""


@pytest.mark.parametrize("zarr_format, consolidated", [(2, False), (2, True), (3, False)])
def test_info_prints_the_header_of_a_group(zarrc, tmp_path, zarr_format, consolidated):
    data = dataset(calendar="noleap")
    data.attrs["Conventions"] = "CF-1.12"
    data.tas.attrs["units"] = "K"
    data["mask"] = ("lat", "lon"), np.zeros((36, 72), "i1"), {"flag_values": [0, 1], "flag_meanings": "sea land"}
    data.to_zarr(tmp_path / "x.zarr", zarr_format=zarr_format, consolidated=consolidated,
                 encoding={"tas": {"dtype": "f4", "_FillValue": np.float32(1e20)}})
    text = zarrc("info", "x.zarr", cwd=tmp_path).text
    head, _, rest = text.partition("\n  dimensions")
    assert 'Conventions: "CF-1.12"' in head and f"Zarr v{zarr_format}" in head
    assert "\n  dimensions" + rest == HEADER.replace("{nan}", '                 _FillValue: "NaN"\n')
    shown = zarrc("info", "--json", "x.zarr", cwd=tmp_path).json
    assert [child["name"] for child in shown["children"]] == ["lat", "lon", "mask", "tas", "time"]


def test_info_of_a_group_goes_on_after_a_broken_member(zarrc, tmp_path):
    path = store(dataset(), tmp_path / "x.zarr")
    document = path / "lat/zarr.json"
    document.write_text(document.read_text().replace('"float64"', '"float65"'))
    zarr.open_group(path).create_group("sub")
    text = zarrc("info", path).text
    assert "  array        lat\n" in text and "tas(time=24, lat=36, lon=72)" in text and "  group        sub\n" in text


def test_info_of_a_group_opens_256_members(zarrc, tmp_path):
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    for i in range(260):
        (tmp_path / f"x.zarr/a{i:03}").mkdir()
        if i == 0:
            group.create_array("a000", shape=(3,), dtype="i1", overwrite=True)
        else:
            (tmp_path / f"x.zarr/a{i:03}/zarr.json").write_bytes((tmp_path / "x.zarr/a000/zarr.json").read_bytes())
    text = zarrc("info", tmp_path / "x.zarr").text
    assert "a255(3)" in text and "  array        a256\n" in text


def test_flags_become_their_meanings(zarrc, tmp_path):
    mask = {"flag_values": [0, 1, 2], "flag_meanings": "sea land ice"}
    bits = {"flag_masks": [1, 2, 12, 12], "flag_values": [1, 2, 4, 8], "flag_meanings": "cloud snow low high"}
    path = write_variables(tmp_path / "x.zarr", 3, {
        "a": (np.array([0, 2, 9, 7], "i1"), mask | {"_FillValue": 7}), "b": (np.array([0, 3, 5, 8], "u1"), bits)})
    assert zarrc("cat", "--decode", "--format=csv", f"{path}/a").text.split() == ["sea", "ice", "9.0", "NaN"]
    assert zarrc("cat", "--decode", "--format=csv", f"{path}/b").text.split() == ["0", "cloud|snow", "cloud|low", "high"]
    assert zarrc("cat", "--decode", "--json", f"{path}/b").json["data"] == [0, "cloud|snow", "cloud|low", "high"]
    assert read(zarrc, "--decode", f"{path}/b").tolist() == [0, 3, 5, 8]
    assert zarrc("cat", f"{path}/a").text.split() == ["0", "2", "9", "7"]


# ---- reencode: a part of all arrays ----

def open_all(path):
    coder = xarray.coders.CFDatetimeCoder(use_cftime=True)
    return xarray.open_zarr(path, consolidated=True, decode_times=coder).load()


def of_dims(data, index):
    """isel of the arrays that have the dimensions, which all stay."""
    return data.isel({d: [i] if isinstance(i, int) else i for d, i in index.items()})


@pytest.fixture(scope="module", params=[2, 3])
def whole(request, tmp_path_factory):
    """A consolidated store with bounds, a scalar, attributes, and chunks that no region fits."""
    data = dataset()
    data.attrs["title"] = "all"
    data.tas.attrs.update(units="K", cell_methods="time: mean")
    data["lat_bnds"] = (("lat", "bnds"), np.stack([LATS - 1, LATS + 1], 1))
    data["area"] = (("lat", "lon"), np.arange(36 * 72.0).reshape(36, 72))
    data["crs"] = ((), 7, {"grid": "x"})
    path = tmp_path_factory.mktemp("crop") / "x.zarr"
    data.to_zarr(path, zarr_format=request.param, consolidated=True, encoding={"tas": {"chunks": (7, 10, 11)}})
    return path, open_all(path)


@pytest.mark.parametrize("region, index", [
    ("time@2003-07", {"time": slice(5, 6)}),
    ("time@2003-07:2003-12, lat@35:70", {"time": slice(5, 11), "lat": slice(25, 32)}),
    ("lat=[5,1,9], time=::7", {"lat": [5, 1, 9], "time": slice(None, None, 7)}),
    ("lon=3", {"lon": 3}),
    ("lon=::-2,bnds=1", {"lon": slice(None, None, -2), "bnds": 1}),
    ("lon@-20:20", {"lon": [*range(68, 72), *range(5)]}),
    ("time=5:5", {"time": slice(5, 5)}),
])
def test_crop_of_a_group(zarrc, whole, tmp_path, region, index):
    path, data = whole
    done = zarrc("reencode", "--json", "--verify", f"{path}[{region}]", tmp_path / "y.zarr").json
    assert done["arrays"] == 7 and done["verified"]
    xarray.testing.assert_identical(open_all(tmp_path / "y.zarr"), of_dims(data, index))
    zarrc("consolidate", "--check", tmp_path / "y.zarr")
    zarrc("verify", tmp_path / "y.zarr")


@pytest.mark.parametrize("options", [["--zarr-format=2"], ["--zarr-format=3", "--shards=8,6,12", "--chunks=4,3,6"],
                                     ["--chunks=5,6,7", "--codec=zstd:1", "--mem=1M"]])
def test_crop_in_another_encoding(zarrc, whole, tmp_path, options):
    path, data = whole
    zarrc("reencode", *options, "--verify", f"{path}[lat@35:70,time=3:20]", tmp_path / "y.zarr")
    got, wanted = open_all(tmp_path / "y.zarr"), of_dims(data, {"lat": slice(25, 32), "time": slice(3, 20)})
    xarray.testing.assert_identical(got, wanted)


@pytest.mark.parametrize("region, said", [
    ("x=3", 'no array has the dimension of "x=3"'), ("time=1, 3", 'no array has the dimension of "3"'),
    ("lat@99", "no point has this value"), ("lat=40:30:0", "step"), ("lat=99", "index 99"), ("time=1,time=2", "another item")])
def test_crop_refused(zarrc, whole, tmp_path, region, said):
    path, _ = whole
    assert said in zarrc("reencode", f"{path}[{region}]", tmp_path / "y.zarr", code=2).err
    assert not (tmp_path / "y.zarr").exists()


def test_two_dimensions_of_one_name(zarrc, tmp_path):
    """Half of such an array would be cut."""
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=3)
    group.create_array("square", data=np.eye(5), chunks=(2, 2), dimension_names=["d", "d"])
    for words in (["reencode", f"{tmp_path / 'x.zarr'}[d=1:3]", tmp_path / "y.zarr"], ["cat", f"{tmp_path / 'x.zarr'}/square[d=1:3]"]):
        assert "two dimensions have this name" in zarrc(*words, code=2).err
    assert not (tmp_path / "y.zarr").exists()


def test_crop_of_one_array(zarrc, whole, tmp_path):
    path, data = whole
    for i, (region, index) in enumerate([("time@2003-07, lat@35:70", np.s_[5:6, 25:32]), ("3,[7,2],::-1", np.s_[3:4, [7, 2], ::-1]),
                                         ("3\t,\n-1 , lon =\t0\r", np.s_[3:4, -1:, :1]),
                                         ("5", np.s_[5:6])]):
        zarrc("reencode", "--verify", f"{path}/tas[{region}]", tmp_path / f"{i}.zarr")
        array = zarr.open_array(tmp_path / f"{i}.zarr", mode="r")
        assert np.array_equal(array[...], data.tas.values[index])
        assert array.attrs["units"] == "K" and array.chunks == (7, 10, 11)
    zarrc("reencode", "--nearest", f"{path}/tas[lat@36]", tmp_path / "n.zarr")
    assert np.array_equal(zarr.open_array(tmp_path / "n.zarr")[...], data.tas.values[:, 25:26])


def test_crop_of_nested_groups(zarrc, tmp_path):
    """Each group has its own coordinate; an array below takes the nearest one above it."""
    top = tmp_path / "x.zarr"
    store(dataset(), top)
    store(dataset(lats=LATS[::-1]), top / "other")
    zarrc("cp", top / "tas", top / "deep/er/tas")
    zarrc("reencode", f"{top}[lat@35:70]", tmp_path / "y.zarr")
    for name, index in {"tas": slice(25, 32), "other/tas": slice(4, 11), "deep/er/tas": slice(25, 32)}.items():
        got = zarr.open_array(tmp_path / "y.zarr", path=name, mode="r")[...]
        assert np.array_equal(got, zarr.open_array(top, path=name, mode="r")[:, index]), name
    assert np.array_equal(zarr.open_array(tmp_path / "y.zarr", path="other/lat")[...], LATS[::-1][4:11])


def test_crop_without_elements(zarrc, tmp_path):
    """The levels of a pyramid have one name for dimensions of different lengths."""
    for name, length in [("0", 40), ("1", 10)]:
        zarrc("create", f"--shape={length},{length}", "--chunks=10,10", "--dtype=uint16", "--dims=y,x", tmp_path / "x.zarr" / name)
    said = zarrc("reencode", f"{tmp_path / 'x.zarr'}[y=20:30]", tmp_path / "y.zarr").err
    assert f"{tmp_path}/x.zarr:/1[20:30,:] has no elements" in said and "/0[" not in said
    assert zarr.open_array(tmp_path / "y.zarr", path="1").shape == (0, 10)


def test_crop_is_resumed(zarrc, whole, tmp_path):
    """A failure at a damaged chunk leaves the chunks before it. Only the same region continues."""
    path, _ = whole
    top, target = tmp_path / "x.zarr", tmp_path / "y.zarr"
    zarrc("cp", path, top)
    chunk = next(p for p in [top / "tas/c/3/3/6", top / "tas/3.3.6"] if p.exists())
    good = chunk.read_bytes()
    chunk.write_bytes(b"damaged")
    zarrc("reencode", "--mem=1M", f"{top}[time=2:24]", target, code=4)
    assert (target / ".zarrc-job").exists() and not has_node(target)
    known = {p: p.stat().st_mtime_ns for p in target.rglob("*") if p.is_file() and p.name != ".zarrc-job"}
    assert known
    chunk.write_bytes(good)
    assert "other options" in zarrc("reencode", "--resume", "--mem=1M", f"{top}[time=1:23]", target, code=5).err
    assert zarrc("reencode", "--resume", "--json", f"{top}[time=2:24]", target).json["state"] == "resumed"
    assert all(p.stat().st_mtime_ns == time for p, time in known.items())
    zarrc("reencode", f"{path}[time=2:24]", tmp_path / "z.zarr")
    zarrc("diff", target, tmp_path / "z.zarr")
    zarrc("reencode", "--resume", f"{top}[time=2:24]", target)
    chunk.write_bytes(b"damaged")
    zarrc("reencode", "--skip-damaged", f"{top}[time=2:24]", tmp_path / "s.zarr", code=8)
    assert zarr.open_array(tmp_path / "s.zarr/tas", mode="r").shape == (22, 36, 72)


def has_node(path):
    return any((path / name).exists() for name in ("zarr.json", ".zgroup"))
