"""Fill values of v2 arrays of objects with json2 or msgpack2: any JSON value, as zarr-python 2.18 reads
and writes them. A missing element reads as a stored one of that value does, whatever is done to the array."""
import json
import os
import pathlib
import subprocess

import numcodecs
import numpy as np
import pytest

import cases
from zarrc_abi import ZarrcError
from zarrc_selection import Selection

CONFIGS = [{"id": "json2"}, {"id": "msgpack2"}]
# The fill value in .zarray, and the element that it is.
FILLS = [("0", " 0"), ("1", " 1"), ("-3", " -3"), ("1.5", " 1.5"), ("-0.0", " -0.0"), ("true", " true"), ("false", " false"),
         ('""', ""), ('"text"', "text"), ('"0"', "0"), ('" 0"', ' " 0"'), ('"\\" 0\\""', '" 0"'), ('" x"', " x"),
         ("[1,2]", " [1,2]"), ("[]", " []"), ('{"a":1}', ' {"a":1}'), ("{}", " {}"), ('["ü"]', ' ["ü"]'), ("null", " null"),
         ("NaN", " NaN"), ("Infinity", " Infinity"), ("-Infinity", " -Infinity"), ("[NaN]", " [NaN]"), ('"NaN"', "NaN"),
         ("9223372036854775808", " 9223372036854775808")]
ids = {"argvalues": FILLS, "ids": [fill for fill, _ in FILLS]}
PROGRAM = os.environ.get("ZARRC", str(pathlib.Path(__file__).parents[2] / "build/dev/bin/zarrc"))


def find_codec(config):
    if config["id"] == "msgpack2":
        pytest.importorskip("msgpack", reason="numcodecs needs the module msgpack, which is not installed")
    return numcodecs.get_codec(dict(config))


def document(config, fill, shape=(5,), chunks=(2,)):
    made = json.dumps(cases.document_v2("|O", "HERE", shape, chunks, filters=[config]))
    return made.replace('"HERE"', fill).encode()


def stored_fill(text):
    """The fill value as the document has it, so that NaN and "NaN" differ."""
    return json.dumps(json.loads(text)["fill_value"], separators=(",", ":"), ensure_ascii=False)


def put(store, config, fill, **shapes):
    store.put(".zarray", document(config, fill, **shapes))
    return store.open()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("fill,element", **ids)
def test_missing_is_as_stored(context, config, fill, element):
    """zarr-python puts the fill value where a chunk ends before its edge does, and reads it where none is."""
    codec = find_codec(config)
    store = context.store()
    array = put(store, config, fill, shape=(6,))
    chunk = np.empty(2, dtype=object)
    chunk[0], chunk[1] = json.loads(fill), "x"
    store.put("1", codec.encode(chunk))
    assert array.read_vlen() == [element.encode()] * 3 + [b"x"] + [element.encode()] * 2
    assert array.verify() == []


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("fill,element", **ids)
def test_life(context, config, fill, element):
    """Partial writes, fill-valued chunks, resize, attributes, other handles and copies keep the fill value."""
    codec = find_codec(config)
    store = context.store()
    array = put(store, config, fill)
    one = element.encode()
    array.write_vlen([b"a"], Selection.box((5,), (1,), (1,)))  # the other element of the chunk is missing
    found = codec.decode(store.get("0"))
    assert json.dumps(found.tolist()) == json.dumps([json.loads(fill), "a"])
    array.write_vlen([one] * 3, Selection.box((5,), (2,), (3,)))  # nothing else than the fill value
    assert store.keys() == [".zarray", "0"]
    array.set_attribute("a", 1)
    array.resize((7,))
    array.resize((4,))
    assert array.read_vlen() == [one, b"a", one, one]
    assert stored_fill(store.get(".zarray")) == fill
    assert stored_fill(array.metadata) == fill
    assert store.open().read_vlen() == array.read_vlen()
    other = context.store()
    made = other.create(document=array.metadata)
    assert stored_fill(other.get(".zarray")) == fill and made.read_vlen() == [one] * 4
    third = context.store()
    store.copy_node("", third, "copy")
    assert stored_fill(third.get("copy/.zarray")) == fill
    assert third.open("copy").read_vlen() == array.read_vlen()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("fill,element", **ids)
