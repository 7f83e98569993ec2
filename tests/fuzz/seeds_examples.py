#!/usr/bin/env python3
"""Seeds that are made when fuzzing begins, not kept: `seeds_examples.py FOLDER`.

FOLDER/corpus/meta_v3 and FOLDER/corpus/chain get the documents of the registry's extensions
(tests/conformance/registry_examples.py), FOLDER/words.dict every word that metadata knows, as
libFuzzer's dictionary. `scripts/fuzz --keep` commits those that reach something.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))
from registry_examples import examples  # noqa: E402

# Members and words of v2 and of the core that the examples do not have.
MORE = """zarr_format node_type group consolidated_metadata kind inline must_understand metadata
zarr_consolidated_format storage_transformers dimension_names dimension_separator compressor filters
order object_codec id zlib clevel cname shuffle blocksize typesize lz4hc snappy blosclz noshuffle
bitshuffle level astype digits index_location start end numcodecs.zlib numcodecs.delta delta
numcodecs.bz2 numcodecs.lzma lzma preset format check vlen-array vlen-utf8 vlen-bytes json2 msgpack2
categorize labels packbits fixedscaleoffset quantize fletcher32 adler32 crc32 jenkins_lookup3 prefix
initval location base64 NaN Infinity -Infinity NaT |O |b1 <i2 >i4 <f8 >c16 |S4 <U3 <M8[ns] >m8[10s]
|V3 [["a","<i4"],["b",">f8",[2]]] 0x7fc00000 true false null 18446744073709551615""".split()


def words_of(value, out):
    if isinstance(value, dict):
        for key, member in value.items():
            out.add(key)
            words_of(member, out)
    elif isinstance(value, list):
        for item in value:
            words_of(item, out)
    elif isinstance(value, str):
        out.add(value)


def main():
    root = pathlib.Path(sys.argv[1])
    places = {name: root / "corpus" / name for name in ("meta_v3", "chain")}
    words = set(MORE)
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    for number, example in enumerate(examples()):
        words_of(example.document, words)
        text = json.dumps(example.document, separators=(",", ":")).encode()
        (places["meta_v3"] / f"example-{number:04}").write_bytes(text)
        codecs = json.dumps(example.document["codecs"], separators=(",", ":")).encode()
        (places["chain"] / f"example-{number:04}").write_bytes(b"\0\2" + codecs)
    lines = ['"' + "".join(f"\\x{byte:02x}" for byte in word.encode()) + '"'
             for word in sorted(words) if 1 < len(word) <= 60]
    (root / "words.dict").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
