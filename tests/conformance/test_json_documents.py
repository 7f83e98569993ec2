"""The JSON documents that zarr-metadata and zarr-indexing test themselves with.

scripts/venv fetches their source packages beside the Python packages (tests/sdists.txt).
Every array document must open, and what zarrc writes for it must mean the same; every
case of a codec, grid, key encoding, data type or fill value is put into a document that
suits it; every selection must pick the elements that its normal form says, and transforms
too, as far as they are selections of an array (BEYOND lists the others, with the reason).
"""
import base64
import json
import os
import pathlib
import sys
import tarfile

import numpy as np
import pytest

from zarrc_abi import ZarrcError
from zarrc_selection import Selection

FOLDER = pathlib.Path(sys.prefix) / "sdists"


def documents(package, under):
    """{path below `under`: parsed JSON} of a source package; empty when it isn't there."""
    found = {}
    for archive in FOLDER.glob(f"{package}-*.tar.gz"):
        with tarfile.open(archive) as tar:
            for member in tar:
                path = member.name.partition("/")[2]
                if member.isfile() and path.startswith(under) and path.endswith(".json"):
                    found[path[len(under):-5]] = json.load(tar.extractfile(member))
    return found


METADATA = documents("zarr_metadata", "tests/")
INDEXING = documents("zarr_indexing", "tests/conformance/")
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
# The document that a codec of these cases needs: data type, fill value, chunk shape.
SUITS = {"scale_offset": ("float64", 0.0), "cast_value": ("float64", 0.0)}
ONE_BYTE = {"bool", "int8", "uint8", "raw"}
ABSENT = "the source packages were not to be had: scripts/sdists says why"


def test_packages_are_there():
    """Elsewhere the tests below may be skipped; where changes are checked they run."""
    if os.environ.get("CI") == "true":
        assert METADATA and INDEXING, ABSENT
    elif not (METADATA and INDEXING):
        pytest.skip(ABSENT)


def array(**changes):
    document = {"zarr_format": 3, "node_type": "array", "shape": [20, 50], "data_type": "int32",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [20, 50]}},
                "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [BYTES]}
    return {**document, **changes}


def names(field):
    """A named thing in its long form, with an empty configuration left out."""
    if isinstance(field, str):
        return {"name": field}
    return {k: v for k, v in field.items() if not (k == "configuration" and not v)}


