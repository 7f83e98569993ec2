"""Members of codecs as each format spells them. Whatever spelling an array has, the documents that
zarrc makes of it by reencode, migrate, create and import are read by zarr-python, zarrs, TensorStore
and numcodecs. Members that only encoding needs do not keep an array from being read."""
import json
import os
import pathlib
import shutil
import subprocess

import numcodecs
import numpy as np
import pytest
import zarr

import cases
import oracles
import peers
from cases import CRC, LITTLE, PLAIN
from zarrc_abi import ZarrcError

PROGRAM = os.environ.get("ZARRC", str(pathlib.Path(__file__).parents[2] / "build/dev/bin/zarrc"))
SHAPE, CHUNKS = (6, 5), (4, 3)
NUMBERS = np.arange(30).reshape(SHAPE)


def zarrc(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=60)
    assert done.returncode == code, (arguments, done.stderr.decode(), done.stdout.decode())
    return done.stdout.decode()


def read_document(folder):
    for name in ("zarr.json", ".zarray"):
        if (folder / name).exists():
            return json.loads((folder / name).read_text())
    raise AssertionError(f"no array in {folder}")


# ---- spellings ---------------------------------------------------------------------------

def blosc(**members):
    return {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0, **members}


# The compressor, or the filter if the data type is another.
V2 = [
    *({"id": "zlib", **more} for more in ({}, {"level": -1}, {"level": 0}, {"level": 9})),
    *({"id": "gzip", **more} for more in ({}, {"level": -1}, {"level": 0}, {"level": 9})),
    *({"id": "zstd", **more} for more in ({}, {"level": 0}, {"level": -7}, {"level": 22, "checksum": False},
                                          {"level": 1, "checksum": True})),
    *({"id": "lz4", **more} for more in ({}, {"acceleration": 0}, {"acceleration": 9})),
    {"id": "blosc"}, *(blosc(shuffle=shuffle) for shuffle in (-1, 0, 1, 2)),
    *(blosc(cname=cname, shuffle=-1) for cname in ("lz4hc", "blosclz", "zstd", "zlib")),
    blosc(typesize=2), blosc(clevel=0), blosc(blocksize=256, clevel=9),
    *({"id": "bz2", **more} for more in ({}, {"level": 9})),
    *({"id": "lzma", **more} for more in (
        {}, {"format": 1, "check": -1, "preset": None, "filters": None}, {"format": 2, "preset": 1}, {"check": 1},
        {"format": 3, "check": -1, "preset": None, "filters": [{"id": 3, "dist": 2}, {"id": 33, "preset": 1}]})),
    {"id": "zfpy", "mode": 5}, {"id": "zfpy", "mode": 4, "tolerance": -1, "rate": -1, "precision": -1},
    *({"id": name} for name in ("crc32", "adler32", "crc32c", "fletcher32", "jenkins_lookup3")),
    {"id": "crc32", "location": "end"}, {"id": "crc32c", "location": "start"},
    {"id": "jenkins_lookup3", "initval": 7, "prefix": None},
]
V2_FILTERS = [
    *({"id": "shuffle", **more} for more in ({}, {"elementsize": 2}, {"elementsize": 4})),
    {"id": "delta", "dtype": "<i4"}, {"id": "delta", "dtype": "<i4", "astype": "<i2"},
    {"id": "fixedscaleoffset", "offset": 1, "scale": 2, "dtype": "<i4", "astype": "<i4"},
    {"id": "fixedscaleoffset", "offset": 1.0, "scale": 4.0, "dtype": "<i4"},
    {"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i4"},
]
V3 = [
    *([LITTLE, {"name": "gzip", "configuration": {"level": level}}] for level in (0, 9)),
    *([LITTLE, {"name": "zstd", "configuration": more}] for more in (
        {"level": 0}, {"level": -7, "checksum": False}, {"level": 22, "checksum": True})),
    *([LITTLE, {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, **more}}] for more in (
        {}, {"shuffle": "noshuffle", "blocksize": 0}, {"shuffle": "bitshuffle", "typesize": 4, "blocksize": 0},
        {"shuffle": -1}, {"shuffle": 2}, {"shuffle": "BYTE"}, {"typesize": 1}, {"typesize": 1, "shuffle": "auto"})),
    *([LITTLE, {"name": "numcodecs.blosc", "configuration": {"cname": "zstd", "clevel": 1, "shuffle": shuffle}}]
      for shuffle in (-1, 0, 2)),
    [LITTLE, CRC], [LITTLE, {"name": "crc32c", "configuration": {}}],
    [LITTLE, {"name": "numcodecs.crc32c", "configuration": {"location": "start"}}],
    [cases.sharding((2, 3), [LITTLE, {"name": "blosc", "configuration": {"shuffle": -1}}])],
    [LITTLE, {"name": "numcodecs.zlib", "configuration": {}}],
    [LITTLE, {"name": "numcodecs.shuffle", "configuration": {}}],
    [LITTLE, {"name": "numcodecs.lzma", "configuration": {"preset": 1}}],
    [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}, LITTLE],
    [{"name": "numcodecs.zfpy", "configuration": {"mode": 5}}],
]


