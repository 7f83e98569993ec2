#!/usr/bin/env python3
"""Writes the seed corpora of the targets shard and selection: the shards and chunks of
tests/hostile/stores.py that are small, and selections as a user writes them."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "hostile"))
sys.dont_write_bytecode = True

from stores import CASES  # noqa: E402

SELECTIONS = ["", "...", "0:10,::2,-1,...", "[3,5]", "[[1,2],0:3]", "::-1", "5:1:-2,:", "[3,5,...]",
              "-9223372036854775808:9223372036854775807:9223372036854775807", "1,2,3,4", "a/b/../c",
              "c/0/0", "zarr.json", "..", "18446744073709551616"]


def main():
    folder = HERE / "corpus" / "shard"
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in CASES.items():
        if not name.startswith(("shard_", "zstd_", "gzip_", "blosc_", "lz4_", "crc_")):
            continue
        files = make().files
        value = files.get("a/c/0/0")
        if value is not None and len(value) < 1000:
            (folder / name).write_bytes(files["a/zarr.json"] + b"\0" + value)
    folder = HERE / "corpus" / "selection"
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(SELECTIONS):
        for shape in (20, 22, 16):
            (folder / f"seed-{i:02}-{shape}").write_bytes(bytes([shape]) + text.encode())


if __name__ == "__main__":
    main()
