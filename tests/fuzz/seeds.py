#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets from files of the tree, so that the seeds are not in git: from texts
(seeds_texts.py), of zip archives (seeds_zip.py), from the documents of other tests (seeds_documents.py), and
from inputs of other targets, tests/fuzz/corpus included (seeds_derived.py). Writes them with the inputs of tests/fuzz/corpus:

    seeds.py FOLDER                       FOLDER/<target>.seeds, one file a target, for CTest's replay
    seeds.py --files FOLDER [TARGET...]   FOLDER/<target>/, one file an input, for libFuzzer, and
                                          FOLDER/words.dict, its dictionary of metadata's words.
                                          Names of inputs that libFuzzer chose begin with corpus-

Equal trees make equal seeds.
"""
import argparse
import json
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True
import corpora  # noqa: E402
import seeds_derived  # noqa: E402
import seeds_documents  # noqa: E402
import seeds_texts  # noqa: E402
import seeds_zip  # noqa: E402

# Members and words of v2 and of the core that the examples of the registry do not have.
WORDS = """zarr_format node_type group consolidated_metadata kind inline must_understand metadata
zarr_consolidated_format storage_transformers dimension_names dimension_separator compressor filters
order object_codec id zlib clevel cname shuffle blocksize typesize lz4hc snappy blosclz noshuffle
bitshuffle level astype digits index_location start end numcodecs.zlib numcodecs.delta delta
numcodecs.bz2 numcodecs.lzma lzma preset format check vlen-array vlen-utf8 vlen-bytes json2 msgpack2
categorize labels packbits fixedscaleoffset quantize fletcher32 adler32 crc32 jenkins_lookup3 prefix
initval location base64 NaN Infinity -Infinity NaT |O |b1 <i2 >i4 <f8 >c16 |S4 <U3 <M8[ns] >m8[10s]
|V3 [["a","<i4"],["b",">f8",[2,3]]] 0x7fc00000 true false null 18446744073709551615""".split()


def make():
    """{target: {bytes: name}}"""
    found = {}

    def put(target, data, source):
        known = found.setdefault(target, {})
        known.setdefault(data, f"{source}-{len(known):05}")

    for target, texts in seeds_texts.seeds().items():
        for text in texts:
            put(target, text, "text")
    for archive in seeds_zip.seeds():
        put("zip", archive, "archive")
    own = {target: [*found.get(target, {}), *corpora.read(target)] for target in seeds_derived.MAKERS}
    for source, maker in seeds_derived.MAKERS.items():
        for data in own[source]:
            for target, made in maker(data):
                put(target, made, f"of-{source}")
    for target, documents in seeds_documents.seeds().items():
        for document in documents:
            put(target, document, "document")
            if target.startswith("meta"):
                for other, part in seeds_derived.parts(document):
                    put(other, part, "part")
                for other, made in seeds_derived.MAKERS[target](document):
                    put(other, made, f"of-{target}")
    for path in corpora.FOLDER.iterdir():
        for data, name in corpora.read(path.stem).items():
            put(path.stem, data, name or "corpus")
    return found


def collect_words(value, out):
    if isinstance(value, dict):
        for key, member in value.items():
            out.add(key)
            collect_words(member, out)
    elif isinstance(value, list):
        for item in value:
            collect_words(item, out)
    elif isinstance(value, str):
        out.add(value)


def dictionary():
    words = set(WORDS)
    for example in seeds_documents.examples():
        collect_words(json.loads(seeds_documents.dump(example.document)), words)
    return "".join('"' + "".join(f"\\x{byte:02x}" for byte in word.encode()) + '"\n'
                   for word in sorted(words) if 1 < len(word) <= 60)


def write_files(root, found, targets):
    for target in targets or found:
        folder = root / target
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for data, name in found.get(target, {}).items():
            (folder / name).write_bytes(data)
    (root / "words.dict").write_text(dictionary())


def write_bundles(root, found):
    """The corpus comes twice: some code runs only if the input before left something to reuse."""
    for target, seeds in found.items():
        packed = b"".join(len(data).to_bytes(4, "little") + data for data in [*corpora.read(target), *seeds])
        (root / f"{target}.seeds").write_bytes(packed)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--files", action="store_true")
    ask.add_argument("folder", type=pathlib.Path)
    ask.add_argument("target", nargs="*")
    args = ask.parse_args()
    found = make()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.files:
        write_files(args.folder, found, args.target)
    else:
        write_bundles(args.folder, found)
    print(f"seeds: {sum(map(len, found.values()))} inputs for {len(found)} targets")


if __name__ == "__main__":
    main()