def is_filter(found):
    return found in V2_FILTERS


def document_v2(found):
    roles = {"filters": [found]} if is_filter(found) else {"compressor": found}
    return cases.document_v2("<i4", 0, SHAPE, CHUNKS, separator="/", **roles)


def document_v3(codecs):
    return cases.document_v3("int32", 0, codecs, SHAPE, CHUNKS if len(codecs) > 1 else (4, 3), encoding="v2")


def label(value):
    return json.dumps(value.get("compressor") or value.get("filters") or value.get("codecs"))[:90]


DOCUMENTS = [document_v2(found) for found in V2 + V2_FILTERS] + [document_v3(codecs) for codecs in V3]


def write_document(context, folder, document):
    """The array as another program has written the document, with elements in all chunks."""
    cases.put_document(folder, document)
    with context.store(str(folder)) as store, store.open() as array:
        array.write(NUMBERS.astype("i4"))


def numcodecs_reads(folder, document):
    """v2: all chunks by numcodecs' own codecs, which refuse members that they do not know."""
    codecs = [numcodecs.get_codec(dict(config)) for config in
              [*(document["filters"] or []), *([document["compressor"]] if document["compressor"] else [])]]
    separator = document["dimension_separator"]
    for at in np.ndindex(2, 2):
        data = (folder / separator.join(map(str, at))).read_bytes()
        for codec in reversed(codecs):
            data = codec.decode(data)
        chunk = np.frombuffer(bytes(np.asarray(data).tobytes()), "<i4").reshape(document["chunks"])
        box = tuple(slice(i * c, min(n, (i + 1) * c)) for i, c, n in zip(at, document["chunks"], SHAPE))
        want = NUMBERS[box]
        assert (chunk[:want.shape[0], :want.shape[1]] == want).all()


def find_readers(document):
    """Those that have these codecs."""
    found = peers.find_supporting(document)
    assert peers.PYTHON in found
    if document["zarr_format"] == 3:
        names = set(peers.names_in(document["codecs"]))
        here = names <= oracles.IN_TENSORSTORE and "location" not in json.dumps(document["codecs"])
    else:
        here = not document["compressor"] or document["compressor"]["id"] in ("blosc", "bz2", "zlib", "zstd")
    return [peer for peer in found if peer != peers.TENSORSTORE or here]


def is_read(folder, want=NUMBERS):
    document = read_document(folder)
    readers = find_readers(document)
    if peers.ZARR_AT_LEAST_3_3 or "numcodecs." not in json.dumps(document):
        for peer in readers:
            assert (peers.read(peer, folder) == want).all(), (peer, document)
    if document["zarr_format"] == 2:
        numcodecs_reads(folder, document)
    else:
        assert '"auto"' not in json.dumps(document)
    return document


@pytest.mark.parametrize("document", DOCUMENTS, ids=label)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_reencode(context, tmp_path, document, zarr_format):
    write_document(context, tmp_path / "a", document)
    zarrc("reencode", f"--zarr-format={zarr_format}", *["--shards=none"][:zarr_format == 2], tmp_path / "a", tmp_path / "b")
    assert is_read(tmp_path / "b")["zarr_format"] == zarr_format