def test_consolidated(context, config, fill, element):
    store = context.store()
    store.create_group(zarr_format=2)
    store.put("a/.zarray", document(config, fill))
    store.consolidate()
    kept = json.loads(store.get(".zmetadata"))["metadata"]["a/.zarray"]
    assert stored_fill(json.dumps(kept)) == fill
    assert store.consolidated_check() == []
    array = store.group().open_array("a")
    assert array.read_vlen() == [element.encode()] * 5
    if "N" in fill or "I" in fill:  # as strings they are other values
        store.put(".zmetadata", store.get(".zmetadata").replace(fill.encode(), json.dumps(fill).encode()))
        assert store.consolidated_check() != []


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("fill,element", **ids)
def test_create(context, config, fill, element):
    """A spec has values as JSON, and elements as text, which is what zarr_array_fill_value() prints."""
    values = [json.dumps(element, ensure_ascii=False)] + ([fill] if fill[0] != '"' else [])
    for value in values:
        store = context.store()
        array = store.create(shape=(3,), chunks=(2,), dtype="string", zarr_format=2,
                             codecs={"filters": [config], "compressor": None}, fill_value=value.encode())
        assert stored_fill(store.get(".zarray")) == fill
        assert array.read_vlen() == store.open().read_vlen() == [element.encode()] * 3
        assert stored_fill(array.metadata) == fill
        assert array.fill_bytes is None if fill == "null" else array.fill_bytes is not None


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("fill,element", **ids)
def test_program(tmp_path, config, fill, element):
    """create --fill and --like, info, cat, diff, and reencode to v2, to v3 and back."""
    codec, other = json.dumps(config), json.dumps(CONFIGS[config["id"] == "json2"])
    a, like, moved, v3, back, text = (tmp_path / name for name in ("a", "like", "moved", "v3", "back", "text"))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/.zarray").write_bytes(document(config, fill))

    def check_missing(path, n=5):
        assert json.loads(run("cat", path, "--format=json")) == [element] * n
        return json.loads((path / ".zarray").read_text()) if (path / ".zarray").exists() else None
    asked = json.dumps(element) if fill.startswith('"') else fill
    run("create", a, "--zarr-format=2", "--dtype=string", "--shape=5", "--chunks=2", f"--codec={codec}", f"--fill={asked}")
    made = check_missing(a)
    assert made["filters"] == [config] and made["compressor"] is None  # zarr-python opens no other
    run("create", like, "--like", tmp_path / "theirs")
    run("reencode", tmp_path / "theirs", moved, "--zarr-format=2", "--chunks=3", f"--codec={other}")
    run("reencode", tmp_path / "theirs", text, "--zarr-format=2", "--codec=vlen-utf8")
    run("reencode", tmp_path / "theirs", v3, "--zarr-format=3", "--codec=vlen-utf8")
    run("reencode", v3, back, "--zarr-format=2", f"--codec={codec}")
    for path in (a, like, moved, back):
        assert check_missing(path) is not None and stored_fill((path / ".zarray").read_text()) == fill
        assert run("diff", tmp_path / "theirs", path, "--data") == ""
    check_missing(text)
    check_missing(v3)
    assert json.loads((v3 / "zarr.json").read_text())["fill_value"] == element
    told = json.loads(run("info", "--json", a))["fill_value"]
    assert told is None if fill == "null" else told == element
    run("diff", tmp_path / "theirs", v3, "--data")


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_diff_tells(tmp_path, config):
    """0 and "" are other elements, although no chunk is stored."""
    for name, fill in (("a", "0"), ("b", '""')):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".zarray").write_bytes(document(config, fill))
    run("diff", tmp_path / "a", tmp_path / "b", code=1)


def test_spelling_of_numbers(context):
    """A number is spelled as a stored one: as it is in JSON, and as a double in MessagePack."""
    for id_, spelled in (("json2", " 1.50"), ("msgpack2", " 1.5")):
        store = context.store()
        array = put(store, {"id": id_}, "1.50")
        array.write_vlen([b"a"], Selection.box((5,), (1,), (1,)))
        assert array.read_vlen() == [spelled.encode(), b"a"] + [spelled.encode()] * 3
        array.resize((6,))
        assert b"1.50" in store.get(".zarray")


