#!/usr/bin/env python3
"""Writes inputs of the targets of v2's object codecs, chunks by numcodecs: the first byte picks codec and
shape as fuzz_objects.h does, or as fuzz_dec.h does. Needs numcodecs and msgpack; run by hand when a codec is
added: `seeds_objects.py build/fuzz/corpus`, then `scripts/fuzz --keep`."""
import pathlib
import sys

import numcodecs
import numpy as np

SHAPES = [(1,), (3,), (2, 3), (300,), (2, 1, 2)]
TEXTS = ["a", "", "grün \U0001f600 \"\\\n\x7f", "x" * 40]


def box(items, shape):
    out = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        out[i] = item
    return out.reshape(shape)


SIZES = [8, 64, 1000, 4096, 70000]
LISTED = ["?", "i8", "f4", "u8", "?", "i2", "f8", "f2"]  # fuzz_dec_listed.c's types


def write(target, seeds, shapes=len(SHAPES)):
    folder = pathlib.Path(sys.argv[1]) / target
    folder.mkdir(parents=True, exist_ok=True)
    for i, (codec, shape, chunk) in enumerate(seeds):
        (folder / f"seed-{i:02}").write_bytes(bytes([codec * shapes + shape]) + bytes(chunk))


def chunks(encode, items, codec=0):
    for k, shape in enumerate(SHAPES):
        n = int(np.prod(shape))
        yield codec, k, encode(box([items[i % len(items)] for i in range(n)], shape))


def list_seeds(json, pack, zstd):
    for k, kind in enumerate(LISTED):
        for size in range(2):
            values = (np.arange(SIZES[size]) % 7 - (3 if kind[0] in "if" else 0)).astype(kind)
            if kind[0] == "f":
                values[:4] = np.nan, np.inf, -np.inf, -0.0
            chunk = (json if k < 4 else pack).encode(values)
            yield k, size, zstd.encode(chunk) if k in (3, 7) else chunk


def main():
    json, pack, zstd = numcodecs.JSON(), numcodecs.MsgPack(), numcodecs.Zstd(1)
    for target, codec in (("dec_json2", json), ("dec_msgpack2", pack)):
        three = box(["a", "b", "c"], (3,))
        write(target, [*chunks(codec.encode, TEXTS), *chunks(codec.encode, TEXTS, 1),
                       (2, 1, zstd.encode(codec.encode(three))),
                       (0, 2, codec.encode(box(list("abcdef"), (6,)))),
                       *((0, 1, codec.encode(box(["a", v, "c"], (3,))))
                         for v in (None, 0, 1.5, True, ["x"], {"y": 1}, 2**63, -7)),
                       (0, 1, codec.encode(three)[:-1]), (0, 1, codec.encode(np.arange(3)))])
    write("dec_listed", list_seeds(json, pack, zstd), len(SIZES))
    lists = [np.array([], "i4"), np.array([1, -2, 3]), np.array([7])]
    ragged = [numcodecs.VLenArray(t) for t in ("<i4", ">i2", "|b1", ">c16")]
    write("dec_vlen_array", [*(s for k in range(3) for s in chunks(ragged[k].encode, lists, k)),
                             (3, 1, zstd.encode(ragged[3].encode(box(lists, (3,))))),
                             (1, 1, ragged[2].encode(box(lists, (3,))))])
    labels = [numcodecs.Categorize(["a", "", "bc", "a"], "O", t) for t in ("u1", ">i2", "<u8")]
    words = ["a", "bc", "", "none"]
    write("dec_categorize", [*(s for k in range(2) for s in chunks(lambda v, k=k: labels[k].encode(v).tobytes(),
                                                                   words, k)),
                             (2, 1, zstd.encode(labels[2].encode(box(words[:3], (3,))).tobytes())),
                             (0, 1, b"\1\5\0"), (1, 0, b"\xff\xff")])


main()