@pytest.mark.parametrize("document", DOCUMENTS, ids=label)
def test_migrate(context, tmp_path, document):
    """There, and back."""
    write_document(context, tmp_path / "a", document)
    first = document["zarr_format"]
    if "sharding_indexed" in json.dumps(document):
        zarrc("migrate", "--zarr-format=2", tmp_path / "a", code=6)
        return
    for to in (5 - first, first):
        zarrc("migrate", f"--zarr-format={to}", "--remove-old", tmp_path / "a")
        assert is_read(tmp_path / "a")["zarr_format"] == to


@pytest.mark.parametrize("document", DOCUMENTS, ids=label)
def test_create(context, tmp_path, document):
    """From the document, like the array, and by the codecs that `info` shows."""
    write_document(context, tmp_path / "a", document)
    (tmp_path / "d.json").write_text(json.dumps(document))
    zarrc("create", f"--document={tmp_path}/d.json", tmp_path / "document")
    zarrc("create", f"--like={tmp_path}/a", tmp_path / "like")
    for name in ("document", "like"):
        with context.store(str(tmp_path / name)) as store, store.open() as array:
            array.write(NUMBERS.astype("i4"))
        is_read(tmp_path / name)


@pytest.mark.parametrize("document", DOCUMENTS, ids=label)
def test_import(tmp_path, document):
    """The codecs are given as JSON, which both formats have."""
    np.save(tmp_path / "x.npy", NUMBERS.astype("i4"))
    codecs = document["codecs"] if document["zarr_format"] == 3 else \
        [*(document["filters"] or []), *([document["compressor"]] if document["compressor"] else [])]
    zarrc("import", f"--zarr-format={document['zarr_format']}", "--chunks=4,3", "--separator=/",
          *(f"--codec={json.dumps(codec)}" for codec in codecs), tmp_path / "x.npy", tmp_path / "a")
    is_read(tmp_path / "a")


# ---- members that only encoding needs -------------------------------------------------------

# (good, wrong members): a new array must not have them; a stored one is read.
ODD_V2 = [
    ({"id": "zstd", "level": 1}, {"level": 100}), ({"id": "zstd", "level": 1}, {"level": -10**9}),
    ({"id": "zstd", "level": 1}, {"level": "best"}), ({"id": "zstd", "level": 1}, {"checksum": 7}),
    ({"id": "zstd", "level": 1}, {"strategy": 3}), ({"id": "zstd", "level": 1}, {"level": 1e300}),
    ({"id": "gzip", "level": 1}, {"level": 10}), ({"id": "gzip", "level": 1}, {"mtime": 0}),
    ({"id": "zlib", "level": 1}, {"level": -2}), ({"id": "zlib", "level": 1}, {"level": [1]}),
    ({"id": "bz2", "level": 1}, {"level": 0}), ({"id": "bz2", "level": 1}, {"level": 2.5}),
    ({"id": "lz4"}, {"acceleration": 2**40}), ({"id": "lz4"}, {"level": 3}),
    (blosc(), {"cname": "lz5"}), (blosc(), {"clevel": 10}), (blosc(), {"shuffle": 3}), (blosc(), {"shuffle": "up"}),
    (blosc(), {"blocksize": -1}), (blosc(), {"typesize": 0}), (blosc(), {"nthreads": 4}),
    ({"id": "lzma"}, {"preset": 10}), ({"id": "lzma"}, {"check": 99}), ({"id": "lzma"}, {"filters": "x"}),
    ({"id": "lzma"}, {"filters": [{"id": 3}]}), ({"id": "lzma"}, {"preset": 1, "filters": [{"id": 33}]}),
    ({"id": "lzma", "format": 3, "filters": [{"id": 33, "preset": 1}]},
     {"filters": [{"id": 33, "preset": 1, "mode": 9, "nice_len": 1, "depth": -1, "x": 1}]}),
    ({"id": "lzma", "format": 3, "filters": [{"id": 33}]}, {"preset": 3}),
    ({"id": "zfpy", "mode": 5}, {"mode": 9}), ({"id": "zfpy", "mode": 5}, {"mode": 4, "tolerance": "x"}),
    ({"id": "zfpy", "mode": 5}, {"mode": 2, "rate": 1e9}), ({"id": "zfpy", "mode": 5}, {"compressor": "x"}),
    ({"id": "crc32"}, {"nobody": 1}), ({"id": "jenkins_lookup3"}, {"nobody": 1}),
    ({"id": "shuffle", "elementsize": 4}, {"nobody": 1}), ({"id": "delta", "dtype": "<i4"}, {"nobody": 1}),
]
ODD_V3 = [
    ({"name": name, "configuration": good}, wrong) for name, good, wrong in (
        ("gzip", {"level": 1}, {"level": 10}), ("gzip", {"level": 1}, {"level": -1}),
        ("zstd", {"level": 1}, {"level": 100}), ("zstd", {"level": 1}, {"checksum": "no"}),
        ("blosc", cases.blosc()["configuration"], {"clevel": 11}),
        ("blosc", cases.blosc()["configuration"], {"cname": "best"}),
        ("blosc", cases.blosc()["configuration"], {"typesize": -1, "blocksize": 2**40}),
        ("numcodecs.zlib", {"level": 1}, {"level": 77}), ("numcodecs.bz2", {"level": 1}, {"nobody": 1}),
        ("numcodecs.lz4", {}, {"acceleration": "fast"}), ("numcodecs.lzma", {}, {"preset": 12}))]


