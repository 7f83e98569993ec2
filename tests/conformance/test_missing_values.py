"""Missing values through a change of the format, as xarray decodes them: it takes v2's fill value, or
else the attribute _FillValue, for missing, and in v3 the attribute alone, in a form of its own."""
import base64
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import warnings

import numpy as np
import pytest
import xarray
import zarr

PROGRAM = os.environ.get("ZARRC", str(pathlib.Path(__file__).resolve().parents[2] / "build/dev/bin/zarrc"))
NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "?"]
TEXTS = ["U3", "S3", "T"]
TIMES = ["M8[s]", "m8[s]"]
SCALED = {"scale_factor": 0.1, "add_offset": 10.3}
PLAIN, PACKED, DATES = {}, SCALED, {"units": "days since 2000-01-01"}
N, CHUNK = 8, 4


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def elements(dtype):
    if dtype == "T":
        return np.array(["", "b", "c", "", "b", "d", "", "c"], object)
    if dtype[0] in "US":
        return np.array(["", "b", "c", "", "b", "d", "", "c"], dtype)
    if dtype == "?":
        return np.array([0, 1, 0, 0, 1, 1, 0, 1], bool)
    data = np.array([0, 1, 2, 0, 7, 1, 3, 0]).astype(dtype)
    if dtype[0] in "fc":
        data[2] = np.nan
        data[3] = -0.0
    if dtype[0] == "c":
        data[6] = 1 + 2j
    return data


def fills(dtype):
    """Zero, a value that occurs, and where there is one NaN, infinity, or one that needs all digits."""
    if dtype == "T":
        return ["", "b"]
    if dtype[0] in "US":
        return [np.array("", dtype)[()], np.array("b", dtype)[()]]
    if dtype == "?":
        return [False, True]
    values = [0, 1]
    if dtype[0] in "iu":
        values += [np.iinfo(dtype).min, np.iinfo(dtype).max]
    elif dtype[0] == "f":
        values += [np.nan, np.inf, -np.inf, 0.1]
    elif dtype[0] == "c":
        values += [1 + 2j, complex(np.nan, 0), 0.1]
    return [np.array(v).astype(dtype)[()] for v in values]


def spell(value, dtype):
    """The attribute as xarray's FillValueCoder writes it in v3."""
    def real(v):
        return base64.b64encode(struct.pack("<d", float(v))).decode()
    if dtype[0] == "c":
        return [real(value.real), real(value.imag)]
    return real(value) if dtype[0] == "f" else bool(value) if dtype == "?" else int(value)


WRITTEN, READ, SCRATCH = {}, {}, tempfile.TemporaryDirectory()


def write_folder(form, dtype, fill, stored=N, dims=True):
    """The folder of an array that zarr-python wrote, without attributes."""
    key = (form, dtype, fill if fill is None or isinstance(fill, str) else np.asarray(fill).tobytes(), stored, dims)
    if key not in WRITTEN:
        WRITTEN[key] = pathlib.Path(SCRATCH.name) / str(len(WRITTEN))
        array = zarr.create_array(WRITTEN[key], zarr_format=form, shape=(N,), chunks=(CHUNK,),
                                  dtype=str if dtype == "T" else dtype, fill_value=fill, compressors=None,
                                  dimension_names=["x"] if form == 3 and dims else None,
                                  chunk_key_encoding={"name": "v2", "separator": "."},
                                  config={"write_empty_chunks": True})
        array[:stored] = elements(dtype)[:stored]
    return WRITTEN[key]


def write(path, form, dtype, fill, attributes, stored=N, dims=True, name="v"):
    """Adds a variable to a group. zarr-python writes arrays that differ in attributes only once."""
    if not path.exists():
        zarr.create_group(path, zarr_format=form)
    shutil.copytree(write_folder(form, dtype, fill, stored, dims), path / name)
    if form == 2 and dims:
        attributes = attributes | {"_ARRAY_DIMENSIONS": ["x"]}
    if form == 2 and attributes:
        (path / name / ".zattrs").write_text(json.dumps(attributes))
    if form == 3:
        text = path / name / "zarr.json"
        text.write_text(json.dumps(json.loads(text.read_text()) | {"attributes": attributes}))


