"""zarrc plot: pixels of known arrays, ranges of values, samples of large arrays, output on a terminal."""
import struct
import time
import zlib

import numpy as np
import pytest
import xarray
import zarr

pytestmark = pytest.mark.zarr_makes_input

VIRIDIS = (68, 1, 84), (253, 231, 37)
MISSING = (205, 205, 205)


def png(data, rows=None):
    """Returns the pixels (height, width, 3) of an RGB PNG, and checks each CRC. rows: so many of the first rows
    alone."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + n]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + n:at + 12 + n])[0]
        at += 12 + n
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 2)
        elif kind == b"IDAT":
            packed += body
    packed, stride, before = zlib.decompress(packed), 3 * width, bytes(3 * width)
    out = bytearray()
    height = min(height, rows or height)
    for y in range(height):
        kind = packed[y * (stride + 1)]
        before = unfilter(kind, bytearray(packed[y * (stride + 1) + 1:(y + 1) * (stride + 1)]), before)
        out += before
    return np.frombuffer(bytes(out), "u1").reshape(height, width, 3)


def unfilter(kind, row, up):
    """Reverses the filter of one row of a PNG: none, sub, up, average, or the neighbour nearest to their gradient."""
    for i in range(len(row) if kind else 0):
        a, b, c = (row[i - 3], up[i], up[i - 3]) if i >= 3 else (0, up[i], 0)
        if kind == 4:
            p, q, r = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            guess = a if p <= q and p <= r else b if q <= r else c
        else:
            guess = (a, b, (a + b) >> 1)[kind - 1]
        row[i] = (row[i] + guess) & 255
    return row


def make(path, values, **options):
    zarr.create_array(str(path), shape=values.shape, dtype=values.dtype, **options)[...] = values
    return path


@pytest.fixture
def draw(zarrc):
    def run(path, *options, rows=None):
        return png(zarrc("plot", "-o", "-", *options, path).out, rows)
    return run


def test_pixels(tmp_path, draw):
    values = np.array([[0, 1, 2], [3, 4, np.nan]])
    path = make(tmp_path / "a.zarr", values)
    pixels = draw(path, "--bare", "--size=30x20", "--min=0", "--max=4")
    assert pixels.shape == (20, 30, 3)
    assert tuple(pixels[5, 5]) == VIRIDIS[0] and tuple(pixels[15, 15]) == VIRIDIS[1]
    assert tuple(pixels[15, 25]) == MISSING and tuple(pixels[5, 25]) == (33, 144, 141)
    assert (pixels[:10, :10] == pixels[0, 0]).all()
    lower = draw(path, "--bare", "--size=30x20", "--min=0", "--max=4", "--origin=lower")
    np.testing.assert_array_equal(lower, pixels[::-1])
    gray = draw(path, "--bare", "--size=3x2", "--min=0", "--max=4", "--map=gray")
    assert gray[0].tolist() == [[0] * 3, [64] * 3, [128] * 3]


def test_full_picture(tmp_path, draw, rng):
    path = make(tmp_path / "a.zarr", rng.random((60, 90)), dimension_names=["lat", "lon"])
    pixels = draw(f"{path}[::2,10:]", "--size=500x400")
    assert pixels.shape == (400, 500, 3)
    assert (pixels[0] == 255).all() and (pixels[-1] == 255).all()  # a margin
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 300
    low = draw(path)
    assert low.shape[1] == 1000 and low.shape[0] < 750  # no empty rows
    again = draw(path)
    np.testing.assert_array_equal(low, again)


@pytest.mark.parametrize("options", [
    {"chunks": (1000, 1000)}, {"chunks": (100, 100), "shards": (2000, 2000)}, {"chunks": (40, 500)}])
def test_stored_chunks_of_sparse_arrays_are_found(zarrc, tmp_path, draw, options):
    array = zarr.create_array(tmp_path / "a", shape=(10 ** 6, 10 ** 6), dtype="f4", fill_value=0, **options)
    array[123000:124000, 345000:346000] = 5
    array[126000:127000, 912000:913000] = -3  # in the same pixel row
    array[999000:, :1000] = 9
    found = zarrc("plot", "--json", "--size=200x200", tmp_path / "a").json
    assert found["sampled"] and (found["min"], found["max"]) == (-3, 9)
    pixels = draw(tmp_path / "a", "--bare", "--size=100x100", "--min=-4", "--max=10", "--map=gray")
    drawn = {tuple(at) for at in np.argwhere(pixels[:, :, 0] != pixels[50, 50, 0])}
    assert drawn == {(12, 34), (12, 91), (99, 0)}
    part = f"{tmp_path}/a[120000:130000,340000:350000]"
    assert zarrc("plot", "--json", "--size=2000x2000", part).json["max"] == 5
    assert zarrc("plot", "--json", "--size=100x100", f"{tmp_path}/a[::-1,345680]").json["max"] == 5
    assert zarrc("plot", "--json", "--size=100x100", f"{tmp_path}/a[123460,::-3]").json["max"] == 5
    assert zarrc("plot", "--json", f"{tmp_path}/a[5000]").json["max"] == 0


def test_chunks_filled_in_sparse_arrays_are_found(zarrc, tmp_path, draw):
    array = zarr.create_array(tmp_path / "a", shape=(3, 10 ** 6, 10 ** 6), dtype="i2", fill_value=0, chunks=(1, 500, 500))
    for k in range(20):
        array[1, k * 50000 + 3000:k * 50000 + 3500, 700500:701000] = k + 1
    array[0, 0, 0] = 77
    found = zarrc("plot", "--json", "--size=100x100", f"{tmp_path}/a[1]").json
    assert (found["min"], found["max"]) == (0, 20)
    pixels = draw(f"{tmp_path}/a[1]", "--bare", "--size=100x100", "--min=-1", "--max=21", "--map=gray")
    assert len(np.unique(pixels[:, 70, 0])) == 21 and len(np.unique(pixels[:, 71:])) == 1


def draw_title(draw, path, title, width=500):
    """The pixels of the title's rows."""
    return draw(path, f"--title={title}", f"--size={width}x200", rows=24)