def odd_document(found, wrong):
    if "name" in found:
        return document_v3([LITTLE, {"name": found["name"], "configuration": {**found["configuration"], **wrong}}])
    return document_v2({**found, **wrong}) if not is_filter(found) else \
        {**document_v2(found), "filters": [{**found, **wrong}]}


def find_codec(document):
    return document["codecs"][1] if document["zarr_format"] == 3 else \
        document["compressor"] or document["filters"][0]


def odd_label(value):
    return json.dumps(value)[:60]


@pytest.mark.parametrize("found,wrong", ODD_V2 + ODD_V3, ids=odd_label)
def test_only_encoding(context, tmp_path, found, wrong):
    place, odd = tmp_path / "a", odd_document(found, wrong)
    write_document(context, place, odd_document(found, {}))
    cases.put_document(place, odd)
    with context.store(str(place)) as store, store.open() as array:
        assert (array.read("i4") == NUMBERS).all()
        assert array.verify() == []
        array.set_attribute("x", 1)  # members stay as they were found
        assert find_codec(read_document(place)) == find_codec(odd)
        array.resize((6, 4))
        array.resize(SHAPE)
        assert find_codec(read_document(place)) == find_codec(odd)
        array.write(NUMBERS.astype("i4"))  # what is out of range is brought into it
        assert (array.read("i4") == NUMBERS).all()
    zarrc("verify", place)
    assert "/" in zarrc("verify", "--strict", place, code=1)
    cases.put_document(tmp_path / "good", odd_document(found, {}))
    for chunk in place.rglob("*"):  # what was written is what others read by good members
        if chunk.is_file() and chunk.name[0] not in ".z":
            (tmp_path / "good" / chunk.relative_to(place)).parent.mkdir(exist_ok=True)
            shutil.copy(chunk, tmp_path / "good" / chunk.relative_to(place))
    is_read(tmp_path / "good")
    with pytest.raises(ZarrcError) as failed:  # a new array must not have them
        context.store().create("w", document=odd)
    assert failed.value.code in ("INVALID", "UNSUPPORTED"), failed.value.message