def open_variables(path):
    """What xarray decodes, by variable. Without dask, which takes most of the time and decodes nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: v.values for name, v in xarray.open_zarr(path, chunks=None, consolidated=False).variables.items()}


def decode(path):
    return open_variables(path)["v"]


def stored_in(array):
    """What zarr-python reads, and the bits of the fill value."""
    return array[:], None if array.fill_value is None else np.asarray(array.fill_value).tobytes()


def raw(path):
    return {name: stored_in(array) for name, array in zarr.open_group(path, mode="r").arrays()}


def raw_written(*which):
    """The same of an array that write_folder() gives. It does not depend on attributes, so it is read once."""
    folder = write_folder(*which)
    if folder not in READ:
        READ[folder] = stored_in(zarr.open_array(folder, mode="r"))
    return READ[folder]


def equal(a, b):
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
    return a.shape == b.shape and all(
        x is y or x == y or (x != x and y != y) for x, y in zip(a.tolist(), b.tolist()))


def same(before, after, where):
    # NaN that is declared missing in one format only lets xarray compute in double
    assert equal(before, after), (where, before, after)


def document(path, name="v/zarr.json"):
    return json.loads((path / name).read_text())


def convert(how, source, target, form, *options, code=0):
    if how == "reencode":
        done = run("reencode", f"--zarr-format={form}", *options, source, target, code=code)
        if code == 0:
            run("diff", "--data", source, target)
        return done
    if not target.exists():
        run("cp", source, target)
    return run("migrate", f"--zarr-format={form}", "--remove-old", *options, target, code=code)


def kinds(dtypes):
    for dtype in dtypes:
        for attributes in [PLAIN, PACKED] + ([DATES] if dtype in ("i4", "i8", "f8") else []):
            yield pytest.param(dtype, attributes, id=f"{dtype}-{'-'.join(attributes) or 'plain'}")


def possible_fills(dtype, attributes):
    return fills(dtype)[:2] if attributes == DATES else fills(dtype)  # others are no dates


@pytest.mark.parametrize("how", ["migrate", "reencode"])
@pytest.mark.parametrize("dtype,attributes", list(kinds(NUMBERS)))
def test_numbers_to_v3_and_back(tmp_path, how, dtype, attributes):
    v2, v3, back = (tmp_path / name for name in ("v2", "v3", "back"))
    variables = {f"v{i}-{stored}": (fill, stored) for stored in (4, N)
                 for i, fill in enumerate([None, *possible_fills(dtype, attributes)])}
    for name, (fill, stored) in variables.items():
        write(v2, 2, dtype, fill, attributes, stored, name=name)
    before = open_variables(v2)
    assert "warning" not in convert(how, v2, v3, 3).stderr
    run("diff", v2, v3)
    convert(how, v3, back, 2)
    as_v3, again, stored_after = open_variables(v3), open_variables(back), raw(back)
    for name, (fill, stored) in variables.items():
        stored_before = raw_written(2, dtype, fill, stored)
        assert document(v3, f"{name}/zarr.json").get("attributes", {}).get("_FillValue") == \
            (None if fill is None else spell(fill, dtype)), fill
        same(before[name], as_v3[name], ("v3", name, fill))
        same(before[name], again[name], ("back", name, fill))
        assert equal(stored_before[0], stored_after[name][0]), fill
        assert stored_before[1] == stored_after[name][1], fill
        assert document(v2, f"{name}/.zattrs") == document(back, f"{name}/.zattrs")


@pytest.mark.parametrize("how", ["migrate", "reencode"])
@pytest.mark.parametrize("dtype,attributes", list(kinds(NUMBERS)))
def test_numbers_to_v2(tmp_path, how, dtype, attributes):
    """Each fill value with each missing value, with and without missing chunks."""
    v3, v2, refused = (tmp_path / name for name in ("v3", "v2", "refused"))
    variables, n_refused = {}, 0
    values = possible_fills(dtype, attributes)
    for i, fill in enumerate(values):
        for k, missing in enumerate([None, *values]):
            for stored in (4, N):
                extra = {} if missing is None else {"_FillValue": spell(missing, dtype)}
                no = how == "migrate" and changes_missing(fill, missing, attributes) and stored < N
                n_refused += no
                name = f"v{i}-{k}-{stored}"
                write(refused if no else v3, 3, dtype, fill, attributes | extra, stored, name=name)
                if not no:
                    variables[name] = (fill, missing, stored)
    if n_refused:
        done = convert(how, refused, tmp_path / "to", 2, code=6)
        assert done.stderr.count("elements of missing chunks") == n_refused and "--keep-fill" in done.stderr
        assert not list((tmp_path / "to").rglob(".z*"))
    before = open_variables(v3)
    convert(how, v3, v2, 2)
    after, stored_after = open_variables(v2), raw(v2)
    for name, (fill, missing, stored) in variables.items():
        if missing is None and fill != fill and attributes == PACKED:
            # xarray now knows a missing value: it computes in the array's own type
            assert np.allclose(before[name], after[name].real, equal_nan=True, rtol=1e-2 if dtype == "f2" else 1e-6)
        else:
            same(before[name], after[name], (name, fill, missing))
        assert equal(raw_written(3, dtype, fill, stored)[0], stored_after[name][0]), (name, fill, missing)


def changes_missing(fill, missing, attributes):
    zero = np.array(fill).tobytes().strip(b"\0") == b""
    nan = fill != fill
    if missing is None:
        return not zero and not nan
    if missing == fill or (nan and missing != missing):
        return False
    if not zero:
        return True
    if missing != missing:
        return attributes == PACKED
    return not (np.isfinite(missing) and missing.imag == 0)


@pytest.mark.parametrize("how", ["migrate", "reencode"])
@pytest.mark.parametrize("dtype", TEXTS + TIMES)
def test_types_without_a_form_in_v3(tmp_path, how, dtype):
    """xarray raises on their attribute in v3: they get none, with a warning."""
    values = fills(dtype) if dtype in TEXTS else [np.array(1).astype(dtype)[()]]
    for i, fill in enumerate([None, *values]):
        path, to = tmp_path / f"{i}", tmp_path / f"{i}-v3"
        write(path, 2, dtype, fill, {}, 4)
        before = decode(path)
        done = convert(how, path, to, 3)
        assert ("warning" in done.stderr) == (fill is not None) and done.stderr.count("missing value") < 2
        assert "_FillValue" not in document(to).get("attributes", {})
        after = decode(to)
        if fill is None or dtype in TIMES:
            same(before, after, fill)
        else:
            said = [a if a == a else fill for a in before.tolist()]
            assert said == after.tolist()
            differs = run("diff", path, to, code=1)
            assert "missing value: " in differs.stdout and "elements differ" not in differs.stdout


@pytest.mark.parametrize("how", ["migrate", "reencode"])
@pytest.mark.parametrize("dtype", TEXTS + TIMES)
def test_text_and_times_to_v2(tmp_path, how, dtype):
    values = fills(dtype) if dtype in TEXTS else [np.array(v).astype(dtype)[()] for v in (0, 1)]
    for i, fill in enumerate(values):
        for stored in (4, N):
            path, to = tmp_path / f"{i}-{stored}", tmp_path / f"{i}-{stored}-v2"
            write(path, 3, dtype, fill, {}, stored)
            before = decode(path)
            if how == "migrate" and dtype in TEXTS and i and stored < N:
                convert(how, path, to, 2, code=6)
                continue
            convert(how, path, to, 2)
            same(before, decode(to), (fill, stored))


@pytest.mark.parametrize("how", ["migrate", "reencode"])
@pytest.mark.parametrize("dtype,plain,expected", [
    ("f4", 1, "AAAAAAAA8D8="), ("f4", 0.1, "mpmZmZmZuT8="), ("f4", [1.0], "AAAAAAAA8D8="), ("f4", "NaN", "AAAAAAAA+H8="),
    ("f4", [1.0, 2.0], None), ("f4", "1", None), ("c8", 1.0, ["AAAAAAAA8D8=", "AAAAAAAAAAA="]), ("c8", [1.0, 0.0], None),
    ("i4", 1, 1), ("i4", 1.0, 1), ("i4", 1.5, None), ("i4", "1", None), ("i4", [1], 1), ("u8", 2**64 - 1, 2**64 - 1),
    ("i8", -2**63, -2**63), ("?", True, True), ("?", 1, True), ("?", 0, False), ("?", 2, None)])
def test_plain_attributes_of_v2(tmp_path, how, dtype, plain, expected):
    """With a null fill value the attribute counts, else it is overridden."""
    for fill in (None, np.array(1).astype(dtype)[()]):
        path, to = tmp_path / f"{fill}", tmp_path / f"{fill}-v3"
        write(path, 2, dtype, fill, {"_FillValue": plain})
        before = decode(path)
        done = convert(how, path, to, 3)
        want = expected if fill is None else spell(fill, dtype)
        assert document(to)["attributes"].get("_FillValue") == want
        assert ("warning" in done.stderr) == (want is None)
        if plain not in ([1.0, 2.0], [1.0, 0.0]):  # xarray masks several values in v2
            same(before.astype(float) if dtype == "i4" else before,
                 decode(to).astype(float) if dtype == "i4" else decode(to), fill)


@pytest.mark.parametrize("how", ["migrate", "reencode"])
def test_only_variables_of_xarray(tmp_path, how):
    """Without names of dimensions, fill value and attributes stay."""
    for form in (2, 3):
        for i, attributes in enumerate([{}, {"_FillValue": "AAAAAAAA8D8="}]):
            path, to = tmp_path / f"{form}-{i}", tmp_path / f"{form}-{i}-to"
            write(path, form, "f4", 5, attributes, 4, dims=False)
            convert(how, path, to, 5 - form)
            after = document(to) if form == 2 else document(to, "v/.zarray")
            told = after["attributes"] if form == 2 else \
                document(to, "v/.zattrs") if (to / "v/.zattrs").exists() else {}
            assert after["fill_value"] == 5 and told == attributes


@pytest.mark.parametrize("how", ["migrate", "reencode"])
def test_keep_fill(tmp_path, how):
    for form in (2, 3):
        path, to = tmp_path / f"{form}", tmp_path / f"{form}-to"
        write(path, form, "i4", 5, {}, 4)
        convert(how, path, to, 5 - form, "--keep-fill")
        after = document(to) if form == 2 else document(to, "v/.zarray")
        assert after["fill_value"] == 5 and "_FillValue" not in after.get("attributes", {})
        differs = run("diff", path, to, code=1).stdout.splitlines()
        assert differs[1:] == ["  missing value: " + ("5 | (none)" if form == 2 else "(none) | 5")]
        run("diff", "--data", path, to)


@pytest.mark.parametrize("how", ["create", "import"])
@pytest.mark.parametrize("dtype,attributes", list(kinds(["i2", "f4", "c8"])))
def test_like_an_array_of_the_other_format(tmp_path, how, dtype, attributes):
    """A new array with the same elements has the same missing value, whatever format its model has."""
    values = possible_fills(dtype, attributes)[:3]
    cases = [(2, fill, None) for fill in [None, *values]]
    cases += [(3, fill, missing) for fill in values for missing in [None, *values]]
    for i, (form, fill, missing) in enumerate(cases):
        path, to = tmp_path / f"{i}", tmp_path / f"{i}-to"
        extra = {} if missing is None else {"_FillValue": spell(missing, dtype)}
        write(path, form, dtype, fill, attributes | extra)
        zarr.open_group(to, mode="w", zarr_format=5 - form)
        if how == "create":
            run("create", "--like", path / "v", f"--zarr-format={5 - form}", to / "v")
            zarr.open_group(to, mode="a")["v"][:] = elements(dtype)
        else:
            np.save(tmp_path / "v.npy", elements(dtype))
            run("import", "--like", path / "v", f"--zarr-format={5 - form}", tmp_path / "v.npy", to / "v")
        before, after = decode(path), decode(to)
        if form == 3 and missing is None and fill != fill and attributes == PACKED:
            assert np.allclose(before, after.real, equal_nan=True, rtol=1e-6)
        else:
            same(before, after, (form, fill, missing))


def test_like_takes_the_choices_of_the_caller(tmp_path):
    write(tmp_path / "a", 2, "i4", 5, {})
    write(tmp_path / "b", 2, "U3", np.array("b", "U3")[()], {})
    def create(*options, path="a"):
        done = run("create", "--force", "--like", tmp_path / path / "v", "--zarr-format=3", *options, tmp_path / "to")
        root = json.loads((tmp_path / "to/zarr.json").read_text())
        return root["fill_value"], root.get("attributes", {}), done.stderr
    assert create() == (5, {"_FillValue": 5}, "")
    assert create("--keep-fill") == (5, {}, "")
    assert create("--fill=7") == (7, {"_FillValue": 5}, "")
    assert create('--attributes={"a": 1}') == (5, {"a": 1}, "")
    assert create("--dtype=float32") == (0.0, {}, "")
    assert "xarray has no form of a missing value" in create(path="b")[2]


def test_choices_of_the_caller_count(tmp_path):
    write(tmp_path / "a", 3, "i4", 5, {}, 4)
    run("reencode", "--zarr-format=2", "--fill=7", tmp_path / "a/v", tmp_path / "b")
    assert json.loads((tmp_path / "b/.zarray").read_text())["fill_value"] == 7
    write(tmp_path / "c", 2, "i4", 5, {}, 4)
    run("reencode", "--zarr-format=3", "--fill=7", tmp_path / "c/v", tmp_path / "d")
    made = json.loads((tmp_path / "d/zarr.json").read_text())
    assert made["fill_value"] == 7 and made["attributes"]["_FillValue"] == 5
    run("reencode", "--zarr-format=3", '--attributes={"_FillValue": 9}', tmp_path / "c/v", tmp_path / "e")
    assert json.loads((tmp_path / "e/zarr.json").read_text())["attributes"] == {"_FillValue": 9}


def test_a_migration_can_be_repeated(tmp_path):
    """With old metadata beside the new, and removed by a second call."""
    write(tmp_path / "a", 2, "f4", 1, {"units": "K"})
    before = decode(tmp_path / "a")
    run("migrate", tmp_path / "a")
    assert "0 documents written" in run("migrate", "--remove-old", tmp_path / "a").stderr
    assert not list((tmp_path / "a").rglob(".z*"))
    same(before, decode(tmp_path / "a"), "v3")


@pytest.mark.parametrize("form", [2, 3])
def test_datasets_that_xarray_writes(tmp_path, form):
    data = xarray.Dataset({
        "t": ("x", np.array([1.5, np.nan, 2]), {}, {"_FillValue": -999.0, "dtype": "i2", "scale_factor": 0.5}),
        "u": ("x", np.array([1, np.nan, 2], "f4")),
        "n": ("x", np.array([1, 2, 3])),
        "time": ("x", np.array(["2000-01-01", "NaT", "2000-01-03"], "M8[ns]")),
        "scalar": ((), 3.0)}, coords={"x": [0.5, 1.5, 2.5]})
    data["t"].encoding["_FillValue"] = np.int16(-999)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_zarr(tmp_path / "a", zarr_format=form, consolidated=False)
    before = xarray.open_zarr(tmp_path / "a", consolidated=False).load()
    run("reencode", f"--zarr-format={5 - form}", tmp_path / "a", tmp_path / "b")
    after = xarray.open_zarr(tmp_path / "b", consolidated=False).load()
    xarray.testing.assert_identical(before, after)
    run("reencode", f"--zarr-format={form}", tmp_path / "b", tmp_path / "c")
    xarray.testing.assert_identical(before, xarray.open_zarr(tmp_path / "c", consolidated=False).load())