def test_titles_in_utf8(tmp_path, draw):
    path = make(tmp_path / "Größe.zarr", np.zeros((20, 30)))
    plain = draw_title(draw, path, "aaaaaaaaa")
    for text in ("Größe °C", "Ångström", "températ.", "Δσ ≤ 3 µm", "Łódź", "日本語"):
        drawn = draw_title(draw, path, text)
        # each character has the width of one
        ascii = draw_title(draw, path, "H" * len(text))
        extent = [np.flatnonzero((p < 200).any(axis=(0, 2)))[[0, -1]] for p in (drawn, ascii)]
        assert abs(extent[0] - extent[1]).max() <= 6, text
    composed = draw_title(draw, path, "\u00e9\u00fc\u00c5")
    combining = draw_title(draw, path, "e\u0301u\u0308A\u030a")
    np.testing.assert_array_equal(composed, combining)
    different = [draw_title(draw, path, c).tobytes() for c in "aäáàâãåāăeëαβ日?ß"]
    assert len(set(different)) == len(different)
    # a byte that is not UTF-8 is drawn as a character without a glyph
    np.testing.assert_array_equal(draw_title(draw, path, b"a\xffb".decode("utf-8", "surrogateescape")), draw_title(draw, path, "a\ufffdb"))
    assert (draw_title(draw, path, "日本語" * 40) < 200).any()
    assert (plain < 200).any()


@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]"])
def test_types(zarrc, tmp_path, dtype):
    values = (np.arange(600).reshape(20, 30) % 100).astype("i8").astype(dtype)
    path = make(tmp_path / "a.zarr", values, zarr_format=2)
    printed = zarrc("plot", "--json", path).json
    assert (printed["min"], printed["max"]) == ((0, 1) if dtype == "b1" else (0, 99))
    assert printed["shape"] == [20, 30] and printed["missing"] == 0 and printed["sampled"] is False


def test_types_that_are_not_numbers(zarrc, tmp_path):
    path = make(tmp_path / "a.zarr", np.array(["a", "b"]), zarr_format=2)
    zarrc("plot", "--json", path, code=6)


