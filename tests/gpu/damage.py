#!/usr/bin/env python3
"""damage - chunks that are damaged: what the device says of each must be what the CPU says, and the device must go on working.

    damage.py FOLDER [--plugin FILE] [--kind device]

Chunks are read one by one, then in rows, in which the first bad one ends a read. The last line is JSON.
"""
import argparse
import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np
from library import Failure, Library, Stats

EDGE = 24  # elements of a chunk along one side
LITTLE = '{"name":"bytes","configuration":{"endian":"little"}}'
LZ4 = '{"name":"numcodecs.lz4","configuration":{"acceleration":1}}'
CHAINS = {
    "lz4": f"[{LITTLE},{LZ4}]",
    "blosc-lz4": f'[{LITTLE},{{"name":"blosc","configuration":{{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":2,'
                 f'"blocksize":0}}}}]',
    "zstd": f'[{LITTLE},{{"name":"zstd","configuration":{{"level":1,"checksum":false}}}}]',
    "zstd-3-checksum": f'[{LITTLE},{{"name":"zstd","configuration":{{"level":3,"checksum":true}}}}]',
    "blosc-zstd": f'[{LITTLE},{{"name":"blosc","configuration":{{"cname":"zstd","clevel":3,"shuffle":"shuffle","typesize":2,'
                  f'"blocksize":0}}}}]',
    "shuffle-lz4-crc32c": f'[{LITTLE},{{"name":"numcodecs.shuffle","configuration":{{"elementsize":2}}}},{LZ4},{{"name":"crc32c"}}]',
}


PREFER = b"zstd=cuda.zstd;blosc=cuda.blosc,cuda.blosc_zstd"  # kernels that are not measured yet


def damage(random, value):
    """Some bytes changed, often in the header; or cut, or longer."""
    value, how = bytearray(value), random.integers(0, 7)
    if how == 0:
        return bytes(value[:random.integers(0, len(value))])
    if how == 1:
        return bytes(value) + random.bytes(int(random.integers(1, 20)))
    for _ in range(random.integers(1, 4)):
        at = random.integers(0, min(len(value), 24) if random.integers(0, 2) else len(value))
        value[at] = {2: value[at] ^ 1 << random.integers(0, 8), 3: 255, 4: 0}.get(how, random.integers(0, 256))
    return bytes(value)


def has_no_distance(block):
    """Whether a block of LZ4 has a match of no distance, before anything else is wrong: liblz4 takes it as zeros, kernels do not."""
    at = 0
    while at < len(block):
        token = block[at]
        at, literals = longer(block, at + 1, token >> 4)
        at += literals
        if block[at:at + 2] == b"\0\0":
            return True
        at, _ = longer(block, at + 2, token & 15)
    return False


def longer(block, at, bits):
    """A length and what follows it."""
    more = 255 if bits == 15 else 0
    while more == 255 and at < len(block):
        more = block[at]
        at, bits = at + 1, bits + more
    return at, bits


def find_blocks(chain, value):
    """The blocks of LZ4 in an encoded chunk."""
    if not chain.startswith("blosc"):
        return [value[4:]]
    at, found = int.from_bytes(value[16:20], "little"), []
    while at + 4 <= len(value):  # one block of Blosc, of a stream or two
        n = int.from_bytes(value[at:at + 4], "little")
        found.append(value[at + 4:at + 4 + n])
        at += 4 + n
    return found


def make(library, folder, chain, random, side):
    """An array of side x side chunks; three quarters of them are damaged."""
    n = side * EDGE
    values = (np.cumsum(random.integers(-1, 2, n * n)) + 1000).astype(np.uint16).reshape(n, n)
    values[:, ::7] = random.integers(0, 65536, values[:, ::7].shape)
    array = library.create(folder, (n, n), "uint16", (EDGE, EDGE), chain)
    memory = library.memory("host", values.nbytes)
    memory.put(values)
    array.write(memory, values.shape)
    array.close()
    for path in sorted((folder / "c").glob("*/*")):
        if random.integers(0, 4):
            path.write_bytes(damage(random, path.read_bytes()))


def read(array, memory, shape, text, stats):
    try:
        array.read(memory, shape, selection=text, stats=stats, codec_preference=PREFER)
        return None
    except Failure as why:
        return why.code


def compare(library, folder, side, kind, said):
    """Each chunk alone, by the CPU and on the device; then rows of chunks."""
    array = library.open(folder)
    host, device = library.memory("host", EDGE * EDGE * 2), library.memory(kind, EDGE * EDGE * 2)
    stats = Stats()
    for row in range(side):
        for column in range(side):
            text = f"{row * EDGE}:{(row + 1) * EDGE}, {column * EDGE}:{(column + 1) * EDGE}"
            cpu = read(array, host, (EDGE, EDGE), text, None)
            gpu = read(array, device, (EDGE, EDGE), text, stats)
            said["bad"] += cpu is not None
            said["fallback"] += stats.chunks_fallback
            said["by_kernels"] += gpu is None and stats.chunks_fallback == 0 and stats.bytes_up < host.n_bytes
            value = (folder / "c" / str(row) / str(column)).read_bytes()
            if cpu is None and gpu == "CORRUPT" and "lz4" in folder.name and any(map(has_no_distance, find_blocks(folder.name, value))):
                said["no_distance"] += 1
            elif (cpu is None) != (gpu is None):
                said["other_verdict"].append(f"chunk {row}/{column}: CPU {cpu}, device {gpu}")
            elif cpu != gpu:
                said["other_code"] += 1
            elif cpu is None and host.get().tobytes() != device.get().tobytes():
                said["other_bytes"].append(f"chunk {row}/{column}")
    device.free()
    rows = library.memory(kind, EDGE * EDGE * side * 2)
    said["bad_rows"] = sum(read(array, rows, (EDGE, EDGE * side), f"{row * EDGE}:{(row + 1) * EDGE}", stats) is not None
                           for row in range(side))
    rows.free()
    array.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plugin")
    parser.add_argument("--kind", default="device")
    parser.add_argument("--chains", default=",".join(CHAINS))
    parser.add_argument("--side", type=int, default=50, help="chunks along one side of each of the arrays")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    library = Library(plugin=options.plugin)
    all_said = {}
    for chain in options.chains.split(","):
        said = all_said[chain] = {"chunks": options.side ** 2, "bad": 0, "fallback": 0, "other_verdict": [], "other_bytes": [], "other_code": 0,
                                   "no_distance": 0, "by_kernels": 0}
        shutil.rmtree(options.folder / chain, ignore_errors=True)
        make(library, options.folder / chain, CHAINS[chain], np.random.default_rng(options.seed), options.side)
        start = time.monotonic()
        compare(library, options.folder / chain, options.side, options.kind, said)
        shutil.rmtree(options.folder / chain)
        said["seconds"] = round(time.monotonic() - start, 1)
        print(chain, {name: len(value) if isinstance(value, list) else value for name, value in said.items()}, flush=True)
    # the device still works
    memory = library.memory(options.kind, 1000)
    memory.put(np.arange(1000, dtype=np.uint8))
    alive = memory.get().tobytes() == np.arange(1000, dtype=np.uint8).tobytes()
    memory.free()
    library.close()
    print(json.dumps({"chains": all_said, "alive": alive}))
    return not alive or any(said["other_verdict"] or said["other_bytes"] for said in all_said.values())


sys.exit(main())