@pytest.mark.parametrize("found,wrong", ODD_V2 + ODD_V3, ids=odd_label)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_only_encoding_made_anew(context, tmp_path, found, wrong, zarr_format):
    """New documents of such an array are strict: by reencode, migrate and --like."""
    place, odd = tmp_path / "a", odd_document(found, wrong)
    write_document(context, place, odd_document(found, {}))
    cases.put_document(place, odd)
    zarrc("reencode", f"--zarr-format={zarr_format}", place, tmp_path / "b")
    zarrc("create", f"--zarr-format={zarr_format}", f"--like={place}", tmp_path / "c")
    for made in ("b", "c"):
        zarrc("verify", "--strict", tmp_path / made)
    is_read(tmp_path / "b")
    if zarr_format != odd["zarr_format"]:
        zarrc("migrate", f"--zarr-format={zarr_format}", "--remove-old", place)
        zarrc("verify", "--strict", place)
        is_read(place)


def test_numcodecs_clamps(context, tmp_path):
    """What numcodecs takes for a level of zstd: its own array is read, and ours by it."""
    array = zarr.create_array(str(tmp_path / "a"), shape=SHAPE, chunks=CHUNKS, dtype="i4", zarr_format=2,
                              compressors=numcodecs.Zstd(level=100))
    array[...] = NUMBERS
    document = read_document(tmp_path / "a")
    document["compressor"]["level"] = 100
    cases.put_document(tmp_path / "a", document)
    with context.store(str(tmp_path / "a")) as store, store.open() as ours:
        assert (ours.read("i4") == NUMBERS).all()
        ours.write((NUMBERS + 1).astype("i4"))
    assert (zarr.open_array(str(tmp_path / "a"), mode="r")[...] == NUMBERS + 1).all()


# ---- filters that do not fit, but change nothing ---------------------------------------------

UNFIT = [("<i4", {"id": "bitround", "keepbits": 3}), ("|u1", {"id": "bitround", "keepbits": 3}),
         ("<f4", {"id": "bitround", "keepbits": -1}), ("<f4", {"id": "bitround", "keepbits": 24}),
         ("<f4", {"id": "bitround"}), (">f4", {"id": "bitround", "keepbits": 3}), ("<U2", {"id": "bitround", "keepbits": 3}),
         ("<i4", {"id": "quantize", "digits": 1, "dtype": "<i4"}), ("<f4", {"id": "quantize", "digits": 1.5, "dtype": "<f4"}),
         ("<f4", {"id": "quantize", "digits": 10**4, "dtype": "<f4"}), ("<f4", {"id": "quantize", "dtype": "<f4"}),
         ("|V3", {"id": "quantize", "digits": 1, "dtype": "<f8"}),
         ("<U2", {"id": "astype", "encode_dtype": "<U2", "decode_dtype": "<U2"}),
         ("|V3", {"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i8"})]


def plain_elements(dtype):
    return np.frombuffer(bytes(range(65, 65 + 12 * np.dtype(dtype).itemsize)) if "U" not in dtype else
                         np.array(["a", "bc"] * 6, dtype).tobytes(), dtype)


@pytest.mark.parametrize("dtype,found", UNFIT, ids=str)
def test_unfit_filter(context, tmp_path, dtype, found):
    data = plain_elements(dtype)
    cases.put_document(tmp_path / "a", cases.document_v2(dtype, None, (12,), (4,), filters=[found]))
    for at in range(3):
        (tmp_path / "a" / str(at)).write_bytes(data[4 * at:4 * at + 4].tobytes())
    with context.store(str(tmp_path / "a")) as store, store.open() as array:
        got = array.read(np.dtype(dtype).newbyteorder("="))
        assert got.astype(dtype).tobytes() == data.tobytes()
    assert "filters[0]" in zarrc("verify", "--strict", tmp_path / "a", code=1)
    with pytest.raises(ZarrcError):
        context.store().create("w", document=read_document(tmp_path / "a"))


@pytest.mark.parametrize("dtype,found", [
    ("int32", {"name": "numcodecs.bitround", "configuration": {"keepbits": 99}}),
    ("bool", {"name": "bitround", "configuration": {"keepbits": 3}}),
    ("uint8", {"name": "bitround", "configuration": {}}),
    ("int32", {"name": "numcodecs.quantize", "configuration": {"digits": 2, "dtype": "<f4"}}),
    ("bool", {"name": "numcodecs.astype", "configuration": {"encode_dtype": "<i2", "decode_dtype": "<i2"}}),
], ids=str)
def test_unfit_filter_v3(context, tmp_path, dtype, found):
    cases.put_document(tmp_path / "a", cases.document_v3(dtype, 0 if dtype != "bool" else False, [
        found, LITTLE if dtype == "int32" else PLAIN], (4,), (4,)))
    (tmp_path / "a/c").mkdir()
    data = np.array([1, 0, 1, 1], "?" if dtype == "bool" else dtype)
    (tmp_path / "a/c/0").write_bytes(data.tobytes())
    with context.store(str(tmp_path / "a")) as store, store.open() as array:
        assert (array.read(data.dtype) == data).all()


