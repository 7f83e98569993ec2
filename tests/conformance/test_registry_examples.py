"""The registry's rules as documents (registry_examples.py): what they allow is opened and written
strictly, and reads as the same again; what they forbid is refused, with the field named."""
import json
import re
import subprocess
import sys

import pytest

import registry_examples
from zarrc_abi import ZarrcError

EXAMPLES = list(registry_examples.examples())
GOOD = [e for e in EXAMPLES if not e.field]
BAD = [e for e in EXAMPLES if e.field]


def ids(examples):
    return [e.name for e in examples]


def open_document(context, document):
    store = context.store()
    store.put("zarr.json", json.dumps(document).encode())
    return store.open()


def of(document, example):
    """The part that the example is about."""
    found = document[example.place]
    if example.place != "codecs":
        return found
    name = example.canonical["name"]
    return next(codec for codec in found if codec["name"] == name)


@pytest.mark.parametrize("example", GOOD, ids=ids(GOOD))
def test_accepted(context, example):
    array = open_document(context, example.document)
    strict = json.loads(context.store().create(document=array.metadata).metadata)
    assert of(strict, example) == example.canonical
    again = open_document(context, strict)
    assert json.loads(context.store().create(document=again.metadata).metadata) == strict
    assert again.fill_bytes == array.fill_bytes or "vlen" in json.dumps(strict["codecs"])


# Members that only encoding needs: a stored document is read whatever they say.
ENCODING = {"blosc": ["cname", "clevel", "shuffle", "typesize", "blocksize"], "gzip": ["level"],
            "zstd": ["level", "checksum"], "bitround": ["keepbits"], "numcodecs.zlib": ["level"],
            "numcodecs.bz2": ["level"], "numcodecs.lz4": ["acceleration"],
            "numcodecs.quantize": ["digits", "dtype <x4"]}  # a type by name that no build knows


def only_encoding(example):
    found = re.match(r"codecs (\S+): (?:bad|without) (\w+(?: <\w+)?)", example.name)
    return found and found[2] in ENCODING.get(found[1], [])


@pytest.mark.parametrize("example", BAD, ids=ids(BAD))
def test_refused(context, example):
    acts = [lambda context, document: context.store().create(document=document)]
    if only_encoding(example):
        open_document(context, example.document)
    else:
        acts.append(open_document)
    for act in acts:
        with pytest.raises(ZarrcError) as raised:
            act(context, example.document)
        assert raised.value.code in ("CORRUPT", "INVALID", "UNSUPPORTED", "LIMIT"), raised.value
        assert example.field in raised.value.message, raised.value


def test_as_a_script(tmp_path):
    subprocess.run([sys.executable, registry_examples.__file__, tmp_path], check=True)
    index = json.loads((tmp_path / "index.json").read_text())
    assert len(index) == len(EXAMPLES) > 600
    for row, example in zip(index, EXAMPLES):
        assert json.loads((tmp_path / row["folder"] / "zarr.json").read_text()) == example.document