def test_ranges(zarrc, tmp_path):
    values = np.arange(1001.0).reshape(7, 143)
    values[0, 0] = 1e30
    values[1, 1] = np.inf
    values[2, 2] = np.nan
    path = make(tmp_path / "a.zarr", values)
    printed = zarrc("plot", "--json", path).json
    assert 15 < printed["low"] < 25 and 975 < printed["high"] < 985
    assert printed["max"] == 1e30 and printed["missing"] == 2
    printed = zarrc("plot", "--json", "--percentiles=0,50", path).json
    assert printed["low"] == 1 and 495 < printed["high"] < 505
    printed = zarrc("plot", "--json", "--min=-3", "--max=7.5", path).json
    assert (printed["low"], printed["high"]) == (-3, 7.5)
    for wrong in ("50", "5,5", "90,10", "-1,50", "1,101", "a,b"):
        zarrc("plot", "--json", f"--percentiles={wrong}", path, code=2)
    zarrc("plot", "--json", "--min=5", "--max=5", path, code=2)
    equal = make(tmp_path / "b.zarr", np.full((3, 3), 7))
    printed = zarrc("plot", "--json", equal).json
    assert printed["low"] < 7 < printed["high"]
    nothing = make(tmp_path / "c.zarr", np.full((3, 3), np.nan))
    assert zarrc("plot", "--json", nothing).json["missing"] == 9


def test_hide_fill(zarrc, tmp_path):
    values = np.full((5, 5), -999, "i4")
    values[2] = 3
    path = make(tmp_path / "a.zarr", values, fill_value=-999)
    printed = zarrc("plot", "--json", "--hide-fill", path).json
    assert printed["missing"] == 20 and printed["min"] == 3


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype,fill,odd", [
    ("f4", 1e20, 0.1), ("f8", -999.5, 7), ("f2", 0.1, 9), ("i2", -99, 5), ("u1", 255, 0)])
def test_missing_values(zarrc, tmp_path, zarr_format, dtype, fill, odd):
    """As xarray shows them: what it writes, and how many of it are NaN when it is read."""
    values = np.full((4, 6), odd, dtype)
    values[1] = fill
    encoding = {"_FillValue": np.dtype(dtype).type(fill)}
    xarray.Dataset({"v": (("y", "x"), values)}).to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=False, encoding={"v": encoding})
    with xarray.open_zarr(tmp_path / "a.zarr", consolidated=False) as opened:
        assert int(opened.v.isnull().sum()) == 6
    printed = zarrc("plot", "--json", tmp_path / "a.zarr/v").json
    assert printed["missing"] == 6
    assert printed["min"] == printed["max"] == float(values[0, 0])


def test_regions(zarrc, tmp_path):
    values = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    path = make(tmp_path / "a.zarr", values)

    def print_plot(region, *options):
        return zarrc("plot", "--json", *options, f"{path}{region}").json
    assert (print_plot("")["min"], print_plot("")["region"]) == (0, "[0, 0, :, :]")
    assert print_plot("[1]")["min"] == 60 and print_plot("[1]")["region"] == "[1, 0, :, :]"
    assert print_plot("[1,:,2]")["shape"] == [3, 5] and print_plot("[1,:,2]")["max"] == 60 + 2 * 20 + 14
    assert print_plot("[...,3]")["shape"] == [3, 4]
    assert print_plot("[1,2,3]")["shape"] == [5]
    assert print_plot("[:,0,0,0]")["max"] == 60
    assert print_plot("[0,0,::-2,[1,3]]")["shape"] == [2, 2]
    assert print_plot("", "--slice=1,1:2")["min"] == 80
    zarrc("plot", "--json", f"{path}[1]", "--slice=1", code=2)
    zarrc("plot", "--json", f"{path}[5]", code=2)
    zarrc("plot", "--json", f"{path}[0,0,0,0]", code=2)
    zarrc("plot", "--json", f"{path}[0:0]", code=2)


def test_line(tmp_path, draw):
    values = np.sin(np.arange(500) / 30)
    values[200:220] = np.nan
    path = make(tmp_path / "a.zarr", values, dimension_names=["t"])
    pixels = draw(path, "--size=400x300")
    blue = (pixels[..., 2].astype(int) - pixels[..., 0] > 100).any(axis=0)
    columns = np.flatnonzero(blue)
    assert columns[0] < 60 and columns[-1] > 370
    gap = np.diff(columns).max()
    assert 8 < gap < 20  # NaN breaks the line


