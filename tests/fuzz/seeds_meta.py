#!/usr/bin/env python3
"""Writes the seed corpora of the targets json, meta_v2, meta_v3, consolidated, dtype, nodes,
grid and numbers.

The metadata seeds are a choice of tests/golden/zarr-python, compact, so that a mutation
hits something. Files that a fuzzer found (crash-*, slow-*) are left alone.
"""
import json
import pathlib

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "zarr-python"

JSON = [
    '{"a":[1,-2.5e3,true,false,null,"x\\u00e9\\ud83d\\ude00\\n"],"b":{},"c":[]}',
    "[NaN,Infinity,-Infinity,0,-0.0,1e-7]",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    '"' + "long " * 20 + '"',
    '{"k0":0,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k9":9,'
    '"ka":0,"kb":1,"kc":2,"kd":3,"ke":4,"kf":5,"kg":6,"kh":7}',
    '\ufeff {"bom":1}',
    '{"a":1,"a":2}',
    "18446744073709551615",
]
DTYPE = [
    ("<i2", "-5"), ("uint64", "18446744073709551615"), ("float16", '"NaN"'),
    ("float32", '"0x7fc00001"'), (">f8", "1e-7"), ("complex64", '[1.5,"Infinity"]'),
    ("r24", "[0,1,255]"), ("|S4", '"YWI="'), ("<U3", '"a\\u00e9"'), ("<M8[10us]", '"NaT"'),
    ("bool", "true"), ('{"name":"numpy.timedelta64","configuration":{"unit":"s",'
                       '"scale_factor":3}}', "7"),
    ('{"name":"fixed_length_utf32","configuration":{"length_bytes":8}}', '"xy"'),
]
GROUP = '{"zarr_format":3,"node_type":"group"}'
V3 = ('{"zarr_format":3,"node_type":"group","consolidated_metadata":'
      '{"kind":"inline","must_understand":false,"metadata":{%s}}}')
V2 = '{"zarr_consolidated_format":1,"metadata":{%s}}'
NODES = [
    V3 % f'"a":{GROUP},"a/b":{GROUP},"a-b":{GROUP},"x/y/z":{GROUP}',
    V3 % f'"../a":{GROUP}', V3 % f'"a//b":{GROUP}', V3 % f'"":{GROUP}',
    V3 % f'"a":{GROUP},"a":{GROUP}', V3 % '"a":[]', V3 % '"a":{"zarr_format":2}',
    V3 % f'"{"d/" * 300}e":{GROUP}',
    V2 % '".zgroup":{"zarr_format":2},"a/.zgroup":{"zarr_format":2},"a/.zattrs":{"x":1}',
    V2 % '"a/.zarray":{},"a/.zgroup":{"zarr_format":2}', V2 % '"b/.zattrs":{},"c":1',
    V2 % '"/.zgroup":{"zarr_format":2}', V2 % '"a/../.zgroup":{"zarr_format":2}',
]
GRIDS = {
    "grid-rectilinear": ({"name": "rectilinear", "configuration": {
        "kind": "inline", "chunk_shapes": [4, [1, [2, 3], 40], [[1, 1000000000], 7]]}}, None),
    "grid-rectilinear-shards": ({"name": "rectilinear", "configuration": {
        "kind": "inline", "chunk_shapes": [[2, 4], [[2, 9]], 6]}}, [2, 2, 3]),
    "grid-bounded": ({"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [4, 3, 7]}}, None),
}
KEYS = {
    "keys-default-suffix": {"name": "zarrs.default_suffix", "configuration": {"separator": ".", "suffix": ".tif"}},
    "keys-suffix": {"name": "suffix", "configuration": {"suffix": ".x", "base_encoding": {"name": "v2"}}},
}

# shape, chunk_grid, selection
CHUNKED = [
    ([10, 7], {"name": "regular", "configuration": {"chunk_shape": [3, 7]}}, "1:9:2,::-1"),
    ([10, 7], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, [3, 3]], 2]}}, "..."),
    ([9], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[3, 1], [2, 1], [4, 3]]]}},
     "8:0:-3"),
    ([4, 4], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, 3], 4]}}, "[0,3,3],1"),
    ([5, 6], {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [2, 4]}}, "-1,2:"),
    ([0, 3], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[2], 1]}}, "..."),
    ([2**62], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[2**20, 2**42]]]}}, "-3:"),
    ([], {"name": "regular", "configuration": {"chunk_shape": []}}, "..."),
]
# data type, codecs in front of bytes, chunk
COMPUTED = [
    ("float32", '{"name":"cast_value","configuration":{"data_type":"int16","rounding":"nearest-away",'
     '"out_of_range":"clamp","scalar_map":{"encode":[["NaN",-1]],"decode":[[-1,"NaN"]]}}}', bytes(range(16))),
    ("int64", '{"name":"cast_value","configuration":{"data_type":"float64"}}', bytes(64)),
    ("uint8", '{"name":"cast_value","configuration":{"data_type":"float8_e4m3fn","out_of_range":"clamp"}}',
     b"\x38\x40\x44\x48\x4a\x4c\x4e\x50"),
    ("int4", '{"name":"cast_value","configuration":{"data_type":"uint8","out_of_range":"wrap"}}', bytes(range(8))),
    ("int32", '{"name":"scale_offset","configuration":{"offset":-5,"scale":3}}', bytes(32)),
    ("float64", '{"name":"scale_offset","configuration":{"offset":0.5,"scale":"0x7ff8000000000001"}}', bytes(64)),
    ("bfloat16", '{"name":"scale_offset","configuration":{"scale":0.1}}', b"\x80\x3f" * 8),
    ("float16", '{"name":"bitround","configuration":{"keepbits":3}}', b"\xff\x7b" * 8),
    ("float64", '{"name":"scale_offset","configuration":{"offset":10,"scale":10}},'
     '{"name":"cast_value","configuration":{"data_type":"int16","out_of_range":"clamp"}}', bytes(range(16))),
    ("float32", '{"name":"numcodecs.fixedscaleoffset","configuration":{"offset":1,"scale":10.5,"astype":"<u2"}}',
     bytes(range(16))),
    ("float32", '{"name":"numcodecs.quantize","configuration":{"digits":2,"dtype":"<f4"}}', bytes(range(32))),
    ("int16", '{"name":"numcodecs.delta","configuration":{"dtype":"<i2"}},'
     '{"name":"numcodecs.astype","configuration":{"encode_dtype":"<i4","decode_dtype":"<i2"}}', bytes(range(32))),
]


