"""numcodecs' delta and astype on times and on other types than the array's, v2 and v3, against zarr-python."""
import numpy as np
import pytest

import cases
import peers

NAT = np.iinfo("i8").min
# label: (data type of the array, the filter)
FILTERS = {
    "delta": ("<m8[s]", {"id": "delta", "dtype": "<m8[s]"}),
    "delta-10us": ("<m8[10us]", {"id": "delta", "dtype": "<m8[10us]", "astype": "<m8[10us]"}),
    "date-int": ("<M8[s]", {"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<M8[s]"}),
    "span-int": ("<m8[ms]", {"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<m8[ms]"}),
    "date-unsigned": ("<M8[D]", {"id": "astype", "encode_dtype": "<u8", "decode_dtype": "<M8[D]"}),
    "date-narrow": ("<M8[s]", {"id": "astype", "encode_dtype": "<i4", "decode_dtype": "<M8[s]"}),
    "int-date": ("<i8", {"id": "astype", "encode_dtype": "<M8[s]", "decode_dtype": "<i8"}),
    "short-span": ("<i2", {"id": "astype", "encode_dtype": "<m8[s]", "decode_dtype": "<i2"}),
    "date-span": ("<M8[s]", {"id": "astype", "encode_dtype": "<m8[s]", "decode_dtype": "<M8[s]"}),
}
# The filter names another type of the same width: it works on the array's bits.
FILTERS |= {
    "signed": ("<u4", {"id": "delta", "dtype": "<i4"}),
    "unsigned": ("<i4", {"id": "delta", "dtype": "<u4"}),
    "date-bits": ("<M8[s]", {"id": "delta", "dtype": "<i8"}),
    "span-bits": ("<m8[s]", {"id": "delta", "dtype": "<i8"}),
}
BIG = {
    "delta": (">m8[s]", {"id": "delta", "dtype": ">m8[s]"}),
    "delta-turned": (">m8[s]", {"id": "delta", "dtype": ">m8[s]", "astype": "<m8[s]"}),
    "date-int": (">M8[s]", {"id": "astype", "encode_dtype": "<i8", "decode_dtype": ">M8[s]"}),
    "date-big": ("<M8[s]", {"id": "astype", "encode_dtype": ">i8", "decode_dtype": "<M8[s]"}),
}


def name_v3(dtype):
    native = np.dtype(dtype)
    if native.kind not in "mM":
        return native.name
    unit, scale = np.datetime_data(native)
    return {"name": f"numpy.{native.name.split('[')[0]}", "configuration": {"unit": unit, "scale_factor": scale}}


def check(context, tmp_path, dtype, filter_, format_, nat):
    counts = np.array([5, 7, -3, 100, 9, 9, NAT if nat else 2, 12, 3, 2**40], "i8")
    native = np.dtype(dtype).newbyteorder("=")
    data = counts.view(native) if native.kind in "mM" else counts.astype(native)
    if format_ == 2:
        doc = cases.document_v2(dtype, 0, (10,), (6,), filters=[filter_])
    else:
        members = {k: v for k, v in filter_.items() if k != "id"}
        doc = cases.document_v3(name_v3(dtype), 0, [
            {"name": "numcodecs." + filter_["id"], "configuration": members},
            {"name": "bytes", "configuration": {"endian": "little"}}], (10,), (6,))
    cases.put_document(tmp_path / "theirs", doc)
    peers.write(peers.PYTHON, tmp_path / "theirs", data)
    context.store(str(tmp_path / "ours"), create=True).create(document=doc).write(data)
    expected = peers.read(peers.PYTHON, tmp_path / "theirs").astype(native)
    for place in ("theirs", "ours"):
        got = context.store(str(tmp_path / place)).open().read(native)
        assert got.tobytes() == expected.tobytes(), place
    assert peers.read(peers.PYTHON, tmp_path / "ours").astype(native).tobytes() == expected.tobytes()


@pytest.mark.parametrize("nat", [False, True])
@pytest.mark.parametrize("format_", [2, 3])
@pytest.mark.parametrize("name", FILTERS)
def test_times(context, tmp_path, name, format_, nat):
    check(context, tmp_path, *FILTERS[name], format_, nat)


@pytest.mark.parametrize("nat", [False, True])
@pytest.mark.parametrize("name", BIG)
def test_orders(context, tmp_path, name, nat):
    check(context, tmp_path, *BIG[name], 2, nat)


@pytest.mark.parametrize("name", [*FILTERS, *BIG])
def test_migrated(context, tmp_path, name):
    dtype, filter_ = {**BIG, **FILTERS}[name]
    native = np.dtype(dtype).newbyteorder("=")
    data = np.arange(10, dtype="i8").astype(native)
    store = context.store(str(tmp_path), create=True)
    store.create(document=cases.document_v2(dtype, 0, (10,), (6,), filters=[filter_])).write(data)
    store.migrate(remove=True)
    np.testing.assert_array_equal(context.store(str(tmp_path)).open().read(native), data)
    if peers.ZARR_AT_LEAST_3_3 or name not in BIG:  # older ones mix the orders up
        np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path), data)