def test_any_size_is_quick(zarrc, tmp_path):
    zarr.create_array(str(tmp_path / "a.zarr"), shape=(10**6, 10**6, 10**4), chunks=(64, 64, 64),
                      dtype="u2", fill_value=3)
    began = time.monotonic()
    printed = zarrc("plot", "--json", "-o", tmp_path / "a.png", tmp_path / "a.zarr").json
    assert time.monotonic() - began < 5
    assert printed["sampled"] is True and printed["min"] == printed["max"] == 3
    assert printed["samples"] == [750, 1000]


def test_samples_are_in_their_place(zarrc, tmp_path, draw):
    """plot skips chunks if there are too many. The samples of the others are drawn at their positions."""
    np.save(tmp_path / "a.npy", np.broadcast_to(np.arange(960, dtype="u2")[:, None], (960, 960)))
    path = tmp_path / "a.zarr"
    zarrc("import", "--chunks=10,10", "--shards=960,960", tmp_path / "a.npy", path)  # zarr-python takes seconds for them
    pixels = draw(path, "--bare", "--size=320x320", "--min=0", "--max=959", "--map=gray")
    shown = pixels[:, 0, 0].astype(int)
    wanted = np.arange(320) / 319 * 255
    assert np.abs(shown - wanted).max() < 8 and (np.diff(shown) >= 0).all()


def test_terminal(zarrc, tmp_path):
    path = make(tmp_path / "a.zarr", np.arange(400.0).reshape(20, 20))
    text = zarrc("plot", "--term", "--size=40x13", "--color=always", path,
                 env={"COLORTERM": "truecolor"}).text
    assert "\033[38;2;68;1;84m" in text and "\u2580" in text and text.endswith("\n")
    text = zarrc("plot", "--term", "--size=40x13", "--color=always", path, env={"COLORTERM": ""}).text
    assert "\033[38;5;" in text
    lines = zarrc("plot", "--term", "--size=40x13", path).text.splitlines()
    assert len(lines) == 12 and "\033" not in "".join(lines) and lines[1][0] == " "
    assert lines[-2].endswith("@") and len(lines[1]) == 20
    line = make(tmp_path / "l.zarr", np.arange(50))
    lines = zarrc("plot", "--term", "--size=64x10", line).text.splitlines()
    assert len(lines) == 8 and lines[-1].endswith("\u2588" * 10)


def test_destination_of_the_picture(zarrc, tmp_path):
    path = make(tmp_path / "a.zarr", np.arange(9).reshape(3, 3))
    zarrc("plot", path, code=2)
    zarrc("plot", "-o", tmp_path / "a.png", path)
    before = (tmp_path / "a.png").read_bytes()
    assert "--force" in zarrc("plot", "-o", tmp_path / "a.png", path, code=5).err
    zarrc("plot", "--force", "--size=20x20", "-o", tmp_path / "a.png", path)
    assert (tmp_path / "a.png").read_bytes() != before
    zarrc("plot", "-o", tmp_path / "none/a.png", path, code=3)
    zarrc("plot", "-o", tmp_path / "b.png", tmp_path / "none.zarr", code=3)
    assert not (tmp_path / "b.png").exists()
    for wrong in (["--term", "-o", "x"], ["--json", "-o", "-"], ["--json", "--size=5"],
                  ["--json", "--size=0x5"], ["--json", "--map=jet"]):
        zarrc("plot", *wrong, path, code=2)


@pytest.mark.parametrize("size", ["1x1", "3x200", "200x3", "160x160", "161x300"])
def test_small_pictures(tmp_path, draw, size):
    path = make(tmp_path / "a.zarr", np.arange(90).reshape(9, 10))
    pixels = draw(path, f"--size={size}")
    assert f"{pixels.shape[1]}x{pixels.shape[0]}" == size
    pixels = draw(f"{path}[3]", f"--size={size}")
    assert f"{pixels.shape[1]}x{pixels.shape[0]}" == size