def grid_document(grid, inner=None, keys="default"):
    codecs = ["bytes"]
    if inner:
        codecs = [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": inner, "codecs": codecs, "index_codecs": ["bytes"]}}]
    return json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [5, 7, 9], "data_type": "uint8",
        "chunk_grid": grid, "chunk_key_encoding": keys, "fill_value": 0, "codecs": codecs},
        separators=(",", ":"))


def write(target, name, text):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def compact(path):
    return json.dumps(json.loads(path.read_text()), separators=(",", ":"), ensure_ascii=False)


def main():
    for i, text in enumerate(JSON):
        write("json", f"seed-{i}", text)
    for i, (name, value) in enumerate(DTYPE):
        write("dtype", f"seed-{i}", name + "\n" + value)
    for name, (grid, inner) in GRIDS.items():
        write("meta_v3", name, grid_document(grid, inner))
    for name, keys in KEYS.items():
        write("meta_v3", name, grid_document({"name": "regular", "configuration": {
            "chunk_shape": [1, 2, 3]}}, keys=keys))
    for path in sorted(GOLDEN.glob("*.json")):
        kind, _, rest = path.stem.partition("-")
        if kind in ("v2", "v3") and not rest.startswith("dtype-"):
            write(f"meta_{kind}", rest, compact(path))
        elif kind in ("group", "consolidated"):
            write("consolidated", path.stem, compact(path))
            write("nodes", path.stem, compact(path))
    for i, (shape, grid, selection) in enumerate(CHUNKED):
        lines = [json.dumps(part, separators=(",", ":")) for part in (shape, grid)]
        write("grid", f"seed-{i}", "\n".join([*lines, selection]))
    for i, (name, codecs, chunk) in enumerate(COMPUTED):
        write("numbers", f"seed-{i}", f"{name}\n{codecs}\n".encode() + chunk)
    for i, text in enumerate(NODES):
        write("nodes", f"seed-{i}", text)


if __name__ == "__main__":
    main()