def test_what_cannot_be_written_is_read(context):
    """MessagePack has no integers above 64 bits: writing one is an error, reading it as the fill value is not."""
    array = put(context.store(), {"id": "msgpack2"}, str(1 << 70))
    assert array.read_vlen() == [b" " + str(1 << 70).encode()] * 5
    with pytest.raises(ZarrcError, match="an integer of more than 64 bits"):
        array.write_vlen([b"a"], Selection.box((5,), (1,), (1,)))
    array.resize((7,))  # an array that another program made stays as it is
    assert array.read_vlen() == [b" " + str(1 << 70).encode()] * 7


@pytest.mark.parametrize("config,fill,why", [
    ({"id": "msgpack2"}, str(1 << 70), "has an integer of more than 64 bits"),
    ({"id": "msgpack2", "use_single_float": True}, "[1e300]", "is too large for 32 bits"),
    ({"id": "json2", "allow_nan": False}, '{"a": NaN}', "is not finite")], ids=str)
def test_what_cannot_be_written_is_refused(tmp_path, config, fill, why):
    """A new array has no fill value that its chunks could not store."""
    done = run("create", tmp_path / "a", "--zarr-format=2", "--dtype=string", "--shape=5", "--chunks=2",
               f"--codec={json.dumps(config)}", f"--fill={fill}", code=2)
    assert f"fill_value {why}" in done and not (tmp_path / "a").exists()


@pytest.mark.parametrize("fill", ["0", '""', '"x"', "null"])
def test_other_codecs_have_text_alone(context, fill):
    """vlen-utf8 has no values: old files have 0 for empty text."""
    store = context.store()
    store.put(".zarray", document({"id": "vlen-utf8"}, fill))
    text = fill.strip('"') if fill[0] == '"' else ""
    assert store.open().read_vlen() == [text.encode()] * 5
    store.put(".zarray", document({"id": "vlen-utf8"}, "1"))
    with pytest.raises(ZarrcError, match="fill_value"):
        store.open()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("dtype,codec", [("|O", "vlen-utf8"), ("<i4", "bytes")])
def test_v3_names_another_codec(tmp_path, config, dtype, codec):
    """What has no form in v3 says what has one, and that works."""
    (tmp_path / "a").mkdir()
    made = cases.document_v2(dtype, 0, (5,), (2,), filters=[config])
    (tmp_path / "a/.zarray").write_text(json.dumps(made))
    says = f'Zarr v3 has no codec "{config["id"]}": the array must be re-encoded with another one, such as "{codec}"'
    for command in (["migrate", tmp_path / "a"], ["reencode", "--zarr-format=3", tmp_path / "a", tmp_path / "b"],
                    ["create", "--zarr-format=3", "--like", tmp_path / "a", tmp_path / "b"]):
        done = run(*command, code=6)
        assert says in done and "zarrc reencode --zarr-format=3 --codec=NAME writes it anew." in done
    run("reencode", "--zarr-format=3", f"--codec={codec}", tmp_path / "a", tmp_path / "c")
    run("diff", tmp_path / "a", tmp_path / "c", "--data")


@pytest.mark.parametrize("how", ["create", "import"])
@pytest.mark.parametrize("config", [*CONFIGS, {"id": "vlen-utf8"}, {"id": "categorize", "labels": ["a", "b"], "dtype": "|O",
                                                                   "astype": "|u1"}], ids=str)
def test_codecs_of_objects_are_filters(tmp_path, config, how):
    """zarr-python looks for them in filters[0], also if the program gets them last and as JSON."""
    (tmp_path / "data.json").write_text('["a", "b", "a"]')
    where = [tmp_path / "data.json", tmp_path / "a"] if how == "import" else [tmp_path / "a", "--shape=3"]
    run(how, *where, "--zarr-format=2", "--dtype=string", f"--codec={json.dumps(config)}")
    made = json.loads((tmp_path / "a/.zarray").read_text())
    assert made["filters"] == [config] and made["compressor"] is None
