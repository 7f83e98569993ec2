"""Seeds of one target made of another's inputs: a codec list goes into an array's document, a document
into consolidated metadata, and parts of a document to the targets of those parts. So an input is kept
once and serves every target whose parser it reaches."""
import json

from seeds_documents import array, array_v2, dump

# What the head bytes of fuzz_chain and fuzz_selection pick.
CHAIN_TYPES = ["uint8", "int16", "float32", "complex128", "bool"]
CHAIN_TYPES_V2 = ["|u1", "<i2", "<f4", "<c16", "|b1"]
CHAIN_SHAPES = [[], [12], [4, 6], [8, 4, 2], [1024, 1024, 1024]]
HOLE = "\0hole"  # where raw text goes
CHUNK = bytes(range(64))


def fill(document, *texts):
    """The document's JSON with each hole replaced by a text, which need not be JSON."""
    parts = dump(document).split(dump(HOLE))
    return b"".join(part + text for part, text in zip(parts, [*texts, b""]))


def from_json(text):
    """JSON of any kind, or none, wherever a parser reads a value."""
    yield from ((target, text) for target in ("meta_v3", "meta_v2", "consolidated", "nodes"))
    for name in ("float64", "string", "r24", "complex64", "<U3", "vlen-array[<i2]"):
        yield "dtype", name.encode() + b"\n" + text
    yield "dtype", text + b"\n0"
    yield "meta_v3", fill(array(attributes=HOLE), text)
    yield "meta_v3", fill(array(data_type="float64", fill_value=HOLE), text)
    yield "meta_v3", fill(array(codecs=[HOLE]), text)
    yield "meta_v2", fill(array_v2(dtype="<f8", fill_value=HOLE), text)
    yield "meta_v2", fill(array_v2(filters=[HOLE]), text)
    yield "meta_v2", fill(array_v2(compressor=HOLE), text)
    yield "chain", b"\0\2" + text
    yield "chain", b"\1\1" + text
    yield "chain", b"\4\1[" + text + b',"bytes"]'
    yield "grid", text + b"\n{}\n..."
    yield "grid", b"[4]\n" + text + b"\n..."
    yield "numbers", b"int32\n" + text + b"\n"
    yield "numbers", text + b"\n" + b'"bytes"\n'
    yield "shard", text + b"\0"
    for head in (0, 1, 6, 11):
        yield "dec_json2", bytes([head]) + text
        yield "dec_json2", bytes([head]) + b"[" + text + b',"|O",[3]]'
        yield "dec_json2", bytes([head]) + b'["a",' + text + b',"c","|O",[3]]'


def from_dtype(text):
    """A name and an element."""
    name, _, element = text.partition(b"\n")
    name = name if name[:1] in b"[{" else b'"' + name + b'"'
    yield "meta_v3", fill(array(data_type=HOLE, fill_value=HOLE), name, element)
    yield "meta_v2", fill(array_v2(dtype=HOLE, fill_value=HOLE), name, element)
    yield "chain", b"\4\1" + fill([{"name": "cast_value", "configuration": {"data_type": HOLE}}, "bytes"], name)
    yield "chain", b"\5\1" + fill([{"id": "bytes"}, {"id": "delta", "dtype": HOLE}], name)
    for codec in (b'{"name":"scale_offset","configuration":{"offset":-5,"scale":3}}',
                  b'{"name":"cast_value","configuration":{"data_type":"int16","out_of_range":"clamp"}}',
                  b'{"name":"bitround","configuration":{"keepbits":3}}'):
        yield "numbers", name.strip(b'"') + b"\n" + codec + b"\n" + CHUNK


def from_chain(text):
    if len(text) < 2:
        return
    kind, shape, codecs = text[0], CHAIN_SHAPES[text[1] % 5], text[2:]
    if kind & 1:
        yield "meta_v2", fill(array_v2(dtype=CHAIN_TYPES_V2[(kind >> 2) % 5], filters=HOLE), codecs)
    else:
        grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
        name = CHAIN_TYPES[(kind >> 2) % 5]
        yield "meta_v3", fill(array(shape=shape, chunk_grid=grid, data_type=name, codecs=HOLE), codecs)
        if codecs[:1] == b"[":
            yield "numbers", name.encode() + b"\n" + codecs[1:-1] + b"\n" + CHUNK


def from_grid(text):
    shape, _, rest = text.partition(b"\n")
    grid = rest.partition(b"\n")[0]
    yield "meta_v3", fill(array(shape=HOLE, chunk_grid=HOLE), shape, grid)


def from_selection(text):
    for shape in ([10, 20, 30, 40], [10], [5, 6]):
        grid = {"name": "regular", "configuration": {"chunk_shape": [n // 3 + 1 for n in shape]}}
        yield "grid", dump(shape) + b"\n" + dump(grid) + b"\n" + text[1:]


def from_meta_v3(text):
    node = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": {
        "kind": "inline", "must_understand": False, "metadata": {"a": HOLE}}}
    yield "consolidated", fill(node, text)
    yield "nodes", fill(node, text)
    yield "shard", text + b"\0" + CHUNK


def from_meta_v2(text):
    for key in ("a/.zarray", "a"):
        document = {"zarr_consolidated_format": 1, "metadata": {key: HOLE}}
        yield "consolidated", fill(document, text)
        yield "nodes", fill(document, text)


def from_consolidated(text):
    yield "nodes", text


def from_lists(text):
    """Lists of text as lists of numbers."""
    for head in range(0, 40, 2):
        yield "dec_listed", bytes([head]) + text[1:]


# No target's inputs come back to it: scripts/fuzz --shrink goes through the corpora in this order.
MAKERS = {"json": from_json, "selection": from_selection, "dtype": from_dtype, "chain": from_chain, "grid": from_grid,
          "meta_v3": from_meta_v3, "meta_v2": from_meta_v2, "consolidated": from_consolidated,
          "dec_json2": from_lists, "dec_msgpack2": from_lists}


def parts(text):
    """What a document holds for the targets of its parts."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    if document.get("zarr_format") == 2 and "dtype" in document:
        yield from parts_v2(document)
    elif "data_type" in document:
        yield from parts_v3(document)


def parts_v3(document):
    name, codecs = document["data_type"], document.get("codecs")
    name = name.encode() if isinstance(name, str) else dump(name)
    yield "dtype", name + b"\n" + dump(document.get("fill_value"))
    if "shape" in document and "chunk_grid" in document:
        yield "grid", dump(document["shape"]) + b"\n" + dump(document["chunk_grid"]) + b"\n..."
    if not isinstance(codecs, list):
        return
    head = CHAIN_TYPES.index(name.decode()) if name.decode() in CHAIN_TYPES else 0
    yield "chain", bytes([head << 2, 2]) + dump(codecs)
    front = []
    for codec in codecs:
        if codec == "bytes" or isinstance(codec, dict) and codec.get("name") == "bytes":
            break
        front.append(codec)
    if front:
        yield "numbers", name + b"\n" + dump(front)[1:-1] + b"\n" + CHUNK


def parts_v2(document):
    name, filters = document["dtype"], document.get("filters")
    yield "dtype", (name.encode() if isinstance(name, str) else dump(name)) + b"\n" + dump(document.get("fill_value"))
    head = CHAIN_TYPES_V2.index(name) if name in CHAIN_TYPES_V2 else 0
    compressor = [document["compressor"]] if document.get("compressor") else []
    chain = [{"id": "bytes", "endian": "little"}, *(filters if isinstance(filters, list) else []), *compressor]
    yield "chain", bytes([head << 2 | 1, 1]) + dump(chain)