def normalize(value):
    """Documents that mean the same become equal: see what is_same() ignores."""
    if isinstance(value, dict):
        return {k: normalize(v) for k, v in value.items()}
    if isinstance(value, list):
        return [normalize(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def edges(shapes):
    return [each if isinstance(each, int) else
            sum(([e] if isinstance(e, int) else [e[0]] * e[1] for e in each), []) for each in shapes]


def check_same(written, document):
    """What was said is still said; members that have a default may have been added."""
    for name in ("shape", "zarr_format", "node_type", "attributes", "chunks", "order"):
        if name in document:
            assert written[name] == document[name], name
    for name in ("chunk_grid", "chunk_key_encoding"):
        if name in document:
            said, again = names(document[name]), names(written[name])
            assert again["name"] == said["name"]
            for member, value in said.get("configuration", {}).items():
                now = again["configuration"][member]
                if member == "chunk_shapes":  # runs may be written in other ways
                    value, now = edges(value), edges(now)
                assert now == value, (name, member)
    if "codecs" in document:
        assert len(written["codecs"]) == len(document["codecs"])
        for again, said in zip(map(names, written["codecs"]), map(names, document["codecs"])):
            assert again["name"] == said["name"]


# ---- whole documents --------------------------------------------------------------------

def put(context, key, document):
    store = context.store("memory:")
    store.put(key, json.dumps(document).encode())
    return store


@pytest.mark.parametrize("name", [n for n in METADATA if n.startswith("v3/array/")] or [None])
def test_array_v3(context, name):
    if name is None:
        pytest.skip(ABSENT)
    opened = put(context, "zarr.json", METADATA[name]).open("")
    check_same(json.loads(opened.metadata), METADATA[name])


@pytest.mark.parametrize("name", [n for n in METADATA if n.startswith("v2/array/")] or [None])
def test_array_v2(context, name):
    if name is None:
        pytest.skip(ABSENT)
    opened = put(context, ".zarray", METADATA[name]).open("")
    written = json.loads(opened.metadata)
    check_same(written, METADATA[name])
    assert written["dtype"] == METADATA[name]["dtype"]
    assert (written["filters"] or []) == (METADATA[name]["filters"] or [])


@pytest.mark.parametrize("name", [n for n in METADATA if "/group/" in n] or [None])
def test_group(context, name):
    if name is None:
        pytest.skip(ABSENT)
    document = METADATA[name]
    key = "zarr.json" if document["zarr_format"] == 3 else ".zgroup"
    group = put(context, key, document).group("")
    assert group.attributes == document.get("attributes", {})


@pytest.mark.parametrize("name", [n for n in METADATA if "/consolidated/" in n] or [None])
def test_consolidated(context, name):
    if name is None:
        pytest.skip(ABSENT)
    document = METADATA[name]
    if name.startswith("v2/"):
        store = put(context, ".zmetadata", document)
        store.put(".zgroup", b'{"zarr_format":2}')
        expected = {key.rpartition("/")[0] for key in document["metadata"]}
    else:
        store = put(context, "zarr.json", {"zarr_format": 3, "node_type": "group",
                                           "consolidated_metadata": document})
        expected = set(document["metadata"])
    group = store.group("", consolidated=1)  # it, and nothing else
    listed = {item[0].strip("/") for item in group.walk()}
    assert listed - {""} == expected - {""}


# ---- parts ------------------------------------------------------------------------------

def parts(kind):
    """[(id, name of the extension, case)]"""
    rows = []
    for path, cases in METADATA.items():
        folder = f"v3/{kind}/"
        if path.startswith(folder) and path.endswith("/cases"):
            name = path[len(folder):-len("/cases")]
            rows += [pytest.param(name, case, id=f"{name}-{label}") for label, case in cases.items()]
    return rows or [pytest.param(None, None, id="absent")]


def chain(name, case):
    """The codec at its place in a chain, and the array that it takes."""
    dtype, fill = SUITS.get(name, ("int32", 0))
    said = names(case)
    configuration = said.get("configuration", {})
    document = array(data_type=dtype, fill_value=fill)
    if name == "bytes":
        if "endian" not in configuration:
            document.update(data_type="uint8")
        codecs = [case]
    elif name == "sharding_indexed":
        document["shape"] = document["chunk_grid"]["configuration"]["chunk_shape"] = [
            4 * n for n in configuration["chunk_shape"]]
        codecs = [case]
    elif name == "transpose":
        rank = len(configuration["order"])
        document["shape"] = document["chunk_grid"]["configuration"]["chunk_shape"] = [4] * rank
        codecs = [case, BYTES]
    elif name in ("cast_value", "scale_offset"):
        codecs = [case, BYTES]
    else:
        codecs = [BYTES, case]
    return {**document, "codecs": codecs}


@pytest.mark.parametrize("name, case", parts("codec"))
def test_codec(context, name, case):
    if name is None:
        pytest.skip(ABSENT)
    document = chain(name, case)
    configuration = names(case).get("configuration", {})
    refused = isinstance(configuration.get("data_type"), dict)  # cast_value to what is no number
    store = put(context, "zarr.json", document)
    if refused:
        with pytest.raises(ZarrcError) as told:
            store.open("")
        assert name in told.value.message
        return
    opened = store.open("")
    check_same(json.loads(opened.metadata), document)


@pytest.mark.parametrize("name, case", parts("chunk_grid"))
def test_chunk_grid(context, name, case):
    if name is None:
        pytest.skip(ABSENT)
    shape = case["configuration"].get("chunk_shape")
    if shape is None:  # edges, a length repeated, or one length for all
        shape = [10 if isinstance(edges, int) else
                 sum(e if isinstance(e, int) else e[0] * e[1] for e in edges)
                 for edges in case["configuration"]["chunk_shapes"]]
    document = array(shape=shape, chunk_grid=case)
    check_same(json.loads(put(context, "zarr.json", document).open("").metadata), document)


@pytest.mark.parametrize("name, case", parts("chunk_key_encoding"))
def test_chunk_key_encoding(context, name, case):
    if name is None:
        pytest.skip(ABSENT)
    document = array(chunk_key_encoding=case)
    check_same(json.loads(put(context, "zarr.json", document).open("").metadata), document)


def fill_values():
    rows = []
    for path, fills in METADATA.items():
        if path.startswith("v3/data_type/") and path.endswith("/fill_values"):
            name = path.split("/")[2]
            described = METADATA.get(f"v3/data_type/{name}/data_type")
            rows += [pytest.param(name, described, fill, id=f"{name}-{label}")
                     for label, fill in fills.items()]
    return rows or [pytest.param(None, None, None, id="absent")]


@pytest.mark.parametrize("name, described, fill", fill_values())
def test_fill_value(context, name, described, fill):
    if name is None:
        pytest.skip(ABSENT)
    dtype = described or {"raw": f"r{8 * len(fill)}"}.get(name, name) if name == "raw" else \
        described or name
    codecs = {"string": ["vlen-utf8"], "bytes": ["vlen-bytes"]}.get(
        name, ["bytes"] if name in ONE_BYTE else [BYTES])
    document = array(data_type=dtype, fill_value=fill, codecs=codecs)
    written = json.loads(put(context, "zarr.json", document).open("").metadata)
    again = json.loads(put(context, "zarr.json", written).open("").metadata)
    assert again == written
    if isinstance(fill, (int, float, bool)):
        assert written["fill_value"] == fill
    elif isinstance(fill, dict):
        assert normalize(written["fill_value"]) == normalize(fill)
    else:  # text and lists: as numbers, or one of the spellings of one value
        assert parse_fill(name, written["fill_value"]) == parse_fill(name, fill)


def parse_fill(name, fill):
    """The value of a fill value that is text or a list, apart from how it is spelled."""
    if isinstance(fill, list) and name.startswith("complex"):
        return [parse_fill(f"float{int(name[7:]) // 2}", part) for part in fill]
    if name.startswith("float"):  # the very bits, of NaNs as well
        size = int(name[5:]) // 8
        if isinstance(fill, str) and fill.startswith("0x"):
            return fill[2:].lower().rjust(2 * size, "0")
        return np.array({"NaN": np.nan}.get(fill, fill), f">f{size}").tobytes().hex()
    if name == "bytes" and isinstance(fill, str):
        return list(base64.b64decode(fill, validate=True))
    return fill


# ---- selections -------------------------------------------------------------------------

def pick(transform):
    """Coordinates, one row a dimension of the array, that a normal form picks in C order."""
    low, high = transform["input_inclusive_min"], transform["input_exclusive_max"]
    domain = np.meshgrid(*[np.arange(a, b) for a, b in zip(low, high)], indexing="ij")
    domain = [axis.reshape(-1) for axis in domain]
    n = len(domain[0]) if domain else 1
    rows = []
    for output in transform["output"]:
        offset, stride = output.get("offset", 0), output.get("stride", 1)
        if "input_dimension" in output:
            rows.append(offset + stride * domain[output["input_dimension"]])
        elif "index_array" in output:
            rows.append(offset + stride * np.array(output["index_array"], np.int64).reshape(-1))
        else:
            rows.append(np.full(n, offset))
    return rows


def cases(*files):
    rows = [pytest.param(case, id=case["name"]) for file in files for case in INDEXING.get(file, [])]
    return rows or [pytest.param(None, id="absent")]


def make_selection(message, shape, shift):
    """The message as one of our selections of an array that begins at -shift."""
    kind = message["kind"]
    if kind == "slice":
        steps = message.get("step") or [1] * len(message["start"])
        return Selection.dims(shape, *[slice(a + s, b + s, c) for a, b, c, s in
                                       zip(message["start"], message["stop"], steps, shift)])
    if kind == "box":
        low = message.get("inclusive_min") or [0] * len(shape)
        if "shape" in message:
            counts = message["shape"]
        elif "inclusive_max" in message:
            counts = [b + 1 - a for a, b in zip(low, message["inclusive_max"])]
        else:
            counts = [b - a for a, b in zip(low, message["exclusive_max"])]
        return Selection.box(shape, low, counts)
    if kind == "point":
        return Selection.dims(shape, *message["coords"])
    return Selection.points(shape, np.array(message["coords"], np.int64).reshape(-1, len(shape)))


ENDLESS = "a bound is infinite: arrays end, and a selection of ours names its end"
# Cases that say nothing about a selection of ours, and why.
BEYOND = {"box/implicit-and-infinite-bounds": ENDLESS, "transform/implicit-bounds-and-labels": ENDLESS}


def suits(case):
    if case is None:
        pytest.skip(ABSENT)
    if case["name"] in BEYOND:
        pytest.skip(BEYOND[case["name"]])


@pytest.mark.parametrize("case", cases("slice", "box", "point", "points"))
def test_selection(context, case):
    suits(case)
    message = case["input"]
    rows = pick(case["normalized"])
    if max((int(r.max()) for r in rows if r.size), default=0) > 1000:
        huge = context.store("memory:").create("", (2**62,), "uint8", chunks=(1,), fill_value=3)
        assert huge.read("u1", Selection.dims(huge.shape, *message["coords"])) == 3
        return
    rank = len(rows) or len(message["coords"] and message["coords"][0] or [])
    least = [min(0, int(r.min())) if r.size else 0 for r in rows]
    shift = [1 - n if n < 0 or message["kind"] == "slice" else 0 for n in least]
    shape = (40,) * max(rank, 1 if message["kind"] == "points" else 0)
    data = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
    stored = context.store("memory:").create("", shape, "int32", chunks=(7,) * len(shape))
    stored.write(data)
    got = stored.read("i4", make_selection(message, shape, shift)).reshape(-1)
    expected = data[tuple(r + s for r, s in zip(rows, shift))].reshape(-1) if rows else \
        data.reshape(-1)[:len(message["coords"]) if message["kind"] == "points" else 1]
    np.testing.assert_array_equal(got, expected)


def axes(transform):
    """The transform as what is taken of each dimension of the array, where that will do."""
    low, high = transform["input_inclusive_min"], transform["input_exclusive_max"]
    for output in transform["output"]:
        offset, stride = output.get("offset", 0), output.get("stride", 1)
        if "input_dimension" in output:
            at = output["input_dimension"]
            yield slice(offset + stride * low[at], max(offset + stride * (high[at] - 1) + 1, 0), stride)
        else:
            yield offset


@pytest.mark.parametrize("case", cases("transform"))
def test_transform(context, case):
    """By points, which take any transform; and by dimensions where each has its own."""
    suits(case)
    transform = case["normalized"]
    rows = pick(transform)
    lengths = [b - a for a, b in zip(transform["input_inclusive_min"], transform["input_exclusive_max"])]
    shape = (12,) * len(rows)
    data = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
    stored = context.store("memory:").create("", shape, "int32", chunks=(5,) * len(shape))
    stored.write(data)
    n = int(np.prod(lengths))
    points = np.array([np.broadcast_to(r, n) for r in rows], np.int64).T
    expected = data[tuple(points.T)].reshape(lengths)
    got = stored.read("i4", Selection.points(shape, points, lengths))
    np.testing.assert_array_equal(got, expected)
    used = [o["input_dimension"] for o in transform["output"] if "input_dimension" in o]
    if used == list(range(len(lengths))) and not any("index_array" in o for o in transform["output"]):
        got = stored.read("i4", Selection.dims(shape, *axes(transform)))
        np.testing.assert_array_equal(got, expected)


def slice_text(message):
    """As text; a list that is too short is what is wrong."""
    steps = message.get("step") or [1] * len(message["start"])
    text = ",".join(f"{a}:{b}:{c}" for a, b, c in
                    zip(message["start"], message["stop"] * 2, steps))
    return (40,) * len(message["stop"]), text


NOTATION = "about members of the notation's JSON, which the library does not read"
# Errors of the notation that are none of ours, each by its name.
FOREIGN = {f"error/{name}": NOTATION for name in """multiple-upper-bounds unknown-kind
    transform-multiple-upper-bounds transform-rank-mismatch missing-kind point-missing-coords
    point-bool-coord slice-missing-stop box-non-list-bound points-bool-coord output-map-conflict
    box-unknown-field point-unknown-field output-map-unknown-field transform-inverted-bounds""".split()}


@pytest.mark.parametrize("case", cases("errors"))
def test_refused_selection(case):
    if case is None:
        pytest.skip(ABSENT)
    if case["name"] in FOREIGN:
        pytest.skip(FOREIGN[case["name"]])
    message = case["input"]
    if case["error"] == "bounds_out_of_order" and message["kind"] == "slice":
        # An interval from end to start picks nothing, as in NumPy; the notation refuses it.
        assert Selection.parse(*slice_text(message)).n_items == 0
        return
    with pytest.raises(ZarrcError) as told:
        if message["kind"] == "slice":
            Selection.parse(*slice_text(message))
        elif message["kind"] == "point":
            Selection.parse((40,), str(message["coords"][0]))
        elif "shape" in message:
            Selection.box((40,), [0], message["shape"])
        else:
            low, high = message["inclusive_min"], message["exclusive_max"]
            Selection.box((40,), low, [b - a for a, b in zip(low, high)])
    assert told.value.code in ("INVALID", "BOUNDS", "LIMIT"), told.value.code