@pytest.mark.parametrize("dtype,keep", [("int32", 3), ("uint8", 3), ("complex64", 3), ("float32", 24), ("float16", 11)])
def test_bitround_of_numcodecs(context, tmp_path, dtype, keep):
    """What numcodecs cannot encode is not written under its name: zarr-python decodes such integers to other
    values. It can be read, and the codec `bitround` of Zarr's registry takes it."""
    data = np.arange(100, 104).astype(dtype)
    fill = [0, 0] if dtype == "complex64" else 0
    document = cases.document_v3(dtype, fill, [
        {"name": "numcodecs.bitround", "configuration": {"keepbits": keep}}, PLAIN if dtype == "uint8" else LITTLE], (4,), (4,))
    cases.put_document(tmp_path / "a", document)
    (tmp_path / "a/c").mkdir()
    (tmp_path / "a/c/0").write_bytes(data.tobytes())
    with context.store(str(tmp_path / "a")) as store, store.open() as array:
        assert (array.read(data.dtype) == data).all()
        with pytest.raises(ZarrcError, match="not write them"):
            array.write(data)
    assert (tmp_path / "a/c/0").read_bytes() == data.tobytes()
    with pytest.raises(ZarrcError, match="bitround.* as in numcodecs"):
        context.store().create(document=document)
    document["codecs"][0]["name"] = "bitround"
    array = context.store().create(document=document)
    array.write(data)
    assert array.read(data.dtype).shape == (4,)


# ---- shuffle without a size --------------------------------------------------------------------

@pytest.mark.parametrize("dtype,members,attributes,size", [
    ("<i2", {"elementsize": 0}, {"_nczarr_array": {}}, 2), ("<f8", {}, {"_NCZARR_ARRAY": {}}, 8),
    ("<f8", {}, {}, 4), ("<f8", {"elementsize": 0}, {}, 1), ("<f8", {"elementsize": 2}, {"_nczarr_array": {}}, 2)], ids=str)
def test_shuffle_size(context, tmp_path, dtype, members, attributes, size):
    """NCZarr shuffles by the data type's size; its arrays get that size when they are made anew."""
    data, place = np.arange(20).astype(dtype), tmp_path / "a"
    cases.put_document(place, cases.document_v2(dtype, 0, (20,), (10,), filters=[{"id": "shuffle", **members}]))
    (place / ".zattrs").write_text(json.dumps(attributes))
    for at in range(2):
        chunk = numcodecs.Shuffle(size).encode(np.ascontiguousarray(data[10 * at:10 * at + 10]))
        (place / str(at)).write_bytes(bytes(np.asarray(chunk)))
    with context.store(str(place)) as store, store.open() as array:
        assert (array.read(dtype) == data).all()
        array.set_attribute("title", "x")
        array.write(data + 1)
        assert read_document(place)["filters"] == [{"id": "shuffle", **members}]
    raw = numcodecs.Shuffle(size).decode((place / "0").read_bytes())
    assert (np.frombuffer(bytes(np.asarray(raw)), dtype) == data[:10] + 1).all()
    for zarr_format in (2, 3):
        made = tmp_path / f"v{zarr_format}"
        zarrc("reencode", f"--zarr-format={zarr_format}", place, made)
        assert f'"elementsize":{size}' in json.dumps(read_document(made), separators=(",", ":"))
        assert (peers.read(peers.PYTHON, made) == data + 1).all()
    zarrc("migrate", "--remove-old", place)
    assert (peers.read(peers.PYTHON, place) == data + 1).all()
