"""oracles - the array in a dump of a store as others read it; None where they cannot."""
import json
import re
import warnings

import numcodecs
import numpy as np
import tensorstore
import zarr
from zarr.core.buffer import cpu

import cases
import peers

NUMCODECS = ("zlib lz4 bz2 lzma shuffle delta fixedscaleoffset quantize astype crc32 adler32 "
             "fletcher32 jenkins_lookup3 zfpy packbits").split()
OBJECTS = "json2 msgpack2 vlen-array categorize".split()  # by_numcodecs, chunk by chunk
IN_ZARR_PYTHON = {
    "bytes", "transpose", "sharding_indexed", "gzip", "zstd", "blosc", "crc32c", "vlen-utf8",
    "vlen-bytes", *("numcodecs." + name for name in NUMCODECS)}
SMALL = re.compile(r"'(u?int[24]|bfloat16|float[468]_\w+)'")
if peers.ZARR_AT_LEAST_3_3:
    IN_ZARR_PYTHON |= {"cast_value", "scale_offset"}


def mixed_up(codecs):
    """zarr-python hands numcodecs what a transpose left as a view, and gets it back in the order
    of memory: its own data does not come back. It takes the byte orders of filters at their word
    although its arrays are native, and does not tell what quantize makes of the type."""
    for codec in codecs:
        config = codec.get("configuration", {})
        sides = {str(config[key])[1:] for key in ("dtype", "astype") if key in config}
        if any(str(value).startswith(">") for value in config.values()) or \
                (codec["name"] == "numcodecs.quantize" and len(sides) > 1):
            return True
    names = [codec["name"] for codec in codecs]
    computing = {"numcodecs." + name for name in "delta fixedscaleoffset quantize astype packbits".split()}
    if "transpose" in names and computing & set(names[:len(names) - names[::-1].index("transpose")]):
        return True
    return any(mixed_up(codec.get("configuration", {}).get("codecs", [])) for codec in codecs)


def bitround_of_one_byte(filters):
    """numcodecs' BitRound.decode() views what it gets as floats of the same width: a signed byte,
    which `delta` gives, is no float ("data type '|f1' not understood"). Behind bytes it works."""
    return any(first["id"] == "bitround" and second["id"] == "delta" and np.dtype(second["dtype"]) == np.int8
               for first, second in zip(filters, filters[1:]))


def field_types(dtype):
    for field in dtype["configuration"].get("fields", []):
        yield field["data_type"]
        if isinstance(field["data_type"], dict):
            yield from field_types(field["data_type"])


def zarr_python_knows(document):
    if document["zarr_format"] == 2:
        dtype, filters = document["dtype"], document["filters"] or [{"id": ""}]
        if filters[0]["id"] == "vlen-bytes" and not document["shape"] or filters[0]["id"] in OBJECTS or \
                bitround_of_one_byte(filters):
            return False
        return not isinstance(dtype, str) or dtype[0] in "<>|"
    dtype = document["data_type"]
    if not peers.ZARR_AT_LEAST_3_3 and (
            isinstance(dtype, dict) and dtype["name"] == "struct" or any(
                name.startswith("numcodecs.") for name in peers.names_in(document["codecs"]))):
        return False  # it lacks the one, and mixes byte orders up in front of the others
    known = {*cases.V3_TYPES, "string", "variable_length_bytes"}
    if isinstance(dtype, dict) and not all(isinstance(kind, dict) or kind in known for kind in field_types(dtype)):
        return False
    if isinstance(dtype, str) and dtype not in known or mixed_up(document["codecs"]):
        return False
    if dtype == "variable_length_bytes" and not document["shape"]:
        return False  # it gives the pointer's own bytes
    names = set(peers.names_in(document["codecs"]))
    return names <= IN_ZARR_PYTHON and not ("cast_value" in names and SMALL.search(str(document["codecs"])))


def by_zarr_python(dump, case):
    document, dtype = case.document, case.peer_dtype
    name = "zarr.json" if document["zarr_format"] == 3 else ".zarray"
    spoken = json.loads(dump[name])
    if document["zarr_format"] == 3:
        spoken = peers.translate(spoken)
    if peers.PYTHON not in peers.find_opening(spoken) or not zarr_python_knows(spoken):
        return None
    values = {key: cpu.Buffer.from_bytes(value) for key, value in dump.items()}
    values[name] = cpu.Buffer.from_bytes(json.dumps(spoken).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zarr.config.set(peers.RECTILINEAR):
            array = zarr.open_array(zarr.storage.MemoryStore(values), mode="r")
        return np.asarray(array[...], dtype or array.dtype)


# ---- tensorstore -------------------------------------------------------------------------

IN_TENSORSTORE = {"bytes", "transpose", "sharding_indexed", "gzip", "zstd", "blosc", "crc32c"}
TENSORSTORE_TYPES = {*cases.V3_TYPES, "int2", "int4", "bfloat16", "float8_e3m4", "float8_e4m3b11fnuz",
                     "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"}


def open_values(driver, values):
    store = tensorstore.KvStore.open("memory://").result()
    for key, value in values.items():
        store[key] = value
    return tensorstore.open({"driver": driver}, kvstore=store).result().read().result()


def by_tensorstore(dump, case):
    document = case.document
    if document["zarr_format"] == 2 or document["chunk_grid"]["name"] != "regular" or \
            not isinstance(document["data_type"], str) or document["data_type"] not in TENSORSTORE_TYPES or \
            not set(peers.names_in(document["codecs"])) <= IN_TENSORSTORE or \
            peers.TENSORSTORE not in peers.find_opening({**document, "data_type": "int8"}):
        return None
    found = open_values("zarr3", dump)
    return found.view(f"u{found.itemsize}") if found.dtype.kind == "V" else found


def by_n5(dump, case):
    """The same chunks as an N5 data set, whose blocks are 0 where nothing is stored."""
    document, codecs = case.document, case.document.get("codecs")
    if document["zarr_format"] == 2 or codecs[0]["name"] != "n5_default" or len(codecs) > 1 or \
            document["chunk_grid"]["name"] != "regular" or not document["shape"] or 0 in document["shape"] or \
            document["chunk_key_encoding"] != {"name": "v2", "configuration": {"separator": "/"}}:
        return None
    behind = codecs[0]["configuration"]["codecs"][2:]
    compression = {"type": "raw"}
    if behind:
        name, config = behind[0]["name"], behind[0].get("configuration", {})
        if name == "blosc":
            shuffle = ["noshuffle", "shuffle", "bitshuffle"].index(config["shuffle"])
            compression = {"type": name, "cname": config["cname"], "clevel": config["clevel"], "shuffle": shuffle}
        elif name in ("gzip", "zstd"):
            compression = {"type": name, "level": config["level"]}
        else:
            return None
    chunks, rank = document["chunk_grid"]["configuration"]["chunk_shape"], len(document["shape"])
    stored = {key for key in dump if key != "zarr.json"}
    every = {"/".join(map(str, at)) for at in np.ndindex(*(-(-n // c) for n, c in zip(document["shape"], chunks)))}
    if any(case.fill) and stored != every:
        return None
    made = {"dimensions": document["shape"], "blockSize": chunks, "dataType": document["data_type"],
            "compression": compression, "axes": [str(d) for d in range(rank)]}
    values = {key: dump[key] for key in stored}
    return open_values("n5", {**values, "attributes.json": json.dumps(made).encode()})


# ---- numcodecs ---------------------------------------------------------------------------

def native_bytes(item):
    if isinstance(item, str):
        return item.encode()
    return bytes(item) if isinstance(item, bytes) else np.asarray(item).astype(item.dtype.newbyteorder("=")).tobytes()


def by_numcodecs(dump, case):
    """Objects, chunk by chunk: what is not stored has the fill value."""
    document = case.document
    if document["zarr_format"] == 3 or not document["filters"] or document["filters"][0]["id"] not in OBJECTS or \
            case.dtype != object or "M8" in str(document["filters"][0]):
        return None  # the last it writes and cannot read
    codecs = [numcodecs.get_codec(dict(config)) for config in document["filters"] +
              ([document["compressor"]] if document["compressor"] else [])]
    shape, chunks = document["shape"], document["chunks"]
    model = np.empty(shape, object)
    for at in np.ndindex(*(-(-n // c) for n, c in zip(shape, chunks))):
        part = np.empty(chunks, object)
        key = document["dimension_separator"].join(map(str, at)) or "0"
        if key in dump:
            data = dump[key]
            for codec in reversed(codecs):
                data = codec.decode(data)
            flat = np.empty(part.size, object)
            for i, item in enumerate(data.reshape(-1)):
                flat[i] = native_bytes(item)
            part = flat.reshape(chunks, order=document["order"])
        else:
            part.fill(case.fill)
        box = tuple(slice(i * c, min(n, (i + 1) * c)) for i, c, n in zip(at, chunks, shape))
        model[box] = part[tuple(slice(0, b.stop - b.start) for b in box)]
    return list(model.reshape(-1))


ORACLES = {"zarr-python": by_zarr_python, "tensorstore": by_tensorstore, "N5": by_n5, "numcodecs": by_numcodecs}
